//! `fuzz [TARGET…] --seconds N`: random input for some time, or one input from a file; with `--budget`, large input whose
//! time and memory are measured.

#![allow(clippy::disallowed_methods, reason = "a tool measures real time")]

use std::path::PathBuf;
use std::process::ExitCode;
use std::time::{Duration, Instant, SystemTime};

use clap::Parser;
use fuzz::budget::{Cost, Recipe, SUBJECTS, Subject};
use fuzz::random::Random;
use fuzz::targets::{ALL, Target};
use fuzz::{Inputs, run};
use peak_alloc::PeakAlloc;

#[global_allocator]
static MEMORY: PeakAlloc = PeakAlloc;

/// Runs targets on random input.
#[derive(Parser)]
struct Arguments {
    /// Targets; all of them if none is named.
    targets: Vec<String>,

    /// Seconds for which each target runs.
    #[arg(long, value_name = "N", default_value_t = 5)]
    seconds: u64,

    /// The seed of the inputs; by default it is the time.
    #[arg(long, value_name = "N")]
    seed: Option<u64>,

    /// Measure the cost of input instead, up to this many bytes: time and memory per byte.
    #[arg(long, value_name = "BYTES", num_args = 0..=1, default_missing_value = "3000000")]
    budget: Option<usize>,

    /// Run only the input in this file.
    #[arg(long, value_name = "FILE")]
    input: Option<PathBuf>,
}

/// The stack of the thread that runs targets, which is that of the server's workers: values may nest deeply.
const STACK_BYTES: usize = 64 << 20;

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    let work = std::thread::Builder::new().stack_size(STACK_BYTES).spawn(move || run_all(&arguments));
    let result = work.map_err(|error| error.to_string()).and_then(|thread| thread.join().unwrap_or(Ok(())));
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    }
}

fn run_all(arguments: &Arguments) -> Result<(), String> {
    if let Some(size) = arguments.budget {
        return run_budgets(arguments, size);
    }
    let named = |target: &&Target| arguments.targets.is_empty() || arguments.targets.iter().any(|n| n == target.name);
    if let Some(unknown) = arguments.targets.iter().find(|name| ALL.iter().all(|target| target.name != **name)) {
        return Err(format!("there is no target {unknown}"));
    }
    let seed = seed(arguments);
    for target in ALL.iter().filter(named) {
        if let Some(path) = &arguments.input {
            run(target, &std::fs::read(path).map_err(|error| format!("cannot read {}: {error}", path.display()))?)?;
            continue;
        }
        let (mut inputs, mut count) = (Inputs::new(target, seed), 0u64);
        let end = Instant::now() + Duration::from_secs(arguments.seconds);
        while Instant::now() < end {
            run(target, &inputs.next_input()).map_err(|error| format!("{error}\n  seed: {seed}"))?;
            count += 1;
        }
        println!("{}: {count} inputs", target.name);
    }
    Ok(())
}

fn seed(arguments: &Arguments) -> u64 {
    let seconds = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).map_or(0, |now| now.as_secs());
    arguments.seed.unwrap_or(seconds)
}

/// Runs every recipe of one unit, and random ones for the rest of the time.
fn run_budgets(arguments: &Arguments, size: usize) -> Result<(), String> {
    let named =
        |subject: &&Subject| arguments.targets.is_empty() || arguments.targets.iter().any(|n| n == subject.name);
    let seed = seed(arguments);
    let mut exceeded = vec![];
    for subject in SUBJECTS.iter().filter(named) {
        let (mut random, mut count) = (Random::new(seed), 0u64);
        let end = Instant::now() + Duration::from_secs(arguments.seconds);
        let mut plain = Recipe::plain(subject).into_iter();
        while let Some(recipe) =
            plain.next().or_else(|| (Instant::now() < end).then(|| Recipe::random(subject, &mut random)))
        {
            let size = size.min(subject.input_max);
            let whole = cost(subject, &recipe.input(size));
            let excess = subject.exceeded(whole, || cost(subject, &recipe.input(size / 2)));
            exceeded.extend(
                excess.map(|excess| format!("{}: {} bytes took {excess}\n  {recipe}", subject.name, whole.input)),
            );
            count += 1;
        }
        println!("{}: {count} recipes", subject.name);
    }
    if exceeded.is_empty() { Ok(()) } else { Err(format!("{}\n  seed: {seed}", exceeded.join("\n"))) }
}

fn cost(subject: &Subject, input: &[u8]) -> Cost {
    let before = MEMORY.current_usage();
    MEMORY.reset_peak_usage();
    let (start, cpu_before) = (Instant::now(), cpu_time());
    (subject.run)(input);
    let time =
        cpu_before.and_then(|before| Some(cpu_time()?.saturating_sub(before))).unwrap_or_else(|| start.elapsed());
    Cost { input: input.len(), bytes: MEMORY.peak_usage().saturating_sub(before), time }
}

/// The CPU time of this thread, if the system reports it.
fn cpu_time() -> Option<Duration> {
    let statistics = std::fs::read_to_string("/proc/thread-self/schedstat").ok()?;
    statistics.split(' ').next()?.parse().ok().map(Duration::from_nanos)
}
