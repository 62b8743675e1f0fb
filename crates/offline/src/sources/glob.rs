//! Globs, for systems whose shell does not expand them: `*`, `?`, and `**` for any folders.

use std::path::{Path, PathBuf};

use super::walk;

/// Whether a text has wildcards.
pub fn is_pattern(text: &str) -> bool {
    text.contains(['*', '?'])
}

/// The files that a pattern matches, sorted. The error is one line.
pub fn matches(pattern: &str) -> Result<Vec<PathBuf>, String> {
    let parts: Vec<&str> = pattern.split('/').collect();
    let fixed = parts.iter().take_while(|part| !is_pattern(part)).count().min(parts.len() - 1);
    let base = match parts[..fixed].join("/") {
        base if base.is_empty() && pattern.starts_with('/') => "/".to_owned(),
        base if base.is_empty() => ".".to_owned(),
        base => base,
    };
    let base = Path::new(&base);
    let mut found = vec![];
    walk(base, &mut |path| {
        let below = path.strip_prefix(base).unwrap_or(path);
        let below: Vec<String> = below.iter().map(|part| part.to_string_lossy().into_owned()).collect();
        if matches_parts(&parts[fixed..], &below) {
            found.push(path.to_owned());
        }
    })?;
    Ok(found)
}

/// Whether the names of a path match those of a pattern.
pub fn matches_parts<T: AsRef<str>>(pattern: &[&str], path: &[T]) -> bool {
    match (pattern, path) {
        ([], []) => true,
        (["**", rest @ ..], _) => {
            matches_parts(rest, path) || path.split_first().is_some_and(|(_, below)| matches_parts(pattern, below))
        }
        ([first, rest @ ..], [name, below @ ..]) => {
            matches_name(first.as_bytes(), name.as_ref().as_bytes()) && matches_parts(rest, below)
        }
        _ => false,
    }
}

/// Matches one name, in time linear in the product of both lengths.
fn matches_name(pattern: &[u8], name: &[u8]) -> bool {
    let (mut at, mut in_name) = (0, 0);
    // the last star, and the part of the name that it covers
    let mut star: Option<(usize, usize)> = None;
    while in_name < name.len() {
        match pattern.get(at) {
            Some(b'*') => {
                star = Some((at, in_name));
                at += 1;
            }
            Some(letter) if *letter == b'?' || *letter == name[in_name] => {
                at += 1;
                in_name += 1;
            }
            _ => match &mut star {
                Some((place, covered)) => {
                    *covered += 1;
                    (at, in_name) = (*place + 1, *covered);
                }
                None => return false,
            },
        }
    }
    pattern[at..].iter().all(|letter| *letter == b'*')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names() {
        for (pattern, name, want) in [
            ("*.yaml", "a.yaml", true),
            ("*.yaml", "a.yml", false),
            ("a*b*c", "axxbyybc", true),
            ("a?c", "abc", true),
            ("a?c", "ac", false),
            ("*", "", true),
            ("", "a", false),
        ] {
            assert_eq!(matches_name(pattern.as_bytes(), name.as_bytes()), want, "{pattern} {name}");
        }
    }
}
