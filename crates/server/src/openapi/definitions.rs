//! The schemas of Go types, derived from the table of types, and what schemas refer to.

use std::collections::BTreeSet;

use machinery::types::{self, Container, GoBase, GoField, GoStruct, GoUnion, Printed};
use machinery::{Release, Text, Value, json};

use super::Dialect;
use super::standard::{self, DELETE_OPTIONS, METADATA, WATCH_EVENT, reference};

const KINDS: &str = "x-kubernetes-group-version-kind";
/// The group under which the table of types has kinds that exist in every group version.
const EVERY_GROUP: &str = "*";

/// The form in which a document has schemas.
pub struct DocumentForm {
    pub dialect: Dialect,
    pub release: Release,
    pub kinds: Kinds,
}

/// The group versions that the schemas of DeleteOptions and WatchEvent list.
#[derive(Clone)]
pub enum Kinds {
    /// In documents of custom resources: the group versions that client libraries know.
    Clients,
    /// In other documents of v3: the core group and the group version of the document.
    Of(String, String),
    /// In the v2 document: all group versions that the server knows.
    All,
}

impl DocumentForm {
    /// The schema with this name, unless it belongs to a custom resource; `None` if there is none.
    pub fn schema(&self, name: &str) -> Option<Value> {
        let mut schema = self.without_kinds(name)?;
        if matches!(name, DELETE_OPTIONS | WATCH_EVENT) {
            let kind = name.rsplit('.').next().unwrap_or_default();
            schema.set_at(&[KINDS], self.kinds_of_every_version(kind));
        }
        Some(schema)
    }

    fn without_kinds(&self, name: &str) -> Option<Value> {
        if let Some(shared) = standard::schema(self.dialect, self.release, name) {
            return Some(shared.clone());
        }
        let go = types::struct_of_openapi_name(name)?;
        let schema = match types::own_schema(&go) {
            Some(own) => machinery::value::decode(own.as_bytes()).unwrap_or_default(),
            None => structure(types::go_struct(&go)?),
        };
        Some(if self.dialect == Dialect::V2 { standard::to_v2(&schema) } else { schema })
    }

    /// The value of `x-kubernetes-group-version-kind` of a kind that exists in every group version.
    fn kinds_of_every_version(&self, kind: &str) -> Value {
        let options = standard::schema(self.dialect, self.release, DELETE_OPTIONS).and_then(|known| known.get(KINDS));
        let known = options.and_then(Value::as_array).unwrap_or_default();
        let known = known.iter().map(|one| (one.str_at(&["group"]), one.str_at(&["version"])));
        let mut versions: Vec<(&str, &str)> = match &self.kinds {
            Kinds::Clients => known.collect(),
            Kinds::Of(group, version) => vec![("", "v1"), (group, version)],
            Kinds::All => known.chain(standard::SERVER_VERSIONS).collect(),
        };
        versions.sort_unstable();
        versions.dedup();
        versions
            .iter()
            .map(|(group, version)| json!({"group": (*group), "kind": kind, "version": (*version)}))
            .collect()
    }
}

/// Adds the names of the schemas that a part of a document refers to.
pub fn add_references(part: &Value, dialect: Dialect, names: &mut BTreeSet<String>) {
    match part {
        Value::Array(items) => items.iter().for_each(|item| add_references(item, dialect, names)),
        Value::Object(fields) => {
            for (key, value) in fields.iter() {
                match value.as_str().filter(|_| key == "$ref").and_then(|to| to.strip_prefix(dialect.prefix())) {
                    Some(name) => drop(names.insert(name.to_owned())),
                    None => add_references(value, dialect, names),
                }
            }
        }
        _ => {}
    }
}

/// The v3 schema of a struct.
fn structure(go: &'static GoStruct) -> Value {
    let mut out = json!({"type": "object"});
    let mut required: Vec<Value> = vec![];
    add_fields(go, &mut out, &mut required);
    if let Some(group) = go.group.filter(|group| *group != EVERY_GROUP) {
        let mut parts = go.name.rsplit('.');
        let (kind, version) = (parts.next().unwrap_or_default(), parts.next().unwrap_or_default());
        let text = |description: Value| json!({"type": "string", "description": description});
        out.set_at(&["properties", "apiVersion"], text(standard::api_version_text()));
        out.set_at(&["properties", "kind"], text(standard::kind_text()));
        out.set_at(&[KINDS], json!([{"group": group, "kind": kind, "version": version}]));
    }
    if !required.is_empty() {
        out.set_at(&["required"], Value::Array(required));
    }
    out.put_text(&["x-kubernetes-map-type"], go.map_type);
    if !go.unions.is_empty() {
        out.set_at(&["x-kubernetes-unions"], go.unions.iter().map(union).collect());
    }
    out
}

/// Adds the properties of a struct, and of the structs that it embeds.
fn add_fields(go: &'static GoStruct, out: &mut Value, required: &mut Vec<Value>) {
    for field in &go.fields {
        match (field.go_type.container, field.go_type.base) {
            (Container::Embedded, GoBase::Struct(inner)) => {
                types::go_struct(inner).into_iter().for_each(|inner| add_fields(inner, out, required));
            }
            _ => {
                out.set_at(&["properties", field.name], property(field));
                if field.is_required {
                    required.push(Value::String(Text::new_static(field.name)));
                }
            }
        }
    }
}

fn union(union: &GoUnion) -> Value {
    let mut out = Value::object();
    out.put_text(&["discriminator"], union.discriminator);
    for (field, value) in &union.fields {
        out.set_at(&["fields-to-discriminateBy", field], Value::from(*value));
    }
    out
}

fn property(field: &GoField) -> Value {
    let go = field.go_type;
    let mut item = single(go.base);
    if !field.values.is_empty() {
        let values = field.values.split(',').map(|value| Value::from(value.replace("%20", " ")));
        item.set_at(&["enum"], values.collect());
    }
    let default = field.default.and_then(|json| machinery::value::decode(json.as_bytes()).ok());
    let mut out = match go.container {
        Container::List => json!({"type": "array", "items": item}),
        Container::Map => json!({"type": "object", "additionalProperties": item}),
        Container::MapOfLists => {
            json!({"type": "object", "additionalProperties": {"type": "array", "items": item}})
        }
        // a reference has no siblings
        Container::None | Container::Embedded => match item.get("$ref") {
            Some(_) if !field.is_bare => json!({"allOf": [item]}),
            _ => item,
        },
    };
    if field.name == "metadata" && matches!(go.base, GoBase::Struct("meta.v1.ObjectMeta" | "meta.v1.ListMeta")) {
        out.set_at(&["description"], Value::from(METADATA));
    }
    if let Some(default) = default.or_else(|| is_zero_struct(field).then(Value::object)) {
        out.set_at(&["default"], default);
    }
    let merging = &field.merging;
    for (key, value) in [
        ("x-kubernetes-list-type", merging.list_type),
        ("x-kubernetes-map-type", merging.map_type),
        ("x-kubernetes-patch-strategy", merging.strategy),
        ("x-kubernetes-patch-merge-key", merging.merge_key),
    ] {
        out.put_text(&[key], value);
    }
    if !merging.keys.is_empty() {
        out.set_at(&["x-kubernetes-list-map-keys"], merging.keys.split(',').map(Value::from).collect());
    }
    out
}

/// Whether a field is a struct that is always there, so that its default is the empty object.
fn is_zero_struct(field: &GoField) -> bool {
    let GoBase::Struct(name) = field.go_type.base else { return false };
    let is_pointer = matches!(field.printed, Printed::Set | Printed::SetOrNull);
    field.go_type.container == Container::None && !is_pointer && types::own_schema(name).is_none()
}

fn single(base: GoBase) -> Value {
    match base {
        GoBase::Text => json!({"type": "string"}),
        GoBase::Bool => json!({"type": "boolean"}),
        GoBase::Int32 => json!({"type": "integer", "format": "int32"}),
        GoBase::Int64 => json!({"type": "integer", "format": "int64"}),
        GoBase::Double => json!({"type": "number", "format": "double"}),
        GoBase::Bytes => json!({"type": "string", "format": "byte"}),
        GoBase::Struct(name) => match types::openapi_name(name) {
            // lists of strings with a Go name
            _ if name.ends_with(".ExtraValue") || name.ends_with(".AttestationValue") => {
                json!({"type": "array", "items": {"type": "string"}})
            }
            name => reference(Dialect::V3, &name.unwrap_or_default()),
        },
    }
}
