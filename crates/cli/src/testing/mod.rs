//! `pintle clock`, `fault`, `gate`, `settle`, `report`, `record` and `replay`: the objects of `testing.pintle.dev` of a running server.

mod clock;
mod faketime;
mod fault;
mod gate;
mod report;
mod settle;
mod transcript;

use clap::Args;
use client::{Access, JsonClient, JsonResponse, Method, Result, fail};
use machinery::{Value, json};

use crate::logs;
use crate::place::RunningServer;
use crate::values::TextOrJson;

pub use clock::{ClockTask, run as clock};
pub use fault::{FaultTask, run as fault};
pub use gate::{GateTask, run as gate};
pub use report::{ReportTask, run as report};
pub use settle::{Settle, run as settle};
pub use transcript::{RecordTask, ReplayTask, record, replay};

/// The workspace of a running server that a command works on.
#[derive(Args)]
pub struct TargetWorkspace {
    /// Workspace of the server [default: that of the kubeconfig].
    #[arg(long, value_name = "NAME")]
    workspace: Option<String>,

    #[command(flatten)]
    server: RunningServer,
}

impl TargetWorkspace {
    /// How the workspace is reached.
    fn access(&self) -> Result<Access> {
        let access = Access::read_all(&self.server.kubeconfigs())?;
        Ok(match &self.workspace {
            Some(name) => access.to_workspace(name),
            None => access,
        })
    }
}

/// Which requests or events match. Every given list must match.
#[derive(Args)]
#[command(next_help_heading = "Matching")]
pub struct Matching {
    /// Users, such as system:serviceaccount:default:robo.
    #[arg(long, value_name = "NAME,...", value_delimiter = ',')]
    user: Vec<String>,

    /// User-Agents, such as manager/*.
    #[arg(long, value_name = "TEXT,...", value_delimiter = ',')]
    user_agent: Vec<String>,

    /// API groups; an empty text is the core group.
    #[arg(long, value_name = "GROUP,...", value_delimiter = ',')]
    group: Vec<String>,

    /// Resources, such as pods, or pods/status.
    #[arg(long, value_name = "RESOURCE,...", value_delimiter = ',')]
    resource: Vec<String>,

    /// Namespaces.
    #[arg(long, value_name = "NAME,...", value_delimiter = ',')]
    namespace: Vec<String>,

    /// Names of objects.
    #[arg(long, value_name = "NAME,...", value_delimiter = ',')]
    object: Vec<String>,

    /// Labels of the object, such as app=web.
    #[arg(short = 'l', long, value_name = "KEY=VALUE,...", value_delimiter = ',', value_parser = label)]
    selector: Vec<(String, String)>,
}

/// A label of `--selector`.
fn label(text: &str) -> Result<(String, String), &'static str> {
    let (key, value) = text.split_once('=').ok_or("wanted KEY=VALUE")?;
    Ok((key.to_owned(), value.to_owned()))
}

impl Matching {
    fn value(&self) -> Value {
        let mut value = json!({});
        for (field, texts) in [
            ("users", &self.user),
            ("userAgents", &self.user_agent),
            ("groups", &self.group),
            ("resources", &self.resource),
            ("namespaces", &self.namespace),
            ("names", &self.object),
        ] {
            set_texts(&mut value, field, texts);
        }
        for (key, text) in &self.selector {
            value.set_at(&["selector", "matchLabels", key], Value::from(text.as_str()));
        }
        value
    }
}

/// Sets a list, unless it is empty.
fn set_texts(value: &mut Value, field: &str, texts: &[String]) {
    if !texts.is_empty() {
        value.set_at(&[field], texts.iter().map(|text| Value::from(text.as_str())).collect());
    }
}

/// The name of the Clock of a workspace.
const CLOCK: &str = "clock";

/// A connection to the objects of a workspace.
struct Objects {
    client: JsonClient,
    base: String,
}

impl Objects {
    /// Connects, and checks that the server serves these objects.
    async fn connect(target: &TargetWorkspace) -> Result<Objects> {
        let mut client = JsonClient::of(&target.access()?).await?;
        let base = "/apis/testing.pintle.dev";
        let found = client.get(base).await?;
        if found.code == 404 && found.body.str_at(&["details", "group"]) != "workspaces.pintle.dev" {
            return fail("the server has no objects of testing.pintle.dev: start it with --testing");
        }
        found.ok()?;
        Ok(Objects { client, base: format!("{base}/v1alpha1") })
    }

    async fn create(&mut self, kind: &str, plural: &str, name: &str, spec: Value) -> Result<Value, client::Error> {
        let object = json!({"apiVersion": "testing.pintle.dev/v1alpha1", "kind": kind, "metadata": {"name": name},
            "spec": (spec)});
        let path = format!("{}/{plural}", self.base);
        self.client.call(Method::POST, &path, "application/json", Some(&object)).await?.ok()
    }

    async fn get(&mut self, plural: &str, name: &str) -> Result<JsonResponse, client::Error> {
        self.client.get(&format!("{}/{plural}/{name}", self.base)).await
    }

    async fn end(&mut self, plural: &str, name: &str) -> Result<Value, client::Error> {
        let path = format!("{}/{plural}/{name}", self.base);
        self.client.call(Method::DELETE, &path, "application/json", None).await?.ok()
    }

    async fn patch(&mut self, plural: &str, name: &str, spec: Value) -> Result<Value, client::Error> {
        let path = format!("{}/{plural}/{name}", self.base);
        self.client.call(Method::PATCH, &path, "application/json", Some(&json!({"spec": (spec)}))).await?.ok()
    }
}

/// Which objects are listed, and how.
#[derive(Args)]
pub struct ListFlags {
    /// The form of the output.
    #[arg(short, long, value_enum, default_value = "text")]
    output: TextOrJson,

    #[command(flatten)]
    target: TargetWorkspace,
}

impl ListFlags {
    /// Prints the objects of a resource, as JSON or as rows.
    async fn run(&self, plural: &str, header: &str, row: impl Fn(&Value) -> String) -> Result<()> {
        let mut objects = Objects::connect(&self.target).await?;
        let list = objects.client.get(&format!("{}/{plural}", objects.base)).await?.ok()?;
        logs::print(self.output.list(&list, header, row).as_bytes())
    }
}

/// Which objects are deleted.
#[derive(Args)]
pub struct DeleteFlags {
    /// Objects to delete.
    #[arg(required_unless_present = "all", conflicts_with = "all")]
    names: Vec<String>,

    /// Delete all of them.
    #[arg(long)]
    all: bool,

    #[command(flatten)]
    target: TargetWorkspace,
}

impl DeleteFlags {
    async fn run(&self, what: &str, plural: &str) -> Result<()> {
        let mut objects = Objects::connect(&self.target).await?;
        if self.all {
            let base = format!("{}/{plural}", objects.base);
            objects.client.call(Method::DELETE, &base, "application/json", None).await?.ok()?;
            return logs::print(format!("all {plural} have been deleted\n").as_bytes());
        }
        for name in &self.names {
            objects.end(plural, name).await?;
            logs::say(&format!("{what} {name:?} has been deleted"));
        }
        Ok(())
    }
}
