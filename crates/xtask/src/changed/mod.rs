//! `cargo xtask changed [BASE]`: the tests that a change can affect, for `tests/run changed`. Which they are is read from
//! `tests/changed.txt`, whose first lines say how.

mod graph;
mod table;

use std::collections::BTreeSet;

use clap::Args;
use client::Result;

use crate::workspace;
use graph::Graph;
use table::Runs;
pub use table::{TABLE, Table};

#[derive(Args)]
pub struct ChangedFlags {
    /// The commit that the files are compared with.
    #[arg(default_value = "HEAD")]
    base: String,
}

/// The tests that run.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Selection {
    pub sections: BTreeSet<String>,
    /// The packages whose unit tests run.
    pub packages: BTreeSet<String>,
    /// The files of `tests/blackbox`.
    pub files: BTreeSet<String>,
}

/// Prints the selection, each kind in a line.
///
/// # Errors
///
/// The table cannot be read, or git does not know the base.
pub fn run(flags: &ChangedFlags) -> Result<()> {
    let root = workspace::root()?;
    let paths =
        workspace::changed(&root, &flags.base).ok_or_else(|| format!("git cannot compare with {}", flags.base))?;
    let selected = select(&paths, &Table::read(&root)?, &Graph::read(&root)?);
    for (kind, names) in
        [("sections", &selected.sections), ("packages", &selected.packages), ("files", &selected.files)]
    {
        println!("{kind} {}", names.iter().map(String::as_str).collect::<Vec<_>>().join(" "));
    }
    Ok(())
}

/// The tests that files with these paths can break.
fn select(paths: &[String], table: &Table, graph: &Graph) -> Selection {
    let mut selected = Selection::default();
    selected.sections.extend(["format", "lints", "tidy"].map(str::to_owned));
    let mut crates = BTreeSet::new();
    for path in paths {
        crates.extend(graph.crate_of(path));
        for runs in table.of(path) {
            match runs {
                Runs::Section(name) => drop(selected.sections.insert(name.clone())),
                Runs::Crate(name) => drop(crates.insert(format!("crates/{name}"))),
                Runs::File(name) => drop(selected.files.insert(name.clone())),
            }
        }
    }
    selected.packages = graph.with_those_above(&crates);
    if !selected.packages.is_empty() {
        selected.sections.insert("unit".to_owned());
    }
    if !selected.files.is_empty() {
        // each runs those that have its marker, or not
        selected.sections.extend(["blackbox", "serial"].map(str::to_owned));
    }
    selected
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The tests that are selected for a file have one that fails when the file is broken.
    #[test]
    fn broken_files_select_a_test_that_fails() {
        let root = workspace::root().unwrap();
        let (table, graph) = (Table::read(&root).unwrap(), Graph::read(&root).unwrap());
        let mutations: Vec<Vec<&str>> = include_str!("mutations.txt")
            .lines()
            .filter(|line| !line.starts_with('#'))
            .map(|line| line.split('\t').collect())
            .collect();
        assert!(mutations.len() >= 20);
        for mutation in mutations {
            let [path, before, after, kind, name] = mutation[..] else { panic!("{mutation:?}") };
            let text = std::fs::read_to_string(root.join(path)).unwrap();
            assert!(text.contains(before) && before != after && before.len() == after.len(), "{path} has {before:?}");
            let selected = select(&[path.to_owned()], &table, &graph);
            let names = match kind {
                "sections" => selected.sections,
                "files" => selected.files,
                _ => panic!("{kind} is no kind of names"),
            };
            assert!(names.contains(name), "a change of {path} runs {name}");
        }
    }
}
