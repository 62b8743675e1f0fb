//! Temporary files.

use std::fs::File;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};

/// A temporary file, which is removed when this is dropped unless it has been moved.
pub struct Scratch(pub PathBuf);

impl Scratch {
    /// A new name in the directory of a file that is to be made.
    pub fn beside(file: &Path) -> Scratch {
        Scratch(file.with_file_name(scratch_name()))
    }

    /// A new name in the directory of temporary files.
    pub fn elsewhere() -> Scratch {
        Scratch(std::env::temp_dir().join(scratch_name()))
    }

    /// Creates the file, readable by its owner only.
    pub fn create(&self) -> Result<File, String> {
        let file = File::options().write(true).create_new(true).mode(0o600).open(&self.0);
        // the error names the directory, since users do not know the temporary name
        let directory = self.0.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
        file.map_err(|error| format!("cannot create a file in {}: {error}", directory.display()))
    }

    /// Gives the file its final name.
    pub fn publish(&self, path: &Path) -> Result<(), String> {
        std::fs::rename(&self.0, path).map_err(|error| format!("cannot write {}: {error}", path.display()))
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.0);
    }
}

/// A new name of a temporary file.
pub fn scratch_name() -> String {
    format!(".pintle-{:016x}.tmp", u64::from_be_bytes(base::clock::random_bytes()))
}
