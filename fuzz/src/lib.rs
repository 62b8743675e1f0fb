//! Targets for random input, and their driver (see README.md).

pub mod budget;
pub mod random;
pub mod targets;

use std::cell::RefCell;
use std::panic::{self, AssertUnwindSafe};
use std::sync::Once;

use random::Random;
use targets::Target;

/// The size of an input in bytes.
const INPUT_BYTES_MAX: usize = 4096;
/// The number of mutated inputs that are kept for further mutations.
const KEPT_MAX: usize = 256;

/// The inputs of a target.
pub struct Inputs {
    random: Random,
    seeds: Vec<Vec<u8>>,
    kept: Vec<Vec<u8>>,
    count: usize,
}

impl Inputs {
    pub fn new(target: &Target, seed: u64) -> Inputs {
        let seeds = target.seeds.iter().map(|seed| seed.to_vec()).collect();
        Inputs { random: Random::new(seed), seeds, kept: vec![], count: 0 }
    }

    /// The seeds, and then mutations of them.
    pub fn next_input(&mut self) -> Vec<u8> {
        let number = self.count;
        self.count += 1;
        if let Some(seed) = self.seeds.get(number) {
            return seed.clone();
        }
        let mut input = self.pick();
        for _ in 0..=self.random.below(4) {
            self.mutate(&mut input);
        }
        input.truncate(INPUT_BYTES_MAX);
        if self.random.below(4) == 0 {
            match self.kept.len() {
                KEPT_MAX => {
                    let at = self.random.below(KEPT_MAX);
                    self.kept[at].clone_from(&input);
                }
                _ => self.kept.push(input.clone()),
            }
        }
        input
    }

    /// A seed, or one time in four a kept mutation.
    fn pick(&mut self) -> Vec<u8> {
        let from = if self.random.below(4) == 0 && !self.kept.is_empty() { &self.kept } else { &self.seeds };
        match from.len() {
            0 => self.random.bytes(64),
            length => from[self.random.below(length)].clone(),
        }
    }

    fn mutate(&mut self, input: &mut Vec<u8>) {
        let at = self.random.below(input.len() + 1);
        let end = (at + 1 + self.random.below(8)).min(input.len());
        match self.random.below(7) {
            0 if at < input.len() => input[at] ^= 1 << self.random.below(8),
            1 if at < input.len() => input[at] = self.random.byte(),
            2 => input.insert(at, self.random.byte()),
            3 => drop(input.drain(at.min(end)..end)),
            4 => {
                let part = input[at.min(end)..end].to_vec();
                drop(input.splice(at..at, part));
            }
            5 => {
                let other = self.pick();
                let from = self.random.below(other.len() + 1);
                let to = (from + self.random.below(32)).min(other.len());
                drop(input.splice(at..at, other[from..to].iter().copied()));
            }
            _ => input.truncate(at.max(1)),
        }
    }
}

thread_local! {
    /// The message of the last panic, while a target runs.
    static PANIC_MESSAGE: RefCell<Option<String>> = const { RefCell::new(None) };
}

/// Records the message of a panic of a target; other panics are reported as usual.
fn install_hook() {
    let report = panic::take_hook();
    panic::set_hook(Box::new(move |info| {
        let recorded = PANIC_MESSAGE.with_borrow_mut(|kept| kept.as_mut().map(|kept| *kept = info.to_string()));
        if recorded.is_none() {
            report(info);
        }
    }));
}

/// Runs an input; the error has the message of a panic, and the input.
pub fn run(target: &Target, input: &[u8]) -> Result<(), String> {
    static INSTALLED: Once = Once::new();
    INSTALLED.call_once(install_hook);
    PANIC_MESSAGE.set(Some(String::new()));
    let result = panic::catch_unwind(AssertUnwindSafe(|| (target.check)(input)));
    let message = PANIC_MESSAGE.take().unwrap_or_default();
    result.map_err(|_| format!("{}: {message}\n  input: b\"{}\"", target.name, input.escape_ascii()))
}
