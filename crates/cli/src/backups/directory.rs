//! A directory of scheduled backups.

use std::fs::File;
use std::os::unix::fs::DirBuilderExt as _;
use std::path::Path;

use client::{Context as _, Result};

use super::name::{self, StoredFile};

/// Creates the directory if it does not exist, for its owner alone: backups contain keys.
pub fn create(path: &Path) -> Result<()> {
    let created = std::fs::DirBuilder::new().recursive(true).mode(0o700).create(path);
    created.cannot("create", path)
}

/// The backups by rising revision, so that a clock that was wrong changes nothing; other files are left out.
pub fn list(path: &Path) -> Result<Vec<StoredFile>> {
    let named = |entry: std::io::Result<std::fs::DirEntry>| {
        let (name, metadata) = entry.and_then(|entry| Ok((entry.file_name(), entry.metadata()?)))?;
        Ok(name::parse(&name.to_string_lossy(), metadata.len()).filter(|_| metadata.is_file()))
    };
    let found = std::fs::read_dir(path).and_then(|entries| entries.map(named).collect::<std::io::Result<Vec<_>>>());
    let mut files: Vec<StoredFile> = found.cannot("list", path)?.into_iter().flatten().collect();
    files.sort_by(|a, b| (a.revision, &a.name).cmp(&(b.revision, &b.name)));
    Ok(files)
}

/// Moves a file of the directory to its final name, durably.
pub fn publish(path: &Path, local: &Path, name: &str) -> Result<()> {
    let moved = std::fs::rename(local, path.join(name)).and_then(|()| File::open(path)?.sync_all());
    moved.cannot("write", &path.join(name))
}

/// Removes all backups but those with the highest revisions; returns the names of those that are removed. `made`, which was just
/// made, counts as the newest: a store that was made anew has lower revisions than the backups of its predecessor.
pub fn remove_old(path: &Path, keep: usize, made: Option<&str>) -> Result<Vec<String>> {
    let names = list(path)?.into_iter().map(|file| file.name);
    let (newest, mut names): (Vec<String>, Vec<String>) = names.partition(|name| Some(name.as_str()) == made);
    names.truncate((names.len() + newest.len()).saturating_sub(keep.max(newest.len())));
    for name in &names {
        let path = path.join(name);
        std::fs::remove_file(&path).cannot("remove", &path)?;
    }
    Ok(names)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn backups_with_the_highest_revisions_and_the_last_one_are_kept() {
        let (old, jumped, new) = (
            "pintle-20260101T000000Z-10.backup",
            "pintle-20400101T000000Z-20.backup",
            "pintle-20260102T000000Z-30.backup",
        );
        for (keep, made, removed) in [
            // the clock was in the future for a while
            (2, new, &[old][..]),
            (1, new, &[old, jumped]),
            (5, new, &[]),
            // a store with a lower revision than its predecessor
            (1, old, &[jumped, new]),
            (2, old, &[jumped]),
        ] {
            let directory = tempfile::tempdir().unwrap();
            [old, jumped, new].iter().for_each(|name| std::fs::write(directory.path().join(name), "").unwrap());
            assert_eq!(remove_old(directory.path(), keep, Some(made)).unwrap(), removed, "{keep} {made}");
        }
    }
}
