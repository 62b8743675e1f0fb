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

    fn end(&mut self, out: &mut dyn Write, summary: &Summary) -> Result<()> {
        let rules: Value = self.reasons.iter().map(|reason| json!({"id": (reason.as_str())})).collect();
        let driver = json!({
            "name": "pintle", "version": (env!("CARGO_PKG_VERSION")),
            "informationUri": (env!("CARGO_PKG_REPOSITORY")), "rules": rules
        });
        let properties = summary.to_value().to_json();
        writeln!(
            out,
            "\n],\"columnKind\":\"unicodeCodePoints\",\"properties\":{properties},\"tool\":{{\"driver\":{}}}}}]}}",
            driver.to_json()
        )
    }
}

/// The name of a file as a URI: relative to the working directory, if the file is below it.
fn uri(file: &str) -> String {
    let here = std::env::current_dir().unwrap_or_default();
    let path = std::path::Path::new(file);
    let relative = path.strip_prefix(&here).unwrap_or(path).to_string_lossy();
    let relative = relative.strip_prefix("./").unwrap_or(&relative);
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-._~/".contains(&byte);
    let mut uri = String::from(if relative.starts_with('/') { "file://" } else { "" });
    for byte in relative.bytes() {
        match is_plain(byte) {
            true => uri.push(char::from(byte)),
            false => uri.push_str(&format!("%{byte:02X}")),
        }
    }
    uri
}

fn result(checked: &Checked, finding: &Finding) -> Value {
    let place = &finding.place;
    let mut location = json!({"artifactLocation": {"uri": (uri(&checked.file))}});
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_uris() {
        let here = std::env::current_dir().unwrap();
        let below = here.join("a b/c#1.yaml");
        for (file, want) in [
            ("a/b.yaml", "a/b.yaml"),
            ("./a.yaml", "a.yaml"),
            ("a b%.yaml", "a%20b%25.yaml"),
            ("\u{e4}.yaml", "%C3%A4.yaml"),
            (&below.to_string_lossy(), "a%20b/c%231.yaml"),
            ("/etc/a b.yaml", "file:///etc/a%20b.yaml"),
            ("<stdin>", "%3Cstdin%3E"),
        ] {
            assert_eq!(uri(file), want, "{file}");
        }
    }
}
