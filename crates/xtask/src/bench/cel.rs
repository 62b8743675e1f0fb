//! CEL validation rules: a separate program, so that the crate that it compares with is not in the server's lock file.

use std::path::Path;
use std::process::Command;

use client::{Context as _, Result, fail};

/// Builds and runs `benches/cel`; returns its table.
pub fn run(root: &Path) -> Result<String> {
    eprintln!("cel …");
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let output = Command::new(cargo)
        .current_dir(root.join("benches/cel"))
        .args(["run", "--release", "--quiet", "--locked", "--target-dir"])
        .arg(root.join("target/bench-cel"))
        .stderr(std::process::Stdio::inherit())
        .output()
        .context("cannot run cargo")?;
    if !output.status.success() {
        return fail("benches/cel failed");
    }
    Ok(String::from_utf8(output.stdout).map_err(|_| "the output of benches/cel is not UTF-8")?)
}
