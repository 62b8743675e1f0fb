//! Files that flags and configurations name. Errors are one line that names the file.

use std::io;
use std::path::Path;

use client::{Context as _, Failure, Result, fail};
use machinery::Value;

pub fn read(path: &Path) -> Result<Vec<u8>> {
    std::fs::read(path).cannot("read", path)
}

pub fn read_text(path: &Path) -> Result<String> {
    std::fs::read_to_string(path).cannot("read", path)
}

/// The content of a file; `None` if it does not exist.
pub fn read_existing(path: &Path) -> Result<Option<Vec<u8>>> {
    existing(std::fs::read(path)).cannot("read", path)
}

/// Removes a file, if it exists.
pub fn remove_existing(path: &Path) -> Result<()> {
    existing(std::fs::remove_file(path)).map(drop).cannot("remove", path)
}

fn existing<T>(done: io::Result<T>) -> io::Result<Option<T>> {
    match done {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        done => done.map(Some),
    }
}

/// Reads a file of YAML or JSON. Of keys that are repeated, the last counts.
pub fn read_yaml(path: &Path) -> Result<Value> {
    lenient(&read(path)?).map(|document| document.value).context(path.display())
}

/// Decodes YAML or JSON that must not repeat keys. The error is one line, and does not name the file.
pub fn decode(content: &[u8]) -> Result<Value> {
    let Lenient { value, repeated } = lenient(content)?;
    if repeated.is_empty() { Ok(value) } else { fail(strict_error(&repeated)) }
}

/// A document of which keys may be repeated; the last counts.
pub struct Lenient {
    pub value: Value,
    /// The errors of repeated keys, as Kubernetes' strict decoder words them.
    pub repeated: Vec<String>,
}

/// Decodes YAML or JSON that may repeat keys.
pub fn lenient(content: &[u8]) -> Result<Lenient> {
    let decoded = machinery::yaml::decode(content)?;
    let repeated = decoded.duplicates.iter().map(|line| format!("yaml: unmarshal errors: {line}")).collect();
    Ok(Lenient { value: decoded.value, repeated })
}

/// The error of Kubernetes' strict decoder.
pub fn strict_error(errors: &[String]) -> String {
    format!("strict decoding error: {}", errors.join(", "))
}

/// Parses the file of YAML or JSON that a flag names. The error names the flag and the file.
pub fn parse<T>(flag: &str, path: &Path, parse: impl Fn(&[u8]) -> Result<T>) -> Result<T> {
    let content = std::fs::read(path).map_err(Failure::from);
    content.and_then(|content| parse(&content)).context(format_args!("{flag}: {}", path.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn repeated_keys_are_errors_unless_a_kind_is_lenient() {
        let text = b"a: 1\na: 2\n";
        let want = "strict decoding error: yaml: unmarshal errors: line 2: key \"a\" already set in map";
        assert_eq!(decode(text).unwrap_err().to_string(), want);
        let document = lenient(text).unwrap();
        assert_eq!((document.value.get("a"), document.repeated.len()), (Some(&Value::Int(2)), 1));
        assert_eq!(decode(b"{\"a\": 1}").unwrap().get("a"), Some(&Value::Int(1)));
    }
}
