//! The objects as they were before: in files, in a commit, or on a server.

use std::collections::HashMap;

use machinery::Value;
use tokio::sync::Mutex;

use crate::engine::{Engine, Target};
use crate::sources::Inputs;
use crate::sources::cluster::{self, Cluster};

/// The group, kind, namespace and name of an object.
type Key = (String, String, String, String);

/// Where the previous objects are.
#[derive(Default)]
pub enum Previous {
    /// There are none: every object is new.
    #[default]
    None,
    Files {
        objects: HashMap<Key, Value>,
        problems: Vec<(String, String)>,
    },
    Live(Mutex<Cluster>),
}

fn key(object: &Value) -> Key {
    let version = object.str_at(&["apiVersion"]);
    let group = version.split_once('/').map_or("", |(group, _)| group);
    let namespace = match object.str_at(&["metadata", "namespace"]) {
        "" => "default",
        namespace => namespace,
    };
    let text = str::to_owned;
    (text(group), text(object.str_at(&["kind"])), text(namespace), text(object.str_at(&["metadata", "name"])))
}

impl Previous {
    /// Reads the argument of `--old`. The error is one line.
    pub async fn read(argument: Option<&str>) -> Result<Previous, String> {
        let Some(argument) = argument else { return Ok(Previous::None) };
        if let Some(kubeconfigs) = cluster::kubeconfigs(argument) {
            return Ok(Previous::Live(Mutex::new(Cluster::connect(&kubeconfigs).await?)));
        }
        let inputs = Inputs::of(&[argument.to_owned()]);
        let (mut objects, mut problems) = (HashMap::new(), inputs.problems);
        for input in &inputs.inputs {
            let documents = match input.documents() {
                Ok(documents) => documents,
                Err(why) => {
                    problems.push((input.name().to_string(), why));
                    continue;
                }
            };
            for document in documents.flatten() {
                // what cannot be decoded was not an object before
                let found = document.objects().map(|(objects, _)| objects).unwrap_or_default();
                objects.extend(found.into_iter().map(|object| (key(&object.value), object.value)));
            }
        }
        Ok(Previous::Files { objects, problems })
    }

    /// The inputs that could not be read, with the reason.
    pub fn problems(&self) -> &[(String, String)] {
        if let Previous::Files { problems, .. } = self { problems } else { &[] }
    }

    /// Whether previous objects are those of a server: they have the fields that the server and other clients have set.
    pub fn is_live(&self) -> bool {
        matches!(self, Previous::Live(_))
    }

    /// The previous object of an object. The error is one line.
    pub async fn of(&self, engine: &Engine, target: &Target, object: &Value) -> Result<Option<Value>, String> {
        match self {
            Previous::None => Ok(None),
            // an object in a version that is no longer served cannot be compared
            Previous::Files { objects, .. } => {
                Ok(objects.get(&key(object)).filter(|old| engine.target(old).is_some()).cloned())
            }
            Previous::Live(_) if target.name().is_empty() => Ok(None),
            Previous::Live(cluster) => cluster.lock().await.get(&target.path("")).await,
        }
    }
}
