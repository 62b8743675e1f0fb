//! Writes the files of checkpoints and backups.

use super::disk::{Appending, Disk};
use super::frame::{FILE_HEADER, Frame, Header, Kind};
use crate::contract::Revision;
use crate::contract::content::Number;
use crate::limits;

/// Writes entries by rising revision. The file is ignored until it has been finished and renamed.
pub struct Entries<A = Box<dyn Appending>> {
    file: A,
    header: Header,
    frame: Frame,
    /// Frames that are not written yet.
    whole: Vec<u8>,
    length: u64,
}

impl Entries {
    pub fn create(disk: &dyn Disk, name: &str, revision: Revision) -> std::io::Result<Entries> {
        Entries::begin(disk.create(name)?, revision)
    }
}

impl<A: Appending> Entries<A> {
    pub fn begin(mut file: A, revision: Revision) -> std::io::Result<Entries<A>> {
        let header = Header::new(revision);
        file.append(&header.encode())?;
        let frame = Frame::with_capacity(limits::CHECKPOINT_FRAME_BYTES);
        Ok(Entries { file, header, frame, whole: vec![], length: FILE_HEADER as u64 })
    }

    pub fn push(&mut self, revision: Revision, key: &[u8], value: &[u8]) -> std::io::Result<()> {
        self.push_record(Kind::Put, revision, key, value)
    }

    /// Adds a file of a backup; files precede entries.
    pub fn push_file(&mut self, name: &str, content: &[u8]) -> std::io::Result<()> {
        self.push_record(Kind::File, self.header.first, name.as_bytes(), content)
    }

    pub fn push_record(&mut self, kind: Kind, revision: Revision, key: &[u8], value: &[u8]) -> std::io::Result<()> {
        self.frame.push(kind, revision, key, value);
        self.flush_full()
    }

    /// Adds a change of a branch, which has a revision there.
    pub fn push_in_branch(
        &mut self,
        kind: Kind,
        branch: (Number, Revision),
        key: &[u8],
        value: &[u8],
    ) -> std::io::Result<()> {
        self.frame.push_in_branch(kind, branch.0, branch, key, value);
        self.flush_full()
    }

    fn flush_full(&mut self) -> std::io::Result<()> {
        if self.frame.len() < limits::CHECKPOINT_FRAME_BYTES {
            return Ok(());
        }
        self.end_frame();
        if self.whole.len() < limits::CHECKPOINT_WRITE_BYTES { Ok(()) } else { self.flush() }
    }

    fn end_frame(&mut self) {
        let frame = std::mem::replace(&mut self.frame, Frame::with_capacity(limits::CHECKPOINT_FRAME_BYTES));
        self.whole.append(&mut frame.finish(self.header.salt, self.header.first));
    }

    fn flush(&mut self) -> std::io::Result<()> {
        self.length += self.whole.len() as u64;
        self.file.append(&self.whole)?;
        self.whole.clear();
        Ok(())
    }

    /// Ends and syncs the file; returns its length in bytes, and the file.
    pub fn finish(mut self) -> std::io::Result<(u64, A)> {
        self.frame.push(Kind::End, self.header.first, &[], &[]);
        self.end_frame();
        self.flush()?;
        self.file.sync()?;
        Ok((self.length, self.file))
    }
}
