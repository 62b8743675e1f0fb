//! One version of a resource and its programs.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};

use bytes::Bytes;
use machinery::{Text, Value};
use schema::CompileOptions;

use super::builtin::BuiltIn;
use super::program::Program;

pub use schema::ScalePaths;

/// A printer column as the definition has it.
#[derive(Clone, Debug, PartialEq)]
pub struct Column {
    pub name: Text,
    pub kind: Text,
    pub format: Text,
    pub description: Text,
    pub priority: i64,
    pub json_path: Text,
}

/// A version of a resource.
pub struct Version {
    /// Unique in the process: names this version's programs.
    pub id: u64,
    pub name: Text,
    pub served: bool,
    /// The text of the warning that each answer carries.
    pub deprecation: Option<Text>,
    /// `openAPIV3Schema`, or null, as JSON: most schemas are never asked for.
    pub encoded: Bytes,
    pub preserve_unknown_fields: bool,
    pub columns: Vec<Column>,
    /// Paths without the leading dot.
    pub selectable: Vec<Text>,
    pub status: bool,
    pub scale: Option<ScalePaths>,
    /// The rules of this version of a built-in kind.
    pub built_in: Option<&'static BuiltIn>,
    program: Arc<OnceLock<Arc<Program>>>,
}

static NEXT_ID: AtomicU64 = AtomicU64::new(1);

impl Version {
    pub fn new(name: Text, openapi: &Value) -> Version {
        Version::encoded(name, openapi.to_json().into())
    }

    /// With a schema in JSON.
    pub fn encoded(name: Text, encoded: Bytes) -> Version {
        Version {
            id: NEXT_ID.fetch_add(1, Ordering::Relaxed),
            name,
            served: true,
            deprecation: None,
            encoded,
            preserve_unknown_fields: false,
            columns: vec![],
            selectable: vec![],
            status: false,
            scale: None,
            built_in: None,
            program: Arc::default(),
        }
    }

    /// `openAPIV3Schema`, or null.
    pub fn openapi(&self) -> Value {
        machinery::value::decode(&self.encoded).unwrap_or_default()
    }

    /// This version in the place of the one that was the same to its users: programs and what they made go on.
    pub fn continuing(mut self, before: &Version) -> Version {
        self.id = before.id;
        self.program = before.program.clone();
        self
    }

    /// The compiled schema, made when it is first needed.
    pub fn program(&self) -> &Program {
        self.program.get_or_init(|| {
            if let Some(built_in) = self.built_in {
                return Program::built_in(&self.encoded, built_in.structure());
            }
            let (preserve_unknown_fields, scale) = (self.preserve_unknown_fields, self.scale.clone());
            Program::of(&self.encoded, &CompileOptions { preserve_unknown_fields, scale })
        })
    }
}
