//! The file operations of the engine: a directory of append-only files. Tests replace it by a simulated disk.

use std::fs::File;
use std::io::{self, Write as _};
use std::os::unix::fs::{FileExt as _, MetadataExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};

use parking_lot::Mutex;

/// One directory. Unsynced changes may be lost in a crash, in part and in any order.
pub trait Disk: Send + Sync {
    fn list(&self) -> io::Result<Vec<String>>;

    /// Replaces the content of `buffer` by up to `length` bytes from `offset`; fewer only at the end of the file.
    fn read_into(&self, name: &str, offset: u64, length: usize, buffer: &mut Vec<u8>) -> io::Result<()>;

    /// As [`Disk::read_into`], to a new buffer.
    fn read_at(&self, name: &str, offset: u64, length: usize) -> io::Result<Vec<u8>> {
        let mut bytes = vec![];
        self.read_into(name, offset, length, &mut bytes)?;
        Ok(bytes)
    }

    /// Has the next read of a file come from the disk, not from memory of the operating system, where that is possible.
    fn forget_cached(&self, name: &str) {
        let _ = name;
    }

    /// Creates a file, or truncates an existing one.
    fn create(&self, name: &str) -> io::Result<Box<dyn Appending>>;

    /// Opens an existing file for appending.
    fn open(&self, name: &str) -> io::Result<Box<dyn Appending>>;

    /// Rewrites bytes of a file with the same bytes, so that the next sync writes them even if an earlier one has failed.
    fn write_anew(&self, name: &str, offset: u64, bytes: &[u8]) -> io::Result<()>;

    fn rename(&self, from: &str, to: &str) -> io::Result<()>;

    fn remove(&self, name: &str) -> io::Result<()>;

    /// Makes creations, renames and removals durable.
    fn sync(&self) -> io::Result<()>;
}

/// A file that is open for appending.
pub trait Appending: Send {
    /// Appends all of `bytes`; after an error, any part of them may have been written.
    fn append(&mut self, bytes: &[u8]) -> io::Result<()>;

    /// Makes everything that was appended durable.
    fn sync(&mut self) -> io::Result<()>;

    fn truncate(&mut self, length: u64) -> io::Result<()>;

    /// The length of the file; `None` if the file was removed, so that its content is lost when the process ends.
    fn named_length(&self) -> io::Result<Option<u64>>;
}

impl<A: Appending + ?Sized> Appending for Box<A> {
    fn append(&mut self, bytes: &[u8]) -> io::Result<()> {
        (**self).append(bytes)
    }

    fn sync(&mut self) -> io::Result<()> {
        (**self).sync()
    }

    fn truncate(&mut self, length: u64) -> io::Result<()> {
        (**self).truncate(length)
    }

    fn named_length(&self) -> io::Result<Option<u64>> {
        (**self).named_length()
    }
}

/// A directory of the file system.
pub struct Directory {
    path: PathBuf,
    /// Kept open after the first sync, so that later ones need no free descriptor.
    handle: Mutex<Option<File>>,
}

impl Directory {
    pub fn new(path: PathBuf) -> Directory {
        Directory { path, handle: Mutex::new(None) }
    }

    /// The directory of a file, and the name of the file there; `None` if the path has no name.
    pub fn of(file: &Path) -> Option<(Directory, String)> {
        let name = file.file_name()?.to_string_lossy().into_owned();
        let parent = file.parent().filter(|parent| !parent.as_os_str().is_empty());
        Some((Directory::new(parent.map_or_else(|| PathBuf::from("."), Path::to_owned)), name))
    }
}

impl Disk for Directory {
    fn list(&self) -> io::Result<Vec<String>> {
        let mut names = vec![];
        for entry in std::fs::read_dir(&self.path)? {
            names.push(entry?.file_name().to_string_lossy().into_owned());
        }
        Ok(names)
    }

    fn read_into(&self, name: &str, offset: u64, length: usize, buffer: &mut Vec<u8>) -> io::Result<()> {
        let file = File::open(self.path.join(name))?;
        let there = file.metadata()?.len().saturating_sub(offset);
        buffer.resize(length.min(usize::try_from(there).unwrap_or(usize::MAX)), 0);
        file.read_exact_at(buffer, offset)
    }

    #[cfg(target_os = "linux")]
    fn forget_cached(&self, name: &str) {
        if let Ok(file) = File::open(self.path.join(name)) {
            let _ = rustix::fs::fadvise(&file, 0, None, rustix::fs::Advice::DontNeed);
        }
    }

    fn create(&self, name: &str) -> io::Result<Box<dyn Appending>> {
        // stored values may be secret
        let file = File::options().append(true).create(true).mode(0o600).open(self.path.join(name))?;
        file.set_len(0)?;
        Ok(Box::new(file))
    }

    fn open(&self, name: &str) -> io::Result<Box<dyn Appending>> {
        Ok(Box::new(File::options().append(true).open(self.path.join(name))?))
    }

    fn write_anew(&self, name: &str, offset: u64, bytes: &[u8]) -> io::Result<()> {
        File::options().write(true).open(self.path.join(name))?.write_all_at(bytes, offset)
    }

    fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        std::fs::rename(self.path.join(from), self.path.join(to))
    }

    fn remove(&self, name: &str) -> io::Result<()> {
        std::fs::remove_file(self.path.join(name))
    }

    fn sync(&self) -> io::Result<()> {
        let mut handle = self.handle.lock();
        if handle.is_none() {
            *handle = Some(File::open(&self.path)?);
        }
        handle.as_ref().map_or(Ok(()), File::sync_all)
    }
}

impl Appending for File {
    fn append(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.write_all(bytes)
    }

    fn sync(&mut self) -> io::Result<()> {
        self.sync_data()
    }

    fn truncate(&mut self, length: u64) -> io::Result<()> {
        self.set_len(length)
    }

    fn named_length(&self) -> io::Result<Option<u64>> {
        let metadata = self.metadata()?;
        Ok((metadata.nlink() > 0).then_some(metadata.len()))
    }
}
