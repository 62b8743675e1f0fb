//! The value tree that every Kubernetes object is made of.
//!
//! A number is an integer exactly when its literal has neither fraction nor exponent and fits an `i64`; any other
//! number is a float. The fields of objects are kept sorted by key, as they are on the wire.

mod decode;
mod encode;
mod error;
mod keys;
mod map;
mod scan;
pub mod shortest;
pub mod skim;

pub(crate) use decode::lossy;
pub use decode::{DEPTH_MAX, Decoded, decode, decode_every, decode_managed, decode_strict, key_order};
pub use encode::{float_text, go_escape, quote, quote_list, write_json, write_json_string};
pub use error::{JsonError, JsonProblem};
pub use keys::{KeyOrder, PATHS_BYTES_MAX, Paths, STRICT_ERRORS_MAX};
pub use map::{Map, find_sorted};

/// Immutable text: short text is stored in place, long text is shared, so that cloning never copies it.
pub type Text = smol_str::SmolStr;

/// One JSON value. Maps are sorted vectors, see [`Map`].
#[derive(Clone, Debug, Default)]
pub enum Value {
    /// `null`
    #[default]
    Null,
    /// `true` or `false`
    Bool(bool),
    /// A number that is a 64-bit integer.
    Int(i64),
    /// Any other number.
    Float(f64),
    /// A string.
    String(Text),
    /// An array.
    Array(Vec<Value>),
    /// An object, sorted by key.
    Object(Map),
    /// An object as its compact JSON, sorted by key. Only `fieldsV1` of managedFields has this form: it has as many nodes as
    /// the object that it describes, and nearly every write passes it on unread.
    Encoded(Text),
}

impl PartialEq for Value {
    fn eq(&self, other: &Value) -> bool {
        match (self, other) {
            (Value::Null, Value::Null) => true,
            (Value::Bool(a), Value::Bool(b)) => a == b,
            (Value::Int(a), Value::Int(b)) => a == b,
            (Value::Float(a), Value::Float(b)) => a == b,
            (Value::String(a), Value::String(b)) => a == b,
            (Value::Array(a), Value::Array(b)) => a == b,
            (Value::Object(a), Value::Object(b)) => a == b,
            (Value::Encoded(a), Value::Encoded(b)) if a == b => true,
            (Value::Encoded(text), other @ (Value::Object(_) | Value::Encoded(_)))
            | (other @ Value::Object(_), Value::Encoded(text)) => Value::of_encoded(text) == *other,
            _ => false,
        }
    }
}

impl Value {
    /// An empty object.
    pub fn object() -> Value {
        Value::Object(Map::new())
    }

    /// The object that the text of [`Value::Encoded`] stands for.
    pub fn of_encoded(text: &str) -> Value {
        decode(text.as_bytes()).unwrap_or_default()
    }

    /// Decodes every part that is [`Value::Encoded`], so that paths lead into it.
    pub fn decode_parts(&mut self) {
        match self {
            Value::Array(items) => items.iter_mut().for_each(Value::decode_parts),
            Value::Object(map) => map.values_mut().for_each(Value::decode_parts),
            Value::Encoded(text) => *self = Value::of_encoded(text),
            _ => {}
        }
    }

    /// Whether there is an empty list or map anywhere in the value outside of [`Value::Encoded`], where they are never
    /// omitted.
    #[must_use]
    pub fn has_empty(&self) -> bool {
        match self {
            Value::Array(items) => items.is_empty() || items.iter().any(Value::has_empty),
            Value::Object(map) => map.is_empty() || map.iter().any(|(_, value)| value.has_empty()),
            _ => false,
        }
    }

    /// Whether the value is a list or an object with nothing in it.
    pub fn is_empty_container(&self) -> bool {
        match self {
            Value::Array(items) => items.is_empty(),
            Value::Object(map) => map.is_empty(),
            _ => false,
        }
    }

    /// Whether the value is null.
    pub fn is_null(&self) -> bool {
        matches!(self, Value::Null)
    }

    /// The boolean, if the value is one.
    pub fn as_bool(&self) -> Option<bool> {
        if let Value::Bool(b) = self { Some(*b) } else { None }
    }

    /// The integer, if the value is one; floats without a fraction are not.
    pub fn as_int(&self) -> Option<i64> {
        if let Value::Int(i) = self { Some(*i) } else { None }
    }

    /// The number as a float, whichever kind it is.
    pub fn as_float(&self) -> Option<f64> {
        match self {
            Value::Int(i) => Some(*i as f64),
            Value::Float(f) => Some(*f),
            _ => None,
        }
    }

    /// The string, if the value is one.
    pub fn as_str(&self) -> Option<&str> {
        if let Value::String(s) = self { Some(s) } else { None }
    }

    /// The items, if the value is an array.
    pub fn as_array(&self) -> Option<&[Value]> {
        if let Value::Array(a) = self { Some(a) } else { None }
    }

    /// The items, if the value is an array, for changes.
    pub fn as_array_mut(&mut self) -> Option<&mut Vec<Value>> {
        if let Value::Array(a) = self { Some(a) } else { None }
    }

    /// The fields, if the value is an object.
    pub fn as_object(&self) -> Option<&Map> {
        if let Value::Object(m) = self { Some(m) } else { None }
    }

    /// The fields, if the value is an object, for changes.
    pub fn as_object_mut(&mut self) -> Option<&mut Map> {
        if let Value::Object(m) = self { Some(m) } else { None }
    }

    /// The field `key` of an object; `None` for anything else.
    pub fn get(&self, key: &str) -> Option<&Value> {
        self.as_object()?.get(key)
    }

    /// The value of the field `key`, for changes; `None` if the value is no object or has no such field.
    pub fn get_mut(&mut self, key: &str) -> Option<&mut Value> {
        self.as_object_mut()?.get_mut(key)
    }

    /// The value at `path`. Only objects are traversed.
    pub fn at(&self, path: &[&str]) -> Option<&Value> {
        path.iter().try_fold(self, |value, key| value.get(key))
    }

    /// The text below `path`, or `""` if there is none.
    pub fn str_at(&self, path: &[&str]) -> &str {
        self.at(path).and_then(Value::as_str).unwrap_or_default()
    }

    /// The number below `path`, or 0 if there is none.
    pub fn int_at(&self, path: &[&str]) -> i64 {
        self.at(path).and_then(Value::as_int).unwrap_or_default()
    }

    /// Whether the value below `path` is `true`.
    pub fn is_true_at(&self, path: &[&str]) -> bool {
        self.at(path) == Some(&Value::Bool(true))
    }

    /// The fields of an object; none if it is another value.
    pub fn fields(&self) -> impl Iterator<Item = (&Text, &Value)> {
        self.as_object().into_iter().flat_map(Map::iter)
    }

    /// The fields of the object below `path`; none if there is no object.
    pub fn fields_at<'a>(&'a self, path: &[&str]) -> impl Iterator<Item = (&'a Text, &'a Value)> + use<'a> {
        self.at(path).into_iter().flat_map(Value::fields)
    }

    /// The items of the list below `path`; none if there is no list.
    pub fn items_at(&self, path: &[&str]) -> &[Value] {
        self.at(path).and_then(Value::as_array).unwrap_or_default()
    }

    /// The texts in the list below `path`.
    pub fn texts_at<'a>(&'a self, path: &[&str]) -> impl Iterator<Item = &'a str> + use<'a> {
        self.items_at(path).iter().filter_map(Value::as_str)
    }

    /// Copies of the texts in the list below `path`.
    pub fn text_list_at(&self, path: &[&str]) -> Vec<Text> {
        self.texts_at(path).map(Text::from).collect()
    }

    /// Sets the value at `path`. Values on the way that are absent or not objects are replaced by objects.
    pub fn set_at(&mut self, path: &[&str], value: Value) {
        let mut node = self;
        for key in path {
            if !matches!(node, Value::Object(_)) {
                *node = Value::object();
            }
            let Value::Object(map) = node else { return };
            node = map.entry(key);
        }
        *node = value;
    }

    /// Sets the value below `path`, or removes it if there is none.
    pub fn put_at(&mut self, path: &[&str], value: Option<Value>) {
        match value {
            Some(value) => self.set_at(path, value),
            None => drop(self.remove_at(path)),
        }
    }

    /// Sets a text below `path`, unless it is empty, as Go's `omitempty` does.
    pub fn put_text(&mut self, path: &[&str], text: &str) {
        if !text.is_empty() {
            self.set_at(path, Value::from(text));
        }
    }

    /// Removes and returns the value below `path`.
    pub fn remove_at(&mut self, path: &[&str]) -> Option<Value> {
        let (last, parents) = path.split_last()?;
        let mut node = self;
        for key in parents {
            node = node.get_mut(key)?;
        }
        node.as_object_mut()?.remove(last)
    }

    /// The kind of value as JSON Schema names it: `object`, `array`, `string`, `integer`, `number`, `boolean`, `null`.
    pub fn type_name(&self) -> &'static str {
        match self {
            Value::Null => "null",
            Value::Bool(_) => "boolean",
            Value::Int(_) => "integer",
            Value::Float(_) => "number",
            Value::String(_) => "string",
            Value::Array(_) => "array",
            Value::Object(_) | Value::Encoded(_) => "object",
        }
    }

    /// The kind of value as Go's decoder names it. All numbers have the same name.
    pub fn json_type(&self) -> &'static str {
        match self {
            Value::Bool(_) => "bool",
            Value::Int(_) | Value::Float(_) => "number",
            other => other.type_name(),
        }
    }

    /// Compact JSON with sorted keys and Go's escaping.
    pub fn to_json(&self) -> String {
        let mut out = Vec::with_capacity(256);
        write_json(self, &mut out);
        String::from_utf8(out).unwrap_or_default()
    }
}

impl std::fmt::Display for Value {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.to_json())
    }
}

macro_rules! from {
    ($($from:ty => |$v:ident| $make:expr),* $(,)?) => {
        $(impl From<$from> for Value { fn from($v: $from) -> Value { $make } })*
    };
}
from! {
    bool => |v| Value::Bool(v),
    i32 => |v| Value::Int(v.into()),
    u32 => |v| Value::Int(v.into()),
    i64 => |v| Value::Int(v),
    u64 => |v| Value::Int(i64::try_from(v).unwrap_or(i64::MAX)),
    usize => |v| Value::Int(i64::try_from(v).unwrap_or(i64::MAX)),
    f64 => |v| Value::Float(v),
    &str => |v| Value::String(v.into()),
    &String => |v| Value::String(v.into()),
    String => |v| Value::String(v.into()),
    Text => |v| Value::String(v),
    &Text => |v| Value::String(v.clone()),
    Map => |v| Value::Object(v),
    Vec<Value> => |v| Value::Array(v),
}

impl<const N: usize> From<[(&str, Value); N]> for Value {
    fn from(fields: [(&str, Value); N]) -> Value {
        Value::Object(fields.into_iter().map(|(k, v)| (Text::from(k), v)).collect())
    }
}

impl FromIterator<Value> for Value {
    fn from_iter<I: IntoIterator<Item = Value>>(items: I) -> Value {
        Value::Array(items.into_iter().collect())
    }
}

/// Builds a [`Value`] from JSON-like syntax: `json!({"kind": "List", "items": [1, name, null]})`.
#[macro_export]
macro_rules! json {
    (null) => { $crate::Value::Null };
    ([ $($item:tt),* $(,)? ]) => { $crate::Value::Array(vec![ $( $crate::json!($item) ),* ]) };
    ({ $($key:literal : $value:tt),* $(,)? }) => {
        $crate::Value::Object([ $( ($crate::Text::from($key), $crate::json!($value)) ),* ].into_iter().collect())
    };
    ($other:expr) => { $crate::Value::from($other) };
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_made_and_removed() {
        let mut value = json!({"a": 1});
        value.set_at(&["m", "n"], Value::from("x"));
        assert_eq!(value.to_json(), r#"{"a":1,"m":{"n":"x"}}"#);
        assert_eq!(value.str_at(&["m", "n"]), "x");
        assert_eq!(value.remove_at(&["m", "n"]), Some(Value::from("x")));
        assert_eq!(value.to_json(), r#"{"a":1,"m":{}}"#);
    }
}
