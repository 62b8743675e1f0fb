//! Writes the objects that are stored to suites, in place of those that are expected. The rest of the file stays as it is.

use std::collections::BTreeMap;
use std::path::Path;

use machinery::Value;
use machinery::yaml::{self, FieldStep, Positions};

use super::Results;
use super::format::{self, Suite};
use super::run::CaseOutcome;
use crate::error::Error;

/// An expected object to write: the path of its map in the suite, and the object.
struct Edit {
    path: Vec<FieldStep>,
    object: Value,
}

/// Writes what the outcomes have stored. A case that is run with several definitions gets the object of the first. A case
/// whose object is written no longer fails, unless another definition stores another object. Fails with a one-line message.
pub fn write(
    suites: &[Suite],
    outcomes: &mut [(usize, usize, Vec<CaseOutcome>)],
    results: &mut Results,
) -> Result<(), Error> {
    let mut edits: BTreeMap<usize, BTreeMap<(usize, Option<usize>), Edit>> = BTreeMap::new();
    for (at, _, of_suite) in outcomes.iter() {
        for outcome in of_suite {
            let case = &suites[*at].cases[outcome.case];
            for (step, object) in &outcome.stored {
                let mut path = vec![FieldStep::Field("tests".to_owned()), FieldStep::Field(case.place.0.to_owned())];
                path.push(FieldStep::Item(case.place.1));
                if let Some(step) = step {
                    path.extend([FieldStep::Field("steps".to_owned()), FieldStep::Item(*step)]);
                }
                let edit = || Edit { path, object: object.clone() };
                edits.entry(*at).or_default().entry((outcome.case, *step)).or_insert_with(edit);
            }
        }
    }
    for (at, _, of_suite) in outcomes {
        for outcome in of_suite {
            let is_written = |(step, object): &(Option<usize>, Value)| {
                edits
                    .get(at)
                    .and_then(|of_suite| of_suite.get(&(outcome.case, *step)))
                    .is_some_and(|edit| edit.object == *object)
            };
            if !outcome.stored.is_empty() && outcome.stored.iter().all(is_written) {
                outcome.failure = None;
            }
        }
    }
    for (at, of_suite) in edits {
        let file = &suites[at].file;
        let written = of_suite.len();
        rewrite(file, of_suite.into_values().collect())
            .map_err(|error| format!("cannot update {}: {error}", file.display()))?;
        results.updated.push((file.clone(), written));
    }
    Ok(())
}

fn rewrite(file: &Path, edits: Vec<Edit>) -> Result<(), Box<dyn std::error::Error>> {
    let text = edited(&std::fs::read_to_string(file)?, edits)?;
    // an anchor in a former object may be needed elsewhere
    format::read(file, text.as_bytes())?;
    Ok(std::fs::write(file, text)?)
}

/// The text with other expected objects. Maps in flow style, which have no lines of their own, cannot be edited.
fn edited(text: &str, edits: Vec<Edit>) -> Result<String, Error> {
    let positions = Positions::of(text.as_bytes()).map_err(|error| error.to_string())?;
    let mut lines: Vec<String> = text.lines().map(str::to_owned).collect();
    // from the last one, so that the lines before stay where they are
    let mut places = vec![];
    for Edit { mut path, object } in edits {
        let map = positions.locate(&path);
        path.push(FieldStep::Field("expected".to_owned()));
        let found = positions.locate(&path);
        let column = map.value.column;
        // a map in flow style has a brace, and other maps are alone on their line except for dashes
        let is_block = lines.get(map.value.line - 1).is_some_and(|line| {
            let (before, map) = line.split_at_checked(column - 1).unwrap_or((line, ""));
            before.chars().all(|letter| letter == ' ' || letter == '-') && !map.starts_with(['{', '['])
        });
        if map.depth + 1 < path.len() || !is_block {
            return Err("a case is not a block of YAML".into());
        }
        let start = match found.key.filter(|_| found.depth == path.len()) {
            Some(key) => key.line - 1,
            None => end_of_block(&lines, map.value.line - 1, column - 1),
        };
        places.push((start, found.depth == path.len(), column - 1, object));
    }
    places.sort_by_key(|place| std::cmp::Reverse(place.0));
    for (start, exists, indent, object) in places {
        let end = if exists { end_of_value(&lines, start, indent) } else { start };
        // the first key of a case is behind its dash
        let lead = lines.get(start).filter(|_| exists).map_or("", |line| if is_item(line, indent) { "- " } else { "" });
        let outer = " ".repeat(indent - lead.len().min(indent));
        let mut new = vec![format!("{outer}{lead}expected: |")];
        let inner = " ".repeat(indent + 2);
        new.extend(yaml::encode(&object).lines().map(|line| format!("{inner}{line}")));
        lines.splice(start..end, new);
    }
    Ok(lines.join("\n") + "\n")
}

fn indentation(line: &str) -> Option<usize> {
    let trimmed = line.trim_start();
    (!trimmed.is_empty()).then(|| line.len() - trimmed.len())
}

/// Whether a line begins an item whose first key is at this column.
fn is_item(line: &str, column: usize) -> bool {
    indentation(line).is_some_and(|indent| indent < column) && line.trim_start().starts_with("- ")
}

/// The line after the value of a key: the next line that is indented as the key is, or less.
fn end_of_value(lines: &[String], key: usize, indent: usize) -> usize {
    let after = lines.iter().enumerate().skip(key + 1);
    let next = after.into_iter().find(|(_, line)| indentation(line).is_some_and(|own| own <= indent));
    trimmed(lines, key, next.map_or(lines.len(), |(at, _)| at))
}

/// The line after a map whose keys are at this column.
fn end_of_block(lines: &[String], first: usize, indent: usize) -> usize {
    let after = lines.iter().enumerate().skip(first + 1);
    let next = after.into_iter().find(|(_, line)| indentation(line).is_some_and(|own| own < indent));
    trimmed(lines, first, next.map_or(lines.len(), |(at, _)| at))
}

/// Without the empty lines before `end`.
fn trimmed(lines: &[String], first: usize, end: usize) -> usize {
    let empty = lines[first + 1..end].iter().rev().take_while(|line| line.trim().is_empty()).count();
    end - empty
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_expected_objects_change() {
        let text = "tests:\n  onCreate:\n  - name: a # first\n    initial: |\n      kind: A\n    expected: |\n      kind: B\n\n      x: 1\n\n  - name: b\n    initial: {kind: A}\n\n  # end\nname: n\n";
        let path = |index| {
            vec![FieldStep::Field("tests".to_owned()), FieldStep::Field("onCreate".to_owned()), FieldStep::Item(index)]
        };
        let edit = |index| Edit { path: path(index), object: machinery::json!({"kind": "C", "y": [1]}) };
        let wanted = "tests:\n  onCreate:\n  - name: a # first\n    initial: |\n      kind: A\n    expected: |\n      kind: C\n      \"y\":\n      - 1\n\n  - name: b\n    initial: {kind: A}\n    expected: |\n      kind: C\n      \"y\":\n      - 1\n\n  # end\nname: n\n";
        assert_eq!(edited(text, vec![edit(0), edit(1)]).unwrap(), wanted);
        assert!(edited("tests: {onCreate: [{name: a}]}\n", vec![edit(0)]).is_err());
    }
}
