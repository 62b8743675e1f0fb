//! The names that objects of several kinds may have.

use machinery::{Release, names};

/// Any name: declarative validation, or the kind itself, checks it.
pub fn any_name(_name: &str, _release: Release) -> Vec<String> {
    vec![]
}

pub fn path_segment(name: &str, _release: Release) -> Vec<String> {
    names::path_segment(name)
}

/// A name that declarative validation checks since 1.37. It does not check `generateName`.
pub fn declared_name(name: &str, release: Release) -> Vec<String> {
    if release >= Release::V1_37 { vec![] } else { names::dns1123_subdomain(name) }
}

/// Validates a key of `data`; returns error messages.
pub fn data_key(key: &str) -> Vec<String> {
    let mut messages = vec![];
    if key.len() > 253 {
        messages.push("must be no more than 253 characters".to_owned());
    }
    let legal = |b: u8| b.is_ascii_alphanumeric() || b"-._".contains(&b);
    if key.is_empty() || !key.bytes().all(legal) {
        messages.push("a valid config key must consist of alphanumeric characters, '-', '_' or '.' (e.g. 'key.name',  or 'KEY_NAME',  or 'key-name', regex used for validation is '[-._a-zA-Z0-9]+')".to_owned());
    }
    if key == "." {
        messages.push("must not be '.'".to_owned());
    } else if key == ".." {
        messages.push("must not be '..'".to_owned());
    } else if key.starts_with("..") {
        messages.push("must not start with '..'".to_owned());
    }
    messages
}
