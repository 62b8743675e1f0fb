//! `cargo xtask kinds`: generates the tables of built-in kinds from Go types and published documents of Kubernetes.

use std::process::Command;

use client::{Context as _, Result};

use crate::workspace;

/// The tables and their directories.
const TABLES: [(&str, &str); 3] = [
    ("types.txt", "crates/machinery/src/types"),
    ("internal.txt", "crates/machinery/src/types"),
    ("declared.txt", GROUPS),
];

/// The folders of the groups, each of which has the facts of its kinds; their lines begin with those of discovery.
const GROUPS: &str = "crates/kinds/src";

/// Runs the Go program that generates the tables, writes them to the source directories, and prints the entries of
/// discovery that the facts of kinds lack.
///
/// # Errors
///
/// Go is not installed, a module cannot be downloaded, or a table cannot be written.
pub fn run() -> Result<()> {
    let root = workspace::root()?;
    let out = tempfile::tempdir()?;
    let mut program = Command::new("go");
    program.args(["run", "."]).args([out.path(), &root.join(GROUPS)]).current_dir(root.join("crates/xtask/kinds"));
    workspace::run(&mut program)?;
    for (table, room) in TABLES {
        let target = root.join(room).join(table);
        std::fs::copy(out.path().join(table), &target).context(target.display())?;
        println!("{}", target.display());
    }
    let read = |path: &std::path::Path| std::fs::read_to_string(path).context(path.display());
    let mut facts = String::new();
    for group in std::fs::read_dir(root.join(GROUPS)).context(GROUPS)? {
        let table = group.context(GROUPS)?.path().join("kinds.txt");
        if table.exists() {
            facts += &read(&table)?;
        }
    }
    for line in read(&out.path().join("discovery.txt"))?.lines().filter(|line| !is_listed(line, &facts)) {
        println!("no kinds.txt below {GROUPS} has the line: {line}");
    }
    Ok(())
}

/// Whether one of the lines equals this line, or begins with it.
fn is_listed(line: &str, lines: &str) -> bool {
    lines.lines().any(|known| known.strip_prefix(line).is_some_and(|rest| rest.is_empty() || rest.starts_with(' ')))
}
