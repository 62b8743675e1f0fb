//! Type errors of objects that are read by a shape, in the words of kube-apiserver.

use machinery::types::typed_text;
use machinery::value::{KeyOrder, key_order};
use machinery::{Text, Value};

/// The error of a field that has the wrong type.
#[derive(Debug)]
pub struct TypeError {
    /// The position of the value: `spec.list[0].a`.
    pub path: String,
    pub problem: TypeProblem,
    /// The error that is reported instead when maps are converted to structs.
    pub(super) conversion: Conversion,
    pub(super) decoding: Decoding,
}

/// How decoding goes on after an error.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Decoding {
    /// With the next value.
    Continues,
    /// Not at all, since the value decodes itself. Its error is reported whatever was found before.
    Ends,
}

/// Why a value does not fit its type.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TypeProblem {
    /// The Go type of the field is a different one.
    Mismatch {
        /// The JSON type. If a number does not fit an integer, the literal is included.
        found: Text,
        /// The field of a Go struct; empty if the value is not in a struct.
        field: Text,
        /// The Go type.
        wanted: Text,
    },
    /// A text that is not base64. Decoding fails at this byte.
    InvalidBase64 { at: usize },
    /// The error of a type that decodes itself, such as a time.
    Rejected(Text),
}

/// The error that the conversion of maps to structs reports.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Conversion {
    /// A value cannot be converted to this Go type. `what` is the text before the type.
    To {
        what: &'static str,
        wanted: Text,
    },
    /// The error of a type that decodes itself, from JSON.
    Decoding,
    /// As `Decoding`, for a field of the Go struct that the type decodes to; empty for the value itself.
    DecodingField(Text),
    /// The same error as decoding reports.
    Same,
    Other(Text),
}

impl TypeError {
    /// The error with the types of the kind, but not those of metadata, in a Go package other than `v1`.
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

/// The type error to report for a document whose keys have this order: the first that ends decoding, or else the first.
/// Without an order, the keys are sorted, as in the tree.
pub fn first_error(errors: &[TypeError], order: Option<&KeyOrder>) -> Option<String> {
    reported(errors, order).map(TypeError::message)
}

/// The type error to report for a JSON document with this text.
pub fn first_error_in(errors: &[TypeError], text: &[u8]) -> Option<String> {
    let order = (errors.len() > 1).then(|| key_order(text));
    first_error(errors, order.as_ref())
}

/// The error to report where maps become structs, as in strategic merge patches and applies. `value`, which has these
/// errors, is not decoded but converted to the type `go_type`. The first field of the Go struct that cannot be
/// converted is reported.
pub fn first_conversion_error(errors: &[TypeError], value: &Value, go_type: &str) -> Option<String> {
    let order = (errors.len() > 1).then(|| key_order(typed_text(value, go_type).as_bytes()));
    let position = |error: &&TypeError| order.as_ref().map_or(0, |order| place(&error.path, order));
    errors.iter().min_by_key(position).map(TypeError::conversion_message)
}

fn reported<'a>(errors: &'a [TypeError], order: Option<&KeyOrder>) -> Option<&'a TypeError> {
    let place = |error: &&TypeError| order.map_or(u32::MAX, |order| place(&error.path, order));
    let ending = errors.iter().filter(|error| error.decoding == Decoding::Ends).min_by_key(place);
    ending.or_else(|| errors.iter().min_by_key(place))
}

/// The position of the value of a path in a document. If the path is repeated, the last one counts. If it does not
/// exist, the position is that of its nearest ancestor.
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
