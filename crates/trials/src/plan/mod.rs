//! What a change would do to the objects of a source.
//!
//! The change happens in one fork, and does not happen in another. The plan is what differs once both have settled.
//!
//! ```
//! # #[tokio::main]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let directory = tempfile::tempdir()?;
//! # let [source, change] = ["source.yaml", "change.yaml"].map(|name| directory.path().join(name));
//! # let map = |color: &str| format!("apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: a, namespace: default}}\ndata: {{color: {color}}}\n");
//! # std::fs::write(&source, map("red"))?;
//! # std::fs::write(&change, map("blue"))?;
//! use trials::engine::{Engine, Settings};
//! use trials::plan::{Changes, plan};
//!
//! let sources = vec![source.to_string_lossy().into_owned()];
//! let engine = Engine::start(&Settings { sources, ..Settings::default() }).await?;
//! let planned = plan(&engine, &Changes { applied: vec![change], ..Changes::default() }).await?;
//! assert_eq!(planned.lines[0].to_string(), "~ configmaps default/a  (the change)  data.color: red → blue");
//! engine.stop().await;
//! # Ok(())
//! # }
//! ```

mod reasons;
mod run;
#[cfg(test)]
mod tests;
mod text;
mod value;

use crate::compare::{FieldChange, ObjectKey};

pub use run::{Changes, Runs, plan};
pub use text::Detail;

machinery::text_enum! {
    /// An effect on an object.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
    pub enum Action {
        Create = "create",
        Change = "change",
        /// It is deleted and created again.
        Recreate = "recreate",
        Delete = "delete",
    }
}

impl Action {
    /// The sign that `terraform plan` has for it.
    pub fn sign(self) -> &'static str {
        match self {
            Action::Create => "+",
            Action::Change => "~",
            Action::Recreate => "-/+",
            Action::Delete => "-",
        }
    }
}

/// The effect on one object.
#[derive(Clone, Debug, PartialEq)]
pub struct Line {
    pub key: ObjectKey,
    pub action: Action,
    /// The clients that wrote it, in the order of their first writes.
    pub by: Vec<String>,
    /// Why it is recreated or deleted, if no client has asked for that.
    pub reason: String,
    pub fields: Vec<FieldChange>,
}

impl Line {
    /// Whether a field has a value that must not be shown. `kubectl apply` keeps a copy of Secrets in an annotation.
    fn is_sensitive(&self, field: &FieldChange) -> bool {
        let sensitive = ["data", "stringData", "metadata.annotations"];
        self.key.resource == "secrets" && sensitive.iter().any(|begin| field.path.starts_with(begin))
    }
}

/// A write that the server refused, and how often.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Refusal {
    pub by: String,
    pub verb: String,
    pub key: ObjectKey,
    pub message: String,
    pub count: usize,
}

/// What a change would do.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Plan {
    /// In the order in which the objects were first written.
    pub lines: Vec<Line>,
    pub refused: Vec<Refusal>,
    /// Differences between two runs of the change, if it ran twice.
    pub varying: Vec<String>,
    /// The configurations of webhooks, none of which was called.
    pub webhooks: Vec<String>,
    /// The hosts that the command has asked its proxy for, with their ports.
    pub hosts: Vec<String>,
}

impl Plan {
    pub fn is_empty(&self) -> bool {
        self.lines.is_empty()
    }

    pub fn count(&self, action: Action) -> usize {
        self.lines.iter().filter(|line| line.action == action).count()
    }
}
