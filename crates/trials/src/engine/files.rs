//! A directory for the files of one run.

use std::fs::{DirBuilder, File};
use std::io::Write as _;
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};

use super::error::Error;

/// A directory that is removed when this is dropped.
#[derive(Debug)]
pub struct Directory(PathBuf);

impl Directory {
    pub fn create() -> Result<Directory, Error> {
        let path = std::env::temp_dir().join(base::clock::scratch_name());
        let created = DirBuilder::new().mode(0o700).create(&path);
        created.map_err(|error| {
            Error::Setup(format!("cannot create {}: {error}; name another directory in TMPDIR", path.display()))
        })?;
        Ok(Directory(path))
    }

    /// Writes a file that only this user can read.
    pub fn write(&self, name: &str, text: &str) -> Result<PathBuf, Error> {
        let path = self.0.join(name);
        let file = File::options().write(true).create_new(true).mode(0o600).open(&path);
        let written = file.and_then(|mut file| file.write_all(text.as_bytes()));
        written.map_err(|error| Error::Setup(format!("cannot write {}: {error}", path.display())))?;
        Ok(path)
    }

    pub fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for Directory {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}
