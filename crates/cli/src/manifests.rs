//! Files with CustomResourceDefinitions and other objects that commands read.

use std::io::Read as _;
use std::path::{Path, PathBuf};

use machinery::{Value, yaml};
use sources::{Document, Inputs, Object};

use crate::files::{FileError, cannot};

/// The endings of files that are read in a directory, as by kubectl.
const ENDINGS: [&str; 3] = ["yaml", "yml", "json"];

/// The CustomResourceDefinitions of a file, of the files in a directory, or of stdin (`-`). Other kinds are ignored.
/// The error is one line; it is an error if there is none.
pub fn definitions(path: &Path) -> Result<Vec<Value>, String> {
    let files = if path.is_dir() { files(path)? } else { vec![path.to_owned()] };
    let mut found = vec![];
    for file in files {
        let documents = of_text(&read(&file)?).map_err(|why| format!("{}: {why}", file.display()))?;
        found.extend(documents);
    }
    if found.is_empty() { Err(format!("{}: there is no CustomResourceDefinition", path.display())) } else { Ok(found) }
}

/// An object, and the document that has it.
pub struct Manifest {
    pub document: Document,
    pub object: Object,
}

/// The objects of files, of directories, of a commit or of stdin, with their documents. Fails with a one-line message.
pub fn of_argument(argument: &str) -> Result<Vec<Manifest>, String> {
    let inputs = Inputs::of(&[argument.to_owned()]);
    if let Some((_, why)) = inputs.problems.into_iter().next() {
        return Err(why);
    }
    let mut found = vec![];
    for input in &inputs.inputs {
        for document in input.documents()? {
            let document = document?;
            let objects = document.objects().map_err(|error| format!("{}:{}: {}", input.name(), error.line, error.why));
            found.extend(objects?.0.into_iter().map(|object| Manifest { document: document.clone(), object }));
        }
    }
    Ok(found)
}

/// The objects of files, of directories, of a commit or of stdin. Fails with a one-line message.
pub fn objects(argument: &str) -> Result<Vec<Value>, String> {
    Ok(of_argument(argument)?.into_iter().map(|manifest| manifest.object.into_value()).collect())
}

/// The manifests in a directory, by name.
fn files(directory: &Path) -> Result<Vec<PathBuf>, FileError> {
    let failed = cannot("read", directory);
    let mut found = vec![];
    for entry in std::fs::read_dir(directory).map_err(&failed)? {
        let path = entry.map_err(&failed)?.path();
        if path.extension().and_then(|ending| ending.to_str()).is_some_and(|ending| ENDINGS.contains(&ending)) {
            found.push(path);
        }
    }
    found.sort();
    Ok(found)
}

fn read(path: &Path) -> Result<String, FileError> {
    let mut text = String::new();
    let read = match path.to_str() {
        Some("-") => std::io::stdin().read_to_string(&mut text),
        _ => std::fs::File::open(path).and_then(|mut file| file.read_to_string(&mut text)),
    };
    read.map(|_| text).map_err(cannot("read", path))
}

/// The CustomResourceDefinitions among the documents of a text.
pub fn of_text(text: &str) -> Result<Vec<Value>, String> {
    let mut found = vec![];
    for document in yaml::documents(text) {
        let value = yaml::decode(document.as_bytes()).map_err(|error| error.to_string())?.value;
        let items = value.get("items").and_then(Value::as_array).unwrap_or(std::slice::from_ref(&value));
        found.extend(items.iter().filter(|item| item.str_at(&["kind"]) == "CustomResourceDefinition").cloned());
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn definitions_of_a_directory_are_found() {
        let directory = tempfile::tempdir().unwrap();
        assert!(definitions(directory.path()).unwrap_err().contains("there is no CustomResourceDefinition"));
        let definition = |name: &str| format!("kind: CustomResourceDefinition\nmetadata: {{name: {name}}}\n");
        for (file, text) in [
            ("b.yaml", definition("b")),
            ("a.yml", format!("kind: Other\n---\n{}--- # more\n{}", definition("a1"), definition("a2"))),
            ("kustomization.yaml", "resources: [a.yml]\n".to_owned()),
            ("notes.txt", definition("c")),
        ] {
            std::fs::write(directory.path().join(file), text).unwrap();
        }
        let found = definitions(directory.path()).unwrap();
        let names: Vec<&str> = found.iter().map(|definition| definition.str_at(&["metadata", "name"])).collect();
        assert_eq!(names, ["a1", "a2", "b"]);
        assert!(of_text("a: [").is_err());
    }
}
