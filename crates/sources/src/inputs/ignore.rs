//! Patterns of files that are left out, in the manner of `.gitignore`.

use std::fs::File;
use std::io::{self, Read as _};
use std::path::Path;

use super::glob;
use crate::error::Error;
use crate::limits;

/// The file with patterns in the working directory.
const FILE: &str = ".pintleignore";

/// Patterns, of which the last one that matches a path decides.
#[derive(Debug, Default)]
pub struct Patterns(Vec<Pattern>);

#[derive(Debug)]
struct Pattern {
    /// The names and wildcards of the pattern, from the working directory.
    parts: Vec<String>,
    /// `!`: what matches is not left out.
    is_negated: bool,
}

impl Patterns {
    /// Those of `.pintleignore`, if there is one, and then those of flags.
    pub fn read(given: &[String]) -> Result<Patterns, Error> {
        let text = text_of(Path::new(FILE));
        let text = text.map_err(|source| Error::Unreadable { name: FILE.to_owned(), source })?;
        Ok(Patterns::of(text.lines().chain(given.iter().map(String::as_str))))
    }

    fn of<'t>(lines: impl Iterator<Item = &'t str>) -> Patterns {
        let lines = lines.map(str::trim).filter(|line| !line.is_empty() && !line.starts_with('#'));
        Patterns(lines.map(Pattern::of).collect())
    }

    /// Whether a path from the working directory is left out, itself or with a directory above it.
    pub fn ignore(&self, path: &str) -> bool {
        let names: Vec<&str> = path.split('/').collect();
        let decides = |pattern: &&Pattern| (1..=names.len()).any(|count| pattern.matches(&names[..count]));
        self.0.iter().rev().find(decides).is_some_and(|pattern| !pattern.is_negated)
    }
}

/// The text of a file; empty if there is none. Other things than files, which might never end, are an error.
fn text_of(path: &Path) -> io::Result<String> {
    match std::fs::metadata(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(String::new()),
        Err(error) => return Err(error),
        Ok(found) if !found.is_file() => return Err(io::Error::other("it is not a file")),
        Ok(_) => {}
    }
    let mut text = String::new();
    File::open(path)?.take(limits::IGNORE_FILE_BYTES + 1).read_to_string(&mut text)?;
    if text.len() as u64 > limits::IGNORE_FILE_BYTES {
        return Err(io::Error::other(format!("it has more than {} bytes", limits::IGNORE_FILE_BYTES)));
    }
    Ok(text)
}

impl Pattern {
    fn of(line: &str) -> Pattern {
        let (is_negated, line) = line.strip_prefix('!').map_or((false, line), |rest| (true, rest));
        let line = line.trim_end_matches('/');
        let mut parts: Vec<String> =
            line.split('/').filter(|part| !part.is_empty() && *part != ".").map(str::to_owned).collect();
        // a single name may be anywhere
        if !line.contains('/') {
            parts.insert(0, "**".to_owned());
        }
        Pattern { parts, is_negated }
    }

    fn matches(&self, names: &[&str]) -> bool {
        let parts: Vec<&str> = self.parts.iter().map(String::as_str).collect();
        glob::matches_parts(&parts, names)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_files_are_read() {
        let place = tempfile::tempdir().unwrap();
        let file = place.path().join("ignore");
        assert_eq!(text_of(&file).unwrap(), "");
        std::fs::write(&file, "a\n").unwrap();
        assert_eq!(text_of(&file).unwrap(), "a\n");
        assert_eq!(text_of(place.path()).unwrap_err().to_string(), "it is not a file");
        std::fs::write(&file, vec![b'a'; limits::IGNORE_FILE_BYTES as usize + 1]).unwrap();
        assert!(text_of(&file).is_err());
    }

    #[test]
    fn the_last_pattern_decides() {
        for (lines, path, want) in [
            ("templates/", "chart/templates/a.yaml", true),
            ("templates/", "chart/templates.yaml", false),
            ("/templates", "chart/templates/a.yaml", false),
            ("/templates", "templates/a.yaml", true),
            ("chart/templates", "chart/templates/x/a.yaml", true),
            ("*.test.yaml", "a/b.test.yaml", true),
            ("**/fixtures/*.json", "a/b/fixtures/c.json", true),
            ("**/fixtures/*.json", "a/b/fixtures/c.yaml", false),
            ("# templates\n\n", "templates/a.yaml", false),
            ("a\n!a/keep.yaml", "a/keep.yaml", false),
            ("a\n!a/keep.yaml", "a/other.yaml", true),
            ("", "a.yaml", false),
            ("*", "", true),
        ] {
            assert_eq!(Patterns::of(lines.lines()).ignore(path), want, "{lines:?} {path}");
        }
    }
}
