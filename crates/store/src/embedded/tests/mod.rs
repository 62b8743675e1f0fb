//! The log on a simulated disk: crashes at every step, full disks, flipped bits.

mod crash;
mod damage;
mod full;
mod model;
mod salvage;
mod sim;

use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering};

/// Runs a test for each seed, on all cores: the longest of these tests would run alone in the end.
fn for_each(seeds: Range<u64>, test: impl Fn(u64) + Sync) {
    let next = AtomicU64::new(seeds.start);
    let run = || {
        let seeds =
            std::iter::repeat_with(|| next.fetch_add(1, Ordering::Relaxed)).take_while(|seed| *seed < seeds.end);
        seeds.for_each(&test);
    };
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    std::thread::scope(|scope| (0..cores).for_each(|_| drop(scope.spawn(run))));
}
