//! Places of inputs, by which the former state of a file is found: in a commit, or in another directory.

use std::path::Path;

use super::{Input, Revision, STDIN, git};

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct InputPlace {
    /// The path from the working directory; empty for stdin.
    pub path: String,
    /// The path below the argument that names it; empty if the argument is the file itself.
    pub below: String,
}

impl InputPlace {
    pub fn of(argument: &str, input: &Input) -> InputPlace {
        if argument == STDIN {
            return InputPlace::default();
        }
        let name = input.name();
        let revision = Revision::parse(argument);
        let (path, root) = match &revision {
            Some(Revision { reference, path }) => {
                let name = name.strip_prefix(git::PREFIX).and_then(|name| name.strip_prefix(reference.as_str()));
                (plain(name.unwrap_or_default().trim_start_matches(':')), plain(path))
            }
            None => {
                let fixed = argument.split('/').take_while(|part| !super::glob::is_pattern(part));
                (plain(&name), plain(&fixed.collect::<Vec<_>>().join("/")))
            }
        };
        let below = match path.strip_prefix(root.as_str()) {
            Some(below) if root.is_empty() || below.is_empty() || below.starts_with('/') => {
                below.trim_start_matches('/').to_owned()
            }
            _ => path.clone(),
        };
        InputPlace { path, below }
    }

    /// The number of names at the end of both paths that are the same.
    pub fn common(&self, other: &InputPlace) -> usize {
        let names = self.path.rsplit('/').zip(other.path.rsplit('/'));
        names.take_while(|(name, other)| name == other && !name.is_empty()).count()
    }
}

/// A path from the working directory without `.` and, as far as that needs no look at the disk, without `..`.
fn plain(path: &str) -> String {
    let here = std::env::current_dir().unwrap_or_default();
    let path = Path::new(path).strip_prefix(&here).unwrap_or(Path::new(path));
    let is_absolute = path.is_absolute();
    let mut names: Vec<String> = vec![];
    for name in path.iter().map(|name| name.to_string_lossy()).filter(|name| name != "." && name != "/") {
        match name == ".." && names.last().is_some_and(|last| last != "..") {
            true => drop(names.pop()),
            false => names.push(name.into_owned()),
        }
    }
    let names = names.join("/");
    if is_absolute { format!("/{names}") } else { names }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_of_inputs() {
        let here = std::env::current_dir().unwrap();
        let here = here.to_string_lossy();
        for (argument, name, path, below) in [
            (".", "dev/a.yaml", "dev/a.yaml", "dev/a.yaml"),
            ("./dev/", "./dev/a.yaml", "dev/a.yaml", "a.yaml"),
            ("dev/a.yaml", "dev/a.yaml", "dev/a.yaml", ""),
            ("de", "dev/a.yaml", "dev/a.yaml", "dev/a.yaml"),
            ("dev/*.yaml", "dev/a.yaml", "dev/a.yaml", "a.yaml"),
            ("../x", "../x/a.yaml", "../x/a.yaml", "a.yaml"),
            ("dev/../prod", "dev/../prod/a.yaml", "prod/a.yaml", "a.yaml"),
            (&format!("{here}/dev"), &format!("{here}/dev/a.yaml"), "dev/a.yaml", "a.yaml"),
            ("/etc/x", "/etc/x/a.yaml", "/etc/x/a.yaml", "a.yaml"),
            ("git:HEAD", "git:HEAD:dev/a.yaml", "dev/a.yaml", "dev/a.yaml"),
            ("git:HEAD~1:dev", "git:HEAD~1:dev/a.yaml", "dev/a.yaml", "a.yaml"),
            ("git:HEAD:dev/a.yaml", "git:HEAD:dev/a.yaml", "dev/a.yaml", ""),
            ("-", "<stdin>", "", ""),
        ] {
            let input = Input::Read(name.into(), bytes::Bytes::new());
            let want = InputPlace { path: path.to_owned(), below: below.to_owned() };
            assert_eq!(InputPlace::of(argument, &input), want, "{argument} {name}");
        }
    }
}
