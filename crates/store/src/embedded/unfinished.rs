//! The mark of a directory that a restore or an import is filling. Without it, a server would serve the part that an
//! interrupted task has written, and controllers would take that for the whole truth.

use std::io;
use std::path::Path;

use super::disk::{Directory, Disk as _};
use super::format;
use super::open_error::{Filling, OpenError};

/// The file: the task in the first line, and the names of files that it writes in the others.
pub const NAME: &str = "UNFINISHED";
const TEMPORARY: &str = "UNFINISHED.tmp";

impl Filling {
    fn text(&self) -> String {
        match self {
            Filling::Restore(files) => files.iter().fold("restore\n".to_owned(), |text, name| text + name + "\n"),
            Filling::Import => "import\n".to_owned(),
        }
    }

    fn parse(text: &str) -> Option<Filling> {
        let mut lines = text.strip_suffix('\n')?.split('\n').map(str::to_owned);
        match lines.next()?.as_str() {
            "restore" => {
                let files: Vec<String> = lines.collect();
                // these files are removed before the restore begins anew
                files.iter().all(|name| is_file_name(name)).then_some(Filling::Restore(files))
            }
            "import" if lines.next().is_none() => Some(Filling::Import),
            _ => None,
        }
    }
}

/// Whether a backup may contain a file of this name: one in the data directory itself.
pub fn is_file_name(name: &str) -> bool {
    !name.is_empty() && !name.starts_with('.') && !name.contains(['/', '\n'])
}

fn failed(directory: &Path, error: io::Error) -> OpenError {
    OpenError::Io(directory.join(NAME), error)
}

/// The task whose mark a directory has.
pub fn read(directory: &Path) -> Result<Option<Filling>, OpenError> {
    match std::fs::read(directory.join(NAME)) {
        Ok(bytes) => {
            let filling = std::str::from_utf8(&bytes).ok().and_then(Filling::parse);
            let why = "the file UNFINISHED names no task";
            filling.map(Some).ok_or_else(|| OpenError::Corrupt(directory.to_owned(), why.to_owned()))
        }
        // a path that is no directory is judged by who opens the store in it
        Err(error) if matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory) => {
            Ok(begun_restore(directory))
        }
        Err(error) => Err(failed(directory, error)),
    }
}

/// The restore that was interrupted while it wrote its mark. It has written nothing else, but a server would take the directory for
/// a new one, and make keys that are in the way of the next restore.
fn begun_restore(directory: &Path) -> Option<Filling> {
    let text = std::fs::read_to_string(directory.join(TEMPORARY)).ok()?;
    let whole_lines = text.get(..=text.rfind('\n')?)?;
    let restore = Filling::parse(whole_lines).filter(|filling| matches!(filling, Filling::Restore(_)))?;
    (!format::log_directory(directory).exists()).then_some(restore)
}

/// Fails if a task has not filled the directory completely.
pub fn refuse(directory: &Path) -> Result<(), OpenError> {
    match read(directory)? {
        None => Ok(()),
        Some(filling) => Err(OpenError::Unfinished(directory.to_owned(), filling)),
    }
}

/// Marks the directory durably, before the task writes anything else.
pub fn mark(directory: &Path, filling: &Filling) -> Result<(), OpenError> {
    let place = Directory::new(directory.to_owned());
    let write = || -> io::Result<()> {
        let mut file = place.create(TEMPORARY)?;
        file.append(filling.text().as_bytes())?;
        file.sync()?;
        place.rename(TEMPORARY, NAME)?;
        place.sync()
    };
    write().map_err(|error| failed(directory, error))
}

/// Removes the mark, once everything that the task has written is durable.
pub fn clear(directory: &Path) -> Result<(), OpenError> {
    let place = Directory::new(directory.to_owned());
    let removed = [TEMPORARY, NAME].into_iter().try_for_each(|name| match place.remove(name) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        removed => removed.and_then(|()| place.sync()),
    });
    removed.map_err(|error| failed(directory, error))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn marks_are_read_back_and_name_files_of_the_directory_only() {
        let directory = tempfile::tempdir().unwrap();
        for filling in [Filling::Import, Filling::Restore(vec![]), Filling::Restore(vec!["ca.key".to_owned()])] {
            mark(directory.path(), &filling).unwrap();
            assert_eq!(read(directory.path()).unwrap(), Some(filling));
        }
        for text in ["", "\n", "import", "import\nx\n", "restore\n../x\n", "restore\n\n", "restore\n.x\n", "backup\n"] {
            std::fs::write(directory.path().join(NAME), text).unwrap();
            assert!(matches!(read(directory.path()), Err(OpenError::Corrupt(..))), "{text:?}");
        }
        clear(directory.path()).unwrap();
        clear(directory.path()).unwrap();
        assert_eq!(read(directory.path()).unwrap(), None);
    }

    #[test]
    fn a_restore_that_has_not_finished_its_mark_has_begun() {
        let directory = tempfile::tempdir().unwrap();
        let restore = |names: &[&str]| Some(Filling::Restore(names.iter().map(|&name| name.to_owned()).collect()));
        let cases = [
            ("restore\nca.key\nca", restore(&["ca.key"])),
            ("restore\nca", restore(&[])),
            ("import\n", None),
            ("", None),
        ];
        for (text, expected) in cases {
            std::fs::write(directory.path().join(TEMPORARY), text).unwrap();
            assert_eq!(read(directory.path()).unwrap(), expected, "{text:?}");
        }
        std::fs::write(directory.path().join(TEMPORARY), "restore\n").unwrap();
        std::fs::create_dir(format::log_directory(directory.path())).unwrap();
        assert_eq!(read(directory.path()).unwrap(), None, "a store that was made later is one");
    }
}
