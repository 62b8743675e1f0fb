//! `pintle`: the Kubernetes API for custom resources, without Kubernetes.

mod accounts;
mod cel;
mod certificates;
mod client;
mod flags;
mod kubeconfig;
mod logs;
mod migrate;
mod serve;
mod store_tasks;

use std::process::ExitCode;

use clap::Parser as _;

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    let arguments = flags::Arguments::parse();
    let result = match arguments.command {
        flags::Command::Serve(flags) => serve::run(&flags),
        flags::Command::Store(task) => store_tasks::run(&task),
        flags::Command::Cel(task) => cel::run(&task),
        flags::Command::Migrate(task) => migrate::run(&task),
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(message) => {
            eprintln!("pintle: {message}");
            ExitCode::FAILURE
        }
    }
}
