//! Findings as SARIF 2.1.0, which code scanning services read.

use std::collections::BTreeSet;
use std::io::{Result, Write};

use machinery::{Value, json};

use super::{Checked, Finding, Printer, Severity, Summary, number};

#[derive(Default)]
pub struct Sarif {
    has_results: bool,
    reasons: BTreeSet<String>,
}

impl Printer for Sarif {
    fn begin(&mut self, out: &mut dyn Write) -> Result<()> {
        let schema = "https://json.schemastore.org/sarif-2.1.0.json";
        write!(out, "{{\"$schema\":\"{schema}\",\"version\":\"2.1.0\",\"runs\":[{{\"results\":[")
    }

    fn checked(&mut self, out: &mut dyn Write, checked: &Checked) -> Result<()> {
        for finding in &checked.findings {
            let comma = if self.has_results { "," } else { "" };
            write!(out, "{comma}\n{}", result(checked, finding).to_json())?;
            self.has_results = true;
            self.reasons.insert(finding.reason.clone());
        }
        Ok(())
    }

    fn end(&mut self, out: &mut dyn Write, _summary: &Summary) -> Result<()> {
        let rules: Value = self.reasons.iter().map(|reason| json!({"id": (reason.as_str())})).collect();
        let driver = json!({
            "name": "pintle", "version": (env!("CARGO_PKG_VERSION")),
            "informationUri": (env!("CARGO_PKG_REPOSITORY")), "rules": rules
        });
        writeln!(out, "\n],\"columnKind\":\"unicodeCodePoints\",\"tool\":{{\"driver\":{}}}}}]}}", driver.to_json())
    }
}

fn result(checked: &Checked, finding: &Finding) -> Value {
    let place = &finding.place;
    let mut location = json!({"artifactLocation": {"uri": (checked.file.replace('\\', "/"))}});
    if place.line > 0 {
        location.set_at(
            &["region"],
            json!({
                "startLine": (number(place.line)), "startColumn": (number(place.column)),
                "endColumn": (number(place.column + place.width))
            }),
        );
    }
    let note = finding.note().map(|note| format!(" ({note})")).unwrap_or_default();
    let object = if checked.object.is_empty() { String::new() } else { format!("{}: ", checked.object) };
    let message = format!("{object}{}{note}", finding.text());
    let level = match finding.severity {
        Severity::Info => "note",
        severity => severity.as_str(),
    };
    json!({
        "ruleId": (finding.reason.as_str()), "level": level, "message": {"text": message},
        "locations": [{"physicalLocation": location}]
    })
}
