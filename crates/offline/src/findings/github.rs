//! Findings as workflow commands of GitHub Actions, which annotate the lines of a pull request.
//!
//! GitHub shows a few annotations of each kind for a step, and drops the others. So errors come first, and where a kind has
//! more, the last annotation has their number, and they are lines of the log.

use std::io::{Result, Write};
use std::sync::Arc;

use super::text::Text;
use super::{Checked, Finding, Printer, Severity, Summary, escapes};
use crate::limits::ANNOTATIONS_SHOWN;

#[derive(Default)]
pub struct Github {
    /// In the order in which they are printed.
    errors: Kind,
    warnings: Kind,
    notices: Kind,
}

/// The annotations of one kind.
#[derive(Default)]
struct Kind {
    first: Vec<Annotation>,
    /// The number of those that are not kept.
    more: usize,
}

struct Annotation {
    command: String,
    line: String,
}

impl Printer for Github {
    fn checked(&mut self, out: &mut dyn Write, checked: &Checked) -> Result<()> {
        for finding in &checked.findings {
            let kind = match finding.severity {
                Severity::Error => &mut self.errors,
                Severity::Warning => &mut self.warnings,
                Severity::Info => &mut self.notices,
            };
            let annotation = Annotation::of(checked, finding);
            if kind.first.len() < ANNOTATIONS_SHOWN {
                kind.first.push(annotation);
            } else {
                kind.more += 1;
                writeln!(out, "{}", annotation.line)?;
            }
        }
        Ok(())
    }

    fn ignored(&mut self, out: &mut dyn Write, first: &[Arc<str>], count: usize) -> Result<()> {
        Text::default().ignored(out, first, count)
    }

    fn end(&mut self, out: &mut dyn Write, summary: &Summary) -> Result<()> {
        self.errors.print(out, "error")?;
        self.warnings.print(out, "warning")?;
        self.notices.print(out, "notice")?;
        Text::default().end(out, summary)
    }
}

impl Kind {
    fn print(&mut self, out: &mut dyn Write, level: &str) -> Result<()> {
        let replaced = if self.more > 0 { self.first.pop() } else { None };
        self.first.iter().try_for_each(|annotation| writeln!(out, "{}", annotation.command))?;
        let Some(replaced) = replaced else { return Ok(()) };
        let more = self.more + 1;
        writeln!(out, "{}\n::{level} title=pintle::and {more} more, in the log of this step", replaced.line)
    }
}

impl Annotation {
    fn of(checked: &Checked, finding: &Finding) -> Annotation {
        let place = &finding.place;
        let (at, line) = match place.line {
            0 => (String::new(), String::new()),
            line => (
                format!(",line={line},col={},endColumn={}", place.column, place.column + place.width),
                format!(":{line}:{}", place.column),
            ),
        };
        let title = if checked.object.is_empty() { &finding.reason } else { &checked.object };
        let note = finding.note().map(|note| format!(" ({note})")).unwrap_or_default();
        let message = format!("{}{note}", finding.text());
        let level = match finding.severity {
            Severity::Info => "notice",
            severity => severity.as_str(),
        };
        let (file, title) = (escapes::property(&checked.file), escapes::property(title));
        // a line of the log must not be taken for a command
        let message = escapes::message(&message);
        Annotation {
            command: format!("::{level} file={file}{at},title={title}::{message}"),
            line: format!("{level}: {}{line}: {title}: {message}", escapes::message(&checked.file)),
        }
    }
}
