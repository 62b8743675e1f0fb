//! Archives: tar, alone or compressed with gzip or zstd, zip, and compressed files; also inside each other, once.
//!
//! Archives are recognised by their content, and read as a stream into one file without a name. Nothing is ever created at the
//! path of an entry. What cannot be read is a [`Problem`](crate::problems), and the other entries are still read.

mod allowance;
#[cfg(test)]
mod tests;
mod zip;

use std::io::{self, BufReader, Read};

use flate2::read::MultiGzDecoder;
use ruzstd::decoding::StreamingDecoder;

use self::allowance::{Allowance, Metered};
use crate::error::Error;
use crate::limits::{ENTRIES_MAX, ENTRY_BYTES_MAX, PATH_BYTES_MAX};
use crate::problems::Problems;
use crate::spool::{Part, Writer};

/// Bytes at the beginning of a file that show what it is: a block of tar.
pub const HEAD_BYTES: usize = 512;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Form {
    Gzip,
    Zstd,
    Zip,
    Tar,
    /// A form that is not read, by its name.
    Foreign(&'static str),
}

/// A file in an archive.
#[derive(Debug)]
pub struct Entry {
    /// Its path, without `.` and `..`.
    pub path: String,
    pub part: Part,
    /// When it was written, in seconds since the Unix epoch.
    pub modified: Option<i64>,
}

/// Whether a text begins as an archive does.
pub fn is_archive(head: &[u8]) -> bool {
    form(head).is_some()
}

fn form(head: &[u8]) -> Option<Form> {
    match head {
        [0x1f, 0x8b, ..] => Some(Form::Gzip),
        [0x28, 0xb5, 0x2f, 0xfd, ..] => Some(Form::Zstd),
        [b'P', b'K', 3, 4, ..] | [b'P', b'K', 5, 6, ..] => Some(Form::Zip),
        [0xfd, b'7', b'z', b'X', b'Z', 0, ..] => Some(Form::Foreign("xz")),
        [b'B', b'Z', b'h', b'1'..=b'9', b'1', b'A', b'Y', ..] => Some(Form::Foreign("bzip2")),
        [b'7', b'z', 0xbc, 0xaf, 0x27, 0x1c, ..] => Some(Form::Foreign("7z")),
        _ if head.get(257..262) == Some(b"ustar") => Some(Form::Tar),
        _ => None,
    }
}

/// Reads an archive. Fails if nothing of it can be read, and adds to `problems` what else cannot.
pub fn read(name: &str, archive: &Part, problems: &mut Problems) -> Result<Vec<Entry>, Error> {
    let failed = |source| Error::Unreadable { name: name.to_owned(), source };
    let mut reading =
        Reading { spool: Writer::new().map_err(failed)?, entries: vec![], problems, allowance: Allowance::default() };
    reading.archive(name, "", archive, Depth::Outer).map_err(failed)?;
    Ok(reading.entries)
}

/// Whether archives in an archive are read as well.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Depth {
    Outer,
    Inner,
}

struct Reading<'a> {
    spool: Writer,
    entries: Vec<Entry>,
    problems: &'a mut Problems,
    allowance: Allowance,
}

impl Reading<'_> {
    /// Reads the entries of an archive. Their paths are below `folder`.
    fn archive(&mut self, name: &str, folder: &str, archive: &Part, depth: Depth) -> io::Result<()> {
        let metered = |reader: Box<dyn Read>| Metered::new(reader, self.allowance.of(archive));
        let mut content: Box<dyn Read> = match form(&archive.head(HEAD_BYTES)?) {
            Some(Form::Gzip) => Box::new(MultiGzDecoder::new(BufReader::new(archive.clone()))),
            Some(Form::Zstd) => {
                let decoder = StreamingDecoder::new(BufReader::new(archive.clone()));
                Box::new(decoder.map_err(|error| io::Error::other(error.to_string()))?)
            }
            Some(Form::Tar) => Box::new(archive.clone()),
            Some(Form::Zip) => return self.zip(folder, archive, depth),
            Some(Form::Foreign(name)) => {
                return Err(io::Error::other(format!(
                    "{name} is not read here: unpack the file first, or pack it with gzip or zstd"
                )));
            }
            None => return Err(io::Error::other("this is not an archive")),
        };
        let mut head = vec![];
        content.by_ref().take(HEAD_BYTES as u64).read_to_end(&mut head)?;
        let is_tar = form(&head) == Some(Form::Tar);
        let whole = metered(Box::new(io::Cursor::new(head).chain(content)));
        match is_tar {
            true => self.tar(name, folder, whole, depth),
            false => {
                // the name of a compressed file without its ending
                let path = if folder.is_empty() { name.rsplit('/').next().unwrap_or(name) } else { folder };
                let path = path.strip_suffix(".gz").or_else(|| path.strip_suffix(".zst")).unwrap_or(path).to_owned();
                self.file(&path, None, whole, depth)
            }
        }
    }

    fn tar(&mut self, name: &str, folder: &str, content: Metered, depth: Depth) -> io::Result<()> {
        let headers = content.headers();
        let mut archive = tar::Archive::new(content);
        let mut entries = archive.entries()?;
        let mut left_out = 0;
        loop {
            headers.begin(left_out);
            let mut entry = match entries.next() {
                None => return Ok(()),
                Some(Ok(entry)) => entry,
                Some(Err(error)) => {
                    self.problems.add(name, &format!("the archive ends early: {error}"));
                    return Ok(());
                }
            };
            headers.end();
            let bytes = entry.header().entry_size().unwrap_or(entry.size());
            let path = String::from_utf8_lossy(&entry.path_bytes()).into_owned();
            let modified = entry.header().mtime().ok().and_then(|time| i64::try_from(time).ok());
            left_out = bytes;
            let kind = entry.header().entry_type();
            if kind.is_dir() || kind.is_pax_global_extensions() {
                continue;
            }
            if let Err(why) = check_kind(kind) {
                self.problems.add(&path, why);
                continue;
            }
            let Some(path) = self.path(folder, &path, bytes) else { continue };
            if let Err(error) = self.file(&path, modified, &mut entry, depth) {
                self.problems.add(name, &format!("the archive ends early: {error}"));
                return Ok(());
            }
            left_out = 0;
        }
    }

    fn zip(&mut self, folder: &str, archive: &Part, depth: Depth) -> io::Result<()> {
        // files of a hostile archive may share their content
        let allowance = self.allowance.of(archive);
        for member in zip::directory(archive)? {
            if member.path.ends_with('/') {
                continue;
            }
            if member.is_link {
                self.problems.add(&member.path, LINK);
                continue;
            }
            let Some(path) = self.path(folder, &member.path, member.bytes) else { continue };
            let read = zip::content(archive, &member).and_then(|content| {
                let content = Metered::new(content, allowance.clone());
                self.file(&path, None, content, depth)
            });
            if let Err(error) = read {
                self.problems.add(&path, &format!("it cannot be read: {error}"));
            }
        }
        Ok(())
    }

    /// The path of an entry, if it is one that is read.
    fn path(&mut self, folder: &str, path: &str, bytes: u64) -> Option<String> {
        let why = match plain(path) {
            Err(why) => why,
            Ok(_) if bytes > ENTRY_BYTES_MAX => "it is larger than 1 GiB",
            Ok(_) if self.entries.len() >= ENTRIES_MAX => "the archive has more than 1,000,000 files",
            Ok(path) if folder.is_empty() => return Some(path),
            Ok(path) => return Some(format!("{folder}/{path}")),
        };
        self.problems.add(path, why);
        None
    }

    /// Copies a file. An archive is read in turn.
    fn file(&mut self, path: &str, modified: Option<i64>, content: impl Read, depth: Depth) -> io::Result<()> {
        let part = self.spool.copy(content.take(ENTRY_BYTES_MAX))?;
        if !is_archive(&part.head(HEAD_BYTES)?) {
            self.entries.push(Entry { path: path.to_owned(), part, modified });
            return Ok(());
        }
        match depth {
            Depth::Inner => self.problems.add(path, "archives in archives in archives are not read"),
            Depth::Outer => {
                if let Err(error) = self.archive(path, path, &part, Depth::Inner) {
                    self.problems.add(path, &format!("it cannot be read: {error}"));
                }
            }
        }
        Ok(())
    }
}

const LINK: &str = "links are not followed";

/// Fails for what is not a file.
fn check_kind(kind: tar::EntryType) -> Result<(), &'static str> {
    match kind {
        kind if kind.is_file() || kind.is_contiguous() => Ok(()),
        kind if kind.is_symlink() || kind.is_hard_link() => Err(LINK),
        _ => Err("only files are read"),
    }
}

/// A path without empty names and `.`.
fn plain(path: &str) -> Result<String, &'static str> {
    let names: Vec<&str> = path.split('/').filter(|name| !name.is_empty() && *name != ".").collect();
    match () {
        () if names.contains(&"..") => Err("its path leaves the archive"),
        () if names.is_empty() || path.contains('\0') => Err("its path names no file"),
        () if path.len() > PATH_BYTES_MAX => Err("its path is too long"),
        () => Ok(names.join("/")),
    }
}
