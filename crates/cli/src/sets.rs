//! The Progress objects of `--progress`, and `pintle progress`, which prints the sets that the program has.

use clap::Args;
use machinery::Value;

use crate::logs;

#[derive(Args)]
pub struct ProgressTask {
    /// The set. Without it, the names of the sets are printed.
    #[arg(value_name = "SET", value_parser = clap::builder::PossibleValuesParser::new(server::progress_sets()))]
    pub set: Option<String>,
}

/// Prints a set. Fails with a one-line message.
pub fn print(task: &ProgressTask) -> Result<(), String> {
    match task.set.as_deref() {
        Some(name) => logs::print(server::progress_set(name).unwrap_or_default().as_bytes()),
        None => logs::print(server::progress_sets().map(|name| format!("{name}\n")).collect::<String>().as_bytes()),
    }
}

/// The objects of sets and files. Fails with a one-line message.
pub fn objects(given: &[String]) -> Result<Vec<Value>, String> {
    let mut objects = vec![];
    for name in given {
        let found = match server::progress_set(name) {
            Some(text) => server::read_progress(text.as_bytes()),
            None => {
                let known: Vec<&str> = server::progress_sets().collect();
                let unread = |error| format!("{error}; the sets are {}", known.join(", "));
                std::fs::read(name).map_err(unread).and_then(|text| server::read_progress(&text))
            }
        };
        objects.extend(found.map_err(|why| format!("--progress {name}: {why}"))?);
    }
    Ok(objects)
}
