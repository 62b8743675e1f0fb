//! Reproducible bytes from a seed, in place of random ones.

use std::collections::HashMap;

use crate::{digest, limits};

/// A sequence of bytes for each name, independent of how often the others are asked for theirs.
pub struct Sequences {
    seed: i64,
    /// Distinguishes the sequences from those of earlier runs of the same API.
    begin: u64,
    /// How many values each name has been given, by the name's hash.
    given: HashMap<[u8; 32], u32>,
}

impl Sequences {
    pub fn new(seed: i64, begin: u64) -> Sequences {
        Sequences { seed, begin, given: HashMap::new() }
    }

    pub fn seed(&self) -> i64 {
        self.seed
    }

    /// The next bytes of a name.
    pub fn next(&mut self, purpose: &str, of: &str) -> [u8; 32] {
        if self.given.len() >= limits::SEEDED_NAMES_MAX {
            self.begin = self.begin.wrapping_add(1);
            self.given.clear();
        }
        let name = digest::sha256(format!("{}/{}/{purpose}/{of}", self.seed, self.begin).as_bytes());
        let count = self.given.entry(name).or_default();
        *count += 1;
        digest::sha256([&name[..], &count.to_be_bytes()[..]].concat().as_slice())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_have_sequences_of_their_own() {
        let (mut one, mut other) = (Sequences::new(7, 0), Sequences::new(7, 0));
        let first = one.next("uid", "a");
        assert_ne!(one.next("uid", "a"), first, "an object that is created again gets another uid");
        other.next("uid", "b");
        assert_eq!(other.next("uid", "a"), first, "other names do not matter");
        assert_ne!(other.next("suffix", "a"), first);
        assert_ne!(Sequences::new(8, 0).next("uid", "a"), first);
        assert_ne!(Sequences::new(7, 1).next("uid", "a"), first, "another run does not repeat it");
    }

    #[test]
    fn memory_is_bounded_and_nothing_repeats() {
        let mut all = Sequences::new(0, 0);
        let first = all.next("uid", "a");
        (0..limits::SEEDED_NAMES_MAX).for_each(|name| assert_ne!(all.next("uid", &name.to_string()), first));
        assert!(all.given.len() <= limits::SEEDED_NAMES_MAX);
        assert_ne!(all.next("uid", "a"), first);
    }
}
