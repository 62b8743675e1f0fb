//! The node ports of a range, from which those of one Service are allocated.

use std::collections::BTreeSet;
use std::ops::{Range, RangeInclusive};

use base::clock;
use kinds::core::services::{needs_health_check, node_ports};
use machinery::Value;

use super::ranges::low_part;

const TAKEN: &str = "provided port is already allocated";
const FULL: &str = "range is full";

pub(super) fn ports_of(spec: &Value) -> Vec<u16> {
    let health = needs_health_check(spec).then(|| spec.get("healthCheckNodePort").and_then(Value::as_int)).flatten();
    node_ports(spec).into_iter().chain(health).filter_map(|port| u16::try_from(port).ok()).collect()
}

/// The node ports during the allocation for one Service.
pub(super) struct Pool {
    first: u16,
    /// Whether each port is allocated, by its offset in the range.
    pub taken: Vec<bool>,
    /// Whether `taken` differs from what is stored.
    pub changed: bool,
    /// Ports allocated to this Service.
    pub allocated: BTreeSet<u16>,
    /// The ports of a dry run, which may have any number.
    dry: Option<BTreeSet<i32>>,
}

impl Pool {
    /// The ports of a range, none of which is allocated.
    pub fn new(range: &RangeInclusive<u16>) -> Pool {
        let taken = vec![false; range.len()];
        Pool { first: *range.start(), taken, changed: false, allocated: BTreeSet::new(), dry: None }
    }

    /// The same ports, from which nothing is allocated.
    pub fn dry(self) -> Pool {
        Pool { dry: Some(BTreeSet::new()), ..self }
    }

    fn index(&self, port: i64) -> Option<usize> {
        usize::try_from(port - i64::from(self.first)).ok().filter(|index| *index < self.taken.len())
    }

    /// Whether a port is allocated, if it is in the range.
    fn slot(&mut self, port: u16) -> Option<&mut bool> {
        self.index(i64::from(port)).and_then(|index| self.taken.get_mut(index))
    }

    /// Counts a port as allocated.
    pub fn add(&mut self, port: u16) {
        self.changed |= self.slot(port).is_some_and(|slot| !std::mem::replace(slot, true));
    }

    /// Counts a port as free.
    pub fn remove(&mut self, port: u16) {
        self.changed |= self.slot(port).is_some_and(std::mem::take);
    }

    /// The range, such as `30000-32767`.
    pub fn text(&self) -> String {
        let last = usize::from(self.first) + self.taken.len() - 1;
        format!("{}-{last}", self.first)
    }

    /// Allocates the given port. The error has kube-apiserver's text.
    pub fn take(&mut self, port: i64) -> Result<(), String> {
        let index = self.index(port);
        let is_taken = index.is_some_and(|index| self.taken.get(index) == Some(&true));
        if let Some(dry) = &mut self.dry {
            let is_new = dry.insert(i32::try_from(port).unwrap_or_default());
            return if is_taken || !is_new { Err(TAKEN.to_owned()) } else { Ok(()) };
        }
        let number = u16::try_from(port).unwrap_or_default();
        match index {
            None => {
                let valid = self.text();
                return Err(format!("provided port is not in the valid range. The range of valid ports is {valid}"));
            }
            Some(_) if is_taken => return Err(TAKEN.to_owned()),
            Some(_) => self.add(number),
        }
        self.allocated.insert(number);
        Ok(())
    }

    /// Allocates any free port; from the low part of the range only if the rest is exhausted.
    pub fn take_any(&mut self) -> Result<i64, String> {
        if let Some(dry) = &mut self.dry {
            // not reserved, so it only has to differ from the others
            const DUMMY: i32 = 32_768;
            let port = dry.last().map_or(DUMMY, |port| *port).max(0).wrapping_add(1);
            dry.insert(port);
            return Ok(i64::from(port));
        }
        let low = low_part(self.taken.len() as u64, 32, 16, 128) as usize;
        let found = self.free_in(low..self.taken.len()).or_else(|| self.free_in(0..low));
        let index = found.ok_or(FULL)?;
        let port = self.first.saturating_add(u16::try_from(index).unwrap_or(u16::MAX));
        self.add(port);
        self.allocated.insert(port);
        Ok(i64::from(port))
    }

    /// The first free index at or after a random one, within a part of the range and from its end to its start.
    fn free_in(&self, part: Range<usize>) -> Option<usize> {
        let start = part.start + clock::shown_below(part.len() as u64, || "node ports".to_owned()) as usize;
        (start..part.end).chain(part.start..start).find(|index| self.taken.get(*index) == Some(&false))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_port_is_allocated_once() {
        let mut pool = Pool::new(&(30_000..=30_003));
        assert_eq!(pool.take(30_001), Ok(()));
        assert_eq!(pool.take(30_001), Err(TAKEN.to_owned()));
        assert!(pool.take(30_004).unwrap_err().ends_with("30000-30003"));
        let mut rest: Vec<i64> = (0..3).map(|_| pool.take_any().unwrap()).collect();
        rest.sort_unstable();
        assert_eq!((rest, pool.take_any()), (vec![30_000, 30_002, 30_003], Err(FULL.to_owned())));
    }

    #[test]
    fn a_dry_run_allows_any_port_once() {
        let mut pool = Pool::new(&(30_000..=30_003)).dry();
        assert_eq!(pool.take_any(), Ok(32_769));
        assert_eq!((pool.take(65_536), pool.take(65_536)), (Ok(()), Err(TAKEN.to_owned())));
        assert_eq!(pool.take_any(), Ok(65_537));
    }
}
