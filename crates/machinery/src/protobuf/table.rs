//! The messages of built-in kinds: field numbers, JSON names and types, which are facts of the Kubernetes API.

use std::collections::BTreeMap;
use std::sync::{LazyLock, OnceLock};

use crate::types::{Container, GoBase, GoField, Printed, go_struct, names};

/// A list of strings that has a message of its own.
const VERBS: Option<&str> = Some("v1.Verbs");

/// The type of a field.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FieldKind {
    Text,
    Bool,
    Int,
    Double,
    Bytes,
    Message(&'static str),
}

/// The cardinality of a field.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Count {
    One,
    Many,
    /// A map from text.
    Map,
    /// An embedded message. In JSON, its fields are fields of the message around it.
    Inline,
}

#[derive(Clone, Copy, Debug)]
pub struct MessageField {
    pub number: u32,
    pub name: &'static str,
    pub kind: FieldKind,
    pub count: Count,
    /// Whether the field is written even if it is empty, because in Go it is neither a pointer, a list, a map nor
    /// bytes.
    pub is_always: bool,
    /// Whether JSON omits it if it is empty (`omitempty`).
    pub is_omitted: bool,
}

const SCHEMA: FieldKind = FieldKind::Message("apiextensions.v1.JSONSchemaProps");

/// The messages of types whose JSON form does not have the fields of the message.
const OWN: [(&str, &[MessageField]); 12] = [
    ("apiextensions.v1.JSON", &[own(1, "raw", FieldKind::Bytes)]),
    ("apiextensions.v1.JSONSchemaPropsOrArray", &[own(1, "schema", SCHEMA), list(2, "jSONSchemas", SCHEMA)]),
    ("apiextensions.v1.JSONSchemaPropsOrBool", &[own(1, "allows", FieldKind::Bool), own(2, "schema", SCHEMA)]),
    (
        "apiextensions.v1.JSONSchemaPropsOrStringArray",
        &[own(1, "schema", SCHEMA), list(2, "property", FieldKind::Text)],
    ),
    (EXTRA_VALUE, &[list(1, "items", FieldKind::Text)]),
    (
        "intstr.IntOrString",
        &[own(1, "type", FieldKind::Int), own(2, "intVal", FieldKind::Int), own(3, "strVal", FieldKind::Text)],
    ),
    ("meta.v1.FieldsV1", &[own(1, "Raw", FieldKind::Bytes)]),
    ("meta.v1.MicroTime", TIME),
    ("meta.v1.Time", TIME),
    ("meta.v1.Verbs", &[list(1, "items", FieldKind::Text)]),
    ("resource.Quantity", &[own(1, "string", FieldKind::Text)]),
    ("runtime.RawExtension", &[own(1, "raw", FieldKind::Bytes)]),
];

const EXTRA_VALUE: &str = "authentication.v1.ExtraValue";
const TIME: &[MessageField] = &[own(1, "seconds", FieldKind::Int), own(2, "nanos", FieldKind::Int)];

const fn own(number: u32, name: &'static str, kind: FieldKind) -> MessageField {
    MessageField { number, name, kind, count: Count::One, is_always: false, is_omitted: false }
}

const fn list(number: u32, name: &'static str, kind: FieldKind) -> MessageField {
    MessageField { count: Count::Many, ..own(number, name, kind) }
}

impl FieldKind {
    /// The type of the encoding in protobuf.
    pub fn wire_type(self) -> u8 {
        match self {
            FieldKind::Bool | FieldKind::Int => 0,
            FieldKind::Double => 1,
            FieldKind::Text | FieldKind::Bytes | FieldKind::Message(_) => 2,
        }
    }
}

impl MessageField {
    /// The type of the encoding in protobuf.
    pub fn wire_type(&self) -> u8 {
        if self.count == Count::Map { 2 } else { self.kind.wire_type() }
    }
}

/// The fields of a message that exists.
pub fn fields_named(name: &str) -> &'static [MessageField] {
    message(name).map(|(_, fields)| fields).unwrap_or_default()
}

/// The name and the fields of a message such as `core.v1.ConfigMap`, by number. They are derived from its Go type when
/// they are first needed.
pub fn message(name: &str) -> Option<(&'static str, &'static [MessageField])> {
    static MESSAGES: LazyLock<BTreeMap<&'static str, OnceLock<Vec<MessageField>>>> =
        LazyLock::new(|| names().chain(OWN.map(|(name, _)| name)).map(|name| (name, OnceLock::new())).collect());
    let (name, fields) = MESSAGES.get_key_value(name)?;
    Some((name, fields.get_or_init(|| fields_of(name))))
}

fn fields_of(name: &str) -> Vec<MessageField> {
    if let Some((_, fields)) = OWN.iter().find(|(own, _)| *own == name) {
        return fields.to_vec();
    }
    let fields = go_struct(name).into_iter().flat_map(|found| &found.fields);
    let mut fields: Vec<MessageField> = fields.map(of_go_field).collect();
    fields.sort_by_key(|field| field.number);
    fields
}

fn of_go_field(field: &'static GoField) -> MessageField {
    let count = match field.go_type.container {
        Container::List if field.go_type.item_alias == VERBS => Count::One,
        Container::None => Count::One,
        Container::List => Count::Many,
        Container::Map | Container::MapOfLists => Count::Map,
        Container::Embedded => Count::Inline,
    };
    let kind = match field.go_type.base {
        GoBase::Text if field.go_type.item_alias == VERBS => FieldKind::Message("meta.v1.Verbs"),
        GoBase::Text => FieldKind::Text,
        GoBase::Bool => FieldKind::Bool,
        GoBase::Int32 | GoBase::Int64 => FieldKind::Int,
        GoBase::Double => FieldKind::Double,
        GoBase::Bytes => FieldKind::Bytes,
        GoBase::Struct(
            "authentication.v1.AttestationValue" | "authorization.v1.ExtraValue" | "certificates.v1.ExtraValue",
        ) => FieldKind::Message(EXTRA_VALUE),
        GoBase::Struct(name) => FieldKind::Message(name),
    };
    let is_value = !matches!(field.printed, Printed::Set | Printed::SetOrNull) && field.go_type.base != GoBase::Bytes;
    MessageField {
        number: field.number,
        name: field.name,
        kind,
        count,
        is_always: is_value && field.go_type.container == Container::None,
        is_omitted: field.printed == Printed::NonEmpty,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn referenced_messages_exist() {
        for name in names() {
            for field in message(name).unwrap().1 {
                if let FieldKind::Message(inner) = field.kind {
                    assert!(message(inner).is_some(), "{name}.{} is a {inner}", field.name);
                }
            }
        }
    }
}
