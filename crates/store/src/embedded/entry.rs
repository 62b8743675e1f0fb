//! Entries of the log about branches, and how all entries are passed to the writer.
//!
//! ```text
//! fork    key = id of the branch    value = source u64  head u64  label
//! reset   key = number u64          value = head u64  label
//! drop    key = number u64
//! ```
//!
//! The number of a branch is the revision of its fork or reset; that of the store itself is 0, and a source of [`NOTHING`] is an
//! empty one. A branch begins at revision `head`.

use bytes::Bytes;

use super::frame::{Kind, Record, u64_at};
use crate::contract::content::Number;
use crate::contract::{Change, Revision};

/// The number of the store itself as a source.
pub const ROOT: Number = 0;
/// The number of the source of an empty branch.
pub const NOTHING: Number = Number::MAX;

/// An entry that is appended to the log.
#[derive(Clone, Copy, Debug)]
pub struct LogEntry<'a> {
    pub kind: Kind,
    /// Its revision in the log.
    pub position: Revision,
    /// The branch of a change, and the revision of the change there.
    pub branch: Option<(Number, Revision)>,
    pub key: &'a [u8],
    pub value: &'a [u8],
}

impl LogEntry<'_> {
    /// Bytes of the record.
    pub fn size(&self) -> usize {
        33 + self.key.len() + self.value.len()
    }
}

/// A change of the store itself.
impl<'a> From<&'a Change> for LogEntry<'a> {
    fn from(change: &'a Change) -> LogEntry<'a> {
        let kind = if change.value.is_some() { Kind::Put } else { Kind::Delete };
        let value = change.value.as_deref().unwrap_or_default();
        LogEntry { kind, position: change.revision, branch: None, key: &change.key, value }
    }
}

impl<'a> LogEntry<'a> {
    /// A change of a branch.
    pub fn in_branch(number: Number, position: Revision, change: &'a Change) -> LogEntry<'a> {
        let kind = if change.value.is_some() { Kind::BranchPut } else { Kind::BranchDelete };
        LogEntry { kind, position, branch: Some((number, change.revision)), ..LogEntry::from(change) }
    }
}

/// The beginning or the end of a branch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum BranchEntry {
    Fork { id: Bytes, source: Number, head: Revision, label: Bytes },
    Reset { number: Number, head: Revision, label: Bytes },
    Drop { number: Number },
}

impl BranchEntry {
    /// Kind, key and value of the record.
    pub fn encode(&self) -> (Kind, Bytes, Bytes) {
        match self {
            BranchEntry::Fork { id, source, head, label } => {
                let value = [&source.to_be_bytes()[..], &head.to_be_bytes(), label].concat();
                (Kind::Fork, id.clone(), value.into())
            }
            BranchEntry::Reset { number, head, label } => {
                let value = [&head.to_be_bytes()[..], label].concat();
                (Kind::Reset, Bytes::copy_from_slice(&number.to_be_bytes()), value.into())
            }
            BranchEntry::Drop { number } => (Kind::Drop, Bytes::copy_from_slice(&number.to_be_bytes()), Bytes::new()),
        }
    }

    /// `None` if the record is of another kind, or has not the form of its kind.
    pub fn decode(record: &Record) -> Option<BranchEntry> {
        let label = |at: usize| record.value.get(at..).map(Bytes::copy_from_slice);
        let number = || (record.key.len() == 8).then(|| u64_at(&record.key, 0));
        match record.kind {
            Kind::Fork => Some(BranchEntry::Fork {
                id: Bytes::copy_from_slice(&record.key),
                label: label(16)?,
                source: u64_at(&record.value, 0),
                head: u64_at(&record.value, 8),
            }),
            Kind::Reset => {
                Some(BranchEntry::Reset { number: number()?, label: label(8)?, head: u64_at(&record.value, 0) })
            }
            Kind::Drop => Some(BranchEntry::Drop { number: number()? }),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn turns_are_decoded_as_they_were_encoded() {
        for turn in [
            BranchEntry::Fork { id: "a".into(), source: 7, head: 9, label: "text".into() },
            BranchEntry::Fork { id: Bytes::new(), source: NOTHING, head: 0, label: Bytes::new() },
            BranchEntry::Reset { number: 3, head: 4, label: "x".into() },
            BranchEntry::Drop { number: u64::MAX },
        ] {
            let (kind, key, value) = turn.encode();
            let record = Record { kind, revision: 1, key, value };
            assert_eq!(BranchEntry::decode(&record), Some(turn));
            let short = Record { key: record.key.slice(..record.key.len() / 2), value: Bytes::new(), ..record };
            assert_eq!(BranchEntry::decode(&short), None);
        }
    }
}
