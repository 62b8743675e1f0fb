//! The fields in which two objects differ.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::net::Ipv4Addr;

use machinery::Value;

use super::renamed::Renamed;

/// A field that differs. Without a value, it is missing.
#[derive(Clone, Debug, PartialEq)]
pub struct FieldChange {
    /// As in `spec.template.spec.containers[name=web].image`.
    pub path: String,
    pub old: Option<Value>,
    pub new: Option<Value>,
}

impl fmt::Display for FieldChange {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let shown = |value: &Option<Value>| match value {
            None => "(none)".to_owned(),
            Some(Value::String(text)) if !text.is_empty() && text.len() <= SHOWN_MAX => text.to_string(),
            Some(value) => {
                let text = value.to_json();
                match text.char_indices().nth(SHOWN_MAX) {
                    Some((end, _)) => format!("{}…", &text[..end]),
                    None => text,
                }
            }
        };
        write!(out, "{}: {} → {}", self.path, shown(&self.old), shown(&self.new))
    }
}

/// The characters of a value that are shown.
const SHOWN_MAX: usize = 60;

/// Fields of `metadata` that no two runs have alike.
const LEFT_OUT: [&str; 7] =
    ["resourceVersion", "generation", "uid", "creationTimestamp", "managedFields", "selfLink", "generateName"];

/// The fields that identify an element of a list, in Kubernetes' own types and in most others.
const LIST_KEYS: [&str; 4] = ["type", "name", "uid", "key"];

pub fn changes(old: &Value, new: &Value, renamed: &Renamed) -> Vec<FieldChange> {
    let mut differing = Differing { renamed, path: String::new(), found: vec![] };
    let none = Value::Null;
    for name in names(old, new) {
        let (old, new) = (old.get(&name), new.get(&name));
        if name == "metadata" {
            let (old, new) = (old.unwrap_or(&none), new.unwrap_or(&none));
            for field in names(old, new).iter().filter(|field| !LEFT_OUT.contains(&field.as_str())) {
                // the place of an object is compared as such
                if field != "name" {
                    differing.within(&format!("metadata.{field}"), field, old.get(field), new.get(field));
                }
            }
        } else {
            differing.within(&name, &name, old, new);
        }
    }
    differing.found
}

/// An object as text, without what differs between two runs.
pub fn shape(object: &Value) -> String {
    let mut object = object.clone();
    for field in LEFT_OUT.iter().chain(&["name", "ownerReferences"]) {
        object.remove_at(&["metadata", field]);
    }
    without_times(&mut object);
    object.to_json()
}

fn without_times(value: &mut Value) {
    match value {
        Value::Object(map) => map.iter_mut().for_each(|(name, value)| match is_time(name, value) {
            true => *value = Value::Null,
            false => without_times(value),
        }),
        Value::Array(items) => items.iter_mut().for_each(without_times),
        _ => {}
    }
}

/// Whether a field is a time by its name and its value.
fn is_time(name: &str, value: &Value) -> bool {
    let named = ["Time", "time", "Timestamp", "timestamp", "At"].iter().any(|end| name.ends_with(end));
    named && value.as_str().is_some_and(|text| machinery::time::parse_rfc3339(text).is_some())
}

/// Whether a value is an address of a Pod or a load balancer, as Progress objects assign them in the order of the writes.
fn is_assigned(value: &Value) -> bool {
    let octets = value.as_str().and_then(|text| text.parse::<Ipv4Addr>().ok()).map(|address| address.octets());
    matches!(octets, Some([10, 128..=255, _, _] | [198, 18 | 19, _, _]))
}

fn is_empty(value: &Value) -> bool {
    match value {
        Value::Object(map) => map.iter().next().is_none(),
        Value::Array(items) => items.is_empty(),
        _ => false,
    }
}

fn names(old: &Value, new: &Value) -> BTreeSet<String> {
    old.fields().chain(new.fields()).map(|(name, _)| name.to_string()).collect()
}

struct Differing<'a> {
    renamed: &'a Renamed,
    path: String,
    found: Vec<FieldChange>,
}

impl Differing<'_> {
    fn within(&mut self, part: &str, name: &str, old: Option<&Value>, new: Option<&Value>) {
        let length = self.path.len();
        self.path.push_str(part);
        self.value(name, old, new);
        self.path.truncate(length);
    }

    fn value(&mut self, name: &str, old: Option<&Value>, new: Option<&Value>) {
        // it repeats `metadata.generation`, which counts writes: one that is repeated counts twice
        if name.ends_with("bservedGeneration") {
            return;
        }
        let (Some(before), Some(after)) = (old, new) else {
            // a client that has read an object writes empty values of a status that another write leaves out
            if old.or(new).is_some_and(|only| !self.is_reported() || !is_empty(only)) {
                self.add(old, new);
            }
            return;
        };
        match (before, after) {
            (Value::Object(_), Value::Object(_)) => {
                for field in names(before, after) {
                    // map keys with dots, as in labels, in brackets
                    let part = if field.contains(['.', '/']) { format!("[{field}]") } else { format!(".{field}") };
                    self.within(&part, &field, before.get(&field), after.get(&field));
                }
            }
            (Value::Array(a), Value::Array(b)) => self.lists(a, b),
            (Value::String(a), Value::String(b)) if self.renamed.are_equal(a, b) => {}
            _ if is_time(name, before) && is_time(name, after) => {}
            _ if self.is_reported() && is_assigned(before) && is_assigned(after) => {}
            _ if before == after => {}
            _ => self.add(old, new),
        }
    }

    /// Whether the field says what is, and not what shall be.
    fn is_reported(&self) -> bool {
        self.path == "status" || ["status.", "subsets[", "endpoints["].iter().any(|begin| self.path.starts_with(begin))
    }

    fn lists<'a>(&mut self, old: &'a [Value], new: &'a [Value]) {
        let Some(key) = LIST_KEYS.iter().find(|key| identifies(key, old) && identifies(key, new)) else {
            for index in 0..old.len().max(new.len()) {
                self.within(&format!("[{index}]"), "", old.get(index), new.get(index));
            }
            return;
        };
        let id = |item: &'a Value| item.str_at(&[key]);
        let [of_old, of_new] = [old, new].map(|items| BTreeMap::from_iter(items.iter().map(|item| (id(item), item))));
        // few are left whose names differ between the runs
        let mut left: Vec<&Value> = new.iter().filter(|item| !of_old.contains_key(id(item))).collect();
        let renamed = self.renamed;
        let mut part = |old: Option<&Value>, new: Option<&Value>| {
            let id = new.or(old).map(|item| item.str_at(&[key])).unwrap_or_default();
            self.within(&format!("[{key}={id}]"), "", old, new);
        };
        for item in old {
            let same = of_new.get(id(item)).copied().or_else(|| {
                let is_same = |other: &&Value| renamed.are_equal(id(item), other.str_at(&[key]));
                Some(left.remove(left.iter().position(is_same)?))
            });
            part(Some(item), same);
        }
        left.into_iter().for_each(|other| part(None, Some(other)));
    }

    fn add(&mut self, old: Option<&Value>, new: Option<&Value>) {
        self.found.push(FieldChange { path: self.path.clone(), old: old.cloned(), new: new.cloned() });
    }
}

/// Whether a field has another text in each element of a list.
fn identifies(key: &str, items: &[Value]) -> bool {
    let ids: Vec<&str> = items.iter().map(|item| item.str_at(&[key])).collect();
    ids.iter().all(|id| !id.is_empty()) && ids.iter().collect::<BTreeSet<_>>().len() == ids.len()
}
