//! Findings as JUnit XML: a suite for each input, with a test case for each object.

use std::fmt::Write as _;
use std::io::{Result, Write};
use std::sync::Arc;

use super::escapes::xml;
use super::{Checked, Printer, Severity, Summary};

#[derive(Default)]
pub struct Junit {
    /// The input whose test cases are kept until the next one begins.
    file: Option<Arc<str>>,
    cases: String,
    tests: usize,
    failures: usize,
}

impl Printer for Junit {
    fn begin(&mut self, out: &mut dyn Write) -> Result<()> {
        writeln!(out, "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites name=\"pintle\">")
    }

    fn checked(&mut self, out: &mut dyn Write, checked: &Checked) -> Result<()> {
        if self.file.as_ref() != Some(&checked.file) {
            self.flush(out)?;
            self.file = Some(checked.file.clone());
        }
        self.case(checked);
        Ok(())
    }

    fn end(&mut self, out: &mut dyn Write, summary: &Summary) -> Result<()> {
        self.flush(out)?;
        let left_out = summary.skipped + summary.ignored_files;
        if left_out > 0 {
            writeln!(
                out,
                "  <testsuite name=\"left out\" tests=\"{left_out}\" failures=\"0\" skipped=\"{left_out}\"/>"
            )?;
        }
        writeln!(out, "</testsuites>")
    }
}

impl Junit {
    fn case(&mut self, checked: &Checked) {
        self.tests += 1;
        let name = if checked.object.is_empty() { &*checked.file } else { &checked.object };
        let _ = write!(self.cases, "    <testcase classname=\"{}\" name=\"{}\"", xml(&checked.file), xml(name));
        if checked.findings.is_empty() {
            self.cases.push_str("/>\n");
            return;
        }
        self.cases.push_str(">\n");
        let is_error = |severity: Severity| severity == Severity::Error;
        self.failures += usize::from(checked.findings.iter().any(|finding| is_error(finding.severity)));
        for finding in &checked.findings {
            let note = finding.note().map(|note| format!(" ({note})")).unwrap_or_default();
            let text = xml(&format!("{}:{}: {}{note}", checked.file, finding.place.line, finding.text()));
            let _ = match is_error(finding.severity) {
                true => writeln!(
                    self.cases,
                    "      <failure type=\"{}\" message=\"{}\">{text}</failure>",
                    xml(&finding.reason),
                    xml(&finding.text())
                ),
                false => {
                    let severity = finding.severity.as_str();
                    writeln!(self.cases, "      <system-out>{severity}: {text}</system-out>")
                }
            };
        }
        self.cases.push_str("    </testcase>\n");
    }

    fn flush(&mut self, out: &mut dyn Write) -> Result<()> {
        let Some(file) = self.file.take() else { return Ok(()) };
        let (tests, failures) = (std::mem::take(&mut self.tests), std::mem::take(&mut self.failures));
        writeln!(out, "  <testsuite name=\"{}\" tests=\"{tests}\" failures=\"{failures}\">", xml(&file))?;
        out.write_all(std::mem::take(&mut self.cases).as_bytes())?;
        writeln!(out, "  </testsuite>")
    }
}
