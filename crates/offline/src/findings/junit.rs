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
    skipped: usize,
}

/// The suite of the files that were left out.
const LEFT_OUT: &str = "left out";

impl Printer for Junit {
    fn begin(&mut self, out: &mut dyn Write) -> Result<()> {
        writeln!(out, "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites name=\"pintle\">")
    }

    fn checked(&mut self, out: &mut dyn Write, checked: &Checked) -> Result<()> {
        self.enter(out, &checked.file)?;
        self.case(checked);
        Ok(())
    }

    fn left_out(&mut self, out: &mut dyn Write, file: &Arc<str>, object: &str) -> Result<()> {
        let suite = if object.is_empty() { LEFT_OUT.into() } else { file.clone() };
        self.enter(out, &suite)?;
        (self.tests, self.skipped) = (self.tests + 1, self.skipped + 1);
        self.begin_case(file, object);
        self.cases.push_str("><skipped/></testcase>\n");
        Ok(())
    }

    fn end(&mut self, out: &mut dyn Write, _summary: &Summary) -> Result<()> {
        self.flush(out)?;
        writeln!(out, "</testsuites>")
    }
}

impl Junit {
    /// Begins a suite, unless it is the one that the last case was in.
    fn enter(&mut self, out: &mut dyn Write, suite: &Arc<str>) -> Result<()> {
        if self.file.as_ref() != Some(suite) {
            self.flush(out)?;
            self.file = Some(suite.clone());
        }
        Ok(())
    }

    fn begin_case(&mut self, file: &str, object: &str) {
        let name = if object.is_empty() { file } else { object };
        let _ = write!(self.cases, "    <testcase classname=\"{}\" name=\"{}\"", xml(file), xml(name));
    }

    fn case(&mut self, checked: &Checked) {
        self.tests += 1;
        self.begin_case(&checked.file, &checked.object);
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
        let (name, skipped) = (xml(&file), std::mem::take(&mut self.skipped));
        writeln!(out, "  <testsuite name=\"{name}\" tests=\"{tests}\" failures=\"{failures}\" skipped=\"{skipped}\">")?;
        out.write_all(std::mem::take(&mut self.cases).as_bytes())?;
        writeln!(out, "  </testsuite>")
    }
}
