//! The report of a run.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::Path;

use machinery::{Value, json};

use super::{CoveredExpression, Results, Tested, TestedCase};
use crate::findings::escapes::xml;

/// The form of a report.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SuiteReport {
    /// The cases that fail, and a summary.
    Text,
    /// One JSON object.
    Json,
    /// JUnit XML.
    Junit,
}

/// The report as a text.
pub fn print(results: &Results, form: SuiteReport) -> String {
    match form {
        SuiteReport::Text => text(results),
        SuiteReport::Json => json(results).to_json() + "\n",
        SuiteReport::Junit => junit(results),
    }
}

fn text(results: &Results) -> String {
    let mut out = String::new();
    for suite in &results.suites {
        for case in &suite.cases {
            let Some(failure) = &case.failure else { continue };
            let _ = writeln!(out, "FAIL {} {}: {}", suite.suite.display(), case.place, case.name);
            let _ = writeln!(out, "  with {}", suite.definition.display());
            for line in failure.message.lines().chain(failure.differences.lines()) {
                let _ = writeln!(out, "  {line}");
            }
            out.push('\n');
        }
    }
    for note in &results.notes {
        let _ = writeln!(out, "NOTE {note}");
    }
    for problem in &results.problems {
        let _ = writeln!(out, "ERROR {problem}");
    }
    for (suite, objects) in &results.updated {
        let _ = writeln!(out, "updated {}: {objects} expected objects", suite.display());
    }
    out.push_str(&coverage(results));
    let (cases, failures) = (cases(results), results.failures());
    let _ = write!(out, "{} cases passed, {failures} failed", cases - failures);
    if results.left_out > 0 {
        let _ = write!(out, ", {} left out", results.left_out);
    }
    if !results.problems.is_empty() {
        let _ = write!(out, ", {} suites could not run", results.problems.len());
    }
    out.push('\n');
    out
}

/// The expressions that no case has seen in both values.
fn coverage(results: &Results) -> String {
    let mut out = String::new();
    let mut by_file: BTreeMap<&Path, Vec<(&str, &CoveredExpression)>> = BTreeMap::new();
    for covered in &results.coverage {
        if let Some(missing) = covered.missing() {
            by_file.entry(&covered.file).or_default().push((missing, covered));
        }
    }
    for (file, missed) in by_file {
        let _ = writeln!(out, "{}", file.display());
        for (missing, covered) in missed {
            let expression = covered.expression.split_whitespace().collect::<Vec<_>>().join(" ");
            let _ = writeln!(out, "  {missing}: {}: {expression}", covered.place);
        }
    }
    if !results.coverage.is_empty() {
        let full = results.coverage.iter().filter(|covered| covered.missing().is_none()).count();
        let (all, percent) = (results.coverage.len(), results.covered_percent());
        let _ = writeln!(out, "{full} of {all} expressions were both true and false ({percent} %)");
    }
    out
}

fn cases(results: &Results) -> usize {
    results.suites.iter().map(|suite| suite.cases.len()).sum()
}

fn json(results: &Results) -> Value {
    let case = |case: &TestedCase| {
        let mut row =
            json!({"place": (case.place.as_str()), "name": (case.name.as_str()), "passed": (case.failure.is_none())});
        if let Some(failure) = &case.failure {
            row.set_at(&["message"], Value::from(failure.message.as_str()));
            row.set_at(&["differences"], Value::from(failure.differences.as_str()));
        }
        row
    };
    let suite = |suite: &Tested| {
        let cases: Value = suite.cases.iter().map(case).collect();
        json!({
            "suite": (suite.suite.display().to_string()), "name": (suite.name.as_str()),
            "definition": (suite.definition.display().to_string()), "cases": cases
        })
    };
    let suites: Value = results.suites.iter().map(suite).collect();
    let texts = |lines: &[String]| -> Value { lines.iter().map(|line| Value::from(line.as_str())).collect() };
    let (problems, notes) = (texts(&results.problems), texts(&results.notes));
    let failures = results.failures();
    let covered = |covered: &CoveredExpression| {
        json!({
            "definition": (covered.file.display().to_string()), "place": (covered.place.as_str()),
            "expression": (covered.expression.as_str()), "wasTrue": (covered.was_true), "wasFalse": (covered.was_false)
        })
    };
    let coverage: Value = results.coverage.iter().map(covered).collect();
    json!({
        "passed": (cases(results) - failures), "failed": failures, "suites": suites, "problems": problems,
        "notes": notes, "coverage": coverage
    })
}

fn junit(results: &Results) -> String {
    let mut out = "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites name=\"pintle\">\n".to_owned();
    for suite in &results.suites {
        let failures = suite.cases.iter().filter(|case| case.failure.is_some()).count();
        let class = xml(&format!("{} {}", suite.suite.display(), suite.definition.display()));
        let tests = suite.cases.len();
        let _ = writeln!(out, "  <testsuite name=\"{class}\" tests=\"{tests}\" failures=\"{failures}\">");
        for case in &suite.cases {
            let _ = write!(
                out,
                "    <testcase classname=\"{class}\" name=\"{}\"",
                xml(&format!("{} {}", case.place, case.name))
            );
            match &case.failure {
                None => out.push_str("/>\n"),
                Some(failure) => {
                    let body = xml(&format!("{}\n{}", failure.message, failure.differences));
                    let first = xml(failure.message.lines().next().unwrap_or_default());
                    let _ = writeln!(out, "><failure message=\"{first}\">{body}</failure></testcase>");
                }
            }
        }
        out.push_str("  </testsuite>\n");
    }
    for problem in &results.problems {
        let text = xml(problem);
        let _ = writeln!(
            out,
            "  <testsuite name=\"{text}\" tests=\"1\" errors=\"1\"><testcase name=\"read\"><error message=\"{text}\"/></testcase></testsuite>"
        );
    }
    out.push_str("</testsuites>\n");
    out
}
