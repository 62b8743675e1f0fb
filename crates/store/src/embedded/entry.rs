//! Entries of the log about branches, and how all entries are passed to the writer.
//!
//! ```text
//! fork          key = id of the branch    value = source u64  head u64  label
//! fork origin   the same
//! fork earlier  key = id of the branch    value = source u64  head u64  label length u32  label  difference*
//! reset         key = number u64          value = head u64  label
//! drop          key = number u64
//! rebase        key = number u64          value = number of another branch u64
//!
//! difference = revision u64  key length u32  value length u32  key  value
//! ```
//!
//! The number of a branch is the revision of its fork or reset; that of the store itself is 0, and a source of [`NOTHING`] is an
//! empty one. A branch begins at revision `head`, with what its source holds (`fork`), began with (`fork origin`), or held
//! earlier (`fork earlier`): the differences lead from what the source holds to that. A difference of revision 0 removes a key. A fork
//! of a branch whose id begins with [`DRAFT`] counts as one of the draft's source. After a `rebase`, what a branch
//! began with, for resets and for forks of it, is what the other branch holds.

use bytes::Bytes;
use imbl::ordmap::DiffItem;

use super::frame::{Kind, Record, u64_at};
use crate::contract::content::{LiveValue, Map, Number};
use crate::contract::{Change, Revision};

/// The number of the store itself as a source.
pub const ROOT: Number = 0;
/// The number of the source of an empty branch.
pub const NOTHING: Number = Number::MAX;

/// Begins the ids of branches that are on the way to a fork of an earlier revision.
pub const DRAFT: &[u8] = b"draft\0";

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
    pub fn in_branch(number: Number, position: Revision, change: &'a Change) -> LogEntry<'a> {
        let kind = if change.value.is_some() { Kind::BranchPut } else { Kind::BranchDelete };
        LogEntry { kind, position, branch: Some((number, change.revision)), ..LogEntry::from(change) }
    }
}

/// A key whose value in the source was another one at an earlier revision; `None` if the key was absent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Difference {
    pub key: Bytes,
    pub live: Option<LiveValue>,
}

/// The initial content of a branch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ForkOf {
    /// The content of its source.
    Newest,
    /// The initial content of its source.
    Origin,
    /// Earlier content of its source.
    Earlier(Vec<Difference>),
}

/// The beginning or the end of a branch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum BranchEntry {
    Fork { id: Bytes, source: Number, of: ForkOf, head: Revision, label: Bytes },
    Reset { number: Number, head: Revision, label: Bytes },
    Drop { number: Number },
    Rebase { number: Number, on: Number },
}

impl BranchEntry {
    /// Kind, key and value of the record.
    pub fn encode(&self) -> (Kind, Bytes, Bytes) {
        match self {
            BranchEntry::Fork { id, source, of, head, label } => {
                let mut value = [source.to_be_bytes(), head.to_be_bytes()].concat();
                let kind = match of {
                    ForkOf::Newest => Kind::Fork,
                    ForkOf::Origin => Kind::ForkOrigin,
                    ForkOf::Earlier(_) => Kind::ForkEarlier,
                };
                if let ForkOf::Earlier(differences) = of {
                    value.extend(length(label));
                    value.extend(&label[..]);
                    differences.iter().for_each(|difference| difference.encode(&mut value));
                } else {
                    value.extend(&label[..]);
                }
                (kind, id.clone(), value.into())
            }
            BranchEntry::Reset { number, head, label } => {
                let value = [&head.to_be_bytes()[..], label].concat();
                (Kind::Reset, Bytes::copy_from_slice(&number.to_be_bytes()), value.into())
            }
            BranchEntry::Drop { number } => (Kind::Drop, Bytes::copy_from_slice(&number.to_be_bytes()), Bytes::new()),
            BranchEntry::Rebase { number, on } => {
                let [number, on] = [number, on].map(|number| Bytes::copy_from_slice(&number.to_be_bytes()));
                (Kind::Rebase, number, on)
            }
        }
    }

    /// `None` if the record is of another kind, or malformed.
    pub fn decode(record: &Record) -> Option<BranchEntry> {
        let label = |at: usize| record.value.get(at..).map(Bytes::copy_from_slice);
        let number = || (record.key.len() == 8).then(|| u64_at(&record.key, 0));
        let fork = |of: ForkOf, label: Bytes| BranchEntry::Fork {
            id: Bytes::copy_from_slice(&record.key),
            source: u64_at(&record.value, 0),
            of,
            head: u64_at(&record.value, 8),
            label,
        };
        match record.kind {
            Kind::Fork => Some(fork(ForkOf::Newest, label(16)?)),
            Kind::ForkOrigin => Some(fork(ForkOf::Origin, label(16)?)),
            Kind::ForkEarlier => {
                let mut rest = record.value.get(16..)?;
                let length = take_length(&mut rest)?;
                let label = take_bytes(&mut rest, length)?;
                let mut differences = vec![];
                while !rest.is_empty() {
                    differences.push(Difference::decode(&mut rest)?);
                }
                Some(fork(ForkOf::Earlier(differences), label))
            }
            Kind::Reset => {
                Some(BranchEntry::Reset { number: number()?, label: label(8)?, head: u64_at(&record.value, 0) })
            }
            Kind::Drop => Some(BranchEntry::Drop { number: number()? }),
            Kind::Rebase if record.value.len() == 8 => {
                Some(BranchEntry::Rebase { number: number()?, on: u64_at(&record.value, 0) })
            }
            _ => None,
        }
    }
}

impl Difference {
    fn encode(&self, out: &mut Vec<u8>) {
        let (revision, value) = self.live.as_ref().map_or((0, &[][..]), |live| (live.revision, &live.value[..]));
        out.extend(revision.to_be_bytes());
        out.extend(length(&self.key));
        out.extend(length(value));
        out.extend(&self.key[..]);
        out.extend(value);
    }

    fn decode(rest: &mut &[u8]) -> Option<Difference> {
        let (revision, after) = rest.split_first_chunk::<8>()?;
        *rest = after;
        let (key, value) = (take_length(rest)?, take_length(rest)?);
        let (key, value) = (take_bytes(rest, key)?, take_bytes(rest, value)?);
        let revision = Revision::from_be_bytes(*revision);
        Some(Difference { key, live: (revision > 0).then_some(LiveValue { revision, value }) })
    }

    /// Bytes in the record.
    pub fn size(&self) -> usize {
        16 + self.key.len() + self.live.as_ref().map_or(0, |live| live.value.len())
    }

    /// The differences that lead from `now` to `earlier`.
    pub fn between(now: &Map, earlier: &Map) -> Vec<Difference> {
        let all = now.diff(earlier).map(|item| match item {
            DiffItem::Add(key, live) | DiffItem::Update { new: (key, live), .. } => {
                Difference { key: key.clone(), live: Some(live.clone()) }
            }
            DiffItem::Remove(key, _) => Difference { key: key.clone(), live: None },
        });
        all.collect()
    }

    pub fn apply(self, map: &mut Map) {
        match self.live {
            Some(live) => drop(map.insert(self.key, live)),
            None => drop(map.remove(&self.key)),
        }
    }
}

fn length(bytes: &[u8]) -> [u8; 4] {
    // the bounds of the server are much lower
    u32::try_from(bytes.len()).unwrap_or(u32::MAX).to_be_bytes()
}

fn take_length(rest: &mut &[u8]) -> Option<usize> {
    let (length, after) = rest.split_first_chunk::<4>()?;
    *rest = after;
    usize::try_from(u32::from_be_bytes(*length)).ok()
}

fn take_bytes(rest: &mut &[u8], length: usize) -> Option<Bytes> {
    let (bytes, after) = rest.split_at_checked(length)?;
    *rest = after;
    Some(Bytes::copy_from_slice(bytes))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entries_are_decoded_as_they_were_encoded() {
        let fork = |of: ForkOf, label: &'static str| BranchEntry::Fork {
            id: "a".into(),
            source: 7,
            of,
            head: 9,
            label: label.into(),
        };
        let differences = vec![
            Difference { key: "b".into(), live: Some(LiveValue { revision: 3, value: "text".into() }) },
            Difference { key: "a".into(), live: None },
            Difference { key: "c".into(), live: Some(LiveValue { revision: 4, value: Bytes::new() }) },
        ];
        for entry in [
            fork(ForkOf::Newest, "text"),
            fork(ForkOf::Origin, ""),
            fork(ForkOf::Earlier(vec![]), "text"),
            fork(ForkOf::Earlier(differences), ""),
            BranchEntry::Fork { id: Bytes::new(), source: NOTHING, of: ForkOf::Newest, head: 0, label: Bytes::new() },
            BranchEntry::Reset { number: 3, head: 4, label: "x".into() },
            BranchEntry::Drop { number: u64::MAX },
            BranchEntry::Rebase { number: 3, on: 7 },
        ] {
            let (kind, key, value) = entry.encode();
            let record = Record { kind, revision: 1, key, value };
            assert_eq!(BranchEntry::decode(&record), Some(entry));
            let short = Record { key: record.key.slice(..record.key.len() / 2), value: Bytes::new(), ..record };
            assert_eq!(BranchEntry::decode(&short), None);
        }
    }
}
