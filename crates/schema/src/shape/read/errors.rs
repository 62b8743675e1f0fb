//! The type errors of the reader.

use super::Reader;
use crate::limits::TYPE_ERRORS_MAX;
use crate::shape::Field;
use crate::shape::error::{Conversion, Decoding, TypeError, TypeProblem};
use machinery::value::PATHS_BYTES_MAX;
use machinery::{Text, Value};

impl Reader {
    /// Adds the error of a type that decodes itself, by an `UnmarshalJSON` method in Go.
    pub(super) fn fail(&mut self, message: String) {
        self.add_error(TypeProblem::Rejected(message.into()), Conversion::Same, Decoding::Ends);
    }

    /// Adds an error. Only one of the errors is reported; the others are kept to find the one that comes first in the
    /// document. So beyond [`TYPE_ERRORS_MAX`] and [`PATHS_BYTES_MAX`] errors are dropped, unless none has been added yet
    /// that ends decoding, or none that does not.
    pub(super) fn add_error(&mut self, problem: TypeProblem, conversion: Conversion, decoding: Decoding) {
        self.error_bytes += self.path.len();
        let is_full = self.errors.len() >= TYPE_ERRORS_MAX || self.error_bytes > PATHS_BYTES_MAX;
        let seen = match decoding {
            Decoding::Ends => &mut self.has_ending,
            Decoding::Continues => &mut self.has_other,
        };
        if std::mem::replace(seen, true) && is_full {
            return;
        }
        // the errors of a long list are often the same one, whose texts would take memory for each item
        let problem = match self.errors.last() {
            Some(last) if last.problem == problem => last.problem.clone(),
            _ => problem,
        };
        self.errors.push(TypeError { path: self.path.clone(), problem, conversion, decoding });
    }

    /// Adds the error of a value that does not fit the Go type `go`, whose `reflect.Kind` is `kind`.
    pub(super) fn mismatch(&mut self, value: &Value, go: &str, kind: &str) {
        self.mismatched(value, go, conversion(value, go, kind), Decoding::Continues);
    }

    /// As [`Reader::mismatch`], inside a type that decodes itself, where a mismatch ends decoding.
    pub(super) fn own_mismatch(&mut self, value: &Value, go: &str) {
        self.mismatched(value, go, Conversion::Decoding, Decoding::Ends);
    }

    fn mismatched(&mut self, value: &Value, go: &str, conversion: Conversion, decoding: Decoding) {
        let found = match value {
            Value::Int(_) | Value::Float(_) if matches!(go, "int32" | "int64" | "uint8") => {
                format!("number {}", literal(value)).into()
            }
            other => Text::new_static(other.json_type()),
        };
        let joined = |name: &str, fields: &[&Field]| {
            let path: Vec<String> = fields.iter().map(|f| format!("{}{}", f.embedded, f.name)).collect();
            if path.is_empty() { Text::default() } else { format!("{name}.{}", path.join(".")).into() }
        };
        // Go names one struct, the innermost, but all fields from the root. An error inside a type that decodes itself
        // names the struct around that type.
        let named = self.outer.map(|outer| outer.name).or(self.structs.last().copied());
        let field = named.map(|name| joined(name, &self.fields)).unwrap_or_default();
        let conversion = match self.outer {
            Some(outer) => Conversion::DecodingField(joined(outer.name, &self.fields[outer.depth..])),
            None => conversion,
        };
        self.add_error(TypeProblem::Mismatch { found, field, wanted: go.into() }, conversion, decoding);
    }
}

/// The number as it was most likely written, which a value does not hold: a whole float as `1.0`, unless it is so large
/// that integers become floats, too.
fn literal(value: &Value) -> String {
    match value {
        Value::Float(f) if f.fract() == 0.0 && f.abs() < 9e18 => format!("{f}.0"),
        Value::Float(f) if f.fract() == 0.0 && f.abs() < 1e21 => format!("{f:.0}"),
        other => other.to_json(),
    }
}

/// The error of converting a value to a Go type of this kind. Its wording depends on whether Go can convert the types at
/// all, which it can from numbers to other numbers, and from integers to strings.
fn conversion(value: &Value, go: &str, kind: &str) -> Conversion {
    let found = match value {
        Value::Int(_) => "int64",
        Value::Float(_) => "float64",
        Value::Array(_) => "slice",
        Value::Object(_) => "map",
        other => other.json_type(),
    };
    let to = |what| Conversion::To { what, wanted: go.into() };
    match (kind, value) {
        ("map" | "slice", _) => Conversion::Other(format!("cannot restore {kind} from {found}").into()),
        ("struct", _) => Conversion::Other(format!("cannot restore struct from: {found}").into()),
        (kind, Value::Int(_)) if kind != "bool" => to("cannot convert int64 to "),
        (kind, Value::Float(_)) if !matches!(kind, "bool" | "string") => to("cannot convert float64 to "),
        _ => Conversion::Other(format!("unrecognized type: {kind}").into()),
    }
}
