//! Unified diffs of texts. Messages of kube-apiserver contain them, so they are those of Go's port of Python's difflib.

use std::collections::HashMap;
use std::ops::Range;

/// Unchanged lines around a change.
const CONTEXT: usize = 3;
/// If the new text has at least this many lines, no match begins at a line that makes up more than a hundredth of them
/// (difflib's "autojunk").
const FREQUENT_FROM: usize = 200;

/// The differences of two texts as the hunks of a unified diff, without its header. Empty if the texts are equal.
#[must_use]
pub fn unified(old: &str, new: &str) -> String {
    let (old, new): (Vec<&str>, Vec<&str>) = (old.lines().collect(), new.lines().collect());
    let mut blocks = vec![];
    Matcher::new(&old, &new).blocks(0..old.len(), 0..new.len(), &mut blocks);
    let mut out = String::new();
    for hunk in hunks(&changes(&blocks, old.len(), new.len())) {
        write_hunk(&hunk, &old, &new, &mut out);
    }
    out
}

/// A run of equal lines: the index of its first line in the old and in the new text, and its number of lines.
type Block = (usize, usize, usize);
/// Lines that are replaced, and the lines that replace them.
type Change = (Range<usize>, Range<usize>);

struct Matcher<'a> {
    old: &'a [&'a str],
    new: &'a [&'a str],
    /// The positions of each line in the new text, without frequent lines.
    positions: HashMap<&'a str, Vec<usize>>,
}

impl<'a> Matcher<'a> {
    fn new(old: &'a [&'a str], new: &'a [&'a str]) -> Matcher<'a> {
        let mut positions: HashMap<&str, Vec<usize>> = HashMap::new();
        new.iter().enumerate().for_each(|(i, line)| positions.entry(line).or_default().push(i));
        if new.len() >= FREQUENT_FROM {
            let most = new.len() / 100 + 1;
            positions.retain(|_, at| at.len() <= most);
        }
        Matcher { old, new, positions }
    }

    /// The equal blocks within two ranges, in order: the longest one, and by the same rule those before and after it.
    fn blocks(&self, old: Range<usize>, new: Range<usize>, out: &mut Vec<Block>) {
        let mut waiting = vec![(old, new)];
        while let Some((old, new)) = waiting.pop() {
            let (i, j, length) = self.longest(&old, &new);
            if length == 0 {
                continue;
            }
            out.push((i, j, length));
            waiting.push((old.start..i, new.start..j));
            waiting.push((i + length..old.end, j + length..new.end));
        }
        out.sort_unstable();
    }

    /// The longest run of equal lines within two ranges; of runs of equal length, the first.
    fn longest(&self, old: &Range<usize>, new: &Range<usize>) -> Block {
        let (mut best, mut lengths): (Block, HashMap<usize, usize>) = ((old.start, new.start, 0), HashMap::new());
        // `lengths`: by line of the new text, the length of the run that ends there and at the previous line of the old
        for i in old.clone() {
            let mut next = HashMap::new();
            for j in self.positions.get(self.old[i]).into_iter().flatten().copied().filter(|j| new.contains(j)) {
                let length = j.checked_sub(1).and_then(|before| lengths.get(&before)).copied().unwrap_or(0) + 1;
                next.insert(j, length);
                if length > best.2 {
                    best = (i + 1 - length, j + 1 - length, length);
                }
            }
            lengths = next;
        }
        // no run begins at a frequent line, but frequent lines around it belong to it
        let (mut i, mut j, mut length) = best;
        while i > old.start && j > new.start && self.old[i - 1] == self.new[j - 1] {
            (i, j, length) = (i - 1, j - 1, length + 1);
        }
        while i + length < old.end && j + length < new.end && self.old[i + length] == self.new[j + length] {
            length += 1;
        }
        (i, j, length)
    }
}

/// Lines between equal blocks, before the first, or after the last one.
fn changes(blocks: &[Block], old: usize, new: usize) -> Vec<Change> {
    let (mut changes, mut i, mut j) = (vec![], 0, 0);
    for (at, to, length) in blocks.iter().copied().chain([(old, new, 0)]) {
        if i < at || j < to {
            changes.push((i..at, j..to));
        }
        (i, j) = (at + length, to + length);
    }
    changes
}

/// Groups changes whose context lines overlap or touch.
fn hunks(changes: &[Change]) -> Vec<Vec<Change>> {
    let mut hunks: Vec<Vec<Change>> = vec![];
    for change in changes {
        let near =
            |last: &&mut Vec<Change>| last.last().is_some_and(|(before, _)| change.0.start - before.end <= 2 * CONTEXT);
        match hunks.last_mut().filter(near) {
            Some(hunk) => hunk.push(change.clone()),
            None => hunks.push(vec![change.clone()]),
        }
    }
    hunks
}

fn write_hunk(hunk: &[Change], old: &[&str], new: &[&str], out: &mut String) {
    let (Some(first), Some(last)) = (hunk.first(), hunk.last()) else { return };
    let lead = CONTEXT.min(first.0.start);
    let tail = CONTEXT.min(old.len() - last.0.end);
    // an empty range names the line before it
    let of = |start: usize, end: usize| match end - start {
        1 => format!("{}", start + 1),
        0 => format!("{start},0"),
        length => format!("{},{length}", start + 1),
    };
    let (from, to) = (of(first.0.start - lead, last.0.end + tail), of(first.1.start - lead, last.1.end + tail));
    out.push_str(&format!("@@ -{from} +{to} @@\n"));
    let mut at = first.0.start - lead;
    let mut line = |mark: char, text: &str| out.push_str(&format!("{mark}{text}\n"));
    for (before, after) in hunk {
        old[at..before.start].iter().for_each(|text| line(' ', text));
        old[before.clone()].iter().for_each(|text| line('-', text));
        new[after.clone()].iter().for_each(|text| line('+', text));
        at = before.end;
    }
    old[at..last.0.end + tail].iter().for_each(|text| line(' ', text));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn changes_have_three_lines_around_them() {
        let old = "a\nb\nc\nd\ne\nf\ng\nh\ni";
        let want = "@@ -3,7 +3,7 @@\n c\n d\n e\n-f\n+F\n g\n h\n i\n";
        assert_eq!(unified(old, &old.replace('f', "F")), want);
        assert_eq!(unified(old, old), "");
        assert_eq!(unified("a\nb", "a"), "@@ -1,2 +1 @@\n a\n-b\n");
    }
}
