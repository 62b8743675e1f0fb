//! Budgets: the cost that an input may have per byte, up to the size of a request body.
//!
//! An input is a start, repeated units and an end, as an attacker would send it to cause work that grows faster than the input.
//! Each runs at a size, and at half of it if that takes long.

mod contexts;
mod subjects;

use std::time::Duration;

pub use contexts::CONTEXTS;
use contexts::Context;
pub use subjects::{SUBJECTS, Subject};

use crate::random::Random;

/// The number of characters of a part that are printed.
const SHOWN_MAX: usize = 120;
/// The number of different units of an input.
const UNITS_MAX: usize = 3;
/// Depths of nested inputs; decoders reject deeper ones.
const DEPTHS: [usize; 5] = [0, 0, 1, 100, 3_000];
/// Memory that any input may need: error messages of up to 8 MiB, and defaults of up to 3 MiB of JSON.
const BYTES_BASE: usize = 96 << 20;
/// Time that any input may take; shorter times are not measured accurately.
const TIME_BASE: Duration = Duration::from_millis(400);
/// How many times slower a debug build is, for which the times are multiplied.
const SLOWNESS: u32 = if cfg!(debug_assertions) { 5 } else { 1 };
/// How much longer an input may run than one of half its size.
const GROWTH_MAX: u32 = 4;

/// The parts of an input of any size.
pub struct Recipe {
    context: &'static Context,
    units: Vec<&'static [u8]>,
    depth: usize,
}

impl std::fmt::Display for Recipe {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let shown = |bytes: &[u8]| bytes.escape_ascii().to_string().chars().take(SHOWN_MAX).collect::<String>();
        let units: Vec<String> = self.units.iter().map(|unit| shown(unit)).collect();
        write!(
            f,
            "{} | {} times {} | {}",
            shown(self.context.start),
            self.depth,
            shown(self.context.open),
            units.join(" | ")
        )
    }
}

/// The cost of running an input.
#[derive(Clone, Copy, Debug)]
pub struct Cost {
    pub input: usize,
    /// Peak memory, less the memory before the run.
    pub bytes: usize,
    pub time: Duration,
}

impl Recipe {
    /// All recipes of one context and one of its units.
    pub fn plain(subject: &Subject) -> Vec<Recipe> {
        let of_subject = CONTEXTS.iter().filter(|context| context.subject == subject.name);
        let plain = |context: &'static Context| {
            context.units.iter().map(move |unit| Recipe { context, units: vec![unit], depth: 0 })
        };
        of_subject.flat_map(plain).collect()
    }

    pub fn random(subject: &Subject, random: &mut Random) -> Recipe {
        let of_subject: Vec<&Context> = CONTEXTS.iter().filter(|context| context.subject == subject.name).collect();
        let context = of_subject[random.below(of_subject.len())];
        let units = (0..=random.below(UNITS_MAX)).map(|_| *random.one_of(context.units)).collect();
        let depth = if context.open.is_empty() { 0 } else { *random.one_of(&DEPTHS) };
        Recipe { context, units, depth }
    }

    /// The input, with as many units as fit into the size.
    pub fn input(&self, size: usize) -> Vec<u8> {
        let context = self.context;
        let depth = self.depth.min(size / 4 / (context.open.len() + context.close.len()).max(1));
        let mut input = context.start.to_vec();
        (0..depth).for_each(|_| input.extend(context.open));
        for (number, unit) in (0..).zip(self.units.iter().cycle()) {
            if input.len() + unit.len() > size {
                break;
            }
            append(&mut input, unit, number);
        }
        input.extend(context.end);
        (0..depth).for_each(|_| input.extend(context.close));
        input.extend(context.finish);
        match context.wrap {
            Some(wrap) => wrap(input),
            None => input,
        }
    }
}

/// Appends a unit, with a number of eight digits for `#`, and a thousand bytes for `@`.
fn append(input: &mut Vec<u8>, unit: &[u8], number: usize) {
    for byte in unit {
        match byte {
            b'#' => input.extend(format!("{number:08}").bytes()),
            b'@' => input.extend([b'x'; 1_000]),
            byte => input.push(*byte),
        }
    }
}

impl Subject {
    /// How the cost of an input exceeds the budget, if it does. The cost of an input of half the size is measured only if the whole one
    /// takes so long that its growth can be seen.
    pub fn exceeded(&self, whole: Cost, half: impl FnOnce() -> Cost) -> Option<String> {
        let bytes_max = BYTES_BASE + whole.input * self.bytes_per_byte;
        if whole.bytes > bytes_max {
            return Some(format!("{} bytes of memory, and at most {bytes_max} are allowed", whole.bytes));
        }
        let per_byte = self.time_per_byte * u32::try_from(whole.input).unwrap_or(u32::MAX);
        let time_max = (TIME_BASE + per_byte) * SLOWNESS;
        if whole.time > time_max {
            return Some(format!("{:?}, and at most {time_max:?} are allowed", whole.time));
        }
        if whole.time <= TIME_BASE * SLOWNESS {
            return None;
        }
        let half = half();
        let grows = whole.time > half.time * GROWTH_MAX;
        grows.then(|| format!("{:?}, and half of it took {:?}", whole.time, half.time))
    }
}
