//! Semantic versions, with the messages of the Go library that upstream uses.

use machinery::value::quote;
use std::cmp::Ordering;

/// A version.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Version {
    pub(crate) numbers: [u64; 3],
    prerelease: Vec<Identifier>,
    build: Vec<String>,
}

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Identifier {
    Number(u64),
    Text(String),
}

pub(crate) type Parsed<T> = std::result::Result<T, String>;

pub(crate) fn number(text: &str, lower: &str, upper: &str) -> Parsed<u64> {
    if text.is_empty() || !text.bytes().all(|b| b.is_ascii_digit()) {
        if text.is_empty() {
            return Err("strconv.ParseUint: parsing \"\": invalid syntax".to_owned());
        }
        return Err(format!("Invalid character(s) found in {lower} number {}", quote(text)));
    }
    if text.len() > 1 && text.starts_with('0') {
        return Err(format!("{upper} number must not contain leading zeroes {}", quote(text)));
    }
    text.parse().map_err(|_| format!("strconv.ParseUint: parsing {}: value out of range", quote(text)))
}

pub(crate) fn is_word(text: &str) -> bool {
    text.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-')
}

pub(crate) fn prerelease(text: &str) -> Parsed<Identifier> {
    if text.is_empty() {
        return Err("Prerelease is empty".to_owned());
    }
    if text.bytes().all(|b| b.is_ascii_digit()) {
        if text.len() > 1 && text.starts_with('0') {
            return Err(format!("Numeric PreRelease version must not contain leading zeroes {}", quote(text)));
        }
        let range = |_| format!("strconv.ParseUint: parsing {}: value out of range", quote(text));
        return text.parse().map(Identifier::Number).map_err(range);
    }
    if !is_word(text) {
        return Err(format!("Invalid character(s) found in prerelease {}", quote(text)));
    }
    Ok(Identifier::Text(text.to_owned()))
}

impl Version {
    /// Parses a version. The error has the text of the Go library.
    ///
    /// # Errors
    ///
    /// The text is not a semantic version.
    pub fn parse(text: &str) -> std::result::Result<Version, String> {
        if text.is_empty() {
            return Err("Version string empty".to_owned());
        }
        let mut parts = text.splitn(3, '.');
        let (Some(major), Some(minor), Some(rest)) = (parts.next(), parts.next(), parts.next()) else {
            return Err("No Major.Minor.Patch elements found".to_owned());
        };
        let major = number(major, "major", "Major")?;
        let minor = number(minor, "minor", "Minor")?;
        let (rest, build) = rest.split_once('+').map_or((rest, None), |(rest, build)| (rest, Some(build)));
        let (patch, pre) = rest.split_once('-').map_or((rest, None), |(patch, pre)| (patch, Some(pre)));
        let patch = number(patch, "patch", "Patch")?;
        let prerelease = pre.map_or(Ok(vec![]), |pre| pre.split('.').map(prerelease).collect::<Parsed<_>>())?;
        let mut parts = vec![];
        for part in build.into_iter().flat_map(|build| build.split('.')) {
            if part.is_empty() {
                return Err("Build meta data is empty".to_owned());
            }
            if !is_word(part) {
                return Err(format!("Invalid character(s) found in build meta data {}", quote(part)));
            }
            parts.push(part.to_owned());
        }
        Ok(Version { numbers: [major, minor, patch], prerelease, build: parts })
    }

    /// Parses a version leniently: drops a `v` and leading zeros, and completes short versions.
    pub(crate) fn normalized(text: &str) -> Parsed<Version> {
        let text = text.strip_prefix('v').unwrap_or(text);
        let mut parts: Vec<String> = text.splitn(3, '.').map(str::to_owned).collect();
        for part in &mut parts {
            if part.len() > 1 {
                let trimmed = part.trim_start_matches('0');
                let digit = trimmed.starts_with(|c: char| c.is_ascii_digit());
                *part = if digit { trimmed.to_owned() } else { format!("0{trimmed}") };
            }
        }
        if parts.len() < 3 {
            if parts.last().is_some_and(|last| last.contains(['+', '-'])) {
                return Err("short version cannot contain PreRelease/Build meta data".to_owned());
            }
            parts.resize(3, "0".to_owned());
        }
        Version::parse(&parts.join("."))
    }

    /// Precedence: build data doesn't count.
    #[must_use]
    pub fn compare(&self, other: &Version) -> Ordering {
        let numbers = self.numbers.cmp(&other.numbers);
        if numbers != Ordering::Equal {
            return numbers;
        }
        match (self.prerelease.is_empty(), other.prerelease.is_empty()) {
            (true, true) => Ordering::Equal,
            (true, false) => Ordering::Greater,
            (false, true) => Ordering::Less,
            (false, false) => self.prerelease.cmp(&other.prerelease),
        }
    }
}
