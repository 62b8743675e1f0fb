//! Constructed `Object`s as configurations to be applied (KEP-3962).
//!
//! Upstream keeps the fields of such objects as Go values. Values without a JSON type are foreign and match no type of a
//! schema.

use std::collections::BTreeMap;

use machinery::{Map as JsonMap, Text, Value};

use super::native::{take, take_json, take_map};
use super::{Key, List, Map, Val, time};
use crate::limits::NATIVE_VALUES_MAX;

/// An object that an expression constructs.
#[derive(Debug, Default)]
pub struct Configuration {
    /// The object.
    pub value: Value,
    /// The paths of empty lists.
    pub empty: Vec<Vec<Text>>,
    /// Values without a JSON type, by their path such as `.spec.list[0]`; `value` has null in their place.
    pub foreign: BTreeMap<String, Foreign>,
}

/// A value that JSON has no type for, as Go prints it.
#[derive(Debug)]
pub struct Foreign {
    /// `%v`.
    pub plain: String,
    /// `%#v`.
    pub source: String,
    /// `%T`.
    pub of: &'static str,
}

impl Configuration {
    /// Converts the result of an expression. Fails with a one-line message.
    pub fn new(object: &Val<'_>) -> Result<Configuration, String> {
        let mut reading = Reading { left: NATIVE_VALUES_MAX, found: Configuration::default(), path: vec![] };
        let Val::Map(Map::Made(_, fields)) = object else {
            let of = object.type_of().runtime_name();
            return Err(format!("unsupported return type from ApplyConfiguration expression: {of}"));
        };
        let value = reading.fields(fields, Reading::field)?;
        Ok(Configuration { value, ..reading.found })
    }
}

struct Reading {
    left: u32,
    found: Configuration,
    /// The path of the current value: names, and indexes in brackets.
    path: Vec<Text>,
}

type ReadField = fn(&mut Reading, &Val<'_>) -> Result<Value, String>;

impl Reading {
    /// Converts a field of a constructed message.
    fn field(&mut self, value: &Val<'_>) -> Result<Value, String> {
        match value {
            Val::List(list) if !matches!(list, List::Json { .. }) => {
                if list.is_empty() {
                    self.found.empty.push(self.path.clone());
                }
                let mut items = vec![];
                for (i, item) in list.iter().enumerate() {
                    let item = item.map_err(|error| error.to_string())?;
                    items.push(self.at(format!("[{i}]").into(), |here| here.inner(&item))?);
                }
                Ok(Value::Array(items))
            }
            Val::Map(Map::Owned(map)) => self.fields(map, Reading::inner),
            other => self.inner(other),
        }
    }

    /// Converts the values in a list or a map.
    fn inner(&mut self, value: &Val<'_>) -> Result<Value, String> {
        match value {
            Val::String(text) => take(&mut self.left, text.len())?,
            Val::Preserved(value) => take_json(&mut self.left, value)?,
            Val::List(List::Json { items, .. }) => items.iter().try_for_each(|item| take_json(&mut self.left, item))?,
            Val::Map(Map::Object(map, _) | Map::Json(map, _)) => take_map(&mut self.left, map)?,
            _ => take(&mut self.left, 0)?,
        }
        Ok(match value {
            Val::Bool(b) => Value::Bool(*b),
            Val::Int(i) => Value::Int(*i),
            Val::Double(d) => Value::Float(*d),
            Val::String(s) => Value::from(&**s),
            Val::Type(of) => Value::from(of.runtime_name()),
            Val::Preserved(value) => (*value).clone(),
            Val::List(List::Json { items, .. }) => Value::Array(items.to_vec()),
            Val::Map(Map::Object(map, _) | Map::Json(map, _)) => Value::Object((*map).clone()),
            Val::Map(Map::Made(_, fields)) => self.fields(fields, Reading::field)?,
            Val::Optional(Some(value)) => self.inner(value)?,
            Val::Optional(None) => Value::Null,
            other => {
                self.found.foreign.insert(self.place(), foreign(other));
                Value::Null
            }
        })
    }

    fn fields(&mut self, fields: &BTreeMap<Key<'_>, Val<'_>>, read: ReadField) -> Result<Value, String> {
        let mut out = JsonMap::new();
        for (key, value) in fields {
            let Key::String(name) = key else {
                return Err("invalid return type: *dynamic.ObjectVal".to_owned());
            };
            let value = self.at((**name).into(), |here| read(here, value))?;
            out.insert(&**name, value);
        }
        Ok(Value::Object(out))
    }

    fn at<T>(&mut self, segment: Text, read: impl FnOnce(&mut Self) -> T) -> T {
        self.path.push(segment);
        let found = read(self);
        self.path.pop();
        found
    }

    fn place(&self) -> String {
        let segment =
            |segment: &Text| if segment.starts_with('[') { segment.to_string() } else { format!(".{segment}") };
        self.path.iter().map(segment).collect()
    }
}

fn foreign(value: &Val<'_>) -> Foreign {
    let plain = plain(value);
    let source = match value {
        Val::Null => "0".to_owned(),
        Val::Uint(u) => format!("{u:#x}"),
        Val::Duration(nanoseconds) => nanoseconds.to_string(),
        Val::Bytes(bytes) => {
            let bytes: Vec<String> = bytes.iter().map(|byte| format!("{byte:#x}")).collect();
            format!("[]uint8{{{}}}", bytes.join(", "))
        }
        _ => plain.clone(),
    };
    Foreign { plain, source, of: value.native_type() }
}

fn plain(value: &Val<'_>) -> String {
    match value {
        Val::Null => "NULL_VALUE".to_owned(),
        Val::Uint(u) => u.to_string(),
        Val::Bytes(bytes) => {
            let bytes: Vec<String> = bytes.iter().map(u8::to_string).collect();
            format!("[{}]", bytes.join(" "))
        }
        Val::Duration(nanoseconds) => machinery::time::duration(*nanoseconds),
        Val::Timestamp(at) => {
            let text = time::timestamp_text(*at);
            format!("{} +0000 UTC", text.trim_end_matches('Z').replace('T', " "))
        }
        Val::List(list) => {
            let items: Vec<String> = list.iter().flatten().map(|item| plain(&item)).collect();
            format!("[{}]", items.join(" "))
        }
        Val::Map(Map::Owned(map)) => {
            let entry = |(key, value): (&Key<'_>, &Val<'_>)| format!("{}:{}", plain(&key.value()), plain(value));
            format!("map[{}]", map.iter().map(entry).collect::<Vec<_>>().join(" "))
        }
        Val::String(text) => text.to_string(),
        other => super::native::to_json(other)
            .map_or_else(|_| other.type_of().runtime_name().to_string(), |json| json.to_json()),
    }
}
