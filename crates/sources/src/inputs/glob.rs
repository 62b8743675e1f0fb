//! Globs, for systems whose shell does not expand them: `*`, `?`, and `**` for any folders.

use std::path::{Path, PathBuf};

use super::walk;
use crate::error::Error;

/// Whether a text has wildcards.
pub fn is_pattern(text: &str) -> bool {
    text.contains(['*', '?'])
}

/// Returns the files that a pattern matches, sorted.
pub fn matches(pattern: &str) -> Result<Vec<PathBuf>, Error> {
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
    let one = |part: &&str, name: &T| matches_name(part.as_bytes(), name.as_ref().as_bytes());
    matches_all(pattern, path, |part| *part == "**", one)
}

fn matches_name(pattern: &[u8], name: &[u8]) -> bool {
    matches_all(pattern, name, |letter| *letter == b'*', |letter, other| *letter == b'?' || letter == other)
}

/// Matches a text, in time linear in the product of both lengths: a star first covers nothing, and more each time that what follows
/// does not match. Only the last star has to give way, since what an earlier one covers more could only be covered by the last one too.
fn matches_all<P, T>(
    pattern: &[P],
    text: &[T],
    is_star: impl Fn(&P) -> bool,
    matches_one: impl Fn(&P, &T) -> bool,
) -> bool {
    let (mut at, mut in_text) = (0, 0);
    // the last star, and where what it covers ends
    let mut star: Option<(usize, usize)> = None;
    while in_text < text.len() {
        match pattern.get(at) {
            Some(part) if is_star(part) => {
                star = Some((at, in_text));
                at += 1;
            }
            Some(part) if matches_one(part, &text[in_text]) => {
                at += 1;
                in_text += 1;
            }
            _ => match &mut star {
                Some((place, covered)) => {
                    *covered += 1;
                    (at, in_text) = (*place + 1, *covered);
                }
                None => return false,
            },
        }
    }
    pattern[at..].iter().all(is_star)
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

    #[test]
    fn paths() {
        let deep = "a/".repeat(200);
        let stars = "**/*a*/".repeat(30);
        for (pattern, path, want) in [
            ("**/x.yaml", "x.yaml", true),
            ("**/x.yaml", "a/b/x.yaml", true),
            ("a/**/b/**/c", "a/b/x/b/y/c", true),
            ("a/**/b/**/c", "a/x/y/c", false),
            ("a/**", "a/b/c", true),
            ("a/*", "a/b/c", false),
            (&format!("{stars}b"), &format!("{deep}a"), false),
        ] {
            let parts: Vec<&str> = pattern.split('/').collect();
            let names: Vec<&str> = path.split('/').collect();
            assert_eq!(matches_parts(&parts, &names), want, "{pattern} {path}");
        }
    }
}
