//! `cargo xtask kinds`: generates the tables of built-in kinds from Go types and published documents of Kubernetes.

use std::process::Command;

use crate::workspace;

/// The tables and their directories.
const TABLES: [(&str, &str); 2] =
    [("types.txt", "crates/machinery/src/types"), ("internal.txt", "crates/machinery/src/types")];

/// The facts of built-in kinds, whose lines begin with those of discovery.
const KINDS: &str = "crates/resource/src/builtin/kinds.txt";

/// Runs the Go program that generates the tables, writes them to the source directories, and prints the entries of
/// discovery that the facts of kinds lack.
///
/// # Errors
///
/// Go is not installed, a module cannot be downloaded, or a table cannot be written.
pub fn run() -> Result<(), String> {
    let root = workspace::root()?;
    let out = tempfile::tempdir().map_err(|error| error.to_string())?;
    let status =
        Command::new("go").args(["run", "."]).arg(out.path()).current_dir(root.join("crates/xtask/kinds")).status();
    match status {
        Ok(status) if status.success() => {}
        Ok(status) => return Err(format!("go run in crates/xtask/kinds: {status}")),
        Err(error) => return Err(format!("go: {error}")),
    }
    for (table, room) in TABLES {
        let target = root.join(room).join(table);
        std::fs::copy(out.path().join(table), &target).map_err(|error| format!("{}: {error}", target.display()))?;
        println!("{}", target.display());
    }
    let read =
        |path: &std::path::Path| std::fs::read_to_string(path).map_err(|error| format!("{}: {error}", path.display()));
    let (discovery, facts) = (read(&out.path().join("discovery.txt"))?, read(&root.join(KINDS))?);
    for line in discovery.lines().filter(|line| !is_listed(line, &facts)) {
        println!("{KINDS} has no line: {line}");
    }
    Ok(())
}

/// Whether one of the lines equals this line, or begins with it.
fn is_listed(line: &str, lines: &str) -> bool {
    lines.lines().any(|known| known.strip_prefix(line).is_some_and(|rest| rest.is_empty() || rest.starts_with(' ')))
}
