//! Findings as SARIF 2.1.0, which code scanning services read.

use std::collections::{BTreeSet, HashMap};
use std::io::{Result, Write};
use std::sync::Arc;

use base::digest::Sha256;
use machinery::{Value, json};

use super::{Checked, Finding, Printer, Severity, Summary, rules};

#[derive(Default)]
pub struct Sarif {
    has_results: bool,
    reasons: BTreeSet<String>,
    fingerprints: Fingerprints,
}

impl Printer for Sarif {
    fn begin(&mut self, out: &mut dyn Write) -> Result<()> {
        let schema = "https://json.schemastore.org/sarif-2.1.0.json";
        write!(out, "{{\"$schema\":\"{schema}\",\"version\":\"2.1.0\",\"runs\":[{{\"results\":[")
    }

    fn checked(&mut self, out: &mut dyn Write, checked: &Checked) -> Result<()> {
        for finding in &checked.findings {
            let comma = if self.has_results { "," } else { "" };
            write!(out, "{comma}\n{}", result(checked, finding, &self.fingerprints.next(checked, finding)).to_json())?;
            self.has_results = true;
            self.reasons.insert(finding.reason.clone());
        }
        Ok(())
    }

    fn end(&mut self, out: &mut dyn Write, summary: &Summary) -> Result<()> {
        let rules: Value = self.reasons.iter().map(|reason| rule(reason)).collect();
        let driver = json!({
            "name": "pintle", "version": (env!("CARGO_PKG_VERSION")),
            "informationUri": (env!("CARGO_PKG_REPOSITORY")), "rules": rules
        });
        let (properties, invocation) = (summary.to_value().to_json(), self.invocation(summary).to_json());
        writeln!(
            out,
            "\n],\"columnKind\":\"unicodeCodePoints\",\"invocations\":[{invocation}],\"properties\":{properties},\"tool\":{{\"driver\":{}}}}}]}}",
            driver.to_json()
        )
    }
}

impl Sarif {
    /// Whether everything could be read, and how much was left out.
    fn invocation(&self, summary: &Summary) -> Value {
        let mut invocation = json!({"executionSuccessful": (!self.reasons.contains(rules::UNREADABLE))});
        let Summary { skipped, ignored_files, .. } = summary;
        if skipped + ignored_files > 0 {
            let text = format!("left out: {skipped} objects, {ignored_files} files");
            invocation.set_at(&["toolExecutionNotifications"], json!([{"level": "note", "message": {"text": text}}]));
        }
        invocation
    }
}

/// Hashes by which a service recognizes a finding after its line or its value has changed.
#[derive(Default)]
struct Fingerprints {
    file: Option<Arc<str>>,
    /// How often each hash has occurred in the file.
    seen: HashMap<String, usize>,
}

impl Fingerprints {
    fn next(&mut self, checked: &Checked, finding: &Finding) -> String {
        if self.file.as_ref() != Some(&checked.file) {
            *self = Fingerprints { file: Some(checked.file.clone()), ..Fingerprints::default() };
        }
        let about = if finding.field.is_empty() { &finding.message } else { &finding.field };
        let mut hash = Sha256::default();
        for part in [&finding.reason, &checked.object, about] {
            hash.update(part.as_bytes());
            hash.update(&[0]);
        }
        let hash = hash.hex().chars().take(FINGERPRINT_DIGITS).collect::<String>();
        let count = self.seen.entry(hash.clone()).or_default();
        *count += 1;
        format!("{hash}:{count}")
    }
}

const FINGERPRINT_DIGITS: usize = 16;

fn rule(reason: &str) -> Value {
    let mut rule = json!({"id": reason});
    if let Some(text) = rules::text(reason) {
        rule.set_at(&["shortDescription"], json!({"text": text}));
        rule.set_at(
            &["helpUri"],
            Value::from(concat!(env!("CARGO_PKG_REPOSITORY"), "/blob/main/docs/src/guides/check-manifests.md")),
        );
    }
    rule
}

/// The name of a file as a URI: relative to the working directory, if the file is below it.
fn uri(file: &str) -> String {
    let here = std::env::current_dir().unwrap_or_default();
    let path = std::path::Path::new(file);
    let relative = path.strip_prefix(&here).unwrap_or(path).to_string_lossy();
    let relative = relative.strip_prefix("./").unwrap_or(&relative);
    let scheme = if relative.starts_with('/') { "file://" } else { "" };
    format!("{scheme}{}", machinery::url::encode(relative, b"/"))
}

fn result(checked: &Checked, finding: &Finding, fingerprint: &str) -> Value {
    let place = &finding.place;
    let mut location = json!({"artifactLocation": {"uri": (uri(&checked.file))}});
    if place.line > 0 {
        location.set_at(
            &["region"],
            json!({
                "startLine": (place.line), "startColumn": (place.column),
                "endColumn": (place.column + place.width)
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
        "locations": [{"physicalLocation": location}], "partialFingerprints": {"primaryLocationLineHash": fingerprint}
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
