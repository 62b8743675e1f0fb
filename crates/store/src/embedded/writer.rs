//! The writer: appends to the end of the log.

use std::io::ErrorKind;
use std::sync::Arc;

use super::disk::Appending;
use super::entry::LogEntry;
use super::files::{Files, Segment};
use super::frame::{FILE_HEADER, Frame, Header, Kind};
use super::mark;
use super::options::{Durability, Options};
use super::timing::Timing;
use crate::contract::{DiskWork, Revision};
use crate::limits;

/// Why changes were not appended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Failure {
    /// The log is unchanged, and a later attempt may succeed: no space or no descriptor is left.
    Temporary(String),
    /// The content of the disk is unknown: no write may be acknowledged until the store is opened again.
    Fatal(String),
    /// The files of the log are not those of this process any more. What is opened again does not have the objects that this
    /// process has.
    Lost(String),
}

impl Failure {
    pub fn why(self) -> String {
        match self {
            Failure::Temporary(why) | Failure::Fatal(why) | Failure::Lost(why) => why,
        }
    }
}

pub struct Writer {
    pub files: Arc<Files>,
    timing: Arc<Timing>,
    options: Options,
    file: Box<dyn Appending>,
    salt: u64,
    /// Length of the complete frames in the file, in bytes.
    length: u64,
    head: Revision,
    synced: Revision,
    /// Whether a frame with the seal of `synced` has been appended.
    sealed: bool,
    /// Whether each append is synced, see [`Writer::sync_each`].
    syncs: bool,
    /// Size of the last write that failed, in bytes.
    refused: usize,
    /// Whether the last attempt to start a segment has failed.
    outgrows: bool,
    /// A segment that was created but is not part of the log. It must be removed before anything is appended.
    unmade: Option<String>,
}

/// The error of an operation that left the log unchanged.
fn temporary(what: &str, error: &std::io::Error) -> Failure {
    Failure::Temporary(format!("cannot {what} the log: {error}"))
}

fn fatal(what: &str, error: &std::io::Error) -> Failure {
    Failure::Fatal(format!("cannot {what} the log: {error}"))
}

impl Writer {
    /// Continues at the end of the last segment, which is synced up to `head`.
    pub fn new(
        files: Arc<Files>,
        options: Options,
        file: Box<dyn Appending>,
        head: Revision,
        timing: Arc<Timing>,
    ) -> Writer {
        let (salt, length) = files.lock().segments.last().map_or((0, 0), |last| (last.salt, last.length));
        let syncs = options.durability == Durability::Sync;
        Writer {
            files,
            timing,
            options,
            file,
            salt,
            length,
            head,
            synced: head,
            sealed: false,
            syncs,
            refused: 0,
            outgrows: false,
            unmade: None,
        }
    }

    #[cfg(test)]
    pub fn synced(&self) -> Revision {
        self.synced
    }

    pub fn options(&self) -> Options {
        self.options
    }

    /// The revision of the last entry of the log.
    pub fn head(&self) -> Revision {
        self.head
    }

    /// Appends entries, which follow the last one without a gap. They are on disk when this returns, if durability is `sync` and
    /// not deferred.
    pub fn append(&mut self, entries: &[LogEntry<'_>]) -> Result<(), Failure> {
        debug_assert!(
            entries.iter().zip(self.head + 1..).all(|(entry, next)| entry.position == next),
            "entries are appended out of order"
        );
        let _measured = self.timing.begin(DiskWork::Commit);
        self.remove_unmade()?;
        if self.length > self.options.segment_bytes {
            self.roll_or_continue()?;
        }
        let mut rest = entries;
        let mut frames = vec![];
        let mut bytes = vec![];
        while let Some(first) = rest.first() {
            let size = rest.iter().map(LogEntry::size).sum::<usize>();
            let mut frame = Frame::with_capacity(size.min(limits::FRAME_BYTES_MAX));
            let mut count = 0;
            while let Some(entry) =
                rest.get(count).filter(|next| count == 0 || frame.len() + next.size() < limits::FRAME_BYTES_MAX)
            {
                match entry.branch {
                    None => frame.push(entry.kind, entry.position, entry.key, entry.value),
                    Some(branch) => frame.push_in_branch(entry.kind, entry.position, branch, entry.key, entry.value),
                }
                count += 1;
            }
            frames.push((first.position, self.length + bytes.len() as u64));
            bytes.extend(frame.finish(self.salt, self.synced));
            rest = &rest[count..];
        }
        self.write(&bytes)?;
        if self.syncs {
            self.sync_file()?;
        }
        self.check_file()?;
        self.head = entries.last().map_or(self.head, |last| last.position);
        if self.syncs {
            self.synced = self.head;
        }
        self.sealed = false;
        if let Some(last) = self.files.lock().segments.last_mut() {
            last.frames.extend(frames);
            last.length = self.length;
        }
        Ok(())
    }

    /// Checks that the file is still the one of the log, and only this process has written to it. A write to a file that was
    /// removed succeeds, and is lost with the process.
    fn check_file(&self) -> Result<(), Failure> {
        match self.file.named_length() {
            Ok(Some(length)) if length == self.length => Ok(()),
            Ok(Some(_)) => Err(Failure::Lost(format!("another process has written to log/{}", self.name()))),
            Ok(None) => Err(Failure::Lost(format!("log/{} has been removed", self.name()))),
            Err(error) => Err(fatal("examine", &error)),
        }
    }

    /// Checks that no file of the log has been removed or moved away.
    pub fn check_files(&self) -> Result<(), Failure> {
        self.files.removed().map_or(Ok(()), |name| Err(Failure::Lost(format!("{name} has been removed"))))
    }

    /// The name of the file that is written to.
    fn name(&self) -> String {
        self.files.lock().segments.last().map(|last| last.name.clone()).unwrap_or_default()
    }

    /// Appends bytes, or leaves the file as it was.
    fn write(&mut self, bytes: &[u8]) -> Result<(), Failure> {
        match self.file.append(bytes) {
            Ok(()) => {
                self.length += bytes.len() as u64;
                Ok(())
            }
            Err(error) => {
                self.undo()?;
                self.refused = bytes.len();
                Err(temporary("write to", &error))
            }
        }
    }

    fn undo(&mut self) -> Result<(), Failure> {
        let undone = self.file.truncate(self.length);
        undone.map_err(|worse| fatal("undo a write to", &worse))
    }

    /// Checks whether the disk has room for a write as large as the last one that failed.
    pub fn probe(&mut self) -> Result<(), Failure> {
        let fits = self.file.append(&vec![0; self.refused]);
        self.undo()?;
        fits.map_err(|error| temporary("write to", &error))
    }

    /// With durability `sync`: makes everything durable and then syncs each append, or leaves the next appends unsynced.
    pub fn sync_each(&mut self, each: bool) -> Result<(), Failure> {
        self.syncs = each && self.options.durability == Durability::Sync;
        if self.syncs { self.sync() } else { Ok(()) }
    }

    fn sync_file(&mut self) -> Result<(), Failure> {
        let _measured = self.timing.begin(DiskWork::Sync);
        self.file.sync().map_err(|error| fatal("sync", &error))
    }

    /// Makes everything durable.
    pub fn sync(&mut self) -> Result<(), Failure> {
        if self.synced < self.head {
            self.sync_file()?;
            self.synced = self.head;
            self.sealed = false;
        }
        Ok(())
    }

    /// Appends a seal, a frame that states that the frame before it is synced. A recovery then treats damage to that
    /// frame as corruption and not as an incomplete write. The seal itself is not synced.
    pub fn seal(&mut self) -> Result<(), Failure> {
        if self.sealed || self.synced < self.head {
            return Ok(());
        }
        self.write(&Frame::with_capacity(0).finish(self.salt, self.synced))?;
        self.sealed = true;
        if let Some(last) = self.files.lock().segments.last_mut() {
            last.length = self.length;
        }
        Ok(())
    }

    /// Starts a new segment. If that fails temporarily, the log continues in the old one, whose length has no limit, and the
    /// next append tries again.
    fn roll_or_continue(&mut self) -> Result<(), Failure> {
        match self.roll() {
            Err(Failure::Temporary(why)) => {
                // each append tries again
                if !std::mem::replace(&mut self.outgrows, true) {
                    tracing::warn!(why, "the log grows in one file, since no other one can be started");
                }
                self.remove_unmade()
            }
            result => {
                self.outgrows = false;
                result
            }
        }
    }

    /// Starts a new segment. Once that is durable, a record at the end of the old one names it.
    fn roll(&mut self) -> Result<(), Failure> {
        self.sync()?;
        let header = Header::new(self.head + 1);
        let segment = Segment::new(header.first, header.salt);
        let disk = self.files.disk.clone();
        let mut file = disk.create(&segment.name).map_err(|error| temporary("start a file of", &error))?;
        self.unmade = Some(segment.name.clone());
        let written = file.append(&header.encode()).and_then(|()| file.sync());
        written.map_err(|error| temporary("start a file of", &error))?;
        disk.sync().map_err(|error| fatal("sync the directory of", &error))?;
        let mut roll = Frame::with_capacity(0);
        roll.push(Kind::Roll, header.first, &[], &[]);
        self.write(&roll.finish(self.salt, self.synced))?;
        self.sync_file()?;
        self.unmade = None;
        (self.file, self.salt, self.length) = (file, header.salt, FILE_HEADER as u64);
        self.files.lock().segments.push(segment);
        Ok(())
    }

    /// Removes the remains of a segment that could not be started, and syncs the directory. This must precede any append: a
    /// recovery continues the log in the newest segment if that is empty.
    fn remove_unmade(&mut self) -> Result<(), Failure> {
        let Some(name) = &self.unmade else { return Ok(()) };
        match self.files.disk.remove(name) {
            Err(error) if error.kind() != ErrorKind::NotFound => Err(temporary("remove an unused file of", &error)),
            _ => {
                self.files.disk.sync().map_err(|error| fatal("sync the directory of", &error))?;
                self.unmade = None;
                Ok(())
            }
        }
    }

    /// Syncs the log, seals it and marks how far it reaches.
    pub fn close(&mut self) -> Result<(), Failure> {
        self.sync()?;
        self.seal()?;
        self.sync_file()?;
        mark::write(&*self.files.disk, self.head).map_err(|error| temporary("mark the end of", &error))
    }
}
