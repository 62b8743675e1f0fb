//! The flags of the component emulation version.

use clap::Args;
use client::{Context as _, Result, fail};
use server::Release;

/// The only component that the flags may name.
const COMPONENT: &str = "kube";
/// The oldest minor version of `--min-compatibility-version`.
const OLDEST_COMPATIBLE: u32 = 34;

/// The release of Kubernetes to emulate.
#[derive(Args, Debug)]
#[command(next_help_heading = "Serving")]
pub struct Emulation {
    /// Release of Kubernetes whose behavior is served: 1.35, 1.36 or 1.37, or with its component, kube=1.36.
    #[arg(long, value_name = "VERSION,...", value_delimiter = ',')]
    pub emulated_version: Vec<String>,

    /// Oldest release that other servers of the same store may have, such as 1.35; at most the emulated one. Reported by
    /// /version.
    #[arg(long, value_name = "VERSION,...", value_delimiter = ',')]
    pub min_compatibility_version: Vec<String>,

    /// Accepted for compatibility: no API that is served has a later version.
    #[arg(long, value_name = "BOOL", num_args = 0..=1, require_equals = true, default_value = "false",
        default_missing_value = "true")]
    pub emulation_forward_compatible: bool,

    /// Accepted for compatibility: --runtime-config enables APIs of any release.
    #[arg(long, value_name = "BOOL", num_args = 0..=1, require_equals = true, default_value = "false",
        default_missing_value = "true")]
    pub runtime_config_emulation_forward_compatible: bool,
}

impl Emulation {
    /// The release to emulate, and the minor version of the oldest release to be compatible with.
    pub fn releases(&self) -> Result<(Release, u32)> {
        let emulated = minor(&self.emulated_version).context("--emulated-version")?;
        let known = |minor: &u32| Release::ALL.into_iter().find(|release| release.minor() == *minor);
        let (oldest, newest) = (Release::ALL[0], Release::NEWEST);
        let release = match emulated {
            None => newest,
            Some(minor) => known(&minor)
                .ok_or_else(|| format!("emulation version 1.{minor} is not between [{oldest}, {newest}.0]"))?,
        };
        let compatible = minor(&self.min_compatibility_version).context("--min-compatibility-version")?;
        let compatible = compatible.unwrap_or(release.minor() - 1);
        if !(OLDEST_COMPATIBLE..=release.minor()).contains(&compatible) {
            return fail(format!(
                "minCompatibilityVersion version 1.{compatible} is not between [1.{OLDEST_COMPATIBLE}, {release}]"
            ));
        }
        Ok((release, compatible))
    }
}

/// The minor version that a flag names. The error is kube-apiserver's.
fn minor(given: &[String]) -> Result<Option<u32>> {
    let mut found: Option<(&str, u32)> = None;
    for text in given {
        let (component, version) = text.split_once('=').unwrap_or((COMPONENT, text));
        if component != COMPONENT {
            return fail(format!("component not registered: {component}"));
        }
        let illegal = || format!("illegal version string {version:?}");
        let numbers = version.strip_prefix('v').unwrap_or(version).split('.').map(str::parse);
        let numbers: Vec<u32> = numbers.collect::<Result<_, _>>().map_err(|_| illegal())?;
        let minor = match numbers.as_slice() {
            [1, minor] => *minor,
            [_, _, _] => return fail(format!("patch version not allowed, got: {component}={version}")),
            _ => return fail(illegal()),
        };
        if let Some((other, _)) = found {
            return fail(format!("duplicate version flag, {COMPONENT}={other} and {component}={version}"));
        }
        found = Some((version, minor));
    }
    Ok(found.map(|(_, minor)| minor))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_parse_like_kube_apiserver() {
        let cases = [
            ("", "", Ok((Release::V1_37, 36))),
            ("1.36", "", Ok((Release::V1_36, 35))),
            ("kube=1.35", "1.34", Ok((Release::V1_35, 34))),
            ("1.37", "kube=1.37", Ok((Release::V1_37, 37))),
            ("1.34", "", Err("emulation version 1.34 is not between [1.35, 1.37.0]")),
            ("1.36", "1.37", Err("minCompatibilityVersion version 1.37 is not between [1.34, 1.36]")),
            ("wardle=1.2", "", Err("--emulated-version: component not registered: wardle")),
            ("1.x", "", Err("--emulated-version: illegal version string \"1.x\"")),
            ("1.36.1", "", Err("--emulated-version: patch version not allowed, got: kube=1.36.1")),
            ("1.35,kube=1.36", "", Err("--emulated-version: duplicate version flag, kube=1.35 and kube=1.36")),
        ];
        let list = |text: &str| text.split(',').filter(|entry| !entry.is_empty()).map(str::to_owned).collect();
        for (emulated, compatible, want) in cases {
            let flags = Emulation {
                emulated_version: list(emulated),
                min_compatibility_version: list(compatible),
                emulation_forward_compatible: false,
                runtime_config_emulation_forward_compatible: false,
            };
            assert_eq!(flags.releases().map_err(String::from), want.map_err(str::to_owned), "{emulated} {compatible}");
        }
    }
}
