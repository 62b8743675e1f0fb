//! `cargo xtask kinds`: generates the tables of built-in kinds from Go types and published documents of Kubernetes.

use std::process::Command;

use crate::workspace;

/// The tables and their directories.
const TABLES: [(&str, &str); 3] = [
    ("types.txt", "crates/machinery/src/types"),
    ("internal.txt", "crates/machinery/src/types"),
    ("kinds.txt", "crates/resource/src/builtin"),
];

/// Runs the Go program that generates the tables, and writes them to the source directories.
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
    Ok(())
}
