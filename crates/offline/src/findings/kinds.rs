//! Objects with errors, by kind, with the reasons: for sources of many objects, which have no lines.

use std::collections::BTreeMap;
use std::io::{Result, Write};

use super::{Checked, Printer, Severity, Summary};
use crate::limits::REASONS_SHOWN;

#[derive(Default)]
pub struct Kinds(BTreeMap<String, OfKind>);

/// The objects of a kind that have errors.
#[derive(Default)]
struct OfKind {
    objects: usize,
    reasons: Vec<Reason>,
    /// Errors with other reasons.
    others: usize,
}

struct Reason {
    /// The text without the value.
    key: String,
    text: String,
    /// The first object that has it.
    first: String,
    count: usize,
}

impl OfKind {
    fn add(&mut self, text: String, object: &str) {
        let is_full = self.reasons.len() >= REASONS_SHOWN;
        let key = without_value(&text);
        match self.reasons.iter_mut().find(|reason| reason.key == key) {
            Some(reason) => reason.count += 1,
            None if is_full => self.others += 1,
            None => self.reasons.push(Reason { key, text, first: object.to_owned(), count: 1 }),
        }
    }
}

/// A text such as `spec.a: Invalid value: "b": must be c` without the value.
fn without_value(text: &str) -> String {
    let parts = text.split_once(" value: ").and_then(|(before, rest)| Some((before, rest.split_once(": ")?.1)));
    parts.map_or_else(|| text.to_owned(), |(before, why)| format!("{before}: {why}"))
}

impl Printer for Kinds {
    fn checked(&mut self, _out: &mut dyn Write, checked: &Checked) -> Result<()> {
        let mut errors = checked.findings.iter().filter(|finding| finding.severity == Severity::Error).peekable();
        let Some((kind, object)) = checked.object.split_once(' ').filter(|_| errors.peek().is_some()) else {
            return Ok(());
        };
        let of_kind = self.0.entry(kind.to_owned()).or_default();
        of_kind.objects += 1;
        // a list or a text of several lines is one reason
        errors.for_each(|error| of_kind.add(error.text().replace('\n', " "), object));
        Ok(())
    }

    fn end(&mut self, out: &mut dyn Write, _summary: &Summary) -> Result<()> {
        for (kind, OfKind { objects, reasons, others }) in &self.0 {
            writeln!(out, "{kind}: {objects} invalid")?;
            for Reason { text, first, count, .. } in reasons {
                let more = if *count > 1 { format!(" and {} more", count - 1) } else { String::new() };
                writeln!(out, "  {first}{more}: {}", text.escape_debug().to_string().replace("\\\"", "\""))?;
            }
            if *others > 0 {
                writeln!(out, "  {others} other errors")?;
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::findings::{Finding, Form, Place, Report};

    #[test]
    fn reasons_are_bounded() {
        let mut text = vec![];
        let mut report = Report::begin(Form::Kinds.into(), &mut text).unwrap();
        let mut check = |object: &str, severity, message: String| {
            let (reason, field, place) = (String::new(), "spec".to_owned(), Place::default());
            let finding = Finding { severity, reason, message, field, place, releases: vec![] };
            let checked = Checked { file: "".into(), object: object.to_owned(), findings: vec![finding] };
            report.checked(&checked).unwrap();
        };
        for number in 0..REASONS_SHOWN + 2 {
            check(&format!("Pod n/{number}"), Severity::Error, "Required value".to_owned());
            check("Node a", Severity::Error, format!("Invalid value: {number}: must be other"));
            check("Job n/a", Severity::Error, format!("Required value: {number}"));
            check("Boat b", Severity::Warning, "old".to_owned());
        }
        let summary = report.end().unwrap();
        assert_eq!(summary.invalid, 3 * (REASONS_SHOWN + 2));
        let text = String::from_utf8(text).unwrap();
        assert!(
            text.contains("\n  2 other errors\nNode: 7 invalid\n  a and 6 more: spec: Invalid value: 0: must"),
            "{text}"
        );
        assert!(text.ends_with("Pod: 7 invalid\n  n/0 and 6 more: spec: Required value\n"), "{text}");
        assert!(!text.contains("Boat"), "{text}");
    }
}
