//! One version of a resource and its programs.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};

use bytes::Bytes;
use machinery::{Release, Text, Value};
use schema::CompileOptions;

use super::builtin::BuiltIn;
use super::program::Program;

pub use schema::ScalePaths;

/// An entry of `additionalPrinterColumns`.
#[derive(Clone, Debug, PartialEq)]
pub struct Column {
    pub name: Text,
    pub kind: Text,
    pub format: Text,
    pub description: Text,
    pub priority: i64,
    pub json_path: Text,
}

pub struct Version {
    /// The release whose rules the program follows.
    pub release: Release,
    /// Unique in the process; key of cached renditions.
    pub id: u64,
    pub name: Text,
    pub served: bool,
    /// Text of the warning in every response, if the version is deprecated.
    pub deprecation: Option<Text>,
    /// `openAPIV3Schema`, or null, as JSON: most schemas are never decoded. Empty for built-in kinds.
    pub encoded: Bytes,
    pub preserve_unknown_fields: bool,
    pub columns: Vec<Column>,
    /// `selectableFields`: JSON paths without the leading dot.
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

    /// A served version with a schema in JSON.
    pub fn encoded(name: Text, encoded: Bytes) -> Version {
        Version {
            release: Release::default(),
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
        if let Some(built_in) = self.built_in {
            return built_in.type_schema();
        }
        machinery::value::decode(&self.encoded).unwrap_or_default()
    }

    /// Takes over the id and the program of `before`, which equals this version: cached renditions stay valid.
    pub fn continuing(mut self, before: &Version) -> Version {
        self.id = before.id;
        self.program = before.program.clone();
        self
    }

    /// The compiled schema; compiled on first use.
    pub fn program(&self) -> &Program {
        self.program.get_or_init(|| {
            if let Some(built_in) = self.built_in {
                return Program::built_in(built_in.structure());
            }
            let (preserve_unknown_fields, scale) = (self.preserve_unknown_fields, self.scale.clone());
            Program::of(&self.encoded, &CompileOptions { preserve_unknown_fields, scale, release: self.release })
        })
    }
}
