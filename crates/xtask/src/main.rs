//! `cargo xtask`: development tasks. `bench` measures the server, `changed` selects tests, `dist` packages a release, `kinds`
//! generates the tables of built-in kinds, `packages` builds those of `clients/`, `tidy` checks rules that the compiler does not.

#![allow(clippy::disallowed_methods, reason = "a tool measures real time and starts its own tasks")]

mod bench;
mod changed;
mod dist;
mod kinds;
mod packages;
mod tidy;
mod workspace;

use std::process::ExitCode;

use clap::{Parser, Subcommand};

/// Development tasks.
#[derive(Parser)]
#[command(name = "cargo xtask", bin_name = "cargo xtask", max_term_width = 100)]
struct Arguments {
    #[command(subcommand)]
    task: Task,
}

#[derive(Subcommand)]
enum Task {
    /// Measure the release build of the server.
    ///
    /// Starts the server with durable storage in a temporary directory, drives it over TLS with the administrator's
    /// certificate, and prints a table with targets. A complete run is also written to benches/results/.
    Bench(Box<bench::Flags>),
    /// Print the tests that files which differ from a commit can break.
    ///
    /// `tests/run changed` runs them; tests/changed.txt says which they are.
    Changed(changed::ChangedFlags),
    /// Build and package a release: static binaries, tarballs, Debian packages and a container image.
    ///
    /// Builds with cargo-zigbuild and zig, which it installs into target from Python packages; needs rustup and Python. The same
    /// commit gives the same bytes. SHA256SUMS has the checksums of all files.
    Dist(dist::DistFlags),
    /// Write the tables of built-in kinds from the facts that Kubernetes publishes.
    ///
    /// Runs the Go program in crates/xtask/kinds, whose go.mod names the release, writes types.txt, internal.txt
    /// and declared.txt, and prints the lines of discovery that kinds.txt lacks. Needs Go.
    Kinds,
    /// Build the packages of other languages, with a binary in each.
    ///
    /// They are in clients/; needs Python.
    Packages(packages::PackagesFlags),
    /// Check layers, sizes, texts and the use of clocks, tasks and channels.
    ///
    /// Each problem is a line `path:line: what`; the exit status is 1 if there are any.
    Tidy,
}

fn main() -> ExitCode {
    let result = match Arguments::parse().task {
        Task::Bench(flags) => bench::run(&flags),
        Task::Changed(flags) => changed::run(&flags),
        Task::Dist(flags) => dist::run(&flags),
        Task::Kinds => kinds::run(),
        Task::Packages(flags) => packages::run(&flags),
        Task::Tidy => tidy::run(),
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(message) => {
            eprintln!("xtask: {message}");
            ExitCode::FAILURE
        }
    }
}
