//! Temporary files.

use std::fs::File;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};

use base::clock::scratch_name;
use client::{Context as _, Result};

/// The path of a temporary file, which is removed on drop. Once the file is published, nothing is left to remove.
pub struct Scratch(pub PathBuf);

impl Scratch {
    /// A new name in the directory of `file`: only within a file system can it be renamed to `file`.
    pub fn beside(file: &Path) -> Scratch {
        Scratch(file.with_file_name(scratch_name()))
    }

    /// A new name in the system's directory for temporary files.
    pub fn elsewhere() -> Scratch {
        Scratch(std::env::temp_dir().join(scratch_name()))
    }

    /// Creates the file, readable by its owner only: exports and backups contain Secrets and keys.
    pub fn create(&self) -> Result<File> {
        let file = File::options().write(true).create_new(true).mode(0o600).open(&self.0);
        // the error names the directory, since users do not know the temporary name
        let directory = self.0.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
        file.cannot("create a file in", directory)
    }

    /// Gives the file its final name, under which readers only ever see a complete file.
    pub fn publish(&self, path: &Path) -> Result<()> {
        std::fs::rename(&self.0, path).cannot("write", path)
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.0);
    }
}
