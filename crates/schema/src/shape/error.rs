//! Type errors of objects that are read by a shape, and how kube-apiserver words them.

use machinery::types::typed_text;
use machinery::value::{KeyOrder, key_order};
use machinery::{Text, Value};

/// A field of a wrong type.
#[derive(Debug)]
pub struct TypeError {
    /// The position of the value: `spec.list[0].a`.
    pub path: String,
    pub problem: TypeProblem,
    /// The error that the conversion of maps to structs reports instead.
    pub(super) conversion: Conversion,
    /// The value decodes itself: decoding ends here, and this is reported whatever came before.
    pub(super) ends: bool,
}

/// The problem of a value that does not fit its type.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TypeProblem {
    /// A value of another type than its field has in Go.
    Mismatch {
        /// The JSON type, with the literal if it is a number for an integer.
        found: Text,
        /// The field of a Go struct; empty if the value is in none.
        field: Text,
        /// The Go type.
        wanted: Text,
    },
    /// A text that is not base64, up to this byte.
    InvalidBase64 { at: usize },
    /// The error of a type that decodes itself, such as a time.
    Rejected(Text),
}

/// The error of the conversion of maps to structs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Conversion {
    /// A value that does not become one of this Go type; `what` is what comes before the type.
    To {
        what: &'static str,
        wanted: Text,
    },
    /// The error of a type that decodes itself, from JSON.
    Decoding,
    /// The same of a field of the Go struct that the type decodes to; empty for the value itself.
    DecodingField(Text),
    /// The same as decoding.
    Same,
    Other(Text),
}

impl TypeError {
    /// The error with the types of the kind, though not those of metadata, in another Go package than `v1`.
    pub fn in_package(mut self, package: &str) -> TypeError {
        if self.path.starts_with("metadata") {
            return self;
        }
        let moved = |wanted: &Text| Text::from(wanted.replace("v1.", &format!("{package}.")));
        if let TypeProblem::Mismatch { wanted, .. } = &mut self.problem {
            *wanted = moved(wanted);
        }
        if let Conversion::To { wanted, .. } = &mut self.conversion {
            *wanted = moved(wanted);
        }
        self
    }

    fn message(&self) -> String {
        match &self.problem {
            TypeProblem::Mismatch { found, field, wanted } if field.is_empty() => unmarshal(found, wanted),
            TypeProblem::Mismatch { found, field, wanted } => {
                format!("json: cannot unmarshal {found} into Go struct field {field} of type {wanted}")
            }
            TypeProblem::InvalidBase64 { at } => format!("illegal base64 data at input byte {at}"),
            TypeProblem::Rejected(why) => why.to_string(),
        }
    }

    fn conversion_message(&self) -> String {
        match (&self.conversion, &self.problem) {
            (Conversion::To { what, wanted }, _) => format!("{what}{wanted}"),
            (Conversion::Decoding, TypeProblem::Mismatch { found, wanted, .. }) => unmarshal(found, wanted),
            (Conversion::DecodingField(field), TypeProblem::Mismatch { found, wanted, .. }) if !field.is_empty() => {
                format!("json: cannot unmarshal {found} into Go struct field {field} of type {wanted}")
            }
            (Conversion::DecodingField(_), TypeProblem::Mismatch { found, wanted, .. }) => unmarshal(found, wanted),
            (Conversion::Decoding | Conversion::DecodingField(_), _) => {
                format!("error decoding from json: {}", self.message())
            }
            (Conversion::Same, _) => self.message(),
            (Conversion::Other(text), _) => text.to_string(),
        }
    }
}

fn unmarshal(found: &str, wanted: &str) -> String {
    format!("json: cannot unmarshal {found} into Go value of type {wanted}")
}

/// The type error that is reported of a document whose keys stand in this order: the first that ends decoding, else the
/// first. Without an order the keys stand as in the tree, which is sorted.
pub fn first_error(errors: &[TypeError], order: Option<&KeyOrder>) -> Option<String> {
    reported(errors, order).map(TypeError::message)
}

/// The type error that is reported of a JSON document with this text.
pub fn first_error_in(errors: &[TypeError], text: &[u8]) -> Option<String> {
    let order = (errors.len() > 1).then(|| key_order(text));
    first_error(errors, order.as_ref())
}

/// The same where maps become structs, as in strategic merge patches and applies: `value`, which has these errors, is not
/// decoded but converted to the type `go_type`, and the first field of the Go struct that cannot be converted is reported.
pub fn first_conversion_error(errors: &[TypeError], value: &Value, go_type: &str) -> Option<String> {
    let order = (errors.len() > 1).then(|| key_order(typed_text(value, go_type).as_bytes()));
    let position = |error: &&TypeError| order.as_ref().map_or(0, |order| place(&error.path, order));
    errors.iter().min_by_key(position).map(TypeError::conversion_message)
}

fn reported<'a>(errors: &'a [TypeError], order: Option<&KeyOrder>) -> Option<&'a TypeError> {
    let place = |error: &&TypeError| order.map_or(u32::MAX, |order| place(&error.path, order));
    let ending = errors.iter().filter(|error| error.ends).min_by_key(place);
    ending.or_else(|| errors.iter().min_by_key(place))
}

/// The position of a path in a document, where the value stands that counts; that of its nearest ancestor for a path that the
/// document does not have.
fn place(path: &str, order: &KeyOrder) -> u32 {
    let mut path = path;
    loop {
        if let Some(place) = order.last(path) {
            return place;
        }
        let Some(end) = path.rfind(['.', '[']) else { return u32::MAX };
        path = &path[..end];
    }
}
