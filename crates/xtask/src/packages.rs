//! `cargo xtask packages`: builds the packages of `clients/`, with a binary in each.

use std::path::{Path, PathBuf};
use std::process::Command;

use clap::Args;
use client::{Context as _, Result};

use crate::workspace;

const LANGUAGES: [&str; 4] = ["python", "node", "java", "go"];
/// The scripts that build the packages.
const SCRIPTS: [&str; 4] = [
    "clients/python/build/backend.py",
    "clients/node/build/pack.py",
    "clients/java/build/pack.py",
    "clients/go/build/pack.py",
];

#[derive(Args)]
pub struct PackagesFlags {
    /// The binary that the packages get [default: a release build for this machine].
    #[arg(long, value_name = "FILE")]
    pub binary: Option<PathBuf>,

    /// The directory that the packages are written to.
    #[arg(long, value_name = "DIR", default_value = "dist")]
    pub directory: PathBuf,

    /// A language to leave out, whose tools are not installed. May be repeated.
    #[arg(long, value_name = "LANGUAGE", value_parser = LANGUAGES)]
    pub without: Vec<String>,
}

/// Builds all packages, and prints their files.
///
/// # Errors
///
/// A command fails: the release build, or the build of a package.
pub fn run(flags: &PackagesFlags) -> Result<()> {
    let root = workspace::root()?;
    let absolute = |path: &Path| std::path::absolute(path).context(path.display());
    let directory = absolute(&flags.directory)?;
    let binary = match &flags.binary {
        Some(binary) => absolute(binary)?,
        None => {
            workspace::run(
                Command::new("cargo").args(["build", "--release", "--package", "pintle"]).current_dir(&root),
            )?;
            root.join("target/release/pintle")
        }
    };
    for (language, script) in LANGUAGES.iter().zip(SCRIPTS) {
        if !flags.without.iter().any(|without| without == language) {
            workspace::run(Command::new("python3").arg(root.join(script)).arg(&binary).arg(&directory))?;
        }
    }
    Ok(())
}
