//! The objects of manifests, in the order in which they can be applied.

use std::path::{Path, PathBuf};

use machinery::{Value, yaml};

use crate::error::Error;
use crate::limits;

/// Objects that others need are applied first.
const FIRST: [&str; 2] = ["Namespace", "CustomResourceDefinition"];

/// The objects of files, and of all files below directories.
pub fn read<P: AsRef<Path>>(paths: impl IntoIterator<Item = P>) -> Result<Vec<Value>, Error> {
    let mut objects = vec![];
    for path in paths {
        let mut files = vec![];
        walk(path.as_ref(), limits::DIRECTORIES_MAX, &mut files)?;
        for file in files {
            objects.extend(of_file(&file)?);
        }
    }
    let rank = |object: &Value| FIRST.iter().position(|kind| *kind == object.str_at(&["kind"])).unwrap_or(FIRST.len());
    objects.sort_by_key(rank);
    Ok(objects)
}

/// Finds the manifests below a directory, sorted by name, or the file itself.
fn walk(path: &Path, directories: usize, found: &mut Vec<PathBuf>) -> Result<(), Error> {
    let failed = |error: std::io::Error| Error::new(format!("{}: {error}", path.display()));
    if !path.is_dir() {
        found.push(path.to_owned());
        return Ok(());
    }
    if directories == 0 {
        return Err(Error::new(format!("{}: too many directories within each other", path.display())));
    }
    let entries: Result<Vec<_>, _> = std::fs::read_dir(path).map_err(failed)?.collect();
    let mut entries: Vec<PathBuf> = entries.map_err(failed)?.into_iter().map(|entry| entry.path()).collect();
    entries.sort();
    for entry in entries {
        let ending = entry.extension().and_then(|ending| ending.to_str());
        if entry.is_dir() || matches!(ending, Some("yaml" | "yml" | "json")) {
            walk(&entry, directories - 1, found)?;
        }
    }
    Ok(())
}

fn of_file(path: &Path) -> Result<Vec<Value>, Error> {
    let failed = |why: String| Error::new(format!("{}: {why}", path.display()));
    let text = std::fs::read_to_string(path).map_err(|error| failed(error.to_string()))?;
    let objects = of_text(&text).map_err(failed)?;
    match objects.iter().all(|object| !object.str_at(&["kind"]).is_empty()) {
        true => Ok(objects),
        false => Err(failed("a document is not an object with apiVersion and kind".to_owned())),
    }
}

/// The objects of a text: YAML documents, or one of JSON, which is YAML too. Fails with a one-line message.
fn of_text(text: &str) -> Result<Vec<Value>, String> {
    let mut objects = vec![];
    for document in yaml::documents(text) {
        let decoded = yaml::decode(document.as_bytes())
            .map_err(|error| base::wording::decode_error(&machinery::DecodeError::from(error)))?;
        match decoded.value {
            Value::Null => {}
            mut list if list.str_at(&["kind"]) == "List" => {
                let Some(Value::Array(items)) = list.remove_at(&["items"]) else { continue };
                objects.extend(items);
            }
            object => objects.push(object),
        }
    }
    Ok(objects)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_have_objects() {
        for (text, want) in [
            ("", vec![]),
            ("# nothing\n---\n", vec![]),
            ("kind: A\n---\nkind: B\n", vec!["A", "B"]),
            ("--- # first\nkind: A\ntext: |\n  ---x\n---\n{\"kind\": \"B\"}", vec!["A", "B"]),
            ("kind: List\nitems: [{kind: A}, {kind: B}]", vec!["A", "B"]),
        ] {
            let found = of_text(text).unwrap();
            let kinds: Vec<&str> = found.iter().map(|object| object.str_at(&["kind"])).collect();
            assert_eq!(kinds, want, "{text:?}");
        }
        assert!(of_text("a: b: c").is_err());
    }

    #[test]
    fn definitions_come_first() {
        let directory = tempfile::tempdir().unwrap();
        let write = |name: &str, text: &str| {
            let path = directory.path().join(name);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        };
        write("a.yaml", "kind: Boat\n---\nkind: Namespace\n");
        write("sub/b.yml", "kind: CustomResourceDefinition\n");
        write("notes.txt", "a: b: c");
        let found = read([directory.path()]).unwrap();
        let kinds: Vec<&str> = found.iter().map(|object| object.str_at(&["kind"])).collect();
        assert_eq!(kinds, ["Namespace", "CustomResourceDefinition", "Boat"]);
        let missing = directory.path().join("none.yaml");
        let why = read([&missing]).unwrap_err().to_string();
        assert!(why.starts_with(&missing.display().to_string()), "{why}");
    }
}
