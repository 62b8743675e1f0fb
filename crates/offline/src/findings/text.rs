//! Findings for people, in the form in which rustc prints its own.

use std::io::{Result, Write};
use std::sync::Arc;

use super::{Checked, Colours, Detail, Finding, Place, Printer, Severity, Style, Summary};
use crate::limits::LINE_CHARACTERS_MAX;

#[derive(Default)]
pub struct Text {
    detail: Detail,
    colours: Colours,
    /// The numbers of the input that is checked, if only numbers are printed.
    of_file: Option<(Arc<str>, Summary)>,
}

impl Text {
    pub fn new(style: Style) -> Text {
        Text { detail: style.detail, colours: style.colours, of_file: None }
    }

    /// Prints the numbers of the input that was checked last, if it has findings.
    fn end_file(&mut self, out: &mut dyn Write) -> Result<()> {
        let Some((file, numbers)) = self.of_file.take().filter(|(_, numbers)| numbers.errors + numbers.warnings > 0)
        else {
            return Ok(());
        };
        writeln!(out, "{}: {}", visible(&file), found(&numbers))
    }
}

impl Printer for Text {
    fn checked(&mut self, out: &mut dyn Write, checked: &Checked) -> Result<()> {
        if self.detail != Detail::Numbers {
            let is_shown =
                |finding: &&Finding| self.detail == Detail::Everything || finding.severity == Severity::Error;
            let mut shown = checked.findings.iter().filter(is_shown);
            return shown.try_for_each(|finding| print(out, self.colours, checked, finding));
        }
        if self.of_file.as_ref().is_none_or(|(file, _)| *file != checked.file) {
            self.end_file(out)?;
        }
        let (_, numbers) = self.of_file.get_or_insert_with(|| (checked.file.clone(), Summary::default()));
        numbers.count(checked);
        Ok(())
    }

    fn ignored(&mut self, out: &mut dyn Write, first: &[Arc<str>], count: usize) -> Result<()> {
        if count == 0 || self.detail == Detail::Errors {
            return Ok(());
        }
        let shown: Vec<String> = first.iter().map(|name| visible(name)).collect();
        let more = if count > first.len() { format!(" and {} more", count - first.len()) } else { String::new() };
        let files = if count == 1 { "1 file is" } else { &format!("{count} files are") };
        writeln!(out, "{files} left out as no manifest or as ignored: {}{more}; see --strict-files", shown.join(", "))
    }

    fn end(&mut self, out: &mut dyn Write, summary: &Summary) -> Result<()> {
        self.end_file(out)?;
        if self.detail == Detail::Errors {
            return Ok(());
        }
        let (files, objects) = (counted(summary.files, "file"), counted(summary.objects, "object"));
        let skipped = if summary.skipped == 0 { String::new() } else { format!(", {} skipped", summary.skipped) };
        writeln!(out, "{files}, {objects}{skipped}: {}", found(summary))
    }
}

fn counted(count: usize, word: &str) -> String {
    format!("{count} {word}{}", if count == 1 { "" } else { "s" })
}

/// The numbers of errors and warnings.
fn found(summary: &Summary) -> String {
    format!("{}, {}", counted(summary.errors, "error"), counted(summary.warnings, "warning"))
}

fn coloured(text: &str, severity: Severity, colours: Colours) -> String {
    let code = match severity {
        _ if colours == Colours::Off => return text.to_owned(),
        Severity::Error => "1;31",
        Severity::Warning => "1;33",
        Severity::Info => "1;34",
    };
    format!("\x1b[{code}m{text}\x1b[0m")
}

fn print(out: &mut dyn Write, colours: Colours, checked: &Checked, finding: &Finding) -> Result<()> {
    let of_severity = |text: &str| coloured(text, finding.severity, colours);
    let reason = of_severity(&format!("{}[{}]", finding.severity.as_str(), finding.reason));
    writeln!(out, "{reason}: {}", one_line(&visible(&finding.text())))?;
    let Place { line, column, width, source } = &finding.place;
    if *line > 0 {
        let (source, column, width) = shortened(source, *column, *width);
        let number = line.to_string();
        let margin = " ".repeat(number.len());
        writeln!(out, "{margin}--> {}:{line}:{}", name(&checked.file), finding.place.column)?;
        writeln!(out, "{margin} |")?;
        writeln!(out, "{number} | {source}")?;
        let carets = of_severity(&"^".repeat(width));
        let carets = format!("{}{carets} {}", " ".repeat(column - 1), name(&checked.object));
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

/// The name of a file or an object, which may contain anything, on one line.
fn name(text: &str) -> String {
    visible(text).replace('\n', "\\n")
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
