//! Problems of a source, in a bounded number of lines.

use crate::limits::PROBLEMS_SHOWN;

/// The problems of a source. Those with the same reason are one line, with the first place and their number.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Problems {
    known: Vec<Problem>,
    others: usize,
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct Problem {
    why: String,
    first: String,
    count: usize,
}

impl Problems {
    pub fn add(&mut self, place: &str, why: &str) {
        self.insert(Problem { why: why.to_owned(), first: place.escape_debug().to_string(), count: 1 });
    }

    fn insert(&mut self, problem: Problem) {
        let is_full = self.known.len() == PROBLEMS_SHOWN;
        match self.known.iter_mut().find(|known| known.why == problem.why) {
            Some(known) => known.count += problem.count,
            None if is_full => self.others += problem.count,
            None => self.known.push(problem),
        }
    }

    /// Takes over the problems of another source.
    pub fn extend(&mut self, other: Problems) {
        other.known.into_iter().for_each(|problem| self.insert(problem));
        self.others += other.others;
    }

    /// The number of places with a problem.
    pub fn count(&self) -> usize {
        self.known.iter().map(|known| known.count).sum::<usize>() + self.others
    }

    /// A line for each reason.
    pub fn lines(&self) -> Vec<String> {
        let line = |Problem { why, first, count }: &Problem| match count {
            1 => format!("{first}: {why}"),
            count => format!("{first} and {} more: {why}", count - 1),
        };
        let mut lines: Vec<String> = self.known.iter().map(line).collect();
        if self.others > 0 {
            lines.push(format!("{} other problems", self.others));
        }
        lines
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_bounded() {
        let mut problems = Problems::default();
        for number in 0..1000 {
            problems.add(&format!("a\n{number}"), "links are not followed");
            problems.add("b", &format!("reason {number}"));
        }
        let lines = problems.lines();
        assert_eq!(lines.len(), PROBLEMS_SHOWN + 1);
        assert_eq!(lines[0], "a\\n0 and 999 more: links are not followed");
        assert_eq!(lines[PROBLEMS_SHOWN], format!("{} other problems", 1000 - PROBLEMS_SHOWN + 1));
        assert_eq!(problems.count(), 2000);
        problems.extend(problems.clone());
        assert_eq!(problems.lines()[0], "a\\n0 and 1999 more: links are not followed");
        assert_eq!(problems.count(), 4000);
    }
}
