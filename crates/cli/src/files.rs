//! Files that flags and configurations name. Errors are one line that names the file.

use std::io;
use std::path::{Path, PathBuf};

use machinery::Value;

/// A file or a directory that the operating system does not let us use.
#[derive(Debug, thiserror::Error)]
#[error("cannot {act} {path}: {source}", path = .path.display())]
pub struct FileError {
    act: &'static str,
    path: PathBuf,
    source: io::Error,
}

/// Makes the error of an act that has failed, such as `write`.
pub fn cannot<'p>(act: &'static str, path: &'p Path) -> impl Fn(io::Error) -> FileError + 'p {
    move |source| FileError { act, path: path.to_owned(), source }
}

impl From<FileError> for String {
    fn from(error: FileError) -> String {
        error.to_string()
    }
}

pub fn read(path: &Path) -> Result<Vec<u8>, FileError> {
    std::fs::read(path).map_err(cannot("read", path))
}

pub fn read_text(path: &Path) -> Result<String, FileError> {
    std::fs::read_to_string(path).map_err(cannot("read", path))
}

/// The content of a file; `None` if it does not exist.
pub fn read_existing(path: &Path) -> Result<Option<Vec<u8>>, FileError> {
    existing(std::fs::read(path)).map_err(cannot("read", path))
}

/// Removes a file, if it exists.
pub fn remove_existing(path: &Path) -> Result<(), FileError> {
    existing(std::fs::remove_file(path)).map(drop).map_err(cannot("remove", path))
}

fn existing<T>(done: io::Result<T>) -> io::Result<Option<T>> {
    match done {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        done => done.map(Some),
    }
}

/// Reads a file of YAML or JSON. Of keys that are repeated, the last counts.
pub fn read_yaml(path: &Path) -> Result<Value, String> {
    lenient(&read(path)?).map(|document| document.value).map_err(|why| format!("{}: {why}", path.display()))
}

/// Decodes YAML or JSON that must not repeat keys. The error is one line, and does not name the file.
pub fn decode(content: &[u8]) -> Result<Value, String> {
    let Lenient { value, repeated } = lenient(content)?;
    if repeated.is_empty() { Ok(value) } else { Err(strict_error(&repeated)) }
}

/// A document of which keys may be repeated; the last counts.
pub struct Lenient {
    pub value: Value,
    /// The errors of repeated keys, as Kubernetes' strict decoder words them.
    pub repeated: Vec<String>,
}

/// Decodes YAML or JSON that may repeat keys.
pub fn lenient(content: &[u8]) -> Result<Lenient, String> {
    let decoded = machinery::yaml::decode(content).map_err(|error| error.to_string())?;
    let repeated = decoded.duplicates.iter().map(|line| format!("yaml: unmarshal errors: {line}")).collect();
    Ok(Lenient { value: decoded.value, repeated })
}

/// The error of Kubernetes' strict decoder.
pub fn strict_error(errors: &[String]) -> String {
    format!("strict decoding error: {}", errors.join(", "))
}

/// Parses the file of YAML or JSON that a flag names. The error names the flag and the file.
pub fn parse<T>(flag: &str, path: &Path, parse: impl Fn(&[u8]) -> Result<T, String>) -> Result<T, String> {
    let content = std::fs::read(path).map_err(|error| error.to_string());
    content.and_then(|content| parse(&content)).map_err(|why| format!("{flag}: {}: {why}", path.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn repeated_keys_are_errors_unless_a_kind_is_lenient() {
        let text = b"a: 1\na: 2\n";
        let want = "strict decoding error: yaml: unmarshal errors: line 2: key \"a\" already set in map";
        assert_eq!(decode(text), Err(want.to_owned()));
        let document = lenient(text).unwrap();
        assert_eq!((document.value.get("a"), document.repeated.len()), (Some(&Value::Int(2)), 1));
        assert_eq!(decode(b"{\"a\": 1}").unwrap().get("a"), Some(&Value::Int(1)));
    }
}
