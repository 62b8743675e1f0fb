//! The warnings of a response, within the limits of kube-apiserver's recorder and a limit of our own on their number.

use std::collections::HashSet;
use std::hash::{DefaultHasher, Hasher};

use parking_lot::Mutex;

use crate::limits::{WARNING_RUNES_EACH, WARNING_RUNES_MAX, WARNINGS_MAX};

/// Warnings in the order in which they were added, without duplicates.
#[derive(Debug, Default)]
pub struct Warnings(Mutex<Recorder>);

#[derive(Debug, Default)]
struct Recorder {
    /// Hashes of the untruncated texts, by which duplicates are found.
    seen: HashSet<u64>,
    texts: Vec<String>,
    /// The characters of all texts together.
    runes: usize,
    /// Whether all texts together have exceeded [`WARNING_RUNES_MAX`]. From then on each text is truncated, earlier
    /// ones included.
    cuts: bool,
    /// Whether texts are never truncated.
    is_whole: bool,
}

impl Warnings {
    /// Warnings that are never truncated, for commands in this process: only a header needs a limit on their size.
    pub fn whole() -> Warnings {
        Warnings(Mutex::new(Recorder { is_whole: true, ..Recorder::default() }))
    }

    pub fn add(&self, text: String) {
        self.0.lock().add(text);
    }

    pub fn texts(&self) -> Vec<String> {
        self.0.lock().texts.clone()
    }
}

fn hash(text: &str) -> u64 {
    let mut hasher = DefaultHasher::new();
    hasher.write(text.as_bytes());
    hasher.finish()
}

/// Truncates a text, and returns its length in characters.
fn truncate(text: &mut String) -> usize {
    match text.char_indices().nth(WARNING_RUNES_EACH) {
        Some((end, _)) => {
            text.truncate(end);
            WARNING_RUNES_EACH
        }
        None => text.chars().count(),
    }
}

impl Recorder {
    fn add(&mut self, mut text: String) {
        let is_full = self.texts.len() >= WARNINGS_MAX || (self.cuts && self.runes >= WARNING_RUNES_MAX);
        // a warning with control characters, which a header cannot contain, is dropped
        if is_full || text.is_empty() || text.chars().any(char::is_control) || !self.seen.insert(hash(&text)) {
            return;
        }
        let runes = if self.cuts { truncate(&mut text) } else { text.chars().count() };
        self.texts.push(text);
        self.runes += runes;
        if self.runes > WARNING_RUNES_MAX && !self.cuts && !self.is_whole {
            self.cuts = true;
            self.runes = self.texts.iter_mut().map(truncate).sum();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kept(texts: impl Iterator<Item = String>) -> Vec<usize> {
        let warnings = Warnings::default();
        texts.for_each(|text| warnings.add(text));
        warnings.texts().iter().map(|text| text.chars().count()).collect()
    }

    #[test]
    fn commands_in_this_process_get_whole_texts() {
        for (warnings, most) in [(Warnings::default(), WARNING_RUNES_EACH), (Warnings::whole(), 3000)] {
            (0..4).for_each(|number| warnings.add(format!("{number}{}", "x".repeat(2999))));
            assert_eq!(warnings.texts().iter().map(String::len).max(), Some(most));
        }
    }

    #[test]
    fn warnings_are_bounded() {
        let long = |i: usize| format!("{i:04}{}", "ä".repeat(996));
        assert_eq!(kept((0..4).map(long)), [1000; 4]);
        assert_eq!(kept((0..5).map(long)), [256; 5]);
        assert_eq!(kept((0..100).map(long)), [256; 16]);
        assert_eq!(kept((0..200_000).map(|i| format!("unknown field \"f{i}\""))).len(), WARNINGS_MAX);
        assert_eq!(kept(["a", "", "a\nb", "a", "b"].map(str::to_owned).into_iter()), [1, 1]);
    }
}
