//! Decoding a tree as a typed object.

mod errors;
mod exact;
mod print;
mod scalars;
#[cfg(test)]
mod tests;

use machinery::value::Paths;
use machinery::{Map, Value};

pub use exact::is_exact;

use super::error::{Conversion, Decoding, TypeError, first_error};
use super::{Field, Shape, Struct};
use print::{absent, printed, zero, zero_value};

/// The result of reading: the normalised object, the paths of unknown fields in the order of the (sorted) tree, and the
/// type error to report.
#[derive(Debug, Default)]
pub struct Read {
    pub value: Value,
    pub unknown: Vec<String>,
    pub error: Option<String>,
    /// All type errors, in the order of the (sorted) tree.
    pub errors: Vec<TypeError>,
}

pub fn read(value: &Value, shape: &'static Struct) -> Read {
    Reader::new(Some(Paths::default()), Empty::AsPrinted).read(value, shape)
}

/// As [`read`], for an object that has been stored, which makes empty lists and maps absent.
pub fn read_stored(value: &Value, shape: &'static Struct) -> Value {
    Reader::new(None, Empty::Forgotten).read(value, shape).value
}

/// As [`read`], but keeps what the typed object holds although its JSON does not show it, since validation sees it:
/// empty lists and maps, and `items` that are neither a schema nor a list of schemas, as null.
pub fn read_request(value: &Value, shape: &'static Struct) -> Read {
    read_request_as(value, shape, Keys::Included)
}

/// As [`read_request`], with or without the keys of maps in the paths of unknown fields.
pub fn read_request_as(value: &Value, shape: &'static Struct, keys: Keys) -> Read {
    Reader { keys, ..Reader::new(Some(Paths::default()), Empty::Kept) }.read(value, shape)
}

/// Whether the paths of unknown fields include the keys of maps.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Keys {
    #[default]
    Included,
    Omitted,
}

/// How empty lists and maps are treated.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Empty {
    AsPrinted,
    Kept,
    Forgotten,
}

struct Reader {
    /// The paths of unknown fields; `None` where kube-apiserver does not look for them.
    unknown: Option<Paths>,
    errors: Vec<TypeError>,
    /// The total size of the paths of the errors, in bytes.
    error_bytes: usize,
    /// Whether an error has been found that ends decoding.
    has_ending: bool,
    /// Whether an error has been found that does not end decoding.
    has_other: bool,
    /// The fields on the way from the root to the value, for type errors.
    fields: Vec<&'static Field>,
    /// The names of the structs on the way from the root to the value.
    structs: Vec<&'static str>,
    /// Set inside a type that decodes itself.
    outer: Option<Outer>,
    path: String,
    empty: Empty,
    keys: Keys,
}

/// The struct that contains the outermost type which decodes itself. Errors inside that type name this struct.
#[derive(Clone, Copy)]
struct Outer {
    name: &'static str,
    /// How many fields lead from the root to the type that decodes itself.
    depth: usize,
}

impl Reader {
    fn new(unknown: Option<Paths>, empty: Empty) -> Reader {
        Reader {
            unknown,
            errors: vec![],
            error_bytes: 0,
            has_ending: false,
            has_other: false,
            fields: vec![],
            structs: vec![],
            outer: None,
            path: String::new(),
            empty,
            keys: Keys::Included,
        }
    }

    fn read(mut self, value: &Value, shape: &'static Struct) -> Read {
        let value = self.structure(value, shape).unwrap_or_else(|| zero(shape));
        let error = first_error(&self.errors, None);
        Read { value, unknown: self.unknown.unwrap_or_default().into_list(), error, errors: self.errors }
    }

    fn structure(&mut self, value: &Value, shape: &'static Struct) -> Option<Value> {
        let map = match value {
            Value::Null => return None,
            Value::Object(map) => map,
            other => {
                self.mismatch(other, &format!("v1.{}", shape.name()), "struct");
                return None;
            }
        };
        self.structs.push(shape.name());
        // Both lists of fields are sorted by name, and few fields of a large struct are given.
        let mut left = shape.fields();
        let mut out = Vec::with_capacity(map.len());
        for (key, inner) in map.iter() {
            let before = left.partition_point(|field| field.name < key.as_str());
            absent(&left[..before], &mut out);
            left = &left[before..];
            let Some((field, rest)) = left.split_first().filter(|(field, _)| field.name == key.as_str()) else {
                self.unknown(key);
                continue;
            };
            left = rest;
            let read = if inner.is_null() { None } else { self.field(field, inner) };
            if let Some(value) = printed(field, read, self.empty) {
                out.push((key.clone(), value));
            }
        }
        absent(left, &mut out);
        self.structs.pop();
        Some(Value::Object(Map::from_entries(out, |_| {})))
    }

    fn field(&mut self, field: &'static Field, value: &Value) -> Option<Value> {
        let length = self.path.len();
        self.fields.push(field);
        self.down(field.name);
        let read = self.value(value, &field.shape);
        self.path.truncate(length);
        self.fields.pop();
        read
    }

    fn unknown(&mut self, key: &str) {
        if let Some(unknown) = &mut self.unknown {
            let path = &self.path;
            unknown.add(|| if path.is_empty() { key.to_owned() } else { format!("{path}.{key}") });
        }
    }

    fn down(&mut self, name: &str) {
        if !self.path.is_empty() {
            self.path.push('.');
        }
        self.path.push_str(name);
    }

    /// Reads a value inside a type that decodes itself. Unknown fields are not reported there, and an error ends
    /// decoding.
    fn apart(&mut self, value: &Value, shape: &'static Struct) -> Option<Value> {
        let innermost = self.structs.last().map(|name| Outer { name, depth: self.fields.len() });
        let outer = self.outer.or(innermost);
        let (unknown, start) = (self.unknown.take(), self.errors.len());
        let outer_before = std::mem::replace(&mut self.outer, outer);
        let read = self.structure(value, shape);
        (self.unknown, self.outer) = (unknown, outer_before);
        if self.errors[start..].iter().any(|error| error.decoding == Decoding::Ends) {
            let inner = self.errors.split_off(start);
            self.errors.extend(inner.into_iter().filter(|error| error.decoding == Decoding::Ends));
        }
        self.errors[start..].iter_mut().for_each(|error| error.decoding = Decoding::Ends);
        read
    }

    fn value(&mut self, value: &Value, shape: &'static Shape) -> Option<Value> {
        match shape {
            Shape::Any => Some(value.clone()),
            Shape::IntOrString if value.as_str().is_some() => Some(value.clone()),
            Shape::IntOrString => {
                let read = self.scalar(value, &Shape::Int32);
                if let (None, Some(error)) = (&read, self.errors.last_mut()) {
                    // IntOrString decodes itself
                    (error.conversion, error.decoding) = (Conversion::Decoding, Decoding::Ends);
                }
                read
            }
            Shape::Struct(inner) => self.structure(value, inner),
            Shape::List(go, item) => self.list(value, go, item),
            Shape::Map(go, item) => self.map(value, go, item),
            Shape::OrBool(inner) => match value {
                Value::Bool(_) => Some(value.clone()),
                Value::Object(_) => self.apart(value, inner),
                _ => {
                    self.fail("boolean or JSON schema expected".to_owned());
                    None
                }
            },
            Shape::OrList(inner) => match value {
                Value::Object(_) => self.apart(value, inner),
                Value::Array(items) if !items.is_empty() => {
                    Some(items.iter().map(|item| self.apart(item, inner).unwrap_or_else(|| zero(inner))).collect())
                }
                Value::Array(_) if self.empty == Empty::Kept => Some(value.clone()),
                _ if self.empty == Empty::Kept => Some(Value::Null),
                _ => None,
            },
            Shape::OrTexts(inner) => Some(match value {
                Value::Object(_) => self.apart(value, inner).unwrap_or_default(),
                Value::Array(items) => items.iter().map(|item| self.text(item)).collect(),
                _ => Value::Null,
            }),
            scalar => self.scalar(value, scalar),
        }
    }

    fn list(&mut self, value: &Value, go: &str, item: &'static Shape) -> Option<Value> {
        let Value::Array(items) = value else {
            self.mismatch(value, go, "slice");
            return None;
        };
        let length = self.path.len();
        let mut out = Vec::with_capacity(items.len());
        for (i, inner) in items.iter().enumerate() {
            self.path.push_str(&format!("[{i}]"));
            let read = if inner.is_null() { None } else { self.value(inner, item) };
            self.path.truncate(length);
            out.push(read.unwrap_or_else(|| zero_value(item)));
        }
        Some(Value::Array(out))
    }

    fn map(&mut self, value: &Value, go: &str, item: &'static Shape) -> Option<Value> {
        let Value::Object(map) = value else {
            self.mismatch(value, go, "map");
            return None;
        };
        let length = self.path.len();
        let mut out = vec![];
        for (key, inner) in map.iter() {
            if self.keys == Keys::Included {
                self.down(key);
            }
            let read = if inner.is_null() { None } else { self.value(inner, item) };
            self.path.truncate(length);
            let none = || match item {
                Shape::Bytes if self.empty == Empty::Forgotten => Value::from(""),
                _ => zero_value(item),
            };
            out.push((key.clone(), read.unwrap_or_else(none)));
        }
        Some(Value::Object(out.into_iter().collect()))
    }
}
