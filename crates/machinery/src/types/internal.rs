//! Values as kube-apiserver's messages print them: as JSON of its internal types, whose fields have Go's names and an
//! order of their own, and of its published types, whose fields have the order of their structs.
//!
//! `internal.txt` has a line for each struct, and one for each of its fields below it: its name and its type, which is
//! `string`, `bool`, `int`, `any`, `raw`, `quantity`, `time`, `selector`, `metadata` or a struct, with `[]` in front
//! for a list, `{}` for a map and `*` for a pointer. `^` stands for the name of an embedded struct. `definitions.txt` is written
//! by hand, since unions of JSON types have no declarations that the generator could read.

use std::collections::HashMap;
use std::sync::OnceLock;

use super::{Container, GoBase, GoField, Printed, go_struct};
use crate::value::Value;

const TABLES: [&str; 2] = [include_str!("internal.txt"), include_str!("definitions.txt")];

type Fields = Vec<(&'static str, &'static str)>;

fn fields(name: &str) -> Option<&'static Fields> {
    static STRUCTS: OnceLock<HashMap<&'static str, Fields>> = OnceLock::new();
    let parse = || {
        let mut all: HashMap<&'static str, Fields> = HashMap::new();
        let mut current = "";
        for line in TABLES.iter().flat_map(|table| table.lines()).filter(|line| !line.starts_with('#')) {
            match line.strip_prefix(' ').and_then(|line| line.split_once(' ')) {
                Some(field) => all.entry(current).or_default().push(field),
                None => {
                    current = line;
                    all.entry(current).or_default();
                }
            }
        }
        all
    };
    STRUCTS.get_or_init(parse).get(name)
}

/// Internal names of fields whose JSON names differ in more than case, with these JSON names.
const RENAMED: [(&str, &str); 10] = [
    ("EndpointsName", "endpoints"),
    ("DeprecatedServiceAccount", "serviceAccount"),
    ("CephMonitors", "monitors"),
    ("RBDImage", "image"),
    ("RBDPool", "pool"),
    ("RadosUser", "user"),
    ("DataDiskURI", "diskURI"),
    ("DiscoveryCHAPAuth", "chapAuthDiscovery"),
    ("SessionCHAPAuth", "chapAuthSession"),
    ("LastTerminationState", "lastState"),
];

/// The value of an internal field, looked up in a value of the published form.
fn lookup<'a>(of: Option<&'a Value>, name: &str) -> Option<&'a Value> {
    let object = match name {
        "." => return of,
        "{}" => return of.filter(|value| value.as_object().is_some()),
        "[]" => return of.filter(|value| value.as_array().is_some()),
        _ => of?.as_object()?,
    };
    let renamed = RENAMED.iter().find(|(internal, _)| *internal == name).map(|(_, json)| *json);
    let wanted = renamed.unwrap_or(name);
    let found = object.iter().find(|(key, _)| key.eq_ignore_ascii_case(wanted));
    found.map(|(_, value)| value).filter(|value| !value.is_null())
}

/// A value of the published form as JSON of an internal type, such as `core.PodSpec`.
#[must_use]
pub fn internal_json(value: &Value, name: &str) -> String {
    let mut out = Printer { text: String::new(), depth: 0, indented: false };
    out.value(Some(value), name);
    out.text
}

/// As [`internal_json`], with a line for each field, indented by one blank per level.
#[must_use]
pub fn internal_lines(value: &Value, name: &str) -> String {
    let mut out = Printer { text: String::new(), depth: 0, indented: true };
    out.value(Some(value), name);
    out.text
}

/// A value as JSON of a published type, in the order of its struct.
#[must_use]
pub fn published_json(value: &Value, name: &str) -> String {
    let mut out = Printer { text: String::new(), depth: 0, indented: false };
    out.published(value, name);
    out.text
}

struct Printer {
    text: String,
    depth: usize,
    indented: bool,
}

impl Printer {
    fn value(&mut self, value: Option<&Value>, kind: &str) {
        if let Some(inner) = kind.strip_prefix('*') {
            return match value {
                Some(value) => self.value(Some(value), inner),
                None => self.text.push_str("null"),
            };
        }
        if let Some(item) = kind.strip_prefix("[]") {
            return match value.and_then(Value::as_array) {
                Some(items) => self.items('[', items.iter(), ']', |out, value| out.value(Some(value), item)),
                None => self.text.push_str("null"),
            };
        }
        if let Some(item) = kind.strip_prefix("{}") {
            return match value.and_then(Value::as_object) {
                Some(map) => self.items('{', map.iter(), '}', |out, (key, value)| {
                    out.key(key);
                    out.value(Some(value), item);
                }),
                None => self.text.push_str("null"),
            };
        }
        match (kind, value) {
            ("selector", Some(value)) => self.published(value, "meta.v1.LabelSelector"),
            ("owner", Some(value)) => self.published(value, "meta.v1.OwnerReference"),
            ("manager", Some(value)) => self.published(value, "meta.v1.ManagedFieldsEntry"),
            ("selector", None) => self.text.push_str("{}"),
            ("string", None) => self.text.push_str("\"\""),
            ("quantity", None) => self.text.push_str("\"0\""),
            // upstream's union of a bool and a struct
            ("bool", Some(Value::Object(_))) => self.text.push_str("true"),
            ("bool", None) => self.text.push_str("false"),
            ("int", None) => self.text.push('0'),
            ("string" | "bool" | "int" | "quantity", Some(value)) => self.scalar(value),
            ("any", None) => self.text.push('0'),
            ("any" | "raw" | "time", Some(value)) => self.scalar(value),
            ("raw" | "time", None) => self.text.push_str("null"),
            (name, value) => self.structure(value, name),
        }
    }

    fn structure(&mut self, value: Option<&Value>, name: &str) {
        let mut own_fields = vec![];
        let metadata = gather(name, &mut own_fields);
        let of_metadata: Vec<(&str, Option<&Value>, &str)> = match (metadata, value.and_then(|v| v.get("metadata"))) {
            (true, Some(metadata)) => {
                let order = go_struct("meta.v1.ObjectMeta").map(|go| go.fields.iter().map(|field| field.name));
                let given = order.into_iter().flatten().filter_map(|name| Some((name, metadata.get(name)?)));
                let given = given.filter(|(_, value)| !value.is_empty_container());
                let kind = |name| match name {
                    "ownerReferences" => "[]owner",
                    "managedFields" => "[]manager",
                    _ => "any",
                };
                given.map(|(name, value)| (name, Some(value), kind(name))).collect()
            }
            _ => vec![],
        };
        let own = own_fields.into_iter().map(|(name, kind)| {
            let (name, json) = name.split_once('=').unwrap_or((name, name));
            (name, lookup(value, json), kind)
        });
        let all: Vec<_> = of_metadata.into_iter().chain(own).collect();
        self.items('{', all.into_iter(), '}', |out, (name, value, kind)| {
            out.key(name);
            out.value(value, kind);
        });
    }

    /// A value of a published type: the fields that are set, in the order of the struct.
    fn published(&mut self, value: &Value, name: &str) {
        let (Some(go), Some(object)) = (go_struct(name), value.as_object()) else { return self.scalar(value) };
        let is_shown =
            |field: &GoField, value: &Value| field.printed != Printed::NonEmpty || !value.is_empty_container();
        let given = go.fields.iter().filter_map(|field| Some((field, object.get(field.name)?)));
        let given: Vec<_> = given.filter(|(field, value)| is_shown(field, value)).collect();
        self.items('{', given.into_iter(), '}', |out, (field, value)| {
            out.key(field.name);
            match (field.go_type.base, field.go_type.container, value) {
                (GoBase::Struct(inner), Container::List, Value::Array(items)) => {
                    out.items('[', items.iter(), ']', |out, item| out.published(item, inner));
                }
                (GoBase::Struct(inner), Container::None, value) => out.published(value, inner),
                (_, _, value) => out.scalar(value),
            }
        });
    }

    /// Writes any value as JSON, with `<`, `>` and `&` escaped as by Go's encoder.
    fn scalar(&mut self, value: &Value) {
        match value {
            Value::Array(items) => self.items('[', items.iter(), ']', |out, value| out.scalar(value)),
            Value::Object(map) => self.items('{', map.iter(), '}', |out, (key, value)| {
                out.key(key);
                out.scalar(value);
            }),
            Value::Encoded(text) => self.scalar(&Value::of_encoded(text)),
            value => {
                let text = value.to_json();
                for c in text.chars() {
                    match c {
                        '<' | '>' | '&' => self.text.push_str(&format!("\\u{:04x}", u32::from(c))),
                        c => self.text.push(c),
                    }
                }
            }
        }
    }

    fn key(&mut self, key: &str) {
        self.scalar(&Value::from(key));
        self.text.push_str(if self.indented { ": " } else { ":" });
    }

    fn items<T>(
        &mut self,
        open: char,
        items: impl ExactSizeIterator<Item = T>,
        close: char,
        mut each: impl FnMut(&mut Printer, T),
    ) {
        self.text.push(open);
        let is_empty = items.len() == 0;
        self.depth += 1;
        for (i, item) in items.enumerate() {
            if i > 0 {
                self.text.push(',');
            }
            self.line();
            each(self, item);
        }
        self.depth -= 1;
        if !is_empty {
            self.line();
        }
        self.text.push(close);
    }

    fn line(&mut self) {
        if self.indented {
            self.text.push('\n');
            self.text.extend(std::iter::repeat_n(' ', self.depth));
        }
    }
}

/// The fields of a struct and of those that it embeds. Returns whether it embeds metadata.
fn gather(name: &str, out: &mut Fields) -> bool {
    let mut metadata = false;
    for (field, kind) in fields(name).into_iter().flatten() {
        match (*field, *kind) {
            ("^", "metadata") => metadata = true,
            ("^", embedded) => metadata |= gather(embedded, out),
            field => out.push(field),
        }
    }
    metadata
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::json;

    #[test]
    fn structs_have_all_their_fields() {
        let taint = json!({"key": "k", "effect": "NoSchedule"});
        let want = r#"{"Key":"k","Value":"","Effect":"NoSchedule","TimeAdded":null}"#;
        assert_eq!(internal_json(&taint, "core.Taint"), want);
        let owner = json!({"controller": true, "apiVersion": "v1", "kind": "Pod", "name": "p", "uid": "u"});
        let template = json!({"metadata": {"ownerReferences": [owner]}});
        let want =
            r#"{"ownerReferences":[{"apiVersion":"v1","kind":"Pod","name":"p","uid":"u","controller":true}],"Spec""#;
        assert!(internal_json(&template, "core.PodTemplateSpec").starts_with(want));
        let template = json!({"metadata": {"labels": {"a": "b"}}, "spec": {"dnsPolicy": "Default"}});
        let shown = internal_lines(&template, "core.PodTemplateSpec");
        assert!(
            shown.starts_with("{\n \"labels\": {\n  \"a\": \"b\"\n },\n \"Spec\": {\n  \"Volumes\": null,"),
            "{shown}"
        );
    }

    #[test]
    fn published_fields_are_in_the_order_of_their_struct() {
        let selector =
            json!({"matchExpressions": [{"values": ["b"], "operator": "In", "key": "a"}], "matchLabels": {"a": "b"}});
        let want = r#"{"matchLabels":{"a":"b"},"matchExpressions":[{"key":"a","operator":"In","values":["b"]}]}"#;
        assert_eq!(published_json(&selector, "meta.v1.LabelSelector"), want);
    }
}
