//! The data directory: its lock and its format.

use std::fs::{DirBuilder, File, TryLockError};
use std::io::{Read as _, Seek as _, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _, OpenOptionsExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};

use super::disk::{Directory, Disk as _};
use super::open_error::{FORMAT_VERSION, OpenError};
use super::recovery;

/// The format of a directory that has never had branches.
const WITHOUT_BRANCHES: u32 = 2;
/// Subdirectory of the log.
const LOG: &str = "log";
/// Subdirectory of a log that is being created.
const UNFINISHED: &str = "log.tmp";

fn io(directory: &Path, error: std::io::Error) -> OpenError {
    OpenError::Io(directory.to_owned(), error)
}

pub fn log_directory(directory: &Path) -> PathBuf {
    directory.join(LOG)
}

/// Creates the data directory with mode 0700 unless it exists, and rejects one that other users can write to, since they
/// could replace its files. Its name is synced.
pub fn create_directory(directory: &Path) -> Result<(), OpenError> {
    let failed = |error| io(directory, error);
    if directory.exists() && !directory.is_dir() {
        return Err(OpenError::Unusable(directory.to_owned(), "it is not a directory"));
    }
    let missing = directory.ancestors().take_while(|ancestor| !ancestor.as_os_str().is_empty() && !ancestor.exists());
    let missing = missing.count();
    DirBuilder::new().recursive(true).mode(0o700).create(directory).map_err(failed)?;
    if std::fs::metadata(directory).map_err(failed)?.mode() & 0o002 != 0 {
        let why = "every user can write to it; take that permission away (chmod o-w), or name a directory below it";
        return Err(OpenError::Unusable(directory.to_owned(), why));
    }
    // an earlier process may have been stopped between creating the directory and syncing its name
    for made in directory.ancestors().take(missing.max(1)) {
        sync_name(made).map_err(failed)?;
    }
    Ok(())
}

fn sync_name(directory: &Path) -> std::io::Result<()> {
    let parent = match directory.parent() {
        Some(parent) if parent.as_os_str().is_empty() => Path::new("."),
        Some(parent) => parent,
        None => return Ok(()),
    };
    match File::open(parent) {
        // the directory belongs to another user and this process cannot read it
        Err(error) if error.kind() == std::io::ErrorKind::PermissionDenied => Ok(()),
        opened => opened?.sync_all(),
    }
}

/// Locks the directory for as long as the returned file is open, and writes `holder` to it, for the error message of other
/// processes.
pub fn take_lock(directory: &Path, holder: &str) -> Result<File, OpenError> {
    let path = directory.join("LOCK");
    // a process that can open the file can lock it, so only its owner may open it
    let opened = File::options().read(true).write(true).create(true).truncate(false).mode(0o600).open(path);
    let mut file = opened.map_err(|error| io(directory, error))?;
    let private = file.set_permissions(std::fs::Permissions::from_mode(0o600));
    private.map_err(|error| io(directory, error))?;
    match file.try_lock() {
        Ok(()) => {}
        Err(TryLockError::WouldBlock) => {
            let mut by = String::new();
            let _ = file.read_to_string(&mut by);
            return Err(OpenError::Held(directory.to_owned(), by.trim().to_owned()));
        }
        Err(TryLockError::Error(error)) => return Err(io(directory, error)),
    }
    let written = file.set_len(0).and_then(|()| file.rewind()).and_then(|()| writeln!(file, "{holder}"));
    written.map_err(|error| io(directory, error))?;
    Ok(file)
}

/// Locks the directory of the log, besides the file LOCK, which can be removed while it is locked.
pub fn lock_log(directory: &Path) -> Result<File, OpenError> {
    let log = File::open(log_directory(directory)).map_err(|error| io(directory, error))?;
    match log.try_lock() {
        Ok(()) => Ok(log),
        Err(TryLockError::WouldBlock) => {
            Err(OpenError::Held(directory.to_owned(), "no process, since it was removed".to_owned()))
        }
        Err(TryLockError::Error(error)) => Err(io(directory, error)),
    }
}

/// Whether the directory holds a store of this version's format; false if no store was ever created there. Fails if the
/// format is another version's.
pub fn is_initialized(directory: &Path) -> Result<bool, OpenError> {
    let text = match std::fs::read_to_string(directory.join("FORMAT")) {
        Ok(text) => text,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(false),
        Err(error) if error.kind() == std::io::ErrorKind::InvalidData => String::new(),
        Err(error) => return Err(io(directory, error)),
    };
    match text.trim().strip_prefix("pintle ").and_then(|version| version.parse::<u32>().ok()) {
        Some(version) if version > FORMAT_VERSION => Err(OpenError::NewerFormat(directory.to_owned(), version)),
        Some(version @ 1..WITHOUT_BRANCHES) => Err(OpenError::OlderFormat(directory.to_owned(), version)),
        Some(WITHOUT_BRANCHES..=FORMAT_VERSION) => Ok(true),
        _ => Err(OpenError::UnknownFormat(directory.to_owned(), "does not hold a format")),
    }
}

/// Creates an empty log in a new data directory, and finishes one that a crash has interrupted. A directory that already
/// has a log is left as it is.
pub fn prepare(directory: &Path) -> Result<(), OpenError> {
    let failed = |error| io(directory, error);
    if is_initialized(directory)? {
        // a crash after the rename of FORMAT and before that of the log
        if directory.join(UNFINISHED).exists() && !directory.join(LOG).exists() {
            let place = Directory::new(directory.to_owned());
            place.rename(UNFINISHED, LOG).and_then(|()| place.sync()).map_err(failed)?;
        }
        return Ok(());
    }
    if has_content(directory).map_err(failed)? {
        return Err(OpenError::UnknownFormat(directory.to_owned(), "is missing"));
    }
    make(directory, Branched::No, |log| recovery::create(log).map_err(|error| io(directory, error)))
}

/// Whether there is a log with at least one record.
fn has_content(directory: &Path) -> std::io::Result<bool> {
    let entries = match std::fs::read_dir(directory.join(LOG)) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(false),
        entries => entries?,
    };
    let mut length = 0;
    for entry in entries {
        length += entry?.metadata()?.len();
    }
    Ok(length > super::frame::FILE_HEADER as u64)
}

/// Whether a log has branches.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Branched {
    Yes,
    No,
}

/// Notes durably that the log may have branches, which versions before them would take for damage.
pub fn allow_branches(directory: &Path) -> std::io::Result<()> {
    let place = Directory::new(directory.to_owned());
    write_format(&place, FORMAT_VERSION)?;
    place.rename("FORMAT.tmp", "FORMAT")?;
    place.sync()
}

fn write_format(place: &Directory, version: u32) -> std::io::Result<()> {
    let mut file = place.create("FORMAT.tmp")?;
    file.append(format!("pintle {version}\n").as_bytes())?;
    file.sync()
}

/// Removes a log, also one that is being created, and its format.
pub fn unmake(directory: &Path) -> Result<(), OpenError> {
    let gone = |removed: std::io::Result<()>| match removed {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => Err(io(directory, error)),
        _ => Ok(()),
    };
    // a log without a format is no store, and a format without a log would be a corrupt one
    ["FORMAT", "FORMAT.tmp"].iter().try_for_each(|name| gone(std::fs::remove_file(directory.join(name))))?;
    [UNFINISHED, LOG].iter().try_for_each(|name| gone(std::fs::remove_dir_all(directory.join(name))))
}

/// Creates a log, renames it to its final name and writes FORMAT.
pub fn make(
    directory: &Path,
    branched: Branched,
    fill: impl FnOnce(&Directory) -> Result<(), OpenError>,
) -> Result<(), OpenError> {
    let failed = |error| io(directory, error);
    for unfinished in [UNFINISHED, LOG] {
        match std::fs::remove_dir_all(directory.join(unfinished)) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => return Err(failed(error)),
            _ => {}
        }
    }
    std::fs::create_dir(directory.join(UNFINISHED)).map_err(failed)?;
    fill(&Directory::new(directory.join(UNFINISHED)))?;
    let place = Directory::new(directory.to_owned());
    let publish = || -> std::io::Result<()> {
        write_format(&place, if branched == Branched::Yes { FORMAT_VERSION } else { WITHOUT_BRANCHES })?;
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
    fn interrupted_directory_creation_is_completed() {
        for left_by_a_crash in [&["FORMAT gone"][..], &["log log.tmp"], &["FORMAT gone", "log log.tmp"]] {
            let directory = places(left_by_a_crash);
            prepare(directory.path()).unwrap();
            assert!(is_initialized(directory.path()).unwrap());
            assert_eq!(recovery::read(&Directory::new(log_directory(directory.path()))).unwrap().head, 0);
        }
    }

    fn mode(path: &Path) -> u32 {
        std::fs::metadata(path).unwrap().mode() & 0o777
    }

    #[test]
    fn created_files_are_private() {
        let parent = tempfile::tempdir().unwrap();
        let directory = parent.path().join("a/b");
        create_directory(&directory).unwrap();
        let lock = take_lock(&directory, "a test").unwrap();
        assert_eq!((mode(&directory), mode(&directory.join("LOCK"))), (0o700, 0o600));
        drop(lock);
        std::fs::set_permissions(directory.join("LOCK"), std::fs::Permissions::from_mode(0o644)).unwrap();
        drop(take_lock(&directory, "a test").unwrap());
        assert_eq!(mode(&directory.join("LOCK")), 0o600, "as an older version has left it");
    }

    #[test]
    fn rejects_data_directory_writable_by_others() {
        let directory = tempfile::tempdir().unwrap();
        for (mode, is_refused) in [(0o777, true), (0o1777, true), (0o775, false), (0o755, false), (0o700, false)] {
            std::fs::set_permissions(directory.path(), std::fs::Permissions::from_mode(mode)).unwrap();
            let made = create_directory(directory.path());
            assert_eq!(made.is_err(), is_refused, "{mode:o}");
            assert!(made.err().is_none_or(|error| error.to_string().contains("every user can write to it")));
        }
    }

    #[test]
    fn unreadable_log_is_not_treated_as_empty() {
        let directory = tempfile::tempdir().unwrap();
        std::fs::write(log_directory(directory.path()), "no directory").unwrap();
        assert!(matches!(prepare(directory.path()), Err(OpenError::Io(..))));
        assert!(log_directory(directory.path()).is_file(), "what is there is not touched");
    }

    #[test]
    fn non_empty_log_without_format_is_corrupt() {
        let directory = places(&["FORMAT gone"]);
        std::fs::write(log_directory(directory.path()).join("00000000000000000009.log"), [0; 100]).unwrap();
        let error = prepare(directory.path()).unwrap_err().to_string();
        assert!(error.contains("the file FORMAT is missing"), "{error}");
        std::fs::write(directory.path().join("FORMAT"), [0xff, 0]).unwrap();
        let error = prepare(directory.path()).unwrap_err().to_string();
        assert!(error.contains("FORMAT does not hold a format") && error.contains("echo 'pintle 3' > "), "{error}");
        assert!(!error.contains("restore"), "nothing is known to be wrong with the log: {error}");
    }

    /// The advice of the error is right, whichever format the directory had.
    #[test]
    fn a_format_that_is_put_back_opens_the_directory() {
        let directory = places(&["FORMAT gone"]);
        std::fs::write(directory.path().join("FORMAT"), format!("pintle {FORMAT_VERSION}\n")).unwrap();
        prepare(directory.path()).unwrap();
        assert_eq!(recovery::read(&Directory::new(log_directory(directory.path()))).unwrap().head, 0);
    }

    #[test]
    fn directories_of_other_formats_are_refused() {
        let directory = places(&[]);
        for (format, expected) in
            [("1", "no longer reads"), ("4", "use a newer pintle"), ("0", "does not hold a format")]
        {
            std::fs::write(directory.path().join("FORMAT"), format!("pintle {format}\n")).unwrap();
            let error = prepare(directory.path()).unwrap_err().to_string();
            assert!(error.contains(expected), "{error}");
        }
    }
}
