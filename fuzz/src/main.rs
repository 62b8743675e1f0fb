//! `fuzz [TARGET…] --seconds N`: random input for some time, or one input from a file.

#![allow(clippy::disallowed_methods, reason = "a tool measures real time")]

use std::path::PathBuf;
use std::process::ExitCode;
use std::time::{Duration, Instant, SystemTime};

use clap::Parser;
use fuzz::targets::{ALL, Target};
use fuzz::{Inputs, run};

/// Gives random input to what has to cope with any.
#[derive(Parser)]
struct Arguments {
    /// Targets; all of them if none is named.
    targets: Vec<String>,

    /// How long each target runs.
    #[arg(long, value_name = "N", default_value_t = 5)]
    seconds: u64,

    /// Names the inputs; by default they are others every time.
    #[arg(long, value_name = "N")]
    seed: Option<u64>,

    /// Run this one input.
    #[arg(long, value_name = "FILE")]
    input: Option<PathBuf>,
}

/// Stack of the thread that runs targets, as much as workers of the server have: values may nest deeply.
const STACK_BYTES: usize = 64 << 20;

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    let work = std::thread::Builder::new().stack_size(STACK_BYTES).spawn(move || run_all(&arguments));
    let result = work.map_err(|error| error.to_string()).and_then(|thread| thread.join().unwrap_or(Ok(())));
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(why) => {
            eprintln!("{why}");
            ExitCode::FAILURE
        }
    }
}

fn run_all(arguments: &Arguments) -> Result<(), String> {
    let named = |target: &&Target| arguments.targets.is_empty() || arguments.targets.iter().any(|n| n == target.name);
    if let Some(unknown) = arguments.targets.iter().find(|name| ALL.iter().all(|target| target.name != **name)) {
        return Err(format!("there is no target {unknown}"));
    }
    let seconds = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).map_or(0, |now| now.as_secs());
    let seed = arguments.seed.unwrap_or(seconds);
    for target in ALL.iter().filter(named) {
        if let Some(path) = &arguments.input {
            run(target, &std::fs::read(path).map_err(|error| format!("cannot read {}: {error}", path.display()))?)?;
            continue;
        }
        let (mut inputs, mut count) = (Inputs::new(target, seed), 0u64);
        let end = Instant::now() + Duration::from_secs(arguments.seconds);
        while Instant::now() < end {
            run(target, &inputs.next_input()).map_err(|why| format!("{why}\n  seed: {seed}"))?;
            count += 1;
        }
        println!("{}: {count} inputs", target.name);
    }
    Ok(())
}
