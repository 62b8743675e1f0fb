//! The shapes of typed API objects: which members they have, of which Go types, and when they are printed.
//!
//! [`read`](read()) does to a tree what decoding into a Go struct and encoding it again does: it drops unknown members and tells
//! their paths, refuses wrong types in the words of Go's decoder, and normalises what is left.
//! Invariant: shapes are static data; reading is one recursive walk over (value, shape).

mod definition;
mod metadata;
mod read;
mod time;

pub use definition::{DEFINITION, DEFINITION_BETA, VALIDATION};
pub use metadata::OBJECT_META;
pub use read::{Read, read, read_request, sees_duplicate};
pub use time::{days_in, normal_time};

/// The type of a member.
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
    /// The bare name, as errors of its members show it; with `v1.` in front as errors of its own show it.
    pub name: &'static str,
    /// Sorted by name.
    pub fields: &'static [Field],
}

pub struct Field {
    pub name: &'static str,
    pub shape: Shape,
    pub print: Print,
}

/// When a member is printed.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Print {
    /// Also if it is absent, with its zero value.
    Always,
    /// Unless it is empty.
    NonEmpty,
    /// If it is given: a pointer.
    Given,
}

pub const TEXT: Shape = Shape::Text("string");

pub const fn always(name: &'static str, shape: Shape) -> Field {
    Field { name, shape, print: Print::Always }
}

pub const fn non_empty(name: &'static str, shape: Shape) -> Field {
    Field { name, shape, print: Print::NonEmpty }
}

pub const fn given(name: &'static str, shape: Shape) -> Field {
    Field { name, shape, print: Print::Given }
}

pub const fn texts() -> Shape {
    Shape::List("[]string", &TEXT)
}
