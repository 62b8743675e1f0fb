//! The result of a trial as text, Markdown and JSON.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use machinery::{Value, json};

use super::cells::Cell;
use super::rounds::{Finding, NotTried, Outcome, Verdict};
use crate::limits::{self, REPETITIONS};

/// A word as a shell reads it.
pub fn quoted(word: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "-_./:=,@%+".contains(c);
    if !word.is_empty() && word.chars().all(is_plain) {
        word.to_owned()
    } else {
        format!("'{}'", word.replace('\'', r"'\''"))
    }
}

/// The command line that repeats a cell, given how the trial was called.
pub fn repetition(command: &str, cell: &Cell) -> String {
    format!("{command} --cell {}", quoted(&cell.to_string()))
}

impl Outcome {
    fn counts(&self) -> (usize, usize, BTreeMap<NotTried, Vec<&Cell>>) {
        let differ = self.cells.iter().filter(|(_, verdict)| matches!(verdict, Verdict::Differs(_))).count();
        let same = self.cells.iter().filter(|(_, verdict)| *verdict == Verdict::Same).count();
        let mut rest: BTreeMap<NotTried, Vec<&Cell>> = BTreeMap::new();
        self.not_tried().for_each(|(cell, why)| rest.entry(why).or_default().push(cell));
        (differ, same, rest)
    }

    fn summary(&self) -> String {
        let (differ, same, rest) = self.counts();
        let not_tried: usize = rest.values().map(Vec::len).sum();
        let total = self.cells.len();
        let cells = if total == 1 { "cell" } else { "cells" };
        format!("{total} {cells}: {differ} differ, {same} as without faults, {not_tried} not tried")
    }

    /// Text for a terminal. `command` is how the trial was called.
    pub fn text(&self, command: &str) -> String {
        let mut text = String::new();
        for finding in &self.findings {
            let Finding { cell, shown, cells, .. } = finding;
            let _ = writeln!(text, "{}  ({shown} of {REPETITIONS} repetitions)", cell.described());
            for symptom in &finding.symptoms {
                let _ = writeln!(text, "    {symptom}");
            }
            let _ = writeln!(text, "    {}", repetition(command, cell));
            if cells.len() > 1 {
                let _ = writeln!(text, "    so do {} other cells", cells.len() - 1);
            }
        }
        let _ = writeln!(text, "{}", self.summary());
        for (why, cells) in self.counts().2 {
            let ids: Vec<String> = cells.iter().take(limits::NOT_TRIED_SHOWN).map(ToString::to_string).collect();
            let more = match cells.len() - ids.len() {
                0 => String::new(),
                more => format!(" and {more} more (see -o json)"),
            };
            let _ = writeln!(text, "not tried, {}: {}{more}", why.as_str(), ids.join(" "));
        }
        text
    }

    pub fn markdown(&self, command: &str) -> String {
        let escaped = |text: &str| text.replace('|', "\\|");
        let mut text = format!("**{}**\n", self.summary());
        if !self.findings.is_empty() {
            text.push_str("\n| disturbance | what differs | repeated | command |\n| -- | -- | -- | -- |\n");
        }
        for finding in &self.findings {
            let Finding { cell, symptoms, shown, .. } = finding;
            let (cell, command) = (cell.described(), repetition(command, cell));
            let symptoms = escaped(&symptoms.join("<br>"));
            let _ = writeln!(text, "| {cell} | {symptoms} | {shown} of {REPETITIONS} | `{}` |", escaped(&command));
        }
        for (why, cells) in self.counts().2 {
            let ids: Vec<String> = cells.iter().map(|cell| format!("`{cell}`")).collect();
            let _ = write!(text, "\nNot tried, {}: {}\n", why.as_str(), ids.join(", "));
        }
        text
    }

    pub fn json(&self, command: &str) -> Value {
        let texts = |texts: &[String]| texts.iter().map(|text| Value::from(text.as_str())).collect::<Value>();
        let cells = self.cells.iter().map(|(cell, verdict)| {
            let mut value = json!({"cell": (cell.to_string())});
            let (word, more) = match verdict {
                Verdict::Same => ("same", None),
                Verdict::Differs(symptoms) => ("differs", Some(("symptoms", texts(symptoms)))),
                Verdict::NotTried(why) => ("not-tried", Some(("reason", Value::from(why.as_str())))),
            };
            value.set_at(&["verdict"], Value::from(word));
            if let Some((name, more)) = more {
                value.set_at(&[name], more);
            }
            value
        });
        let findings = self.findings.iter().map(|finding| {
            let cells: Vec<String> = finding.cells.iter().map(ToString::to_string).collect();
            json!({"cell": (finding.cell.to_string()), "disturbance": (finding.cell.described()),
                "symptoms": (texts(&finding.symptoms)), "shown": (finding.shown),
                "repeated": REPETITIONS, "cells": (texts(&cells)),
                "command": (repetition(command, &finding.cell))})
        });
        json!({"summary": (self.summary()), "findings": (findings.collect::<Value>()), "cells": (cells.collect::<Value>())})
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_quoted_for_shells() {
        for (word, want) in [("a-b/c.yaml", "a-b/c.yaml"), ("a b", "'a b'"), ("it's", r"'it'\''s'"), ("", "''")] {
            assert_eq!(quoted(word), want);
        }
    }
}
