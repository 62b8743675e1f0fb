//! Findings for people, in the form in which rustc prints its own.

use std::io::{Result, Write};
use std::sync::Arc;

use super::{Checked, Finding, Place, Printer, Summary};
use crate::limits::LINE_CHARACTERS_MAX;

pub struct Text;

impl Printer for Text {
    fn checked(&mut self, out: &mut dyn Write, checked: &Checked) -> Result<()> {
        checked.findings.iter().try_for_each(|finding| print(out, checked, finding))
    }

    fn ignored(&mut self, out: &mut dyn Write, first: &[Arc<str>], count: usize) -> Result<()> {
        if count == 0 {
            return Ok(());
        }
        let shown: Vec<String> = first.iter().map(|name| visible(name)).collect();
        let more = if count > first.len() { format!(" and {} more", count - first.len()) } else { String::new() };
        let files = if count == 1 { "1 file is" } else { &format!("{count} files are") };
        writeln!(out, "{files} left out as no manifest or as ignored: {}{more}; see --strict-files", shown.join(", "))
    }

    fn end(&mut self, out: &mut dyn Write, summary: &Summary) -> Result<()> {
        let counted = |count: usize, word: &str| format!("{count} {word}{}", if count == 1 { "" } else { "s" });
        let (files, objects) = (counted(summary.files, "file"), counted(summary.objects, "object"));
        let (errors, warnings) = (counted(summary.errors, "error"), counted(summary.warnings, "warning"));
        let skipped = if summary.skipped == 0 { String::new() } else { format!(", {} skipped", summary.skipped) };
        writeln!(out, "{files}, {objects}{skipped}: {errors}, {warnings}")
    }
}

fn print(out: &mut dyn Write, checked: &Checked, finding: &Finding) -> Result<()> {
    writeln!(out, "{}[{}]: {}", finding.severity.as_str(), finding.reason, one_line(&visible(&finding.text())))?;
    let Place { line, column, width, source } = &finding.place;
    if *line > 0 {
        let (source, column, width) = shortened(source, *column, *width);
        let number = line.to_string();
        let margin = " ".repeat(number.len());
        writeln!(out, "{margin}--> {}:{line}:{}", visible(&checked.file), finding.place.column)?;
        writeln!(out, "{margin} |")?;
        writeln!(out, "{number} | {source}")?;
        let carets = format!("{}{} {}", " ".repeat(column - 1), "^".repeat(width), visible(&checked.object));
        writeln!(out, "{margin} | {}", carets.trim_end())?;
    }
    if let Some(note) = finding.note() {
        writeln!(out, "  = note: {note}")?;
    }
    writeln!(out)
}

/// A text whose control characters cannot act on a terminal. Lines and tabs stay.
fn visible(text: &str) -> String {
    let mut visible = String::with_capacity(text.len());
    for letter in text.chars() {
        match letter.is_control() && !matches!(letter, '\n' | '\t') {
            true => visible.extend(letter.escape_default()),
            false => visible.push(letter),
        }
    }
    visible
}

/// Messages of several lines are indented.
fn one_line(text: &str) -> String {
    text.trim_end().replace('\n', "\n    ")
}

/// A part of a long line around the caret, with its column and width in that part. Tabs become blanks, so that the caret
/// stands where it points.
fn shortened(source: &str, column: usize, width: usize) -> (String, usize, usize) {
    let letters: Vec<char> = source.chars().map(|letter| if letter.is_control() { ' ' } else { letter }).collect();
    let first = if letters.len() <= LINE_CHARACTERS_MAX { 0 } else { column.saturating_sub(LINE_CHARACTERS_MAX / 4) };
    let last = letters.len().min(first + LINE_CHARACTERS_MAX);
    let text: String = letters.get(first..last).unwrap_or_default().iter().collect();
    let column = column - first;
    (text.trim_end().to_owned(), column, width.min((last - first + 1).saturating_sub(column)).max(1))
}
