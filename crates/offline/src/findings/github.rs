//! Findings as workflow commands of GitHub Actions, which annotate the lines of a pull request.

use std::io::{Result, Write};
use std::sync::Arc;

use super::{Checked, Printer, Severity, Summary, escapes, text};

pub struct Github;

impl Printer for Github {
    fn checked(&mut self, out: &mut dyn Write, checked: &Checked) -> Result<()> {
        for finding in &checked.findings {
            let place = &finding.place;
            let at = match place.line {
                0 => String::new(),
                line => format!(",line={line},col={},endColumn={}", place.column, place.column + place.width),
            };
            let title = if checked.object.is_empty() { &finding.reason } else { &checked.object };
            let note = finding.note().map(|note| format!(" ({note})")).unwrap_or_default();
            let message = format!("{}{note}", finding.text());
            let level = match finding.severity {
                Severity::Info => "notice",
                severity => severity.as_str(),
            };
            writeln!(
                out,
                "::{level} file={}{at},title={}::{}",
                escapes::property(&checked.file),
                escapes::property(title),
                escapes::message(&message)
            )?;
        }
        Ok(())
    }

    fn ignored(&mut self, out: &mut dyn Write, first: &[Arc<str>], count: usize) -> Result<()> {
        text::Text.ignored(out, first, count)
    }

    fn end(&mut self, out: &mut dyn Write, summary: &Summary) -> Result<()> {
        text::Text.end(out, summary)
    }
}
