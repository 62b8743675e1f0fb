//! Findings as one JSON object: `{"findings": [...], "summary": {...}}`.

use std::io::{Result, Write};

use machinery::{Release, Value, json};

use super::{Checked, Finding, Printer, Summary};

#[derive(Default)]
pub struct Json {
    has_findings: bool,
}

impl Printer for Json {
    fn begin(&mut self, out: &mut dyn Write) -> Result<()> {
        write!(out, "{{\"findings\":[")
    }

    fn checked(&mut self, out: &mut dyn Write, checked: &Checked) -> Result<()> {
        for finding in &checked.findings {
            let comma = if self.has_findings { "," } else { "" };
            write!(out, "{comma}\n{}", value(checked, finding).to_json())?;
            self.has_findings = true;
        }
        Ok(())
    }

    fn end(&mut self, out: &mut dyn Write, summary: &Summary) -> Result<()> {
        writeln!(out, "\n],\"summary\":{}}}", summary.to_value().to_json())
    }
}

fn value(checked: &Checked, finding: &Finding) -> Value {
    let mut out = json!({
        "file": (&*checked.file), "line": (finding.place.line), "column": (finding.place.column),
        "severity": (finding.severity.as_str()), "reason": (finding.reason.as_str()), "object": (checked.object.as_str()),
        "field": (finding.field.as_str()), "message": (finding.message.as_str())
    });
    if !finding.releases.is_empty() {
        let releases = finding.releases.iter().map(Release::to_string).map(Value::from);
        out.set_at(&["kubernetesVersions"], releases.collect());
    }
    out
}
