//! A directory of scheduled backups.

use std::fs::File;
use std::os::unix::fs::DirBuilderExt as _;
use std::path::Path;

use super::name::{self, StoredFile};

/// Creates the directory if it does not exist, for its owner alone: backups contain keys.
pub fn create(path: &Path) -> Result<(), String> {
    let created = std::fs::DirBuilder::new().recursive(true).mode(0o700).create(path);
    created.map_err(|error| format!("cannot create {}: {error}", path.display()))
}

/// The backups, oldest first; other files are left out.
pub fn list(path: &Path) -> Result<Vec<StoredFile>, String> {
    let failed = |error: std::io::Error| format!("cannot list {}: {error}", path.display());
    let mut files = vec![];
    for entry in std::fs::read_dir(path).map_err(failed)? {
        let entry = entry.map_err(failed)?;
        let metadata = entry.metadata().map_err(failed)?;
        if metadata.is_file() {
            files.extend(name::parse(&entry.file_name().to_string_lossy(), metadata.len()));
        }
    }
    files.sort_by(|a, b| a.name.cmp(&b.name));
    Ok(files)
}

/// Moves a file of the directory to its final name, durably.
pub fn publish(path: &Path, local: &Path, name: &str) -> Result<(), String> {
    let moved = std::fs::rename(local, path.join(name)).and_then(|()| File::open(path)?.sync_all());
    moved.map_err(|error| format!("cannot write {}: {error}", path.join(name).display()))
}

/// Removes all backups but the newest ones; returns the names of those that are removed.
pub fn remove_old(path: &Path, keep: usize) -> Result<Vec<String>, String> {
    let mut names: Vec<String> = list(path)?.into_iter().map(|file| file.name).collect();
    names.truncate(names.len().saturating_sub(keep));
    for name in &names {
        let path = path.join(name);
        std::fs::remove_file(&path).map_err(|error| format!("cannot remove {}: {error}", path.display()))?;
    }
    Ok(names)
}
