//! The kind Progress, its built-in sets of objects, and the objects that a server creates at its start.

use std::sync::Arc;

use machinery::{Result, Value, json, yaml};

use super::stage;
use crate::verbs::{self, Context};

pub const GROUP: &str = "testing.pintle.dev";
pub const PROGRESSES: &str = "progresses";
const API_VERSION: &str = "testing.pintle.dev/v1alpha1";

/// The built-in sets of Progress objects, by name.
const SETS: [(&str, &str); 4] = [
    ("workloads", include_str!("sets/workloads.yaml")),
    ("cert-manager", include_str!("sets/cert-manager.yaml")),
    ("crossplane", include_str!("sets/crossplane.yaml")),
    ("gateway-api", include_str!("sets/gateway-api.yaml")),
];

/// The names of the sets.
pub fn names() -> impl Iterator<Item = &'static str> {
    SETS.iter().map(|(name, _)| *name)
}

/// The text of a set.
pub fn set(name: &str) -> Option<&'static str> {
    SETS.iter().find(|(known, _)| *known == name).map(|(_, text)| *text)
}

/// The Progress objects of a set or of the text of a file. Fails with a one-line message.
pub fn read(text: &[u8]) -> Result<Vec<Value>, String> {
    let mut objects = vec![];
    let text = std::str::from_utf8(text).map_err(|error| error.to_string())?;
    for document in yaml::documents(text) {
        let document = yaml::decode(document.as_bytes()).map_err(|error| error.to_string())?.value;
        if document.is_null() {
            continue;
        }
        let (version, kind) = (document.str_at(&["apiVersion"]), document.str_at(&["kind"]));
        let name = document.str_at(&["metadata", "name"]);
        match (version, kind) {
            (API_VERSION, "Progress") if !name.is_empty() => objects.push(document),
            (stage::API_VERSION, "Stage") if !name.is_empty() => {
                let mut progress = json!({"apiVersion": API_VERSION, "kind": "Progress"});
                progress.set_at(&["metadata", "name"], Value::from(name));
                progress.set_at(&["spec"], stage::to_progress(&document).map_err(|why| format!("{name}: {why}"))?);
                objects.push(progress);
            }
            _ => return Err(format!("{kind} {name:?} of {version:?} is not a Progress of {API_VERSION} with a name")),
        }
    }
    Ok(objects)
}

fn definitions() -> Result<Vec<Value>> {
    verbs::definitions_in(include_bytes!("progress.yaml"))
}

/// Whether an API serves the kind Progress, and the objects of it that the server creates.
#[derive(Clone, Debug, Default)]
pub struct Progresses {
    pub is_on: bool,
    pub objects: Arc<[Value]>,
}

impl Progresses {
    /// Serves the kind if there are objects or, so that clients can create some, with `testing`.
    pub fn new(testing: bool, objects: Vec<Value>) -> Progresses {
        Progresses { is_on: testing || !objects.is_empty(), objects: objects.into() }
    }

    /// Creates the kind and the objects, or brings them up to date; removes those that an earlier run has left if the kind is
    /// off.
    pub async fn keep(&self, context: &Context) -> Result<()> {
        if !self.is_on {
            return remove(context).await;
        }
        verbs::keep_definitions(context, definitions()?).await?;
        let Some(resource) = context.registry.get(GROUP, PROGRESSES) else { return Ok(()) };
        verbs::create_missing(context, &resource, self.objects.iter().cloned()).await?;
        for object in self.objects.iter() {
            let spec = object.get("spec").cloned().unwrap_or_default();
            let name = object.str_at(&["metadata", "name"]);
            let update = |known: &mut Value| known.set_at(&["spec"], spec.clone());
            context.as_server(&resource, "", name).change(update).await?;
        }
        Ok(())
    }
}

async fn remove(context: &Context) -> Result<()> {
    if context.registry.get(GROUP, PROGRESSES).is_none() {
        return Ok(());
    }
    tracing::warn!("progress is off: the Progress objects that an earlier run has left are removed");
    verbs::remove_definitions(context, &definitions()?).await
}
