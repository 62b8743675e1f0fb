//! Passes the commit to the program, so that it can name its build.

use std::path::Path;
use std::process::Command;

/// The variable in which `cargo xtask dist` passes the commit that it builds.
const COMMIT: &str = "PINTLE_COMMIT";

fn git(arguments: &[&str]) -> Option<String> {
    let done = Command::new("git").args(arguments).output().ok().filter(|done| done.status.success())?;
    Some(String::from_utf8(done.stdout).ok()?.trim().to_owned()).filter(|text| !text.is_empty())
}

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rerun-if-env-changed={COMMIT}");
    // a package from a registry may lie in the repository of another program
    let is_own = Path::new("../../.git").exists();
    let found = std::env::var(COMMIT).ok().or_else(|| {
        let log = git(&["rev-parse", "--git-path", "logs/HEAD"]).filter(|_| is_own)?;
        println!("cargo::rerun-if-changed={log}");
        git(&["rev-parse", "--short=10", "HEAD"])
    });
    println!("cargo::rustc-env={COMMIT}={}", found.as_deref().unwrap_or("unknown"));
}
