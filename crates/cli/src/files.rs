//! Files that flags and configurations name. Errors are one line that names the file.

use std::path::Path;

use machinery::Value;

pub fn read(path: &Path) -> Result<Vec<u8>, String> {
    std::fs::read(path).map_err(|error| format!("cannot read {}: {error}", path.display()))
}

pub fn read_text(path: &Path) -> Result<String, String> {
    std::fs::read_to_string(path).map_err(|error| format!("cannot read {}: {error}", path.display()))
}

/// Reads a file of YAML or JSON.
pub fn read_yaml(path: &Path) -> Result<Value, String> {
    decode(&read(path)?).map_err(|why| format!("{}: {why}", path.display()))
}

/// Decodes YAML or JSON. The error does not name the file.
pub fn decode(content: &[u8]) -> Result<Value, String> {
    machinery::yaml::decode(content).map(|decoded| decoded.value).map_err(|error| error.to_string())
}

/// Parses the file of YAML or JSON that a flag names. The error names the flag and the file.
pub fn parse<T>(flag: &str, path: &Path, parse: impl Fn(&Value) -> Result<T, String>) -> Result<T, String> {
    let content = std::fs::read(path).map_err(|error| error.to_string());
    let parsed = content.and_then(|content| parse(&decode(&content)?));
    parsed.map_err(|why| format!("{flag}: {}: {why}", path.display()))
}
