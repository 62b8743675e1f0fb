//! `pintle object`: what the server makes of objects in files.

use std::process::ExitCode;

use clap::{Args, Subcommand, ValueEnum};
use client::Result;
use machinery::{Value, yaml};
use offline::commands::{self, Applied, CommandInputs};
use tokio::runtime::Runtime;

use crate::logs;
use crate::values::release;

/// The exit status if an apply has conflicts or is refused.
const REFUSED: u8 = 1;

#[derive(Subcommand)]
pub enum ObjectTask {
    /// Print objects with the defaults that the server would add, and without fields that it would drop.
    ///
    /// The objects are not validated.
    Default(PrintObjects),
    /// Print objects without the fields that the server would drop.
    ///
    /// The objects are not validated.
    Prune(PrintObjects),
    /// Print objects in another version of their kinds.
    ///
    /// Custom resources are converted by the strategy of their definition: None, or a webhook that can be reached.
    Convert(Convert),
    /// Apply objects to others, as server-side apply does, and print the results with their managedFields.
    ///
    /// Conflicts with other field managers are printed, and the exit status is 1.
    Apply(Apply),
    /// Print objects as kubectl get would, with the columns of their definitions.
    Table(Table),
    /// Print the documentation of a kind or a field, as kubectl explain does.
    Explain(Explain),
}

/// The objects that a command reads.
#[derive(Args)]
pub struct Manifests {
    /// Manifests, YAML or JSON: files, directories with everything below them, globs, git:REF or git:REF:PATH; - for stdin.
    #[arg(value_name = "PATH", required = true)]
    pub inputs: Vec<String>,

    /// CustomResourceDefinitions that the objects need, as PATH, or those of a server: kubeconfig or kubeconfig:FILE. May be
    /// repeated. Those among the manifests are found anyway.
    #[arg(long, value_name = "PATH")]
    pub crds: Vec<String>,

    /// Release of Kubernetes: 1.35, 1.36 or 1.37.
    #[arg(long, value_name = "VERSION", value_parser = release, default_value = "1.37")]
    pub kubernetes_version: server::Release,
}

impl Manifests {
    fn settings(&self) -> CommandInputs {
        CommandInputs { inputs: self.inputs.clone(), crds: self.crds.clone(), release: self.kubernetes_version }
    }
}

#[derive(Clone, Copy, Debug, ValueEnum)]
pub enum Encoding {
    Yaml,
    Json,
}

/// A command that prints the objects it reads.
#[derive(Args)]
pub struct PrintObjects {
    #[command(flatten)]
    pub manifests: Manifests,

    /// The encoding of the objects.
    #[arg(short, long, value_enum, default_value = "yaml")]
    pub output: Encoding,
}

#[derive(Args)]
pub struct Convert {
    #[command(flatten)]
    pub shown: PrintObjects,

    /// The version to convert to, such as v1.
    #[arg(long, value_name = "VERSION")]
    pub to: String,
}

#[derive(Args)]
pub struct Apply {
    #[command(flatten)]
    pub shown: PrintObjects,

    /// The objects as they are, with their managedFields, as PATH. Without it, the objects are new. May be repeated.
    #[arg(long, value_name = "PATH")]
    pub onto: Vec<String>,

    /// The field manager that applies.
    #[arg(long, value_name = "NAME", default_value = "pintle")]
    pub field_manager: String,

    /// Take fields that other managers own.
    #[arg(long)]
    pub force_conflicts: bool,
}

#[derive(Args)]
pub struct Table {
    #[command(flatten)]
    pub manifests: Manifests,

    /// Also print the columns that kubectl get prints with -o wide.
    #[arg(long)]
    pub wide: bool,
}

#[derive(Args)]
pub struct Explain {
    /// A kind, such as boats or Deployment, and a field of it, as in boats.spec.length.
    #[arg(value_name = "KIND[.FIELD]")]
    pub path: String,

    /// CustomResourceDefinitions, as PATH, or those of a server: kubeconfig or kubeconfig:FILE. May be repeated.
    #[arg(long, value_name = "PATH")]
    pub crds: Vec<String>,

    /// Release of Kubernetes: 1.35, 1.36 or 1.37.
    #[arg(long, value_name = "VERSION", value_parser = release, default_value = "1.37")]
    pub kubernetes_version: server::Release,
}

/// Runs a command. The exit status is 1 if an apply has conflicts; errors are one line.
pub fn run(task: &ObjectTask) -> Result<ExitCode> {
    let runtime = offline::engine::runtime()?;
    match task {
        ObjectTask::Default(task) => {
            print(&runtime.block_on(commands::defaulted(&task.manifests.settings()))?, task.output)?;
        }
        ObjectTask::Prune(task) => {
            print(&runtime.block_on(commands::pruned(&task.manifests.settings()))?, task.output)?;
        }
        ObjectTask::Convert(Convert { shown, to }) => {
            print(&runtime.block_on(commands::converted(&shown.manifests.settings(), to))?, shown.output)?;
        }
        ObjectTask::Apply(task) => return apply(task, &runtime),
        ObjectTask::Table(task) => {
            logs::print(runtime.block_on(commands::table(&task.manifests.settings(), task.wide))?.as_bytes())?;
        }
        ObjectTask::Explain(task) => {
            let explained = commands::explain(&task.path, &task.crds, task.kubernetes_version);
            logs::print(runtime.block_on(explained)?.as_bytes())?;
        }
    }
    Ok(ExitCode::SUCCESS)
}

/// Conflicts are printed as errors, with which the exit status is 1.
fn apply(task: &Apply, runtime: &Runtime) -> Result<ExitCode> {
    let settings = task.shown.manifests.settings();
    let applied = commands::apply(&settings, &task.onto, &task.field_manager, task.force_conflicts);
    let (mut objects, mut code) = (vec![], ExitCode::SUCCESS);
    for one in runtime.block_on(applied)? {
        match one {
            Applied::Object(object) => objects.push(object),
            Applied::Refused(why) => {
                logs::print_error(&format!("pintle: {why}"));
                code = ExitCode::from(REFUSED);
            }
        }
    }
    print(&objects, task.shown.output)?;
    Ok(code)
}

fn print(objects: &[Value], encoding: Encoding) -> Result<()> {
    let text = match encoding {
        Encoding::Yaml => objects.iter().map(yaml::encode).collect::<Vec<_>>().join("---\n"),
        Encoding::Json => objects.iter().map(|object| object.to_json() + "\n").collect(),
    };
    logs::print(text.as_bytes())
}
