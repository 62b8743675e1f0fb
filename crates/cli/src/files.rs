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
    let decoded = machinery::yaml::decode(&read(path)?).map_err(|error| format!("{}: {error}", path.display()))?;
    Ok(decoded.value)
}
