//! Static binaries, by cargo-zigbuild: zig compiles the C parts for musl, whatever the machine has.

use std::path::PathBuf;
use std::process::Command;

use client::Result;

use super::{Architecture, Release};
use crate::workspace::run;

/// Where Python packages with cargo-zigbuild and zig are installed.
const TOOLS: &str = "target/tools/zig";
const PACKAGES: [&str; 2] = ["cargo-zigbuild==0.24.1", "ziglang==0.17.1"];

/// Builds the binary of an architecture. Returns its path.
pub fn binary(release: &Release, architecture: Architecture) -> Result<PathBuf> {
    let tools = release.root.join(TOOLS);
    if !tools.join("bin/cargo-zigbuild").exists() {
        run(Command::new("python3").args(["-m", "venv"]).arg(&tools))?;
        run(Command::new(tools.join("bin/pip")).args(["install", "--quiet"]).args(PACKAGES))?;
    }
    let target = architecture.target();
    run(Command::new("rustup").args(["target", "add", &target]).current_dir(&release.root))?;
    let path = std::env::var("PATH").unwrap_or_default();
    let remap = |from: &str, to: &str| format!("--remap-path-prefix={from}={to}");
    let home = std::env::var("CARGO_HOME").or_else(|_| std::env::var("HOME").map(|home| home + "/.cargo"));
    let flags = [remap(&release.root.to_string_lossy(), "/pintle"), remap(&home.unwrap_or_default(), "/cargo")];
    let directory = release.root.join("target/dist-build");
    let mut build = Command::new(tools.join("bin/cargo-zigbuild"));
    build
        .args(["zigbuild", "--release", "--locked", "--package", "pintle", "--target", &target, "--target-dir"])
        .arg(&directory)
        .current_dir(&release.root)
        .env("PATH", format!("{}:{path}", tools.join("bin").display()))
        .env("CARGO_INCREMENTAL", "0")
        .env("CARGO_ENCODED_RUSTFLAGS", flags.join("\u{1f}"))
        .env("SOURCE_DATE_EPOCH", release.time.to_string())
        .env("PINTLE_COMMIT", &release.commit);
    run(&mut build)?;
    Ok(directory.join(target).join("release/pintle"))
}
