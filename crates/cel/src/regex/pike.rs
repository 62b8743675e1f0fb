//! A matcher over characters, for patterns whose automaton over bytes would be large: `\pL{500}` is 500 steps here, as in
//! Go, and hundreds of thousands there.
//!
//! Threads run side by side through the text in the order of their priority (Pike's machine): time is steps times
//! characters, and nothing is ever tried twice.

use std::sync::Arc;

use regex_syntax::hir::{Class, Hir, HirKind, Look, Repetition};

/// One step of a program.
enum Step {
    /// A character in one of these ranges, sorted.
    Class(Arc<[(char, char)]>),
    Look(Look),
    /// Both, the first preferred.
    Split(usize, usize),
    Jump(usize),
    /// Remembers the place.
    Save(usize),
    Match,
}

/// A compiled pattern.
pub(super) struct Program {
    steps: Vec<Step>,
    groups: usize,
}

/// Starts and ends of groups, the whole match first.
pub(super) type Places = Vec<Option<usize>>;

impl Program {
    pub(super) fn new(hir: &Hir) -> Program {
        let mut program = Program { steps: vec![Step::Save(0)], groups: 1 };
        program.compile(hir);
        program.steps.push(Step::Save(1));
        program.steps.push(Step::Match);
        program
    }

    pub(super) fn groups_len(&self) -> usize {
        self.groups
    }

    fn class(&mut self, ranges: impl Iterator<Item = (char, char)>) {
        self.steps.push(Step::Class(ranges.collect()));
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
            HirKind::Look(look) => self.steps.push(Step::Look(*look)),
            HirKind::Repetition(repetition) => self.repeat(repetition),
            HirKind::Capture(capture) => {
                let group = capture.index as usize;
                self.groups = self.groups.max(group + 1);
                self.steps.push(Step::Save(2 * group));
                self.compile(&capture.sub);
                self.steps.push(Step::Save(2 * group + 1));
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
                self.steps.push(Step::Split(split + 1, 0));
            }
            self.compile(part);
            if i + 1 < parts.len() {
                ends.push(self.steps.len());
                self.steps.push(Step::Jump(0));
                self.steps[split] = Step::Split(split + 1, self.steps.len());
            }
        }
        let end = self.steps.len();
        ends.into_iter().for_each(|at| self.steps[at] = Step::Jump(end));
    }

    fn repeat(&mut self, repetition: &Repetition) {
        let copies = if repetition.max.is_none() { repetition.min.saturating_sub(1) } else { repetition.min };
        for _ in 0..copies {
            self.compile(&repetition.sub);
        }
        let Some(max) = repetition.max else {
            // once more, and again; `x*` is `(x+)?`, so that an empty `x` is preferred where Go prefers it
            let skip = self.steps.len();
            if repetition.min == 0 {
                self.steps.push(Step::Jump(0));
            }
            let start = self.steps.len();
            self.compile(&repetition.sub);
            let end = self.steps.len() + 1;
            self.steps.push(fork(start, end, repetition.greedy));
            if repetition.min == 0 {
                self.steps[skip] = fork(start, end, repetition.greedy);
            }
            return;
        };
        let mut splits = vec![];
        for _ in repetition.min..max {
            splits.push(self.steps.len());
            self.steps.push(Step::Jump(0));
            self.compile(&repetition.sub);
        }
        let end = self.steps.len();
        splits.into_iter().for_each(|at| self.steps[at] = fork(at + 1, end, repetition.greedy));
    }

    /// The leftmost match that begins at `from` or later. Without `places` only whether there is one.
    pub(super) fn run(&self, text: &str, from: usize, places: bool) -> Option<Places> {
        let slots = if places { 2 * self.groups } else { 0 };
        let mut machine = Machine { program: self, text, seen: vec![usize::MAX; self.steps.len()], stack: vec![] };
        let (mut now, mut next): (Vec<Thread>, Vec<Thread>) = (vec![], vec![]);
        let mut found: Option<Places> = None;
        let mut at = from;
        loop {
            if found.is_none() {
                machine.add(&mut now, 0, at, vec![None; slots]);
            }
            let c = text.get(at..).and_then(|rest| rest.chars().next());
            let after = at + c.map_or(0, char::len_utf8);
            for thread in now.drain(..) {
                match &self.steps[thread.step] {
                    Step::Class(ranges) if c.is_some_and(|c| contains(ranges, c)) => {
                        machine.add(&mut next, thread.step + 1, after, thread.places);
                    }
                    Step::Match => {
                        found = Some(thread.places);
                        // those behind it are not preferred
                        break;
                    }
                    _ => {}
                }
            }
            if c.is_none() || (next.is_empty() && found.is_some()) || (found.is_some() && !places) {
                return found;
            }
            std::mem::swap(&mut now, &mut next);
            at = after;
        }
    }
}

fn fork(body: usize, end: usize, greedy: bool) -> Step {
    if greedy { Step::Split(body, end) } else { Step::Split(end, body) }
}

fn contains(ranges: &[(char, char)], c: char) -> bool {
    let i = ranges.partition_point(|(_, end)| *end < c);
    ranges.get(i).is_some_and(|(start, _)| *start <= c)
}

struct Thread {
    step: usize,
    places: Places,
}

struct Machine<'a> {
    program: &'a Program,
    text: &'a str,
    /// Where each step was last added.
    seen: Vec<usize>,
    stack: Vec<Thread>,
}

impl Machine<'_> {
    /// Adds the steps that read a character, or match, and that can be reached from `step` without reading.
    fn add(&mut self, threads: &mut Vec<Thread>, step: usize, at: usize, places: Places) {
        self.stack.push(Thread { step, places });
        while let Some(Thread { step, mut places }) = self.stack.pop() {
            if std::mem::replace(&mut self.seen[step], at) == at {
                continue;
            }
            match &self.program.steps[step] {
                Step::Split(first, second) => {
                    self.stack.push(Thread { step: *second, places: places.clone() });
                    self.stack.push(Thread { step: *first, places });
                }
                Step::Jump(to) => self.stack.push(Thread { step: *to, places }),
                Step::Save(slot) => {
                    if let Some(place) = places.get_mut(*slot) {
                        *place = Some(at);
                    }
                    self.stack.push(Thread { step: step + 1, places });
                }
                Step::Look(look) if holds(*look, self.text.as_bytes(), at) => {
                    self.stack.push(Thread { step: step + 1, places });
                }
                Step::Look(_) => {}
                Step::Class(_) | Step::Match => threads.push(Thread { step, places }),
            }
        }
    }
}

/// The looks that Go's syntax has.
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
