//! A template that is built once, by whichever process asks for it first.
//!
//! The builder creates the workspace with a short lifetime and extends it while it builds, so that the name is free again soon
//! after a builder has died. A template that is complete has no end.

use std::ffi::OsString;
use std::io::Write as _;
use std::path::Path;
use std::process::{Command, ExitCode};
use std::time::Duration;

use base::clock;
use client::{Context as _, JsonClient, Method, Result, fail};
use machinery::{Value, json};

use super::{kubeconfig_of, path, post, ready};
use crate::child::{Forwarded, exit_code};
use crate::place::RunningServer;
use crate::scratch::Scratch;
use crate::{limits, logs};

/// The state of the template's name.
enum Found {
    Complete,
    /// Another process builds it.
    BeingBuilt,
    Nothing,
}

/// Makes sure that there is a template, and prints its URL. Returns the exit status of the command if it has failed. The error
/// is one line.
pub async fn run(name: &str, spec: Value, command: &[OsString], server: &RunningServer) -> Result<ExitCode> {
    let mut client = super::connect(server).await?;
    let mut has_waited = false;
    loop {
        if let Some(uid) = create(&mut client, name, &spec).await? {
            let built = build(&mut client, name, &uid, command, server).await;
            if !matches!(&built, Ok(code) if *code == ExitCode::SUCCESS) {
                // so that the next process can build it at once instead of after the lifetime
                let options = json!({"preconditions": {"uid": uid}});
                client.call(Method::DELETE, &path(name), "application/json", Some(&options)).await?;
                return built;
            }
        }
        match find(&mut client, name).await? {
            Found::Complete => {
                let workspace = ready(&mut client, name).await?;
                logs::print(format!("{}\n", workspace.str_at(&["status", "url"])).as_bytes())?;
                return Ok(ExitCode::SUCCESS);
            }
            Found::BeingBuilt if !std::mem::replace(&mut has_waited, true) => {
                logs::print_error(&format!("another process is building template {name:?}; waiting for it"));
            }
            Found::BeingBuilt | Found::Nothing => {}
        }
        tokio::time::sleep(limits::WORKSPACE_LOOK).await;
    }
}

/// Creates the workspace and returns its uid; `None` if there is one.
async fn create(client: &mut JsonClient, name: &str, spec: &Value) -> Result<Option<String>> {
    let mut spec = spec.clone();
    spec.set_at(&["ttl"], Value::from(seconds(limits::TEMPLATE_LEASE)));
    let created = post(client, name, spec).await?;
    if created.code == 409 { Ok(None) } else { Ok(Some(created.ok()?.str_at(&["metadata", "uid"]).to_owned())) }
}

async fn find(client: &mut JsonClient, name: &str) -> Result<Found> {
    let found = client.get(&path(name)).await?;
    if found.code == 404 {
        return Ok(Found::Nothing);
    }
    let workspace = found.ok()?;
    if workspace.is_true_at(&["spec", "template"]) {
        return Ok(Found::Complete);
    }
    if workspace.str_at(&["spec", "ttl"]).is_empty() {
        return fail(format!("workspace {name:?} exists and is no template"));
    }
    Ok(Found::BeingBuilt)
}

/// Runs the command, with the lifetime extended meanwhile, and seals the workspace if it succeeds.
async fn build(
    client: &mut JsonClient,
    name: &str,
    uid: &str,
    command: &[OsString],
    server: &RunningServer,
) -> Result<ExitCode> {
    let began = clock::instant();
    let mut workspace = ready(client, name).await?;
    // once another builder has the name, the server refuses what this one still writes
    let url = format!("{}.{uid}", workspace.str_at(&["status", "url"]));
    workspace.set_at(&["status", "url"], Value::from(url));
    let file = Scratch::elsewhere();
    let written = file.create()?.write_all(kubeconfig_of(&workspace, &server.kubeconfigs())?.as_bytes());
    written.context("cannot write a kubeconfig")?;
    let signals = Forwarded::listen()?;
    let (program, arguments) = command.split_first().ok_or("a command is required")?;
    // stdout is for the URL
    let child = Command::new(program).args(arguments).env("KUBECONFIG", &file.0).stdout(std::io::stderr()).spawn();
    let child = child.cannot("run", Path::new(program))?;
    let mut running = std::pin::pin!(signals.forward_until_end(child));
    let status = loop {
        tokio::select! {
            status = &mut running => break status?,
            () = tokio::time::sleep(limits::TEMPLATE_LEASE / 3) => {
                let ttl = seconds(began.elapsed() + limits::TEMPLATE_LEASE);
                // without it, sealing fails: another builder has the name then
                let _ = change(client, name, uid, json!({"ttl": ttl})).await;
            }
        }
    };
    if status.success() {
        change(client, name, uid, json!({"template": true, "ttl": null})).await?;
    }
    Ok(exit_code(status))
}

async fn change(client: &mut JsonClient, name: &str, uid: &str, spec: Value) -> Result<(), client::Error> {
    let patch = json!({"metadata": {"uid": uid}, "spec": spec});
    client.call(Method::PATCH, &path(name), "application/json", Some(&patch)).await?.ok().map(drop)
}

fn seconds(time: Duration) -> String {
    format!("{}s", time.as_secs())
}
