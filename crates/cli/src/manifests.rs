//! Files with CustomResourceDefinitions and other objects that commands read.

use std::io::Read as _;
use std::path::{Path, PathBuf};

use client::{Context as _, Result, fail};
use machinery::{Value, yaml};
use sources::Inputs;

/// The endings of files that are read in a directory, as by kubectl.
const ENDINGS: [&str; 3] = ["yaml", "yml", "json"];

/// The CustomResourceDefinitions of a file, of the files in a directory, or of stdin (`-`). Other kinds are ignored.
/// The error is one line; it is an error if there is none.
pub fn definitions(path: &Path) -> Result<Vec<Value>> {
    let files = if path.is_dir() { files(path)? } else { vec![path.to_owned()] };
    let mut found = vec![];
    for file in files {
        found.extend(of_text(&read(&file)?).context(file.display())?);
    }
    if found.is_empty() { fail(format!("{}: there is no CustomResourceDefinition", path.display())) } else { Ok(found) }
}

/// The objects of files, of directories, of a commit or of stdin. Fails with a one-line message.
pub fn objects(argument: &str) -> Result<Vec<Value>> {
    let objects = Inputs::of(&[argument.to_owned()]).objects()?;
    Ok(objects.into_iter().map(|(_, object)| object.into_value()).collect())
}

/// The manifests in a directory, by name.
fn files(directory: &Path) -> Result<Vec<PathBuf>> {
    let read = std::fs::read_dir(directory).and_then(Iterator::collect::<std::io::Result<Vec<_>>>);
    let paths = read.cannot("read", directory)?.into_iter().map(|entry| entry.path());
    let ending = |path: &PathBuf| path.extension().is_some_and(|ending| ENDINGS.iter().any(|known| ending == *known));
    let mut found: Vec<PathBuf> = paths.filter(ending).collect();
    found.sort();
    Ok(found)
}

fn read(path: &Path) -> Result<String> {
    let mut text = String::new();
    let read = match path.to_str() {
        Some("-") => std::io::stdin().read_to_string(&mut text),
        _ => std::fs::File::open(path).and_then(|mut file| file.read_to_string(&mut text)),
    };
    read.map(|_| text).cannot("read", path)
}

/// The CustomResourceDefinitions among the documents of a text.
pub fn of_text(text: &str) -> Result<Vec<Value>> {
    let mut found = vec![];
    for document in yaml::documents(text) {
        let value = yaml::decode(document.as_bytes())?.value;
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
        assert!(
            definitions(directory.path()).unwrap_err().to_string().contains("there is no CustomResourceDefinition")
        );
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
