//! Checks that each refusal of the server is in a recorded response, or in the list of those that are not: a text that no
//! kube-apiserver was seen to say looks as certain as the others, and is copied.

use std::collections::BTreeSet;
use std::path::Path;

use client::{Context as _, Result};
use memchr::memmem;

use super::Problem;
use super::source::{Source, line_of};

/// The refusals that no recorded response has, a line each: the file and the text.
const LIST: &str = "tests/transcripts/unrecorded.txt";
const RECORDINGS: &str = "tests/transcripts";
/// The crates whose texts are those of kube-apiserver.
const CRATES: [&str; 7] = ["access", "base", "machinery", "objects", "resource", "schema", "server"];
/// Rooms of these crates that serve what kube-apiserver does not have.
const OWN: [&str; 2] = ["crates/server/src/workspaces/", "crates/server/src/testing/"];
/// The shortest part of a text that identifies it.
const PART_MIN: usize = 6;

/// The longest rest of a message that is looked at.
const MESSAGE_MAX: usize = 2000;

/// The text of a refusal, as the code has it.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Refusal {
    path: String,
    line: usize,
    text: String,
}

/// Checks the refusals against the recordings and the list.
pub fn check(root: &Path, sources: &[Source]) -> Result<Vec<Problem>> {
    let mut recordings = vec![];
    read_all(&root.join(RECORDINGS), &mut recordings)?;
    let listed = std::fs::read_to_string(root.join(LIST)).context(format_args!("cannot read {LIST}"))?;
    let is_upstream =
        |source: &&Source| CRATES.contains(&source.krate()) && !OWN.iter().any(|room| source.path.starts_with(room));
    let refusals: Vec<Refusal> = sources.iter().filter(is_upstream).flat_map(refusals).collect();
    Ok(compare(&refusals, &recordings, &listed))
}

fn compare(refusals: &[Refusal], recordings: &[String], listed: &str) -> Vec<Problem> {
    let listed: BTreeSet<&str> = listed.lines().filter(|line| !line.starts_with('#')).collect();
    let is_unrecorded = |refusal: &&Refusal| !recordings.iter().any(|recording| has(recording, &refusal.text));
    let mut problems = vec![];
    let mut unrecorded = BTreeSet::new();
    for refusal in refusals.iter().filter(is_unrecorded) {
        let entry = format!("{}: {}", refusal.path, refusal.text);
        if !listed.contains(entry.as_str()) {
            let what = format!("no recorded response has {:?}: record one with tests/record", refusal.text);
            problems.push(Problem::new(&refusal.path, refusal.line, what));
        }
        unrecorded.insert(entry);
    }
    let superfluous = listed.iter().filter(|entry| !unrecorded.contains(**entry));
    problems.extend(superfluous.map(|entry| {
        Problem::new(LIST, 1, format!("{entry:?} is recorded, or is no refusal any more: remove the line"))
    }));
    problems
}

/// The JSON files below a folder.
fn read_all(folder: &Path, found: &mut Vec<String>) -> Result<()> {
    for entry in std::fs::read_dir(folder).cannot("read", folder)? {
        let path = entry.cannot("read", folder)?.path();
        if path.is_dir() {
            read_all(&path, found)?;
        } else if path.extension().is_some_and(|ending| ending == "json") {
            found.push(std::fs::read_to_string(&path).cannot("read", folder)?);
        }
    }
    Ok(())
}

/// The refusals in a file: the texts among the arguments of functions of `Status`.
fn refusals(source: &Source) -> Vec<Refusal> {
    let code = &source.production;
    let mut found = vec![];
    for (at, _) in code.match_indices("Status::") {
        let Some(open) = code[at..].find(['(', ';', '{', '=']).map(|offset| at + offset) else { continue };
        if !code[open..].starts_with('(') {
            continue;
        }
        let end = closing(code, open);
        for text in texts(&source.text[open..end]) {
            if parts(&text).next().is_some() {
                found.push(Refusal { path: source.path.clone(), line: line_of(code, at), text });
            }
        }
    }
    found
}

/// The position of the parenthesis that closes the one at `open`.
fn closing(code: &str, open: usize) -> usize {
    let mut depth = 0_i32;
    for (at, byte) in code.bytes().enumerate().skip(open) {
        depth += i32::from(byte == b'(') - i32::from(byte == b')');
        if depth == 0 {
            return at;
        }
    }
    code.len()
}

/// The string literals in code, without the breaks of their lines.
fn texts(code: &str) -> Vec<String> {
    let mut found = vec![];
    let mut rest = code;
    while let Some(begin) = rest.find('"') {
        let inside = &rest[begin + 1..];
        let mut is_escaped = false;
        let end = inside.bytes().position(|byte| {
            let ends = byte == b'"' && !is_escaped;
            is_escaped = byte == b'\\' && !is_escaped;
            ends
        });
        let Some(end) = end else { break };
        let lines = inside[..end].split("\\\n").enumerate();
        found.push(lines.map(|(number, line)| if number == 0 { line } else { line.trim_start() }).collect());
        rest = &inside[end + 1..];
    }
    found
}

/// The parts of a text between its placeholders that are long enough to be looked for.
fn parts(text: &str) -> impl Iterator<Item = &str> {
    text.split(['{', '}'])
        .enumerate()
        .filter(|(number, part)| number % 2 == 0 && part.len() >= PART_MIN)
        .map(|(_, part)| part)
}

/// Whether a recording has all parts of a text, in their order. Escapes of Rust and of JSON are the same.
fn has(recording: &str, text: &str) -> bool {
    let mut parts = parts(text);
    let Some(first) = parts.next() else { return true };
    let others: Vec<&[u8]> = parts.map(str::as_bytes).collect();
    memmem::find_iter(recording.as_bytes(), first).any(|at| {
        let rest = &recording.as_bytes()[at + first.len()..];
        let message = &rest[..rest.len().min(MESSAGE_MAX)];
        let after = |text, part: &&[u8]| Some(&text[memmem::find(text, part)? + part.len()..]);
        others.iter().try_fold(message, after).is_some()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_of_refusals_are_found() {
        let code = r#"
            fn f() { Err(Status::bad_request(format!("the {what} is \"bad\": \
                {why}"))) }
            fn g(of: Status) -> Status { Status::conflict("group", &plural, name, &format!("no {}", x("second text"))) }
            fn h() { let reason = Reason::Status; log("not a refusal") }
        "#;
        let source = Source::new("crates/server/src/a.rs", code.to_owned());
        let found: Vec<String> = refusals(&source).into_iter().map(|refusal| refusal.text).collect();
        assert_eq!(found, [r#"the {what} is \"bad\": {why}"#, "second text"]);
    }

    #[test]
    fn unrecorded_refusals_are_listed() {
        let refusal = |text: &str| Refusal { path: "a.rs".to_owned(), line: 3, text: text.to_owned() };
        let refusals =
            [refusal("may not be {0} before {1} of it"), refusal("is listed here"), refusal("is not listed")];
        let recordings = [
            "{\"message\":\"x may not be 5 before 6 of it\"}".to_owned(),
            format!("may not be {}before 6 of it", " ".repeat(MESSAGE_MAX)),
        ];
        let found = compare(&refusals, &recordings, "# about\na.rs: is listed here\na.rs: gone since\n");
        let found: Vec<(&str, usize)> = found.iter().map(|problem| (problem.path.as_str(), problem.line)).collect();
        assert_eq!(found, [("a.rs", 3), (LIST, 1)]);
    }
}
