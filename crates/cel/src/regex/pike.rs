//! A matcher over characters, for patterns whose automaton over bytes would be large: `\pL{500}` is 500 instructions here,
//! as in Go, and hundreds of thousands of states there.
//!
//! Threads advance through the text in parallel, ordered by priority (Pike's virtual machine), so the time is linear in
//! instructions times characters. A program has at most some millions of instructions (`parse::SIZE_MAX`) of a few bytes
//! each, since equal classes are shared. [`Visits`] bounds the instructions of a match.

use std::collections::HashMap;
use std::ops::Range;

use parking_lot::Mutex;
use regex_syntax::hir::{Class, Hir, HirKind, Look, Repetition};

use crate::work::Visits;

/// One step of a program.
#[derive(Clone, Copy)]
enum Instruction {
    /// A character in one of the ranges of a class.
    Class(u32),
    Look(Look),
    /// Both, the first preferred.
    Split(u32, u32),
    Jump(u32),
    /// Saves the position in a group.
    Save(u32),
    Match,
}

/// Sorted ranges of characters.
type Ranges = Box<[(char, char)]>;

/// A compiled pattern.
pub(super) struct PatternProgram {
    steps: Vec<Instruction>,
    classes: Vec<Ranges>,
    groups: usize,
    /// The set of the last match, for reuse.
    idle: Mutex<Option<Visited>>,
}

/// Makes a program.
#[derive(Default)]
struct PatternCompiler {
    steps: Vec<Instruction>,
    classes: Vec<Ranges>,
    numbers: HashMap<Ranges, u32>,
    groups: usize,
}

/// Starts and ends of groups, the whole match first.
pub(super) type Places = Vec<Option<usize>>;

impl PatternProgram {
    pub(super) fn new(hir: &Hir) -> PatternProgram {
        let mut compiler =
            PatternCompiler { steps: vec![Instruction::Save(0)], groups: 1, ..PatternCompiler::default() };
        compiler.compile(hir);
        compiler.steps.push(Instruction::Save(1));
        compiler.steps.push(Instruction::Match);
        let PatternCompiler { steps, classes, groups, .. } = compiler;
        PatternProgram { steps, classes, groups, idle: Mutex::default() }
    }

    pub(super) fn groups_len(&self) -> usize {
        self.groups
    }

    #[cfg(test)]
    pub(super) fn classes_len(&self) -> usize {
        self.classes.len()
    }

    pub(super) fn steps_len(&self) -> usize {
        self.steps.len()
    }
}

impl PatternCompiler {
    /// The number of the next step.
    fn here(&self) -> u32 {
        // a pattern has fewer than `parse::SIZE_MAX` steps
        u32::try_from(self.steps.len()).unwrap_or(u32::MAX)
    }

    fn class(&mut self, ranges: impl Iterator<Item = (char, char)>) {
        let ranges: Ranges = ranges.collect();
        let known = &mut self.classes;
        let number = *self.numbers.entry(ranges).or_insert_with_key(|ranges| {
            known.push(ranges.clone());
            known.len() as u32 - 1
        });
        self.steps.push(Instruction::Class(number));
    }

    fn compile(&mut self, hir: &Hir) {
        match hir.kind() {
            HirKind::Empty => {}
            HirKind::Literal(literal) => {
                let text = String::from_utf8_lossy(&literal.0);
                text.chars().for_each(|c| self.class(std::iter::once((c, c))));
            }
            HirKind::Class(Class::Unicode(class)) => self.class(class.iter().map(|range| (range.start(), range.end()))),
            HirKind::Class(Class::Bytes(class)) => {
                self.class(class.iter().map(|range| (char::from(range.start()), char::from(range.end()))));
            }
            HirKind::Look(look) => self.steps.push(Instruction::Look(*look)),
            HirKind::Repetition(repetition) => self.repeat(repetition),
            HirKind::Capture(capture) => {
                self.groups = self.groups.max(capture.index as usize + 1);
                self.steps.push(Instruction::Save(2 * capture.index));
                self.compile(&capture.sub);
                self.steps.push(Instruction::Save(2 * capture.index + 1));
            }
            HirKind::Concat(parts) => parts.iter().for_each(|part| self.compile(part)),
            HirKind::Alternation(parts) => self.alternate(parts),
        }
    }

    fn alternate(&mut self, parts: &[Hir]) {
        let mut ends = vec![];
        for (i, part) in parts.iter().enumerate() {
            let split = self.steps.len();
            if i + 1 < parts.len() {
                self.steps.push(Instruction::Split(self.here() + 1, 0));
            }
            self.compile(part);
            if i + 1 < parts.len() {
                ends.push(self.steps.len());
                self.steps.push(Instruction::Jump(0));
                self.steps[split] = Instruction::Split(split as u32 + 1, self.here());
            }
        }
        let end = self.here();
        ends.into_iter().for_each(|at| self.steps[at] = Instruction::Jump(end));
    }

    fn repeat(&mut self, repetition: &Repetition) {
        match repetition.max {
            None => self.repeat_without_end(repetition),
            Some(0) => {}
            Some(max) => self.repeat_up_to(repetition, max),
        }
    }

    fn repeat_without_end(&mut self, Repetition { min, greedy, sub, .. }: &Repetition) {
        // `x{n,}` is n copies of `x`, the last of which may repeat; `x*` is `(x+)?`, so that an empty `x` is preferred
        // where Go prefers it
        let skip = self.steps.len();
        if *min == 0 {
            self.steps.push(Instruction::Jump(0));
        }
        let mut start = self.here();
        self.compile(sub);
        let body = start..self.here();
        for _ in 1..*min {
            start = self.here();
            self.copy(body.clone());
        }
        let end = self.here() + 1;
        self.steps.push(fork(start, end, *greedy));
        if *min == 0 {
            self.steps[skip] = fork(body.start, end, *greedy);
        }
    }

    fn repeat_up_to(&mut self, Repetition { min, greedy, sub, .. }: &Repetition, max: u32) {
        let mut splits = vec![];
        let mut body = None;
        for copy in 0..max {
            if copy >= *min {
                splits.push(self.steps.len());
                self.steps.push(Instruction::Jump(0));
            }
            match &body {
                Some(body) => self.copy(Range::clone(body)),
                None => {
                    let start = self.here();
                    self.compile(sub);
                    body = Some(start..self.here());
                }
            }
        }
        let end = self.here();
        splits.into_iter().for_each(|at| self.steps[at] = fork(at as u32 + 1, end, *greedy));
    }

    /// Appends a copy of instructions that refer only to each other and to the one after them.
    fn copy(&mut self, body: Range<u32>) {
        let by = self.here() - body.start;
        for at in body {
            self.steps.push(match self.steps[at as usize] {
                Instruction::Split(first, second) => Instruction::Split(first + by, second + by),
                Instruction::Jump(to) => Instruction::Jump(to + by),
                other => other,
            });
        }
    }
}

/// The details of a match that the caller needs.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Wanted {
    /// Where it is, and its groups.
    Places,
    /// Whether there is one.
    Presence,
}

impl PatternProgram {
    /// The leftmost match that begins at `from` or later. Also `None` if the work limit is exceeded.
    pub(super) fn run(&self, text: &str, from: usize, wanted: Wanted) -> Option<Places> {
        let idle = self.idle.lock().take();
        let visited = idle.unwrap_or_else(|| Visited::new(self.steps.len()));
        let mut machine = Machine { program: self, text, visited, visits: Visits::new(), pending: 0, stack: vec![] };
        let found = machine.run(from, wanted);
        *self.idle.lock() = Some(machine.visited);
        found
    }
}

fn fork(body: u32, end: u32, greedy: bool) -> Instruction {
    if greedy { Instruction::Split(body, end) } else { Instruction::Split(end, body) }
}

fn contains(ranges: &[(char, char)], c: char) -> bool {
    let i = ranges.partition_point(|(_, end)| *end < c);
    ranges.get(i).is_some_and(|(start, _)| *start <= c)
}

/// A sparse set of instructions, which is cleared in constant time.
struct Visited {
    /// The index in `members` of each instruction in the set; the entries of other instructions have no meaning.
    places: Vec<u32>,
    members: Vec<u32>,
}

impl Visited {
    fn new(steps: usize) -> Visited {
        Visited { places: vec![0; steps], members: vec![] }
    }

    /// Adds a step. False if it was a member.
    fn insert(&mut self, step: u32) -> bool {
        let place = &mut self.places[step as usize];
        if self.members.get(*place as usize) == Some(&step) {
            return false;
        }
        *place = self.members.len() as u32;
        self.members.push(step);
        true
    }
}

struct Thread {
    step: u32,
    places: Places,
}

struct Machine<'a> {
    program: &'a PatternProgram,
    text: &'a str,
    /// The steps that were already added for the next character.
    visited: Visited,
    visits: Visits,
    /// Visits that are not counted yet.
    pending: u64,
    stack: Vec<Thread>,
}

impl Machine<'_> {
    fn run(&mut self, from: usize, wanted: Wanted) -> Option<Places> {
        let slots = if wanted == Wanted::Places { 2 * self.program.groups } else { 0 };
        let (mut now, mut next): (Vec<Thread>, Vec<Thread>) = (vec![], vec![]);
        let mut found: Option<Places> = None;
        let mut at = from;
        self.visited.members.clear();
        loop {
            if found.is_none() {
                self.add(&mut now, 0, at, vec![None; slots]);
            }
            let c = self.text.get(at..).and_then(|rest| rest.chars().next());
            let after = at + c.map_or(0, char::len_utf8);
            self.visited.members.clear();
            for thread in now.drain(..) {
                match self.program.steps[thread.step as usize] {
                    Instruction::Class(class)
                        if c.is_some_and(|c| contains(&self.program.classes[class as usize], c)) =>
                    {
                        self.add(&mut next, thread.step + 1, after, thread.places);
                    }
                    Instruction::Match => {
                        found = Some(thread.places);
                        // the remaining threads have lower priority
                        break;
                    }
                    _ => {}
                }
            }
            if c.is_none() || (next.is_empty() && found.is_some()) || (found.is_some() && wanted == Wanted::Presence) {
                return found;
            }
            // a character is a visit too
            self.visits.count(self.pending + 1)?;
            self.pending = 0;
            std::mem::swap(&mut now, &mut next);
            at = after;
        }
    }

    /// Adds the instructions that read a character, or match, and are reachable from `step` without reading.
    fn add(&mut self, threads: &mut Vec<Thread>, step: u32, at: usize, places: Places) {
        self.stack.push(Thread { step, places });
        while let Some(Thread { step, mut places }) = self.stack.pop() {
            self.pending += 1;
            if !self.visited.insert(step) {
                continue;
            }
            match self.program.steps[step as usize] {
                Instruction::Split(first, second) => {
                    self.stack.push(Thread { step: second, places: places.clone() });
                    self.stack.push(Thread { step: first, places });
                }
                Instruction::Jump(to) => self.stack.push(Thread { step: to, places }),
                Instruction::Save(slot) => {
                    if let Some(place) = places.get_mut(slot as usize) {
                        *place = Some(at);
                    }
                    self.stack.push(Thread { step: step + 1, places });
                }
                Instruction::Look(look) if holds(look, self.text.as_bytes(), at) => {
                    self.stack.push(Thread { step: step + 1, places });
                }
                Instruction::Look(_) => {}
                Instruction::Class(_) | Instruction::Match => threads.push(Thread { step, places }),
            }
        }
    }
}

/// Whether an assertion of Go's syntax holds at a position.
fn holds(look: Look, text: &[u8], at: usize) -> bool {
    let is_word = |b: Option<&u8>| b.is_some_and(|b| b.is_ascii_alphanumeric() || *b == b'_');
    let before = at.checked_sub(1).and_then(|i| text.get(i));
    let boundary = is_word(before) != is_word(text.get(at));
    match look {
        Look::Start => at == 0,
        Look::End => at == text.len(),
        Look::StartLF => before.is_none_or(|b| *b == b'\n'),
        Look::EndLF => text.get(at).is_none_or(|b| *b == b'\n'),
        Look::WordAscii => boundary,
        Look::WordAsciiNegate => !boundary,
        _ => false,
    }
}
