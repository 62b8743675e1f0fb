//! The objects as they were before: in files, in a commit, or on a server.

use std::sync::Arc;

use machinery::Value;
use tokio::sync::Mutex;

use super::index::{Counterpart, Index, Scope};
use crate::engine::{Engine, Provenance, Target};
use crate::error::Error;
use sources::Inputs;
use sources::cluster::{self, Cluster};

/// Where the previous objects are.
#[derive(Default)]
pub enum Previous {
    /// There are none: every object is new.
    #[default]
    None,
    Files(Box<Index>),
    Live(Mutex<Cluster>),
}

impl Previous {
    /// Reads the argument of `--old`. Fails with a one-line message.
    pub async fn read(argument: Option<&str>, inputs: &Arc<Inputs>) -> Result<Previous, Error> {
        let Some(argument) = argument else { return Ok(Previous::None) };
        if let Some(kubeconfigs) = cluster::kubeconfigs(argument) {
            return Ok(Previous::Live(Mutex::new(Cluster::connect(&kubeconfigs).await?)));
        }
        Ok(Previous::Files(Box::new(Index::of(argument, inputs.clone()))))
    }

    /// The inputs that could not be read, with the reason.
    pub fn problems(&self) -> &[(String, String)] {
        if let Previous::Files(index) = self { index.problems() } else { &[] }
    }

    /// Whether previous objects are those of a server: they have the fields that the server and other clients have set.
    pub fn is_live(&self) -> bool {
        matches!(self, Previous::Live(_))
    }

    /// Where a previous object comes from: a file may hold what a server has stored, which has a uid.
    pub fn origin(old: &Value) -> Provenance {
        if old.str_at(&["metadata", "uid"]).is_empty() { Provenance::File } else { Provenance::Server }
    }

    /// The previous state of an object of an input; `None` for an object that is only part of the environment. The error is
    /// one line.
    pub async fn of(
        &self,
        engine: &Engine,
        target: &Target,
        input: Option<usize>,
        object: &Value,
    ) -> Result<Counterpart, Error> {
        match self {
            Previous::None => Ok(Counterpart::None),
            Previous::Files(index) => {
                let scope = if target.mapping().is_namespaced() { Scope::Namespaced } else { Scope::Cluster };
                Ok(match index.find(object, scope, input)? {
                    // an object in a version that is no longer served cannot be compared
                    Counterpart::One(old) if engine.target(&old).is_none() => Counterpart::None,
                    found => found,
                })
            }
            Previous::Live(_) if target.name().is_empty() => Ok(Counterpart::None),
            Previous::Live(cluster) => {
                let found = cluster.lock().await.get(&target.path("")).await?;
                Ok(found.map_or(Counterpart::None, Counterpart::One))
            }
        }
    }
}
