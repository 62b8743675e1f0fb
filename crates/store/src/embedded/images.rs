//! The branches of a checkpoint. Each is written as its differences from one written before it, where one is likely to share
//! most of its keys, and each value is written once. Readers share keys and values in the same way.
//!
//! ```text
//! branches   revision of the log up to which they hold; value = head u64  compacted u64, of the store itself
//! branch     number; key = id; value = source u64  reference u64  kind of the reference u8  head u64  label
//! ... what the branch began with, as changes of the reference
//! settle
//! ... changes since then
//! ```
//!
//! A change is `branch put`, `branch delete`, `again` (the value is that of the put with this number) or `share` (the value is that of
//! the same key of the store itself).

use std::collections::{BTreeMap, HashMap};

use bytes::Bytes;
use imbl::ordmap::DiffItem;

use super::disk::Appending;
use super::entries::Entries;
use super::frame::{Kind, Record, u64_at};
use crate::contract::Revision;
use crate::contract::content::{Image, Images, LiveValue, Map, Number};

/// The content that the first records of a branch change.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Reference {
    /// Nothing is there.
    Empty,
    /// The initial content of this branch.
    Base(Number),
    /// The content of this branch.
    Live(Number),
}

impl Reference {
    fn encode(self) -> (u8, Number) {
        match self {
            Reference::Empty => (0, 0),
            Reference::Base(number) => (1, number),
            Reference::Live(number) => (2, number),
        }
    }

    fn decode(kind: u8, number: Number) -> Option<Reference> {
        match kind {
            0 => Some(Reference::Empty),
            1 => Some(Reference::Base(number)),
            2 => Some(Reference::Live(number)),
            _ => None,
        }
    }
}

/// Whether the checkpoint has this value of a key of the store itself.
pub type IsShared<'a> = dyn Fn(&Bytes, &LiveValue) -> bool + 'a;

/// Writes the branches of a checkpoint, after its other entries.
pub fn write<A: Appending>(out: &mut Entries<A>, images: &Images, is_shared: &IsShared<'_>) -> std::io::Result<()> {
    let (head, compacted) = images.root;
    let root = [head.to_be_bytes(), compacted.to_be_bytes()].concat();
    out.push_record(Kind::Branches, images.at, &[], &root)?;
    let mut written = ImagesWriter { out, puts: HashMap::new(), count: 0, is_shared };
    let by_number: HashMap<Number, &Image> = images.branches.iter().map(|image| (image.number, image)).collect();
    // forks of one source differ by what it changed in between
    let mut last_of: HashMap<Number, &Image> = HashMap::new();
    let empty = Map::new();
    for image in &images.branches {
        let (reference, before) = match (last_of.get(&image.source), by_number.get(&image.source)) {
            (Some(sibling), _) => (Reference::Base(sibling.number), &sibling.base),
            // a source has a lower number than its forks, so it has been written
            (None, Some(source)) => (Reference::Live(source.number), &source.live),
            (None, None) => (Reference::Empty, &empty),
        };
        last_of.insert(image.source, image);
        written.begin(image, reference)?;
        written.difference(image.number, before, &image.base)?;
        written.out.push_record(Kind::Settle, image.number, &[], &[])?;
        written.difference(image.number, &image.base, &image.live)?;
    }
    Ok(())
}

/// The revision and the value that a record of a backup has in the restored store, which begins at `revision`. The heads of its
/// branches are raised by `bump`.
pub fn raised(record: &Record, revision: Revision, bump: Revision) -> (Revision, Bytes) {
    match record.kind {
        Kind::Branches => (revision, [revision.to_be_bytes(), revision.to_be_bytes()].concat().into()),
        Kind::Branch => {
            let mut value = record.value.to_vec();
            let head = u64_at(&value, 17).saturating_add(bump);
            if let Some(bytes) = value.get_mut(17..25) {
                bytes.copy_from_slice(&head.to_be_bytes());
            }
            (record.revision, value.into())
        }
        _ => (record.revision, record.value.clone()),
    }
}

struct ImagesWriter<'a, A> {
    out: &'a mut Entries<A>,
    /// The numbers of the puts, by the addresses of their values, which the images keep where they are.
    puts: HashMap<(usize, usize), u64>,
    count: u64,
    is_shared: &'a IsShared<'a>,
}

impl<A: Appending> ImagesWriter<'_, A> {
    fn begin(&mut self, image: &Image, reference: Reference) -> std::io::Result<()> {
        let (kind, number) = reference.encode();
        let (source, number, head) = (image.source.to_be_bytes(), number.to_be_bytes(), image.head.to_be_bytes());
        let value = [&source[..], &number, &[kind], &head, &image.label].concat();
        self.out.push_record(Kind::Branch, image.number, &image.id, &value)
    }

    fn difference(&mut self, number: Number, from: &Map, to: &Map) -> std::io::Result<()> {
        for item in from.diff(to) {
            match item {
                DiffItem::Add(key, live) | DiffItem::Update { new: (key, live), .. } => self.put(number, key, live)?,
                DiffItem::Remove(key, live) => {
                    self.out.push_in_branch(Kind::BranchDelete, (number, live.revision), key, &[])?;
                }
            }
        }
        Ok(())
    }

    fn put(&mut self, number: Number, key: &Bytes, live: &LiveValue) -> std::io::Result<()> {
        let place = (number, live.revision);
        let address = (live.value.as_ptr().addr(), live.value.len());
        if let Some(put) = self.puts.get(&address) {
            return self.out.push_in_branch(Kind::Again, place, key, &put.to_be_bytes());
        }
        if (self.is_shared)(key, live) {
            return self.out.push_in_branch(Kind::Share, place, key, &[]);
        }
        self.puts.insert(address, self.count);
        self.count += 1;
        self.out.push_in_branch(Kind::BranchPut, place, key, &live.value)
    }
}

/// The branches of a checkpoint that is being read.
#[derive(Default)]
pub struct ImagesReader {
    pub images: Option<(Revision, Revision, Revision)>,
    pub branches: BTreeMap<Number, Image>,
    current: Option<Number>,
    /// Whether all that the current branch began with has been read.
    is_settled: bool,
    values: Vec<Bytes>,
}

impl ImagesReader {
    /// Takes the next record, of a kind that only branches have. `of_store` returns the value of a key of the store itself.
    /// `None` if the record makes no sense.
    pub fn take(&mut self, record: &Record, of_store: impl Fn(&[u8]) -> Option<LiveValue>) -> Option<()> {
        match record.kind {
            Kind::Branches if self.images.is_none() && record.value.len() == 16 => {
                self.images = Some((record.revision, u64_at(&record.value, 0), u64_at(&record.value, 8)));
                Some(())
            }
            _ if self.images.is_none() => None,
            Kind::Branch => self.begin(record),
            Kind::Settle => {
                let image = self.branches.get_mut(&self.current?)?;
                image.base = image.live.clone();
                self.is_settled = true;
                Some(())
            }
            _ => self.change(record, of_store),
        }
    }

    fn begin(&mut self, record: &Record) -> Option<()> {
        let value = &record.value;
        let label = Bytes::copy_from_slice(value.get(25..)?);
        let reference = Reference::decode(*value.get(16)?, u64_at(value, 8))?;
        let live = match reference {
            Reference::Empty => Map::new(),
            Reference::Base(number) => self.branches.get(&number)?.base.clone(),
            Reference::Live(number) => self.branches.get(&number)?.live.clone(),
        };
        let (number, id) = (record.revision, Bytes::copy_from_slice(&record.key));
        let image =
            Image { number, id, source: u64_at(value, 0), label, base: Map::new(), live, head: u64_at(value, 17) };
        self.is_settled = false;
        self.current = Some(number);
        self.branches.insert(number, image).is_none().then_some(())
    }

    fn change(&mut self, record: &Record, of_store: impl Fn(&[u8]) -> Option<LiveValue>) -> Option<()> {
        let (number, revision, key) = record.in_branch().filter(|(number, ..)| Some(*number) == self.current)?;
        let image = self.branches.get_mut(&number)?;
        let value = match record.kind {
            Kind::BranchPut => {
                self.values.push(Bytes::copy_from_slice(&record.value));
                self.values.last()?.clone()
            }
            Kind::Again => self.values.get(usize::try_from(u64_at(&record.value, 0)).ok()?)?.clone(),
            Kind::Share => of_store(&key).filter(|live| live.revision == revision)?.value,
            Kind::BranchDelete => return image.live.remove(&key).map(drop),
            _ => return None,
        };
        image.live.insert(Bytes::copy_from_slice(&key), LiveValue { revision, value });
        Some(())
    }

    /// The branches; `None` if one of them is not complete.
    pub fn finish(self) -> Option<BTreeMap<Number, Image>> {
        (self.is_settled || self.current.is_none()).then_some(self.branches)
    }
}
