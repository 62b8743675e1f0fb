//! `pintle`: the Kubernetes API for custom resources, without Kubernetes.

mod about;
mod accounts;
mod admission;
mod audit;
mod backups;
mod capture;
mod captures;
mod cel;
mod cel_eval;
mod certificate_tasks;
mod certificates;
mod child;
mod config_file;
mod count;
mod crd;
mod credentials;
mod emulation;
mod encryption;
mod ending;
mod envtest;
mod etcd;
mod etcd_flags;
mod examples;
mod files;
mod first_start;
mod flags;
mod followed;
mod headings;
mod identity;
mod kubeconfig;
mod limits;
mod listening;
mod logs;
mod manifests;
mod memory;
mod migrate;
mod objects;
mod place;
mod plan;
mod progress;
mod ready;
mod reload;
mod rewriting;
mod run;
mod runtime;
mod scratch;
mod scrub;
mod serve;
mod sets;
mod sharing;
mod short_help;
mod storage;
mod store_tasks;
mod suites;
mod testing;
#[cfg(test)]
mod tests;
mod traces;
mod transfer;
mod trial;
mod upstream_flags;
mod users;
mod validate;
mod values;
mod workspaces;

use std::process::ExitCode;

use client::Result;

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    let given = match envtest::start(std::env::args().collect()) {
        envtest::Start::Arguments(arguments) => arguments,
        envtest::Start::End(code) => return code,
    };
    let done = flags::parse(given).and_then(|(arguments, given)| run(arguments.command, given));
    done.unwrap_or_else(|failure| logs::ended(&failure, ExitCode::FAILURE))
}

/// The exit status of a command whose verdict is 0 or 1, and 2 if there is none.
fn or_incomplete(done: Result<ExitCode>) -> ExitCode {
    done.unwrap_or_else(|failure| logs::ended(&failure, ExitCode::from(validate::INCOMPLETE)))
}

/// Runs a command.
fn run(command: flags::Command, given: flags::GivenFlags) -> Result<ExitCode> {
    let done = match command {
        flags::Command::Run(task) => return run::run(&task),
        flags::Command::Validate(task) => return Ok(or_incomplete(validate::run(&task))),
        flags::Command::Plan(task) => return Ok(or_incomplete(plan::run(*task))),
        flags::Command::Object(task) => return objects::run(&task),
        flags::Command::Crd(task) => return Ok(or_incomplete(crd::run(&task))),
        flags::Command::Test(task) => return Ok(or_incomplete(suites::run(&task))),
        flags::Command::Serve(flags) => serve::run(&flags, given),
        flags::Command::Store(task) => store_tasks::run(&task),
        flags::Command::Export(place) => transfer::export(&place),
        flags::Command::Capture(task) => capture::run(&task),
        flags::Command::Import(place) => transfer::import(&place),
        flags::Command::Cel(task) => cel::run(&task),
        flags::Command::Migrate(task) => migrate::run(&task),
        flags::Command::Storage(task) => storage::run(&task),
        flags::Command::Assets(task) => envtest::run(&task),
        flags::Command::Certificates(task) => certificate_tasks::run(&task),
        flags::Command::Kubeconfig(users::KubeconfigTask::Create(task)) => users::create(&task),
        flags::Command::Workspace(task) => return workspaces::run(&task),
        flags::Command::Progress(task) => sets::print(&task),
        flags::Command::Fault(task) => testing::fault(&task),
        flags::Command::Gate(task) => testing::gate(&task),
        flags::Command::Clock(task) => return testing::clock(&task),
        flags::Command::Settle(task) => return testing::settle(&task),
        flags::Command::Report(task) => return testing::report(&task),
        flags::Command::Record(task) => return testing::record(&task),
        flags::Command::Trial(task) => return Ok(or_incomplete(trial::run(&task))),
        flags::Command::Replay(task) => return testing::replay(&task),
        flags::Command::Config(flags::Config::View(_)) => logs::print(given.file.as_bytes()),
        flags::Command::Completion { shell } => about::completion(shell),
        flags::Command::Man { directory } => about::man(&directory),
        flags::Command::Version { output } => about::version(output),
    };
    done.map(|()| ExitCode::SUCCESS)
}
