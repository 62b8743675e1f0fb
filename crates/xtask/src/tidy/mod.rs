//! Checks that the compiler and clippy do not make: layers, import cycles, names, sizes, terms, notes, committed keys, and code that only
//! some files may contain: writes of API objects, and requests without authorization.
//!
//! `source` reads a file and separates code and comments; `paths` finds the paths in code, `modules` what they name; `tables` reads ARCHITECTURE.md;
//! `layers`, `cycles`, `names`, `keys`, `sizes`, `words`, `glossary`, `crates`, `dependencies` and `refusals` each check one kind of rule and return [`Problem`]s.

mod crates;
mod cycles;
mod dependencies;
mod glossary;
mod keys;
mod layers;
mod modules;
mod names;
mod paths;
mod refusals;
mod sizes;
mod source;
mod tables;
mod words;

use std::path::Path;

use client::{Context as _, Result, fail};
use machinery::Value;
use source::Source;

use crate::changed::{TABLE, Table};
use crate::workspace::{self, cargo};

/// The document whose tables are checked.
pub const ARCHITECTURE: &str = "ARCHITECTURE.md";

/// The platform whose dependencies are checked.
const PLATFORM: &str = "x86_64-unknown-linux-gnu";

/// A violation of a rule.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Problem {
    pub path: String,
    pub line: usize,
    pub what: String,
}

impl Problem {
    pub fn new(path: &str, line: usize, what: impl Into<String>) -> Problem {
        Problem { path: path.to_owned(), line, what: what.into() }
    }
}

impl std::fmt::Display for Problem {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}:{}: {}", self.path, self.line, self.what)
    }
}

/// Checks the workspace and prints the problems; the error is their number.
pub fn run() -> Result<()> {
    let root = workspace::root()?;
    let sources = source::read_all(&root)?;
    let (mut problems, rooms) = check(&root, &sources)?;
    problems.sort();
    problems.dedup();
    for problem in &problems {
        println!("{problem}");
    }
    println!("tidy: {} files, {rooms} rooms, {} problems", sources.len(), problems.len());
    match problems.len() {
        0 => Ok(()),
        1 => fail("tidy found a problem"),
        count => fail(format!("tidy found {count} problems")),
    }
}

fn check(root: &Path, sources: &[Source]) -> Result<(Vec<Problem>, usize)> {
    let document = match std::fs::read_to_string(root.join(ARCHITECTURE)) {
        Ok(text) => text,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => String::new(),
        Err(error) => return fail(format!("cannot read {ARCHITECTURE}: {error}")),
    };
    let (mut problems, rooms) = layers::check(&document, sources);
    problems.extend(cycles::check(sources));
    problems.extend(names::check(sources));
    problems.extend(keys::check(root));
    problems.extend(words::check_places(sources));
    problems.extend(refusals::check(root, sources)?);
    let of_table = Table::read(root)?.problems(root)?;
    problems.extend(of_table.into_iter().map(|(line, what)| Problem::new(TABLE, line, what)));
    let metadata = metadata(root)?;
    problems.extend(crates::check(&document, &crates::of(&metadata)));
    problems.extend(dependencies::check(&metadata, &built(root)?));
    let glossary = glossary::read(&document).unwrap_or_else(|problem| {
        problems.push(problem);
        vec![]
    });
    for source in sources {
        problems.extend(sizes::check(source));
        problems.extend(words::check(source));
        problems.extend(glossary::check(source, &glossary));
    }
    for (path, text) in source::read_markdown(root)? {
        problems.extend(glossary::check_markdown(&path, &text, &glossary));
    }
    Ok((problems, rooms))
}

/// The packages, from `cargo metadata`.
fn metadata(root: &Path) -> Result<Value> {
    let output = cargo(root, &["metadata", "--format-version", "1", "--filter-platform", PLATFORM])?;
    let decoded = machinery::value::decode(output.as_bytes());
    decoded.context("cannot decode the output of cargo metadata")
}

/// The packages that are built for Linux, with what tests need, a line each.
fn built(root: &Path) -> Result<String> {
    let form = ["--prefix", "none", "--format", "{p}"];
    let options = ["tree", "--workspace", "--edges", "normal,build,dev", "--target", PLATFORM];
    cargo(root, &[&options[..], &form].concat())
}
