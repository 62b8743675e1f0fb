//! A simulated disk that loses, tears and reorders unsynced writes, determined by a seed.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{Error, ErrorKind, Result};
use std::sync::Arc;

use parking_lot::{Mutex, MutexGuard};

use crate::embedded::disk::{Appending, Disk};

const SECTOR: usize = 512;

/// A pseudo-random generator (splitmix64).
pub struct Chance(pub u64);

impl Chance {
    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    pub fn below(&mut self, bound: usize) -> usize {
        (self.next() % bound.max(1) as u64) as usize
    }

    pub fn half(&mut self) -> bool {
        self.next() & 1 == 0
    }
}

#[derive(Clone, Default)]
struct File {
    now: Vec<u8>,
    durable: Vec<u8>,
    /// Sectors of a failed sync: the system marks them as clean, so later syncs write them only if they change again.
    left_behind: BTreeSet<usize>,
}

impl File {
    fn write(&mut self, at: usize, bytes: &[u8]) {
        let end = at + bytes.len();
        self.now.resize(self.now.len().max(end), 0);
        self.now[at..end].copy_from_slice(bytes);
        self.left_behind.retain(|sector| !(at / SECTOR..end.div_ceil(SECTOR)).contains(sector));
    }

    fn sync(&mut self) {
        let before = std::mem::replace(&mut self.durable, self.now.clone());
        for sector in &self.left_behind {
            for at in (sector * SECTOR..(sector + 1) * SECTOR).take_while(|at| *at < self.now.len()) {
                self.durable[at] = before.get(at).copied().unwrap_or(0);
            }
        }
    }

    fn fail_to_sync(&mut self) {
        for (sector, bytes) in self.now.chunks(SECTOR).enumerate() {
            if self.durable.get(sector * SECTOR..).is_none_or(|durable| !durable.starts_with(bytes)) {
                self.left_behind.insert(sector);
            }
        }
    }
}

#[derive(Clone)]
enum Naming {
    Create(String, usize),
    Rename(String, String),
    Remove(String),
}

#[derive(Default)]
struct World {
    files: Vec<File>,
    names: BTreeMap<String, usize>,
    durable_names: BTreeMap<String, usize>,
    unsynced: Vec<Naming>,
    /// File operations until the machine stops.
    left: Option<usize>,
    /// The capacity of the disk in bytes, if it is bounded.
    room: Option<usize>,
    fail_sync: bool,
    /// Whether opening files fails with EMFILE.
    out_of_descriptors: bool,
    stopped: bool,
    chance: Option<Chance>,
}

#[derive(Clone, Default)]
pub struct Sim(Arc<Mutex<World>>);

fn apply(names: &mut BTreeMap<String, usize>, naming: &Naming) {
    match naming {
        Naming::Create(name, id) => drop(names.insert(name.clone(), *id)),
        Naming::Rename(from, to) => {
            if let Some(id) = names.remove(from) {
                names.insert(to.clone(), id);
            }
        }
        Naming::Remove(name) => drop(names.remove(name)),
    }
}

impl Sim {
    fn lock(&self) -> MutexGuard<'_, World> {
        self.0.lock()
    }

    /// The machine stops in the middle of a file operation, after `left` more complete ones.
    pub fn stop_after(&self, left: usize, seed: u64) {
        let mut world = self.lock();
        (world.left, world.chance, world.stopped) = (Some(left), Some(Chance(seed)), false);
    }

    pub fn has_stopped(&self) -> bool {
        self.lock().stopped
    }

    pub fn set_room(&self, room: Option<usize>) {
        self.lock().room = room;
    }

    pub fn set_out_of_descriptors(&self, out: bool) {
        self.lock().out_of_descriptors = out;
    }

    pub fn fail_sync(&self, fail: bool) {
        self.lock().fail_sync = fail;
    }

    /// A possible content of the disk after a restart of the machine.
    pub fn after_crash(&self, chance: &mut Chance) -> Sim {
        let world = self.lock();
        let mut names = world.durable_names.clone();
        world.unsynced.iter().filter(|_| chance.half()).for_each(|naming| apply(&mut names, naming));
        let files: Vec<File> = world.files.iter().map(|file| survivor(file, chance)).collect();
        let world = World { files, durable_names: names.clone(), names, ..World::default() };
        Sim(Arc::new(Mutex::new(world)))
    }

    /// All bytes, by file.
    pub fn contents(&self) -> Vec<(String, Vec<u8>)> {
        let world = self.lock();
        world.names.iter().map(|(name, id)| (name.clone(), world.files[*id].now.clone())).collect()
    }

    pub fn holding(contents: &[(String, Vec<u8>)]) -> Sim {
        let files =
            contents.iter().map(|(_, bytes)| File { now: bytes.clone(), durable: bytes.clone(), ..File::default() });
        let files = files.collect();
        let names: BTreeMap<String, usize> =
            contents.iter().enumerate().map(|(id, (name, _))| (name.clone(), id)).collect();
        Sim(Arc::new(Mutex::new(World { files, durable_names: names.clone(), names, ..World::default() })))
    }
}

/// A file after a crash: any of its unsynced sectors may have been written. A sector may be torn: a part of its bytes is old
/// and a part new.
fn survivor(file: &File, chance: &mut Chance) -> File {
    let lengths = [file.durable.len(), file.now.len()];
    let (short, long) = (lengths[0].min(lengths[1]), lengths[0].max(lengths[1]));
    let length = match chance.below(3) {
        0 => lengths[0],
        1 => lengths[1],
        _ => short + chance.below(long - short + 1),
    };
    let mut bytes = file.durable.clone();
    bytes.resize(length, 0);
    for start in (0..length).step_by(SECTOR) {
        let end = (start + SECTOR).min(length).min(file.now.len());
        let torn = start + chance.below(end.saturating_sub(start) + 1);
        let written = match chance.below(4) {
            0 => start..start,
            1 => start..torn.max(start),
            2 => torn.min(end)..end,
            _ => start..end,
        };
        if start < end {
            bytes[written.clone()].copy_from_slice(&file.now[written]);
        }
    }
    File { now: bytes.clone(), durable: bytes, ..File::default() }
}

impl World {
    /// Counts a file operation; returns an error if the machine stops in it.
    fn step(&mut self) -> Result<()> {
        if self.left == Some(0) {
            self.stopped = true;
        }
        if self.stopped {
            return Err(Error::other("the machine has stopped"));
        }
        self.left = self.left.map(|left| left - 1);
        Ok(())
    }

    fn rename(&mut self, naming: Naming) -> Result<()> {
        let stopped = self.step();
        if stopped.is_ok() || self.chance.as_mut().is_some_and(Chance::half) {
            apply(&mut self.names, &naming);
            self.unsynced.push(naming);
        }
        stopped
    }

    fn descriptor(&self) -> Result<()> {
        // EMFILE
        if self.out_of_descriptors { Err(Error::from_raw_os_error(24)) } else { Ok(()) }
    }

    fn id(&self, name: &str) -> Result<usize> {
        self.names.get(name).copied().ok_or_else(|| ErrorKind::NotFound.into())
    }
}

impl Disk for Sim {
    fn list(&self) -> Result<Vec<String>> {
        Ok(self.lock().names.keys().cloned().collect())
    }

    fn read_into(&self, name: &str, offset: u64, length: usize, buffer: &mut Vec<u8>) -> Result<()> {
        let world = self.lock();
        let bytes = &world.files[world.id(name)?].now;
        let start = bytes.len().min(offset as usize);
        buffer.clear();
        buffer.extend_from_slice(&bytes[start..bytes.len().min(start.saturating_add(length))]);
        Ok(())
    }

    fn create(&self, name: &str) -> Result<Box<dyn Appending>> {
        let mut world = self.lock();
        world.descriptor()?;
        let id = world.files.len();
        world.files.push(File::default());
        world.rename(Naming::Create(name.to_owned(), id))?;
        Ok(Box::new(Handle { sim: self.clone(), id }))
    }

    fn open(&self, name: &str) -> Result<Box<dyn Appending>> {
        let id = self.lock().id(name)?;
        Ok(Box::new(Handle { sim: self.clone(), id }))
    }

    fn write_anew(&self, name: &str, offset: u64, bytes: &[u8]) -> Result<()> {
        let mut world = self.lock();
        world.step()?;
        let id = world.id(name)?;
        world.files[id].write(offset as usize, bytes);
        Ok(())
    }

    fn rename(&self, from: &str, to: &str) -> Result<()> {
        self.lock().rename(Naming::Rename(from.to_owned(), to.to_owned()))
    }

    fn remove(&self, name: &str) -> Result<()> {
        let mut world = self.lock();
        world.id(name)?;
        world.rename(Naming::Remove(name.to_owned()))
    }

    fn sync(&self) -> Result<()> {
        let mut world = self.lock();
        world.step()?;
        world.durable_names = world.names.clone();
        world.unsynced.clear();
        Ok(())
    }
}

struct Handle {
    sim: Sim,
    id: usize,
}

impl Appending for Handle {
    fn append(&mut self, bytes: &[u8]) -> Result<()> {
        let mut world = self.sim.lock();
        let mut part = bytes.len();
        let mut result = world.step();
        if result.is_err() {
            part = world.chance.as_mut().map_or(0, |chance| chance.below(bytes.len() + 1));
        } else if let Some(room) = world.room {
            let used: usize = world.names.values().map(|id| world.files[*id].now.len()).sum();
            if used + bytes.len() > room {
                part = room.saturating_sub(used);
                result = Err(ErrorKind::StorageFull.into());
            }
        }
        let id = self.id;
        let file = &mut world.files[id];
        file.write(file.now.len(), &bytes[..part]);
        result
    }

    fn sync(&mut self) -> Result<()> {
        let mut world = self.sim.lock();
        world.step()?;
        if world.fail_sync {
            world.files[self.id].fail_to_sync();
            return Err(Error::other("the disk is gone"));
        }
        world.files[self.id].sync();
        Ok(())
    }

    fn truncate(&mut self, length: u64) -> Result<()> {
        let mut world = self.sim.lock();
        world.step()?;
        world.files[self.id].now.truncate(length as usize);
        Ok(())
    }

    fn named_length(&self) -> Result<Option<u64>> {
        let world = self.sim.lock();
        let is_named = world.names.values().any(|id| *id == self.id);
        Ok(is_named.then(|| world.files[self.id].now.len() as u64))
    }
}
