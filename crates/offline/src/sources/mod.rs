//! Inputs: files, directories, globs, stdin, commits, and a server; and the documents and objects in them.
//!
//! What cannot be read is a problem of one line, and the rest is still read.

mod document;
mod glob;
mod split;

pub mod cluster;
pub mod git;

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Cursor, Read as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use bytes::Bytes;

pub use document::{Document, Documents, Object, Undecodable};
pub use git::Revision;

/// The endings of the names of manifests.
const ENDINGS: [&str; 3] = ["yaml", "yml", "json"];

/// Files that are no manifests although they have such a name: they direct kustomize.
const NOT_MANIFESTS: [&str; 2] = ["kustomization.yaml", "kustomization.yml"];

/// The name of stdin as an input.
pub const STDIN: &str = "-";

/// A text with documents.
#[derive(Clone, Debug)]
pub enum Input {
    File(PathBuf),
    /// A text that has been read already, such as stdin or a file of a commit.
    Read(Arc<str>, Bytes),
}

impl Input {
    /// The name in findings.
    pub fn name(&self) -> Arc<str> {
        match self {
            Input::File(path) => path.to_string_lossy().into(),
            Input::Read(name, _) => name.clone(),
        }
    }

    /// Its documents. The error is one line.
    pub fn documents(&self) -> Result<Documents, String> {
        let reader: Box<dyn BufRead + Send> = match self {
            Input::File(path) => {
                let failed = |error| format!("cannot read {}: {error}", path.display());
                Box::new(BufReader::new(std::fs::File::open(path).map_err(failed)?))
            }
            Input::Read(_, text) => Box::new(Cursor::new(text.clone())),
        };
        Ok(Documents::new(self.name(), reader))
    }
}

/// Stdin is read whole, since it can be read once only.
fn stdin() -> Result<Input, String> {
    let mut text = vec![];
    std::io::stdin().lock().read_to_end(&mut text).map_err(|error| format!("cannot read stdin: {error}"))?;
    Ok(Input::Read("<stdin>".into(), text.into()))
}

/// The inputs that arguments name.
#[derive(Debug, Default)]
pub struct Inputs {
    pub inputs: Vec<Input>,
    /// The arguments that could not be read, and why, in one line each.
    pub problems: Vec<(String, String)>,
}

impl Inputs {
    /// Resolves arguments: `-`, files, directories with everything below them, globs, `git:REF` and `git:REF:PATH`. Inputs are in
    /// the order of the arguments, and sorted by name in a directory.
    pub fn of(arguments: &[String]) -> Inputs {
        let mut found = Inputs::default();
        for argument in arguments {
            match resolve(argument) {
                Ok(inputs) => found.inputs.extend(inputs),
                Err(why) => found.problems.push((argument.clone(), why)),
            }
        }
        found
    }
}

fn resolve(argument: &str) -> Result<Vec<Input>, String> {
    if argument == STDIN {
        return Ok(vec![stdin()?]);
    }
    if let Some(revision) = Revision::parse(argument) {
        let files: BTreeMap<String, Vec<u8>> = revision.files(is_manifest)?;
        let name = |name: String| format!("{}{}:{name}", git::PREFIX, revision.reference);
        return Ok(files.into_iter().map(|(file, text)| Input::Read(name(file).into(), text.into())).collect());
    }
    let path = Path::new(argument);
    let paths = if path.is_dir() {
        let mut paths = vec![];
        walk(path, &mut |path| paths.push(path.to_owned()))?;
        paths.retain(|path| is_manifest(path));
        if paths.is_empty() {
            return Err(format!("{argument}: the directory has no manifests (*.yaml, *.yml, *.json)"));
        }
        paths
    } else if !path.exists() && glob::is_pattern(argument) {
        let paths = glob::matches(argument)?;
        if paths.is_empty() {
            return Err(format!("{argument}: no file matches"));
        }
        paths
    } else {
        vec![path.to_owned()]
    };
    Ok(paths.into_iter().map(Input::File).collect())
}

fn is_manifest(path: &Path) -> bool {
    let ending = path.extension().and_then(|ending| ending.to_str());
    let name = path.file_name().and_then(|name| name.to_str());
    ending.is_some_and(|ending| ENDINGS.contains(&ending)) && name.is_some_and(|name| !NOT_MANIFESTS.contains(&name))
}

/// Visits the files below a directory, sorted. As with kubectl, links to directories are not followed; directories whose names
/// begin with a dot are left out.
fn walk(directory: &Path, visit: &mut dyn FnMut(&Path)) -> Result<(), String> {
    let failed = |error: std::io::Error| format!("cannot read {}: {error}", directory.display());
    let entries = std::fs::read_dir(directory).map_err(failed)?;
    let mut entries = entries.collect::<Result<Vec<_>, _>>().map_err(failed)?;
    entries.sort_by_key(std::fs::DirEntry::file_name);
    for entry in entries {
        let path = if directory == Path::new(".") { entry.file_name().into() } else { entry.path() };
        if entry.file_type().map_err(failed)?.is_dir() {
            if !entry.file_name().as_encoded_bytes().starts_with(b".") {
                walk(&path, visit)?;
            }
        } else {
            visit(&path);
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arguments_are_resolved_in_order() {
        let directory = tempfile::tempdir().unwrap();
        let at = |name: &str| directory.path().join(name).to_string_lossy().into_owned();
        for name in ["b.yaml", "a.json", "notes.txt", "sub/c.yml", ".git/d.yaml", "sub/kustomization.yaml"] {
            let path = directory.path().join(name);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, "a: 1").unwrap();
        }
        std::fs::create_dir(directory.path().join("empty")).unwrap();
        let no_such = at("none.yaml");
        for (argument, want) in [
            (at(""), vec![at("a.json"), at("b.yaml"), at("sub/c.yml")]),
            (at("notes.txt"), vec![at("notes.txt")]),
            (at("*/*.yml"), vec![at("sub/c.yml")]),
            (at("**/*.y*ml"), vec![at("b.yaml"), at("sub/c.yml"), at("sub/kustomization.yaml")]),
            (at("?.{json"), vec![]),
            (at("empty"), vec![]),
            (no_such.clone(), vec![no_such.clone()]),
        ] {
            let found = Inputs::of(std::slice::from_ref(&argument));
            let names: Vec<String> = found.inputs.iter().map(|input| input.name().to_string()).collect();
            assert_eq!(names, want, "{argument}: {:?}", found.problems);
            assert_eq!(found.problems.len(), usize::from(want.is_empty()), "{argument}");
        }
        let why = Input::File(no_such.clone().into()).documents().map(drop).unwrap_err();
        assert!(why.starts_with(&format!("cannot read {no_such}: No such file")), "{why}");
    }
}
