//! Check and snapshot of a data directory, without a server or while one uses it.
//!
//! Files of a log only grow, or are replaced whole, so they can be read while a server writes.

use std::path::Path;

use super::disk::{Directory, Disk as _};
use super::open_error::OpenError;
use super::recovery::{self, Found};
use super::{format, unfinished};
use crate::contract::content::{Content, Images};
use crate::contract::{Revision, Snapshot};
use crate::limits;

/// The content of a data directory or a backup.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Summary {
    pub objects: usize,
    /// The number of branches, whose objects are not counted.
    pub branches: usize,
    /// The revision of the last write, also to a branch.
    pub revision: Revision,
    /// History goes back to this revision.
    pub compacted: Revision,
    /// The log ends in an incomplete write: its server crashed during the write, or is writing it now.
    pub torn: bool,
    /// The revision at the last clean shutdown; later writes were made by a server that was killed or is still running.
    pub stopped: Option<Revision>,
}

impl Summary {
    fn of(found: &Found) -> Summary {
        let state = &found.replay.state;
        let (objects, compacted) = (state.index.len(), state.compacted);
        let branches = found.replay.branches.len();
        Summary { objects, branches, revision: found.head, compacted, torn: found.torn, stopped: found.stopped }
    }
}

fn read(directory: &Path) -> Result<Found, OpenError> {
    unfinished::refuse(directory)?;
    if !format::is_initialized(directory)? {
        return Err(OpenError::Unusable(directory.to_owned(), "there is no store"));
    }
    let log = Directory::new(format::log_directory(directory));
    let names = || {
        let mut names = log.list().unwrap_or_default();
        names.sort();
        names
    };
    let mut attempt = 1;
    loop {
        let before = names();
        match recovery::read(&log) {
            Ok(found) => return Ok(found),
            // a server has replaced files meanwhile
            Err(_) if names() != before => {}
            Err(_) if attempt < limits::READ_ATTEMPTS => attempt += 1,
            Err(error) => return Err(OpenError::of(directory, error)),
        }
    }
}

/// Reads every byte of the store in `directory` and changes nothing. A server may be using it.
pub fn check(directory: &Path) -> Result<Summary, OpenError> {
    read(directory).map(|found| Summary::of(&found))
}

/// The live keys of the store in `directory`, at a revision that is not older than this call. A server may be at work.
pub fn snapshot(directory: &Path) -> Result<Snapshot, OpenError> {
    content(directory).map(|content| content.snapshot)
}

/// The live keys of the store in `directory` and of its branches, as [`snapshot`] reads them.
pub fn content(directory: &Path) -> Result<Content, OpenError> {
    let Found { replay, head, .. } = read(directory)?;
    let mut entries = replay.state.live();
    entries.sort_by(|a, b| a.key.cmp(&b.key));
    let (of_root, compacted) = (replay.state.head, replay.state.compacted);
    let branches = replay.has_branched.then(|| Images {
        at: head,
        root: (of_root, compacted),
        branches: replay.branches.into_values().collect(),
    });
    Ok(Content { snapshot: Snapshot { revision: head, entries }, branches })
}
