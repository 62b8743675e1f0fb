//! Archives whose bytes depend on nothing but their content: sorted by the caller, without owners, with one time.

use std::io::Write as _;

use aws_lc_rs::digest;
use client::{Context as _, Result};
use flate2::{Compression, GzBuilder};

/// A file or a directory of an archive.
#[derive(Clone, Debug)]
pub struct Entry {
    pub path: String,
    pub mode: u32,
    /// The user and group that own it.
    pub owner: u64,
    /// None for a directory.
    pub content: Option<Vec<u8>>,
}

impl Entry {
    pub fn file(path: String, mode: u32, content: Vec<u8>) -> Entry {
        Entry { path, mode, owner: 0, content: Some(content) }
    }

    pub fn directory(path: &str, mode: u32, owner: u64) -> Entry {
        Entry { path: path.to_owned(), mode, owner, content: None }
    }

    /// The same in a directory.
    pub fn below(&self, directory: &str) -> Entry {
        Entry { path: format!("{directory}/{}", self.path), ..self.clone() }
    }
}

/// A tar archive.
pub fn tar(entries: &[Entry], time: u64) -> Result<Vec<u8>> {
    let mut builder = tar::Builder::new(vec![]);
    for entry in entries {
        let content = entry.content.as_deref().unwrap_or_default();
        let mut header = tar::Header::new_gnu();
        header.set_entry_type(if entry.content.is_some() {
            tar::EntryType::Regular
        } else {
            tar::EntryType::Directory
        });
        header.set_size(content.len() as u64);
        header.set_mode(entry.mode);
        header.set_uid(entry.owner);
        header.set_gid(entry.owner);
        header.set_mtime(time);
        builder.append_data(&mut header, &entry.path, content).context("cannot write an archive")?;
    }
    builder.into_inner().context("cannot write an archive")
}

pub fn gzip(content: &[u8]) -> Result<Vec<u8>> {
    // the best level takes three times as long for a hundredth of the size
    let mut encoder = GzBuilder::new().write(vec![], Compression::default());
    let result = encoder.write_all(content).and_then(|()| encoder.finish());
    result.context("cannot compress")
}

/// The digest in hexadecimal.
pub fn sha256(content: &[u8]) -> String {
    digest::digest(&digest::SHA256, content).as_ref().iter().map(|byte| format!("{byte:02x}")).collect()
}

/// An `ar` archive, the form of Debian packages.
pub fn ar(files: &[(&str, Vec<u8>)], time: u64) -> Vec<u8> {
    let mut out = b"!<arch>\n".to_vec();
    for (name, content) in files {
        out.extend(format!("{name:<16}{time:<12}{:<6}{:<6}{:<8}{:<10}`\n", 0, 0, 100_644, content.len()).bytes());
        out.extend(content);
        if content.len() % 2 == 1 {
            out.push(b'\n');
        }
    }
    out
}
