//! The type errors of the reader.

use super::Reader;
use crate::limits::TYPE_ERRORS_MAX;
use crate::shape::Field;
use crate::shape::error::{Conversion, TypeError, TypeProblem};
use machinery::value::PATHS_BYTES_MAX;
use machinery::{Text, Value};

impl Reader {
    /// Adds the error of a type that decodes itself.
    pub(super) fn fail(&mut self, message: String) {
        self.add_error(TypeProblem::Rejected(message.into()), Conversion::Same, true);
    }

    /// Adds an error. Errors beyond [`TYPE_ERRORS_MAX`] and [`PATHS_BYTES_MAX`] are dropped, except for the first that
    /// ends decoding and the first that does not, since only one is reported.
    pub(super) fn add_error(&mut self, problem: TypeProblem, conversion: Conversion, ends: bool) {
        self.error_bytes += self.path.len();
        let is_full = self.errors.len() >= TYPE_ERRORS_MAX || self.error_bytes > PATHS_BYTES_MAX;
        let has_such = if ends { &mut self.has_ending } else { &mut self.has_other };
        if std::mem::replace(has_such, true) && is_full {
            return;
        }
        // successive errors of a map or a list often have the same problem, and then share its texts
        let problem = match self.errors.last() {
            Some(last) if last.problem == problem => last.problem.clone(),
            _ => problem,
        };
        self.errors.push(TypeError { path: self.path.clone(), problem, conversion, ends });
    }

    /// Adds the error of a value that does not fit the Go type `go`, whose `reflect.Kind` is `kind`.
    pub(super) fn mismatch(&mut self, value: &Value, go: &str, kind: &str) {
        self.mismatched(value, go, conversion(value, go, kind), false);
    }

    /// The same inside of a type that decodes itself.
    pub(super) fn own_mismatch(&mut self, value: &Value, go: &str) {
        self.mismatched(value, go, Conversion::Decoding, true);
    }

    fn mismatched(&mut self, value: &Value, go: &str, conversion: Conversion, ends: bool) {
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
        let outermost = self.outer.map(|outer| outer.name).or(self.structs.last().copied());
        let field = outermost.map(|name| joined(name, &self.fields)).unwrap_or_default();
        let conversion = match self.outer {
            Some(outer) => Conversion::DecodingField(joined(outer.name, &self.fields[outer.depth..])),
            None => conversion,
        };
        self.add_error(TypeProblem::Mismatch { found, field, wanted: go.into() }, conversion, ends);
    }
}

/// The most likely literal of a number: a float without a fraction was written with one.
fn literal(value: &Value) -> String {
    match value {
        Value::Float(f) if f.fract() == 0.0 && f.abs() < 9e18 => format!("{f}.0"),
        Value::Float(f) if f.fract() == 0.0 && f.abs() < 1e21 => format!("{f:.0}"),
        other => other.to_json(),
    }
}

/// The error of converting a value to a Go type of this kind. Go only converts numbers to other numbers, and whole
/// numbers to texts.
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
