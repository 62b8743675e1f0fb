//! `anyOf`, `oneOf`, `allOf`, `not`. Branches are validated without correlation. How many checks of a branch matched
//! decides which branch's errors are shown. At first, errors of branches are only counted, since they may be as large
//! as the value.

use super::MeasuredValue;
use crate::path::Path;
use crate::program::{Checks, Node};
use crate::report::Report;

pub(super) fn check(checks: &Checks, value: &MeasuredValue<'_>, path: &Path<'_>, report: &mut Report) {
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
        && run(not, value, path, Report::counting(report)).is_valid()
    {
        report.junctor(path, "must not validate the schema (not)");
    }
}

fn run(node: &Node, value: &MeasuredValue<'_>, path: &Path<'_>, mut report: Report) -> Report {
    super::checks(node, value, None, path, &mut report);
    report
}

/// Among the branches that failed, the one with the most matching checks.
#[derive(Default)]
struct Best<'n>(Option<(&'n Node, Report)>);

impl<'n> Best<'n> {
    fn consider(&mut self, node: &'n Node, counted: Report) {
        if self.0.as_ref().is_none_or(|(_, best)| counted.matches > best.matches) {
            self.0 = Some((node, counted));
        }
    }

    /// Adds the errors of the branch to the surrounding report.
    fn show(self, value: &MeasuredValue<'_>, path: &Path<'_>, report: &mut Report) {
        let Some((node, counted)) = self.0 else { return };
        let shown = if report.is_counting() { counted } else { run(node, value, path, Report::within(report)) };
        report.merge(shown);
    }
}

fn any_of(branches: &[Node], value: &MeasuredValue<'_>, path: &Path<'_>, report: &mut Report) {
    let mut best = Best::default();
    for node in branches {
        let result = run(node, value, path, Report::counting(report));
        if result.is_valid() {
            report.matches += result.matches;
            return;
        }
        best.consider(node, result);
    }
    report.junctor(path, "must validate at least one schema (anyOf)");
    best.show(value, path, report);
}

fn one_of(branches: &[Node], value: &MeasuredValue<'_>, path: &Path<'_>, report: &mut Report) {
    let mut best = Best::default();
    let mut first = None;
    let mut valid = 0;
    for node in branches {
        let result = run(node, value, path, Report::counting(report));
        if result.is_valid() {
            valid += 1;
            best = Best::default();
            first.get_or_insert(result.matches);
        } else if valid == 0 {
            best.consider(node, result);
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
    best.show(value, path, report);
}

fn all_of(branches: &[Node], value: &MeasuredValue<'_>, path: &Path<'_>, report: &mut Report) {
    let mut valid = 0;
    for node in branches {
        let result = run(node, value, path, Report::within(report));
        valid += usize::from(result.is_valid());
        report.merge(result);
    }
    if valid != branches.len() {
        let none = if valid == 0 { ". None validated" } else { "" };
        report.junctor(path, &format!("must validate all the schemas (allOf){none}"));
    }
}
