//! The data directory: who works on it, and which format it has.

use std::fs::{File, TryLockError};
use std::io::{Read as _, Seek as _, Write as _};
use std::path::{Path, PathBuf};

use super::disk::{Directory, Disk as _};
use super::{OpenError, recovery, upgrade};

/// The format of the data directory that this version writes.
pub const FORMAT_VERSION: u32 = 2;
/// Where the log lies.
const LOG: &str = "log";
/// Where a log lies that is being made.
const UNFINISHED: &str = "log.tmp";

fn io(directory: &Path, error: &std::io::Error) -> OpenError {
    OpenError::Io(directory.to_owned(), error.to_string())
}

fn damaged(directory: &Path, why: &str) -> OpenError {
    OpenError::Damaged(directory.to_owned(), why.to_owned())
}

pub fn log_directory(directory: &Path) -> PathBuf {
    directory.join(LOG)
}

/// Takes the lock of the directory, which says `holder` to others, for as long as the file is open.
pub fn take_lock(directory: &Path, holder: &str) -> Result<File, OpenError> {
    let path = directory.join("LOCK");
    let opened = File::options().read(true).write(true).create(true).truncate(false).open(path);
    let mut file = opened.map_err(|error| io(directory, &error))?;
    match file.try_lock() {
        Ok(()) => {}
        Err(TryLockError::WouldBlock) => {
            let mut by = String::new();
            let _ = file.read_to_string(&mut by);
            return Err(OpenError::Held(directory.to_owned(), by.trim().to_owned()));
        }
        Err(TryLockError::Error(error)) => return Err(io(directory, &error)),
    }
    let written = file.set_len(0).and_then(|()| file.rewind()).and_then(|()| writeln!(file, "{holder}"));
    written.map_err(|error| io(directory, &error))?;
    Ok(file)
}

/// The format of a directory; none if nothing has been stored there.
pub fn read(directory: &Path) -> Result<Option<u32>, OpenError> {
    let text = match std::fs::read_to_string(directory.join("FORMAT")) {
        Ok(text) => text,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
        Err(error) if error.kind() == std::io::ErrorKind::InvalidData => String::new(),
        Err(error) => return Err(io(directory, &error)),
    };
    match text.trim().strip_prefix("pintle ").and_then(|version| version.parse::<u32>().ok()) {
        Some(version) if version > FORMAT_VERSION => Err(OpenError::NewerFormat(directory.to_owned(), version)),
        Some(version) if version > 0 => Ok(Some(version)),
        _ => Err(damaged(directory, "the file FORMAT does not hold a format")),
    }
}

/// Makes the directory one of this version's format: a new one is filled, an older one upgraded. A crash at any moment
/// leaves what was there, or what is wanted.
pub fn prepare(directory: &Path) -> Result<(), OpenError> {
    let failed = |error: std::io::Error| io(directory, &error);
    match read(directory)? {
        // of the two names that are made last, a crash has left the second only
        Some(FORMAT_VERSION) if directory.join(UNFINISHED).exists() && !directory.join(LOG).exists() => {
            let place = Directory(directory.to_owned());
            place.rename(UNFINISHED, LOG).and_then(|()| place.sync()).map_err(failed)?;
        }
        Some(FORMAT_VERSION) => {}
        Some(_) => make(directory, |log| upgrade::from_1(directory, log))?,
        None if directory.join("store").exists() || has_content(directory) => {
            return Err(damaged(directory, "the file FORMAT is missing"));
        }
        None => make(directory, |log| recovery::create(log).map_err(|error| io(directory, &error)))?,
    }
    // what an upgrade leaves behind
    match std::fs::remove_dir_all(directory.join(upgrade::STORE_1)) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => Err(failed(error)),
        _ => Ok(()),
    }
}

/// Whether a log lies there to which something has been written.
fn has_content(directory: &Path) -> bool {
    let Ok(entries) = std::fs::read_dir(directory.join(LOG)) else { return false };
    let lengths = entries.filter_map(|entry| entry.ok()?.metadata().ok()).map(|metadata| metadata.len());
    lengths.sum::<u64>() > super::frame::FILE_HEADER as u64
}

/// Makes a log, moves it to its place and names the format.
pub fn make(directory: &Path, fill: impl FnOnce(&Directory) -> Result<(), OpenError>) -> Result<(), OpenError> {
    let failed = |error: std::io::Error| io(directory, &error);
    for unfinished in [UNFINISHED, LOG] {
        match std::fs::remove_dir_all(directory.join(unfinished)) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => return Err(failed(error)),
            _ => {}
        }
    }
    std::fs::create_dir(directory.join(UNFINISHED)).map_err(failed)?;
    fill(&Directory(directory.join(UNFINISHED)))?;
    let place = Directory(directory.to_owned());
    let publish = || -> std::io::Result<()> {
        let mut file = place.create("FORMAT.tmp")?;
        file.append(format!("pintle {FORMAT_VERSION}\n").as_bytes())?;
        file.sync()?;
        place.rename(UNFINISHED, LOG)?;
        place.rename("FORMAT.tmp", "FORMAT")?;
        place.sync()
    };
    publish().map_err(failed)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn places(names: &[&str]) -> tempfile::TempDir {
        let directory = tempfile::tempdir().unwrap();
        prepare(directory.path()).unwrap();
        for name in names {
            let (from, to) = name.split_once(' ').unwrap();
            std::fs::rename(directory.path().join(from), directory.path().join(to)).unwrap();
        }
        directory
    }

    #[test]
    fn a_directory_that_was_being_made_is_made() {
        for left_by_a_crash in [&["FORMAT gone"][..], &["log log.tmp"], &["FORMAT gone", "log log.tmp"]] {
            let directory = places(left_by_a_crash);
            prepare(directory.path()).unwrap();
            assert_eq!(read(directory.path()).unwrap(), Some(FORMAT_VERSION));
            assert_eq!(recovery::read(&Directory(log_directory(directory.path()))).unwrap().state.head, 0);
        }
    }

    #[test]
    fn a_log_without_its_format_is_damage_when_it_holds_something() {
        let directory = places(&["FORMAT gone"]);
        std::fs::write(log_directory(directory.path()).join("00000000000000000009.log"), [0; 100]).unwrap();
        let error = prepare(directory.path()).unwrap_err().to_string();
        assert!(error.contains("the file FORMAT is missing"), "{error}");
        std::fs::write(directory.path().join("FORMAT"), [0xff, 0]).unwrap();
        let error = prepare(directory.path()).unwrap_err().to_string();
        assert!(error.contains("does not hold a format"), "{error}");
    }
}
