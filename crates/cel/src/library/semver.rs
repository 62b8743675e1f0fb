//! Semantic versions, with the messages of the Go library that upstream uses.

use crate::value::{Error, Opaque, Result, Val};
use machinery::value::quote;
use std::cmp::Ordering;

/// A version.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Version {
    numbers: [u64; 3],
    prerelease: Vec<Part>,
    build: Vec<String>,
}

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Part {
    Number(u64),
    Text(String),
}

type Parsed<T> = std::result::Result<T, String>;

fn number(text: &str, lower: &str, upper: &str) -> Parsed<u64> {
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

fn is_word(text: &str) -> bool {
    text.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-')
}

fn prerelease(text: &str) -> Parsed<Part> {
    if text.is_empty() {
        return Err("Prerelease is empty".to_owned());
    }
    if text.bytes().all(|b| b.is_ascii_digit()) {
        if text.len() > 1 && text.starts_with('0') {
            return Err(format!("Numeric PreRelease version must not contain leading zeroes {}", quote(text)));
        }
        let range = |_| format!("strconv.ParseUint: parsing {}: value out of range", quote(text));
        return text.parse().map(Part::Number).map_err(range);
    }
    if !is_word(text) {
        return Err(format!("Invalid character(s) found in prerelease {}", quote(text)));
    }
    Ok(Part::Text(text.to_owned()))
}

impl Version {
    fn parse(text: &str) -> Parsed<Version> {
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

    /// Drops a `v`, leading zeros, and completes short versions.
    fn normalized(text: &str) -> Parsed<Version> {
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
    pub(crate) fn compare(&self, other: &Version) -> Ordering {
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

fn parse(args: &[Val<'_>]) -> Result<Parsed<Version>> {
    match args {
        [Val::String(text)] | [Val::String(text), Val::Bool(false)] => Ok(Version::parse(text)),
        [Val::String(text), Val::Bool(true)] => Ok(Version::normalized(text)),
        _ => Err(Error::overload()),
    }
}

pub fn semver<'a>(args: &[Val<'a>]) -> Result<Val<'a>> {
    parse(args)?.map(|version| Val::opaque(Opaque::Semver(version))).map_err(Error::new)
}

pub fn is_semver<'a>(args: &[Val<'a>]) -> Result<Val<'a>> {
    Ok(Val::Bool(parse(args)?.is_ok()))
}

fn with<T>(value: Option<&Val<'_>>, use_it: impl FnOnce(&Version) -> T) -> Result<T> {
    match value {
        Some(Val::Opaque(opaque)) => match &**opaque {
            Opaque::Semver(version) => Ok(use_it(version)),
            _ => Err(Error::overload()),
        },
        _ => Err(Error::overload()),
    }
}

fn part<'a>(args: &[Val<'a>], at: usize) -> Result<Val<'a>> {
    with(args.first(), |version| Val::Int(version.numbers[at] as i64))
}

pub fn major<'a>(args: &[Val<'a>]) -> Result<Val<'a>> {
    part(args, 0)
}

pub fn minor<'a>(args: &[Val<'a>]) -> Result<Val<'a>> {
    part(args, 1)
}

pub fn patch<'a>(args: &[Val<'a>]) -> Result<Val<'a>> {
    part(args, 2)
}

fn order(args: &[Val<'_>]) -> Result<Ordering> {
    with(args.first(), |a| with(args.get(1), |b| a.compare(b)))?
}

pub fn is_less_than<'a>(args: &[Val<'a>]) -> Result<Val<'a>> {
    order(args).map(|order| Val::Bool(order.is_lt()))
}

pub fn is_greater_than<'a>(args: &[Val<'a>]) -> Result<Val<'a>> {
    order(args).map(|order| Val::Bool(order.is_gt()))
}

pub fn compare_to<'a>(args: &[Val<'a>]) -> Result<Val<'a>> {
    order(args).map(|order| Val::Int(order as i64))
}
