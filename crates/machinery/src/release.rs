//! The release of Kubernetes whose behavior is served.

use std::fmt;
use std::str::FromStr;

/// A minor release of Kubernetes, the component emulation version of kube-apiserver. Code compares it where releases
/// differ: `release >= Release::V1_36`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Release {
    /// Kubernetes 1.35.
    V1_35,
    /// Kubernetes 1.36.
    V1_36,
    /// Kubernetes 1.37.
    #[default]
    V1_37,
}

impl Release {
    /// The release that is served without emulation.
    pub const NEWEST: Release = Release::V1_37;
    /// All releases, the oldest first.
    pub const ALL: [Release; 3] = [Release::V1_35, Release::V1_36, Release::V1_37];

    /// The minor version: 37 of 1.37.
    pub fn minor(self) -> u32 {
        match self {
            Release::V1_35 => 35,
            Release::V1_36 => 36,
            Release::V1_37 => 37,
        }
    }
}

impl fmt::Display for Release {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "1.{}", self.minor())
    }
}

/// The text is not a release that can be served.
#[derive(Debug, PartialEq, Eq)]
pub struct UnknownRelease;

impl FromStr for Release {
    type Err = UnknownRelease;

    /// Reads `1.36`.
    fn from_str(text: &str) -> Result<Release, UnknownRelease> {
        Release::ALL.into_iter().find(|release| release.to_string() == text).ok_or(UnknownRelease)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn releases_are_ordered_and_named() {
        assert!(Release::V1_35 < Release::V1_36 && Release::default() == Release::NEWEST);
        for release in Release::ALL {
            assert_eq!(release.to_string().parse(), Ok(release));
        }
        assert_eq!("1.34".parse::<Release>(), Err(UnknownRelease));
    }
}
