//! `pintle workspace`: creates, forks, resets and compares the workspaces of a running server.

mod diff;
mod source;
mod template;

use std::ffi::OsString;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use clap::{Args, Subcommand, ValueEnum};
use client::{Access, JsonClient, JsonResponse, Method, Result, fail};
use machinery::{Value, json};

use self::source::Origin;
use crate::kubeconfig::Kubeconfig;
use crate::place::RunningServer;
use crate::runtime::block_on;
use crate::values::TextOrJson;
use crate::{limits, logs};

/// The path of the objects that stand for workspaces.
const WORKSPACES: &str = "/apis/workspaces.pintle.dev/v1alpha1/workspaces";

#[derive(Subcommand)]
pub enum WorkspaceTask {
    /// Create a workspace, wait until it is ready, and print its URL or a kubeconfig.
    Create {
        /// Name of the new workspace.
        name: String,

        /// Workspace to fork; "default" is the API at /. Or what `pintle run --from` takes: a file, directory, archive or snapshot, git:REF or
        /// kubeconfig:FILE, whose objects are served as they are and which may be repeated; ./NAME is a file. Without it, the workspace begins
        /// empty.
        #[arg(long, value_name = "NAME|SOURCE")]
        from: Vec<String>,

        #[command(flatten)]
        spec: WorkspaceFlags,
    },
    /// Create a workspace as a fork of another one: create NAME --from SOURCE.
    Fork {
        /// Workspace to fork; "default" is the API at /.
        source: String,

        /// Name of the new workspace.
        name: String,

        #[command(flatten)]
        spec: WorkspaceFlags,
    },
    /// Make sure that a template exists: build it with a command, or wait for another process that builds it.
    ///
    /// The command runs with KUBECONFIG set to the workspace, which is sealed once the command has succeeded. If the command
    /// fails, the workspace is deleted, and if this process dies, the next one builds the template. Prints the URL of the template; the exit status is that of the command.
    Template {
        /// Name of the template. It should contain what the template depends on, such as a hash of the files that are applied.
        name: String,

        /// Workspace to begin from; "default" is the API at /. Without it, the template begins empty.
        #[arg(long, value_name = "NAME")]
        from: Option<String>,

        /// Keep the template in memory; it ends with the server. Its forks have to be ephemeral too.
        #[arg(long)]
        ephemeral: bool,

        #[command(flatten)]
        server: RunningServer,

        /// The command with its arguments.
        #[arg(value_name = "CMD", last = true, required = true)]
        command: Vec<OsString>,
    },
    /// List the workspaces.
    List {
        /// The form of the output.
        #[arg(short, long, value_enum, default_value = "text")]
        output: TextOrJson,

        #[command(flatten)]
        server: RunningServer,
    },
    /// Reset workspaces to what they began as. Their watches end.
    Reset {
        /// Workspaces to reset.
        #[arg(required = true)]
        names: Vec<String>,

        #[command(flatten)]
        server: RunningServer,
    },
    /// Delete workspaces, with all that is in them.
    Delete {
        /// Workspaces to delete.
        #[arg(required = true)]
        names: Vec<String>,

        #[command(flatten)]
        server: RunningServer,
    },
    /// Print a kubeconfig of a workspace, with the credentials of the current context.
    Kubeconfig {
        /// Workspace that the kubeconfig leads to.
        name: String,

        #[command(flatten)]
        server: RunningServer,
    },
    /// List the objects that differ between two workspaces: created, changed and deleted ones.
    ///
    /// What the server maintains is not compared: resourceVersion, generation, managedFields, APIServices of its own groups. The exit status is 0
    /// whether or not there are differences.
    Diff {
        /// The workspace before.
        old: String,

        /// The workspace after. Without it, OLD is compared with its source at the time of the fork.
        new: Option<String>,

        /// The form of the output: one line an object, or all that was created, changed and deleted.
        #[arg(short, long, value_enum, default_value = "text")]
        output: DiffOutput,

        #[command(flatten)]
        server: RunningServer,
    },
}

/// The form of the output of `pintle workspace diff`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum DiffOutput {
    /// One line an object.
    Text,
    /// The objects before and after, as a list.
    Json,
    /// The same as YAML.
    Yaml,
    /// JSON merge patches of the changed objects.
    Patch,
}

/// The specification of a workspace.
#[derive(Args)]
pub struct WorkspaceFlags {
    /// Keep the workspace in memory; it ends with the server.
    #[arg(long)]
    ephemeral: bool,

    /// Delete the workspace after this time, such as 30m.
    #[arg(long, value_name = "DURATION")]
    ttl: Option<String>,

    /// Release of Kubernetes that the workspace emulates: 1.35, 1.36 or 1.37.
    #[arg(long, value_name = "VERSION")]
    kubernetes_version: Option<String>,

    /// What to print.
    #[arg(short, long, value_enum, default_value = "url")]
    output: Created,

    #[command(flatten)]
    server: RunningServer,
}

/// The output about a new workspace.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Created {
    /// The URL of its API.
    Url,
    /// A kubeconfig with the credentials of the current context.
    Kubeconfig,
}

/// Runs a task. Fails with a one-line message.
pub fn run(task: &WorkspaceTask) -> Result<ExitCode> {
    block_on(async {
        let done = match task {
            WorkspaceTask::Template { name, from, ephemeral, server, command } => {
                let spec = spec_of(from.as_deref(), *ephemeral);
                return template::run(name, spec, command, server).await;
            }
            WorkspaceTask::Create { name, from, spec } => create(name, Origin::of(from)?, spec).await,
            WorkspaceTask::Fork { source, name, spec } => create(name, Origin::Workspace(source), spec).await,
            WorkspaceTask::List { output, server } => list(*output, server).await,
            WorkspaceTask::Reset { names, server } => {
                each(names, server, async |client, name| reset(client, name).await).await
            }
            WorkspaceTask::Delete { names, server } => {
                each(names, server, async |client, name| delete(client, name).await).await
            }
            WorkspaceTask::Kubeconfig { name, server } => {
                let workspace = connect(server).await?.get(&path(name)).await?.ok()?;
                print_kubeconfig(&workspace, &server.kubeconfigs())
            }
            WorkspaceTask::Diff { old, new, output, server } => {
                diff::run(&mut connect(server).await?, old, new.as_deref(), *output).await
            }
        };
        done.map(|()| ExitCode::SUCCESS)
    })
}

/// Connects, and makes sure that the server has workspaces.
async fn connect(server: &RunningServer) -> Result<JsonClient> {
    // the kubeconfig may be that of a workspace
    let access = Access::read_all(&server.kubeconfigs())?.outside_workspaces();
    let mut client = JsonClient::of(&access).await?;
    if client.get("/apis/workspaces.pintle.dev").await?.code == 404 {
        return fail("the server has no workspaces: start it with --workspaces");
    }
    Ok(client)
}

fn path(name: &str) -> String {
    format!("{WORKSPACES}/{name}")
}

fn spec_of(from: Option<&str>, ephemeral: bool) -> Value {
    let mut spec = json!({});
    if let Some(source) = from {
        spec.set_at(&["from", "workspace"], Value::from(source));
    }
    if ephemeral {
        spec.set_at(&["ephemeral"], Value::Bool(true));
    }
    spec
}

async fn create(name: &str, origin: Origin<'_>, flags: &WorkspaceFlags) -> Result<()> {
    let mut client = connect(&flags.server).await?;
    let mut spec = spec_of(None, flags.ephemeral);
    for (field, text) in [("ttl", &flags.ttl), ("kubernetesVersion", &flags.kubernetes_version)] {
        if let Some(text) = text {
            spec.set_at(&[field], Value::from(text.as_str()));
        }
    }
    let loaded;
    let source = match origin {
        Origin::Empty => None,
        Origin::Workspace(source) => Some(source),
        Origin::Sources(from) => {
            loaded = source::template(&mut client, name, &spec, from).await?;
            Some(loaded.as_str())
        }
    };
    if let Some(source) = source {
        spec.set_at(&["from", "workspace"], Value::from(source));
    }
    post(&mut client, name, spec).await?.ok()?;
    let workspace = ready(&mut client, name).await?;
    match flags.output {
        Created::Url => logs::print(format!("{}\n", workspace.str_at(&["status", "url"])).as_bytes()),
        Created::Kubeconfig => print_kubeconfig(&workspace, &flags.server.kubeconfigs()),
    }
}

/// Sends the creation of a workspace.
async fn post(client: &mut JsonClient, name: &str, spec: Value) -> Result<JsonResponse, client::Error> {
    let object = json!({"apiVersion": "workspaces.pintle.dev/v1alpha1", "kind": "Workspace",
        "metadata": {"name": name}, "spec": spec});
    client.call(Method::POST, WORKSPACES, "application/json", Some(&object)).await
}

/// A new workspace, once it can be used. Fails with a one-line message.
async fn ready(client: &mut JsonClient, name: &str) -> Result<Value> {
    let workspace = reported(client, name, |status| !status.str_at(&["phase"]).is_empty()).await?;
    match workspace.str_at(&["status", "phase"]) {
        "Ready" => Ok(workspace),
        _ => fail(format!("workspace {name:?} has failed: {}", workspace.str_at(&["status", "message"]))),
    }
}

/// The workspace, once its status is as wanted. Fails with a one-line message.
async fn reported(client: &mut JsonClient, name: &str, is_it: impl Fn(&Value) -> bool) -> Result<Value> {
    for _ in 0..limits::WORKSPACE_LOOKS {
        let workspace = client.get(&path(name)).await?.ok()?;
        if is_it(workspace.get("status").unwrap_or(&Value::Null)) {
            return Ok(workspace);
        }
        tokio::time::sleep(limits::WORKSPACE_LOOK).await;
    }
    let waited: Duration = limits::WORKSPACE_LOOK * limits::WORKSPACE_LOOKS;
    fail(format!("the server has not reported the state of workspace {name:?} within {} seconds", waited.as_secs()))
}

/// Does something with each workspace of a list, and stops at the first error.
async fn each(
    names: &[String],
    server: &RunningServer,
    act: impl AsyncFn(&mut JsonClient, &str) -> Result<String>,
) -> Result<()> {
    let mut client = connect(server).await?;
    for name in names {
        let done = act(&mut client, name).await?;
        logs::say(&format!("workspace {name:?} has been {done}"));
    }
    Ok(())
}

async fn reset(client: &mut JsonClient, name: &str) -> Result<String> {
    let workspace = client.get(&path(name)).await?.ok()?;
    // any other text resets it
    let count: u64 = workspace.str_at(&["spec", "reset"]).parse().unwrap_or_default();
    let text = (count + 1).to_string();
    let patch = json!({"spec": {"reset": (text.clone())}});
    client.call(Method::PATCH, &path(name), "application/json", Some(&patch)).await?.ok()?;
    reported(client, name, |status| status.str_at(&["reset"]) == text).await?;
    Ok("reset".to_owned())
}

async fn delete(client: &mut JsonClient, name: &str) -> Result<String> {
    client.call(Method::DELETE, &path(name), "application/json", None).await?.ok()?;
    Ok("deleted".to_owned())
}

async fn list(output: TextOrJson, server: &RunningServer) -> Result<()> {
    let list = connect(server).await?.get(WORKSPACES).await?.ok()?;
    let header = format!("{:<32} {:<8} {:<24} URL", "NAME", "PHASE", "FROM");
    let row = |workspace: &Value| {
        let cell = |path: &[&str]| workspace.str_at(path).to_owned();
        let (name, phase) = (cell(&["metadata", "name"]), cell(&["status", "phase"]));
        let (from, url) = (cell(&["spec", "from", "workspace"]), cell(&["status", "url"]));
        format!("{name:<32} {phase:<8} {from:<24} {url}")
    };
    logs::print(output.list(&list, &header, row).as_bytes())
}

fn print_kubeconfig(workspace: &Value, files: &[PathBuf]) -> Result<()> {
    logs::print(kubeconfig_of(workspace, files)?.as_bytes())
}

/// The kubeconfig of a workspace, with the credentials of the current context.
fn kubeconfig_of(workspace: &Value, files: &[PathBuf]) -> Result<String> {
    let (name, url) = (workspace.str_at(&["metadata", "name"]), workspace.str_at(&["status", "url"]));
    let host = workspace.str_at(&["status", "host"]);
    if url.is_empty() {
        return fail(format!("workspace {name:?} is not ready: {}", workspace.str_at(&["status", "message"])));
    }
    for file in files {
        if let Some(found) = Kubeconfig::read(file)?.and_then(|kubeconfig| kubeconfig.for_branch(name, url, host)) {
            return Ok(found.text());
        }
    }
    fail("the kubeconfig has no current context")
}
