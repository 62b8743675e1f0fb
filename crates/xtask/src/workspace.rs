//! The root, the files and the commit of the repository.

use std::path::{Path, PathBuf};
use std::process::Command;

use client::{Context as _, Result, fail};

/// The root of the workspace: the nearest parent directory with a workspace manifest.
pub fn root() -> Result<PathBuf> {
    let here = std::env::current_dir().context("there is no current directory")?;
    let is_root = |directory: &&Path| {
        std::fs::read_to_string(directory.join("Cargo.toml")).is_ok_and(|text| text.contains("[workspace]"))
    };
    let found = here.ancestors().find(is_root).map(Path::to_owned);
    Ok(found.ok_or_else(|| format!("{} is in no cargo workspace", here.display()))?)
}

/// Runs a program. Fails unless it succeeds.
pub fn run(command: &mut Command) -> Result<()> {
    let program = command.get_program().to_string_lossy().into_owned();
    let status = command.status().context(format_args!("cannot run {program}"))?;
    if status.success() { Ok(()) } else { fail(format!("{program} failed: {status}")) }
}

/// The output of git, if it succeeds.
fn git(root: &Path, arguments: &[&str]) -> Option<String> {
    let output = Command::new("git").arg("-C").arg(root).args(arguments).output().ok()?;
    output.status.success().then(|| String::from_utf8_lossy(&output.stdout).trim().to_owned())
}

/// The paths of all tracked files; none outside of a repository.
pub fn tracked(root: &Path) -> Vec<String> {
    git(root, &["ls-files"]).unwrap_or_default().lines().map(str::to_owned).collect()
}

/// The paths of all files that git does not ignore, sorted.
pub fn files(root: &Path) -> Result<Vec<String>> {
    let listed = git(root, &["ls-files", "--cached", "--others", "--exclude-standard"]);
    let mut paths: Vec<String> = listed.ok_or("this is no git repository")?.lines().map(str::to_owned).collect();
    paths.retain(|path| root.join(path).is_file());
    paths.sort();
    Ok(paths)
}

/// The paths of all files that differ from a commit, or are new and not ignored.
pub fn changed(root: &Path, base: &str) -> Option<Vec<String>> {
    let differing = git(root, &["diff", "--name-only", "--no-renames", base, "--"])?;
    let new = git(root, &["ls-files", "--others", "--exclude-standard"])?;
    Some(differing.lines().chain(new.lines()).map(str::to_owned).collect())
}

/// The short hash of the commit, and whether there are uncommitted changes.
pub fn commit(root: &Path) -> (String, bool) {
    let commit = git(root, &["rev-parse", "--short=10", "HEAD"]).unwrap_or_else(|| "unknown".to_owned());
    let changed = git(root, &["status", "--porcelain", "--", "crates", "Cargo.toml", "Cargo.lock"]);
    (commit, changed.is_some_and(|text| !text.is_empty()))
}

/// The output of a command of cargo that leaves the lock file as it is.
pub fn cargo(root: &Path, arguments: &[&str]) -> Result<String> {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let output = Command::new(cargo).current_dir(root).args(arguments).arg("--locked").output();
    let output = output.context("cannot run cargo")?;
    if output.status.success() {
        return Ok(String::from_utf8_lossy(&output.stdout).into_owned());
    }
    let command = arguments.first().copied().unwrap_or_default();
    fail(format!("cargo {command} failed: {}", String::from_utf8_lossy(&output.stderr)))
}
