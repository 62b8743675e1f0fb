//! `--status-dir`: the statuses of the objects that were applied, each in a file.

use std::collections::HashSet;
use std::path::{Path, PathBuf};

use base::task;
use http::Method;
use http_body_util::BodyExt as _;
use machinery::{Value, json, value, yaml};
use server::Mapping;

use super::APPLIED_LABEL;
use super::api::Api;
use crate::limits;
use crate::logs::print_error;

/// The kinds whose statuses are written.
pub struct Statuses {
    to: PathBuf,
    api: Api,
    followed: HashSet<String>,
}

impl Statuses {
    pub fn new(to: PathBuf, api: Api) -> Statuses {
        Statuses { to, api, followed: HashSet::new() }
    }

    /// Writes the statuses of objects of a kind from now on.
    pub fn follow(&mut self, mapping: &Mapping) {
        let collection = mapping.path("", "");
        if !self.followed.insert(collection.clone()) {
            return;
        }
        let group = if mapping.group().is_empty() { "core" } else { mapping.group() };
        let (place, to, api) = (format!("{group}/{}", mapping.plural()), self.to.clone(), self.api.clone());
        task::spawn("statuses", async move {
            loop {
                watch(&api, &collection, &to, &place).await;
                // the watch has ended after its time, or its kind is gone
                tokio::time::sleep(limits::FOLLOWED_RETRY).await;
            }
        });
    }
}

/// Writes the statuses that a watch has, until it ends. It begins with all objects.
async fn watch(api: &Api, collection: &str, to: &Path, place: &str) {
    let uri = format!("{collection}?watch=true&labelSelector={APPLIED_LABEL}%3Dtrue");
    let Ok(response) = api.send(Method::GET, &uri, "", None).await else { return };
    if !response.status().is_success() {
        return;
    }
    let (mut body, mut text) = (response.into_body(), vec![]);
    while let Some(Ok(frame)) = body.frame().await {
        text.extend_from_slice(&frame.into_data().unwrap_or_default());
        while let Some(end) = memchr_line(&text) {
            let line: Vec<u8> = text.drain(..=end).collect();
            let Ok(event) = value::decode(&line) else { return };
            let Some(object) = event.get("object").filter(|_| event.str_at(&["type"]) != "ERROR") else { return };
            let is_gone = event.str_at(&["type"]) == "DELETED";
            if let Err(error) = write(to, place, object, is_gone) {
                print_error(&format!("pintle: cannot write a status to {}: {error}", to.display()));
            }
        }
    }
}

fn memchr_line(text: &[u8]) -> Option<usize> {
    text.iter().position(|byte| *byte == b'\n')
}

/// Writes the status of an object, or removes its file if it has none.
fn write(to: &Path, place: &str, object: &Value, is_gone: bool) -> std::io::Result<()> {
    let metadata = |field: &str| object.str_at(&["metadata", field]);
    let scope = match metadata("namespace") {
        "" => "cluster".to_owned(),
        namespace => format!("namespaces/{namespace}"),
    };
    let path = to.join(scope).join(place).join(format!("{}.yaml", metadata("name")));
    let status = object.get("status").filter(|status| !is_gone && **status != Value::object());
    let Some(status) = status else {
        return match std::fs::remove_file(&path) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => Err(error),
            _ => Ok(()),
        };
    };
    let mut shown = json!({
        "apiVersion": (object.str_at(&["apiVersion"])),
        "kind": (object.str_at(&["kind"])),
        "metadata": {"name": (metadata("name"))}
    });
    for field in ["namespace", "generation"] {
        if let Some(value) = object.at(&["metadata", field]) {
            shown.set_at(&["metadata", field], value.clone());
        }
    }
    shown.set_at(&["status"], status.clone());
    let text = yaml::encode(&shown);
    if std::fs::read(&path).is_ok_and(|before| before == text.as_bytes()) {
        return Ok(());
    }
    path.parent().map_or(Ok(()), std::fs::create_dir_all)?;
    // a reader never sees a part of it
    let unfinished = path.with_extension("yaml.part");
    std::fs::write(&unfinished, text)?;
    std::fs::rename(&unfinished, &path)
}
