//! The shapes of typed API objects: which fields they have, of which Go types, and when they are printed.
//!
//! [`read`](read()) does to a tree what decoding into a Go struct and encoding it again does: it drops unknown fields and reports
//! their paths, refuses wrong types in the words of Go's decoder, and normalises what is left.
//! Invariant: shapes are static data; reading is one recursive walk over (value, shape).

mod common;
mod definition;
mod duplicates;
mod error;
mod joined;
mod metadata;
mod numbers;
mod read;
mod same;
mod table;
mod types;

pub use common::{
    CONDITION, DELETE_OPTIONS, LABEL_SELECTOR, LABEL_SELECTORS, LOCAL_REFERENCE, OBJECT_REFERENCE, SCALE,
};
pub use definition::{DEFINITION, DEFINITION_BETA, VALIDATION};
pub use duplicates::sees_duplicate;
pub use error::{TypeError, TypeProblem, first_conversion_error, first_error, first_error_in};
pub use joined::joined;
pub use machinery::time::{normal_micro_time, normal_time};
pub use metadata::{MANAGED_FIELDS_ENTRY, OBJECT_META};
pub use numbers::{convert_numbers, convert_whole_numbers};
pub use read::{Keys, Read, read, read_request, read_request_as, read_stored};
pub use same::{same, same_fields};
pub use table::named;
pub(crate) use types::has_one_owner;
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
    /// `items`: the struct or a list of it; anything else is nothing.
    OrList(&'static Struct),
    /// `dependencies`: the struct or a list of strings; anything else is nothing.
    OrTexts(&'static Struct),
}

/// A Go struct.
pub struct Struct {
    /// The bare name, as errors of its fields show it; with `v1.` in front as errors of its own show it.
    pub name: &'static str,
    /// Sorted by name.
    pub fields: &'static [Field],
}

impl Struct {
    /// The field of a name.
    pub(crate) fn field(&self, name: &str) -> Option<&'static Field> {
        let found = self.fields.binary_search_by(|field| field.name.cmp(name)).ok()?;
        self.fields.get(found)
    }
}

pub struct Field {
    pub name: &'static str,
    pub shape: Shape,
    pub print: Print,
    pub merge: Merge,
    /// The value that a key without the field is treated as having.
    pub key_default: Option<&'static str>,
    /// The embedded Go structs that the field comes from, as errors show them: each ends with a dot.
    pub embedded: &'static str,
}

/// How a list or a struct is merged where that is not what its shape says: lists as a whole, structs by field.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Merge {
    Plain,
    /// A list of different scalars.
    Set,
    /// A list of structs with one key field.
    Keyed(&'static str),
    /// The same, in strategic merge patches as well.
    Patched(&'static str),
    /// A list of structs with several key fields; strategic merge patches use the first one only.
    PatchedByAll(&'static [&'static str]),
    /// The same as `Patched` for structs that have one owner each.
    PatchedWhole(&'static str),
    /// A struct that has one owner.
    Atomic,
    /// As the table of Go types says; the second is whether the struct, or each item of the list, has one owner.
    Table(&'static machinery::types::Merging, bool),
}

impl Field {
    #[must_use]
    pub const fn merged(self, merge: Merge) -> Field {
        Field { merge, ..self }
    }

    /// The same field, with the value that a key without it is treated as having.
    #[must_use]
    pub const fn or(self, key_default: &'static str) -> Field {
        Field { key_default: Some(key_default), ..self }
    }

    #[must_use]
    pub const fn embedded(self, structs: &'static str) -> Field {
        Field { embedded: structs, ..self }
    }
}

/// When a field is printed.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Print {
    /// Also if it is absent, with its zero value.
    Always,
    /// Unless it is empty.
    NonEmpty,
    /// If it is given: a pointer.
    Given,
    /// A pointer that is printed as null if it is not given.
    OrNull,
}

pub const TEXT: Shape = Shape::Text("string");

pub const fn always(name: &'static str, shape: Shape) -> Field {
    Field { name, shape, print: Print::Always, merge: Merge::Plain, key_default: None, embedded: "" }
}

pub const fn non_empty(name: &'static str, shape: Shape) -> Field {
    Field { name, shape, print: Print::NonEmpty, merge: Merge::Plain, key_default: None, embedded: "" }
}

pub const fn given(name: &'static str, shape: Shape) -> Field {
    Field { name, shape, print: Print::Given, merge: Merge::Plain, key_default: None, embedded: "" }
}

pub const fn texts() -> Shape {
    Shape::List("[]string", &TEXT)
}
