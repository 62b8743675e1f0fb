//! The shapes of typed API objects: their fields, the Go types of these, and when they are printed.
//!
//! [`read`](read()) does to a tree what decoding into a Go struct and encoding it again does: it drops unknown fields
//! and reports their paths, refuses wrong types in the words of Go's decoder, and normalises what is left. Invariant:
//! shapes are those of the table of Go types, each made once, at its first use; reading is one recursive walk over
//! (value, shape).

mod duplicates;
mod error;
mod joined;
mod numbers;
mod read;
mod same;
mod table;
mod types;

use std::sync::OnceLock;

use machinery::types::{GoBase, GoField, go_struct};

pub use duplicates::sees_duplicate;
pub use error::{TypeError, TypeProblem, first_conversion_error, first_error, first_error_in};
pub use joined::joined;
pub use machinery::time::{normal_micro_time, normal_time};
pub use numbers::{convert_numbers, convert_whole_numbers};
pub use read::{Keys, Read, is_exact, read, read_request, read_request_as, read_stored};
pub use same::{same, same_fields};
pub use table::{named, object_meta};
pub use types::{declared_schema, type_schema};

/// The type of a field.
pub enum Shape {
    /// A string type with its Go name.
    Text(&'static str),
    Bool,
    Int32,
    Int64,
    Float,
    /// Bytes as standard base64.
    Bytes,
    /// A time with a precision of seconds.
    Time,
    /// A time with a precision of microseconds.
    MicroTime,
    /// A number with a suffix, in its canonical form.
    Quantity,
    /// A quantity of a `v1.ResourceList`, which has no parts smaller than a thousandth.
    Amount,
    /// A 32-bit integer or a string.
    IntOrString,
    /// Any JSON, kept as it is.
    Any,
    /// A list: the Go name of the list and the shape of its items.
    List(&'static str, &'static Shape),
    Map(&'static str, &'static Shape),
    Struct(&'static Struct),
    /// `additionalProperties`: a boolean or the struct.
    OrBool(&'static Struct),
    /// `items`: the struct or a list of it; any other value counts as absent.
    OrList(&'static Struct),
    /// `dependencies`: the struct or a list of strings; any other value counts as absent.
    OrTexts(&'static Struct),
}

/// A Go struct.
pub struct Struct {
    /// The Go type, such as `core.v1.Pod`.
    pub go: &'static str,
    fields: OnceLock<Box<[Field]>>,
}

impl Struct {
    /// The name without its package, as errors of the fields show it. Errors of the struct itself put `v1.` in front of
    /// it.
    pub fn name(&self) -> &'static str {
        self.go.rsplit('.').next().unwrap_or(self.go)
    }

    /// The fields, sorted by name.
    pub fn fields(&self) -> &[Field] {
        self.fields.get_or_init(|| table::fields(self.go))
    }

    pub fn field(&self, name: &str) -> Option<&Field> {
        let found = self.fields().binary_search_by(|field| field.name.cmp(name)).ok()?;
        self.fields().get(found)
    }
}

pub struct Field {
    pub name: &'static str,
    pub shape: Shape,
    pub print: Print,
    pub go: &'static GoField,
    /// The embedded Go structs that contain the field, as errors show them: each is followed by a dot.
    pub embedded: Box<str>,
}

impl Field {
    /// The value that an item without this key field is treated as having.
    pub(crate) fn key_default(&self) -> Option<&'static str> {
        self.go.default.map(|json| json.trim_matches('"'))
    }

    /// Whether the value, or each item of the list, has a single owner.
    pub(crate) fn is_whole(&self) -> bool {
        match self.go.go_type.base {
            _ if self.go.merging.map_type == "granular" => false,
            GoBase::Struct("runtime.RawExtension") => true,
            GoBase::Struct(name) => go_struct(name).is_some_and(|inner| inner.is_atomic),
            _ => false,
        }
    }
}

/// When a field is printed.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Print {
    /// Always. An absent field is printed with its zero value.
    Always,
    /// Unless it is empty.
    NonEmpty,
    /// If it is given. The field is a pointer.
    Given,
    /// Always. The field is a pointer, and null is printed if it is not given.
    OrNull,
}
