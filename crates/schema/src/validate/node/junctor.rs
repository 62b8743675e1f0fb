//! `anyOf`, `oneOf`, `allOf`, `not`. Branches are validated without correlation; which branch's errors are shown depends
//! on how many of its checks matched.

use machinery::Value;

use crate::path::Path;
use crate::program::{Checks, Node};
use crate::report::Report;

pub(crate) fn check(checks: &Checks, value: &Value, path: &Path<'_>, report: &mut Report) {
    if !checks.any_of.is_empty() {
        any_of(&checks.any_of, value, path, report);
    }
    if !checks.one_of.is_empty() {
        one_of(&checks.one_of, value, path, report);
    }
    if !checks.all_of.is_empty() {
        all_of(&checks.all_of, value, path, report);
    }
    if let Some(not) = &checks.not
        && branch(not, value, path, report).is_valid()
    {
        report.junctor(path, "must not validate the schema (not)");
    }
}

fn branch(node: &Node, value: &Value, path: &Path<'_>, around: &Report) -> Report {
    let mut report = Report::within(around);
    super::check(node, value, None, path, &mut report);
    report
}

fn any_of(branches: &[Node], value: &Value, path: &Path<'_>, report: &mut Report) {
    let mut best: Option<Report> = None;
    for node in branches {
        let result = branch(node, value, path, report);
        if result.is_valid() {
            report.matches += result.matches;
            return;
        }
        if best.as_ref().is_none_or(|b| result.matches > b.matches) {
            best = Some(result);
        }
    }
    report.junctor(path, "must validate at least one schema (anyOf)");
    if let Some(best) = best {
        report.merge(best);
    }
}

fn one_of(branches: &[Node], value: &Value, path: &Path<'_>, report: &mut Report) {
    let mut best: Option<Report> = None;
    let mut first = None;
    let mut valid = 0;
    for node in branches {
        let result = branch(node, value, path, report);
        if result.is_valid() {
            valid += 1;
            best = None;
            first.get_or_insert(result.matches);
        } else if valid == 0 && best.as_ref().is_none_or(|b| result.matches > b.matches) {
            best = Some(result);
        }
    }
    let found = match valid {
        1 => {
            report.matches += first.unwrap_or_default();
            return;
        }
        0 => "Found none valid".to_owned(),
        n => format!("Found {n} valid alternatives"),
    };
    report.junctor(path, &format!("must validate one and only one schema (oneOf). {found}"));
    if let Some(best) = best {
        report.merge(best);
    }
}

fn all_of(branches: &[Node], value: &Value, path: &Path<'_>, report: &mut Report) {
    let mut valid = 0;
    for node in branches {
        let result = branch(node, value, path, report);
        valid += usize::from(result.is_valid());
        report.merge(result);
    }
    if valid != branches.len() {
        let none = if valid == 0 { ". None validated" } else { "" };
        report.junctor(path, &format!("must validate all the schemas (allOf){none}"));
    }
}
