//! Where backups are kept: a directory, or a bucket of an S3-compatible object store.

use std::fs::File;
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};

use super::bucket::{Bucket, S3Flags};
use super::name::{self, StoredFile};

/// A place for backups.
pub enum Target {
    Directory(PathBuf),
    Bucket(Bucket),
}

impl Target {
    /// The target of a flag: a path, or `s3://BUCKET[/PREFIX]`.
    ///
    /// # Errors
    ///
    /// One line: the URL is invalid, or credentials are missing.
    pub fn parse(text: &str, flags: &S3Flags) -> Result<Target, String> {
        match text.strip_prefix("s3://") {
            Some(place) => Bucket::of(place, flags).map(Target::Bucket),
            None => Ok(Target::Directory(PathBuf::from(text))),
        }
    }

    /// Creates the directory if it does not exist; a bucket has to exist.
    pub fn create(&self) -> Result<(), String> {
        let Target::Directory(path) = self else { return Ok(()) };
        let created = std::fs::DirBuilder::new().recursive(true).mode(0o700).create(path);
        created.map_err(|error| format!("cannot create {}: {error}", path.display()))
    }

    /// The backups, oldest first; other files are left out.
    pub async fn list(&self) -> Result<Vec<StoredFile>, String> {
        let mut files = match self {
            Target::Directory(path) => list_directory(path)?,
            Target::Bucket(bucket) => bucket.list().await?,
        };
        files.retain(|file| name::parse(&file.name).is_some());
        files.sort_by(|a, b| a.name.cmp(&b.name));
        Ok(files)
    }

    /// The path of a new local file for a backup that will be put here: in the target directory, else in `scratch`.
    pub fn local_path(&self, scratch: &Path) -> Result<PathBuf, String> {
        let directory = match self {
            Target::Directory(path) => path,
            Target::Bucket(_) => scratch,
        };
        self.create()?;
        Ok(directory.join(crate::scratch::scratch_name()))
    }

    /// Moves or copies a local file, whose path is that of [`Target::local_path`], to this name.
    pub async fn put(&self, local: &Path, name: &str) -> Result<(), String> {
        match self {
            Target::Directory(path) => {
                let moved = std::fs::rename(local, path.join(name)).and_then(|()| File::open(path)?.sync_all());
                moved.map_err(|error| format!("cannot write {}: {error}", path.join(name).display()))
            }
            Target::Bucket(bucket) => bucket.put(local, name).await,
        }
    }

    pub async fn remove(&self, name: &str) -> Result<(), String> {
        match self {
            Target::Directory(path) => {
                let path = path.join(name);
                std::fs::remove_file(&path).map_err(|error| format!("cannot remove {}: {error}", path.display()))
            }
            Target::Bucket(bucket) => bucket.remove(name).await,
        }
    }
}

fn list_directory(path: &Path) -> Result<Vec<StoredFile>, String> {
    let failed = |error: std::io::Error| format!("cannot list {}: {error}", path.display());
    let mut files = vec![];
    for entry in std::fs::read_dir(path).map_err(failed)? {
        let entry = entry.map_err(failed)?;
        let metadata = entry.metadata().map_err(failed)?;
        if metadata.is_file() {
            files.push(StoredFile { name: entry.file_name().to_string_lossy().into_owned(), bytes: metadata.len() });
        }
    }
    Ok(files)
}
