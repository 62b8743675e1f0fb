//! Conversion of built-in kinds between protobuf and JSON, driven by the table of messages.
//!
//! A few messages have a JSON form of another type: times and quantities are strings, and raw JSON is itself.

use crate::limits::PROTOBUF_DEPTH_MAX;
use crate::types::message_name;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

use super::error::{Flaw, ProtobufError};
use super::table::{Count, FieldKind, MessageField, fields_named, message};
use super::{Field, MAGIC, Writer, envelope, envelope_around, fields_of, open};
use crate::time;
use crate::value::{Map, Text, Value, decode as decode_json};

/// Decodes an enveloped object to JSON.
///
/// Go's generated code writes an unset string as an empty one, unless it is a pointer. So a string may be empty where
/// JSON would omit the field; the shape of the kind knows which fields these are.
pub fn decode(bytes: &[u8]) -> Result<Value, ProtobufError> {
    decode_as(bytes, "", "")
}

/// As [`decode`]. An envelope without a version or a kind has these.
pub fn decode_as(bytes: &[u8], api_version: &str, kind: &str) -> Result<Value, ProtobufError> {
    let envelope = open(bytes)?;
    let given = |text: String, default: &str| if text.is_empty() { default.to_owned() } else { text };
    let (api_version, kind) = (given(envelope.api_version, api_version), given(envelope.kind, kind));
    let Some((name, message_fields)) = message(&message_name(&api_version, &kind)) else {
        return Err(ProtobufError::UnknownKind { api_version, kind });
    };
    match read(name, message_fields, envelope.raw, 0) {
        Ok(mut object) => {
            object.insert("apiVersion", Value::from(api_version));
            object.insert("kind", Value::from(kind));
            Ok(Value::Object(object))
        }
        Err(flaw) => Err(ProtobufError::Object { api_version, kind, flaw }),
    }
}

fn read(name: &'static str, message_fields: &[MessageField], bytes: &[u8], depth: usize) -> Result<Map, Flaw> {
    if depth > PROTOBUF_DEPTH_MAX {
        return Err(Flaw::Depth);
    }
    let mut out = Map::new();
    for field in fields_of(bytes, go_type(name)) {
        let field = field?;
        let (number, wire_type) = field.tag();
        let Some(message_field) = message_fields.iter().find(|m| m.number == number) else { continue };
        if wire_type != message_field.wire_type() {
            return Err(Flaw::WrongWireType { field: go_name(message_field), wire_type });
        }
        match (message_field.count, field) {
            (Count::Map, Field::Bytes(_, entry)) => {
                let (key, value) = read_entry(message_field.kind, entry, depth)?;
                let slot = out.entry(message_field.name);
                if !matches!(slot, Value::Object(_)) {
                    *slot = Value::object();
                }
                slot.set_at(&[&key], value);
            }
            (Count::Many, field) => {
                let value = read_value(message_field.kind, field, depth)?;
                match out.entry(message_field.name) {
                    Value::Array(items) => items.push(value),
                    slot => *slot = Value::Array(vec![value]),
                }
            }
            (Count::Inline, field) => {
                if let Value::Object(message_fields) = read_value(message_field.kind, field, depth)? {
                    message_fields.into_iter().for_each(|(name, value)| drop(out.insert(name, value)));
                }
            }
            (_, field) => {
                let value = read_value(message_field.kind, field, depth)?;
                // generated code writes an empty message if a time is not set
                let is_empty = matches!(&value, Value::String(text) if text.is_empty())
                    || matches!(&value, Value::Int(0) | Value::Bool(false));
                let is_omitted = is_empty && message_field.is_omitted && message_field.is_always;
                if !value.is_null() && !is_omitted {
                    out.insert(message_field.name, value);
                }
            }
        }
    }
    Ok(out)
}

/// The Go type of a message such as `core.v1.ConfigMap`.
fn go_type(message: &'static str) -> &'static str {
    message.rsplit('.').next().unwrap_or_default()
}

/// Beginnings of names in JSON that Go writes in capitals.
const INITIALISMS: [&str; 19] = [
    "api", "aws", "cpu", "csi", "dns", "fc", "fs", "gce", "grpc", "http", "id", "ip", "iscsi", "nfs", "os", "rbd",
    "tcp", "tls", "uid",
];

/// The name of a field in Go, for errors.
fn go_name(field: &MessageField) -> String {
    let name = field.name;
    if name == "metadata" && matches!(field.kind, FieldKind::Message("meta.v1.ObjectMeta" | "meta.v1.ListMeta")) {
        return if field.kind == FieldKind::Message("meta.v1.ListMeta") { "ListMeta" } else { "ObjectMeta" }.to_owned();
    }
    let first = name.find(|c: char| c.is_ascii_uppercase()).unwrap_or(name.len());
    let capitals = if INITIALISMS.contains(&&name[..first]) { first } else { 1 };
    name[..capitals].to_ascii_uppercase() + &name[capitals..]
}

fn read_entry(kind: FieldKind, entry: &[u8], depth: usize) -> Result<(String, Value), Flaw> {
    let mut key = String::new();
    let mut value = match kind {
        FieldKind::Text | FieldKind::Bytes => Value::from(""),
        _ => Value::Null,
    };
    for field in fields_of(entry, "") {
        match field? {
            Field::Bytes(1, text) => key = String::from_utf8_lossy(text).into_owned(),
            field if field.tag() == (2, kind.wire_type()) => value = read_value(kind, field, depth)?,
            _ => {}
        }
    }
    Ok((key, value))
}

fn read_value(kind: FieldKind, field: Field<'_>, depth: usize) -> Result<Value, Flaw> {
    Ok(match (kind, field) {
        (FieldKind::Text, Field::Bytes(_, text)) => Value::from(String::from_utf8_lossy(text).into_owned()),
        (FieldKind::Bytes, Field::Bytes(_, bytes)) => Value::from(STANDARD.encode(bytes)),
        (FieldKind::Bool, Field::Int(_, i)) => Value::Bool(i != 0),
        (FieldKind::Int, Field::Int(_, i)) => Value::Int(i as i64),
        (FieldKind::Double, Field::Double(_, f)) => Value::Float(f),
        (FieldKind::Message(name), Field::Bytes(_, bytes)) => return read_message(name, bytes, depth + 1),
        // the type of the encoding has been checked
        _ => Value::Null,
    })
}

fn read_message(name: &'static str, bytes: &[u8], depth: usize) -> Result<Value, Flaw> {
    let message_fields = fields_named(name);
    let read = || read(name, message_fields, bytes, depth);
    Ok(match name {
        "meta.v1.Time" | "meta.v1.MicroTime" => time_of(name, &read()?),
        "meta.v1.FieldsV1" | "runtime.RawExtension" | "apiextensions.v1.JSON" => {
            let raw = fields_of(bytes, go_type(name)).collect::<Result<Vec<_>, _>>()?;
            match raw.first() {
                // text that is no JSON is no set of fields and no object either
                Some(Field::Bytes(1, raw)) if !raw.is_empty() => {
                    decode_json(raw).unwrap_or_else(|_| Value::from(String::from_utf8_lossy(raw).into_owned()))
                }
                _ => Value::Null,
            }
        }
        "resource.Quantity" | "intstr.IntOrString" | "apiextensions.v1.JSONSchemaPropsOrBool" => {
            let map = read()?;
            let part = |key: &str| map.get(key).cloned();
            match name {
                "resource.Quantity" => part("string").unwrap_or_default(),
                "intstr.IntOrString" if part("type") == Some(Value::Int(1)) => part("strVal").unwrap_or_default(),
                "intstr.IntOrString" => part("intVal").unwrap_or(Value::Int(0)),
                _ => part("schema").or_else(|| part("allows")).unwrap_or(Value::Bool(false)),
            }
        }
        "apiextensions.v1.JSONSchemaPropsOrArray" | "apiextensions.v1.JSONSchemaPropsOrStringArray" => {
            let mut map = read()?;
            map.remove("schema").or_else(|| map.into_iter().next().map(|(_, v)| v)).unwrap_or_default()
        }
        "authentication.v1.ExtraValue" | "meta.v1.Verbs" => {
            let mut map = read()?;
            map.remove("items").unwrap_or(Value::Array(vec![]))
        }
        // the claim template of a StatefulSet, whose type is shown in JSON but is not part of the message
        "core.v1.PersistentVolumeClaim" if depth >= CLAIM_TEMPLATE_DEPTH => {
            let mut claim = read()?;
            claim.insert("apiVersion", Value::from("v1"));
            claim.insert("kind", Value::from("PersistentVolumeClaim"));
            Value::Object(claim)
        }
        _ => Value::Object(read()?),
    })
}

/// The depth of `volumeClaimTemplates` in a StatefulSet. The items of a PersistentVolumeClaimList are less deep.
const CLAIM_TEMPLATE_DEPTH: usize = 2;

/// The text of a time; null for an empty message, which stands for a time that is not set.
fn time_of(name: &str, message: &Map) -> Value {
    if message.is_empty() {
        return Value::Null;
    }
    let part = |key: &str| message.get(key).and_then(Value::as_int).unwrap_or_default();
    let (seconds, nanos) = (part("seconds"), part("nanos"));
    Value::from(match name {
        "meta.v1.Time" => time::rfc3339(seconds),
        _ => time::rfc3339_micro(seconds.saturating_mul(1_000_000).saturating_add(nanos / 1000)),
    })
}

/// An object as an enveloped message; `None` for kinds that have none.
pub fn encode(object: &Value) -> Option<Vec<u8>> {
    let (api_version, kind) = (object.str_at(&["apiVersion"]), object.str_at(&["kind"]));
    let raw = raw(api_version, kind, object)?;
    Some(envelope(api_version, kind, &raw))
}

fn raw(api_version: &str, kind: &str, object: &Value) -> Option<Vec<u8>> {
    let (_, message_fields) = message(&message_name(api_version, kind))?;
    let mut out = Writer::default();
    write(message_fields, object.as_object()?, &mut out);
    Some(out.into_bytes())
}

/// The bytes before and after the items of an enveloped list. `items_bytes` is the length of all items together, as
/// [`encode_list_item`] encodes them. `None` for kinds that have no message.
pub fn encode_list_frame(
    api_version: &str,
    list_kind: &str,
    metadata: &Value,
    items_bytes: u64,
) -> Option<(Vec<u8>, Vec<u8>)> {
    let (_, message_fields) = message(&message_name(api_version, list_kind))?;
    let list: Value = [("metadata", metadata.clone())].into();
    let mut raw = Writer::default();
    write(message_fields, list.as_object()?, &mut raw);
    Some(envelope_around(api_version, list_kind, &raw.into_bytes(), items_bytes))
}

/// One object as an item of a list; `None` for kinds that have no message.
pub fn encode_list_item(api_version: &str, list_kind: &str, item: Value) -> Option<Vec<u8>> {
    let (_, message_fields) = message(&message_name(api_version, list_kind))?;
    let items = message_fields.iter().find(|message_field| message_field.name == "items")?;
    let mut out = Writer::default();
    // the other fields of a list are in its frame
    write_value(items.number, items.kind, &item, &mut out);
    Some(out.into_bytes())
}

/// One watch event, preceded by its length in four bytes (big-endian). `enveloped` is the encoded object.
pub fn watch_event(kind: &str, enveloped: &[u8]) -> Vec<u8> {
    debug_assert!(enveloped.starts_with(&MAGIC));
    let mut event = Writer::default();
    event.text(1, kind).message(2, |raw| {
        raw.bytes(1, enveloped);
    });
    let event = event.into_bytes();
    let mut out = u32::try_from(event.len()).unwrap_or(u32::MAX).to_be_bytes().to_vec();
    out.extend(event);
    out
}

fn write(message_fields: &[MessageField], map: &Map, out: &mut Writer) {
    for message_field in message_fields {
        if let (Count::Inline, FieldKind::Message(name)) = (message_field.count, message_field.kind) {
            out.message(message_field.number, |inner| write(fields_named(name), map, inner));
            continue;
        }
        let Some(value) = map.get(message_field.name).filter(|v| !v.is_null()) else {
            if message_field.is_always {
                write_zero(message_field.number, message_field.kind, out);
            }
            continue;
        };
        match (message_field.count, value) {
            (Count::Many, Value::Array(items)) => {
                items.iter().for_each(|item| write_value(message_field.number, message_field.kind, item, out));
            }
            (Count::Map, Value::Object(entries)) => {
                for (key, value) in entries.iter() {
                    out.message(message_field.number, |entry| {
                        entry.text(1, key);
                        write_value(2, message_field.kind, value, entry);
                    });
                }
            }
            (Count::One, value) => write_value(message_field.number, message_field.kind, value, out),
            _ => {}
        }
    }
}

/// The zero value of a field that is always written.
fn write_zero(number: u32, kind: FieldKind, out: &mut Writer) {
    match kind {
        FieldKind::Text => drop(out.text(number, "")),
        FieldKind::Bool | FieldKind::Int => drop(out.int(number, 0)),
        FieldKind::Double => drop(out.double(number, 0.0)),
        FieldKind::Bytes => {}
        FieldKind::Message(name) => {
            out.message(number, |inner| match name {
                "resource.Quantity" => drop(inner.text(1, "0")),
                "intstr.IntOrString" => drop(inner.int(1, 0).int(2, 0).text(3, "")),
                name => write(fields_named(name), &Map::new(), inner),
            });
        }
    }
}

fn write_value(number: u32, kind: FieldKind, value: &Value, out: &mut Writer) {
    match (kind, value) {
        (FieldKind::Text, Value::String(text)) => drop(out.text(number, text)),
        (FieldKind::Bytes, Value::String(text)) => {
            out.bytes(number, &STANDARD.decode(text.as_str()).unwrap_or_default());
        }
        (FieldKind::Bool, Value::Bool(b)) => drop(out.int(number, i64::from(*b))),
        (FieldKind::Int, Value::Int(i)) => drop(out.int(number, *i)),
        (FieldKind::Double, value) => drop(out.double(number, value.as_float().unwrap_or_default())),
        (FieldKind::Message(name), value) => {
            out.message(number, |inner| write_message(name, value, inner));
        }
        _ => {}
    }
}

fn write_message(name: &str, value: &Value, out: &mut Writer) {
    match (name, value) {
        ("meta.v1.Time" | "meta.v1.MicroTime", Value::String(text)) => write_time(text, out),
        ("meta.v1.FieldsV1" | "runtime.RawExtension" | "apiextensions.v1.JSON", value) => {
            out.bytes(1, value.to_json().as_bytes());
        }
        ("resource.Quantity", Value::String(text)) => {
            out.text(1, text);
        }
        ("intstr.IntOrString", Value::String(text)) => {
            out.int(1, 1).int(2, 0).text(3, text);
        }
        ("intstr.IntOrString", Value::Int(i)) => {
            out.int(1, 0).int(2, *i).text(3, "");
        }
        ("apiextensions.v1.JSONSchemaPropsOrBool", Value::Bool(allows)) => {
            out.int(1, i64::from(*allows));
        }
        ("apiextensions.v1.JSONSchemaPropsOrBool", schema) => {
            out.int(1, 1).message(2, |inner| write_message("apiextensions.v1.JSONSchemaProps", schema, inner));
        }
        ("apiextensions.v1.JSONSchemaPropsOrArray", Value::Object(_)) => {
            out.message(1, |inner| write_message("apiextensions.v1.JSONSchemaProps", value, inner));
        }
        ("apiextensions.v1.JSONSchemaPropsOrArray" | "apiextensions.v1.JSONSchemaPropsOrStringArray", value) => {
            for item in value.as_array().unwrap_or_default() {
                match item {
                    Value::String(text) => {
                        out.text(2, text);
                    }
                    item => {
                        out.message(2, |inner| write_message("apiextensions.v1.JSONSchemaProps", item, inner));
                    }
                }
            }
        }
        ("authentication.v1.ExtraValue" | "meta.v1.Verbs", value) => {
            for item in value.as_array().unwrap_or_default().iter().filter_map(Value::as_str) {
                out.text(1, item);
            }
        }
        (name, Value::Object(map)) => {
            write(fields_named(name), map, out);
        }
        _ => {}
    }
}

fn write_time(text: &Text, out: &mut Writer) {
    if let Some((seconds, nanos)) = time::parse_rfc3339(text) {
        out.int(1, seconds).int(2, i64::from(nanos));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::json;

    #[test]
    fn objects_round_trip() {
        let objects = [
            json!({
                "apiVersion": "v1", "kind": "ConfigMap",
                "metadata": {
                    "name": "a", "creationTimestamp": "2026-01-02T03:04:05Z", "labels": {"x": "y", "z": ""},
                    "managedFields": [{"manager": "m", "fieldsV1": {"f:data": {"f:k": {}}}}]
                },
                "data": {"k": "v"}, "binaryData": {"b": "AAEC"}, "immutable": true
            }),
            json!({
                "apiVersion": "admissionregistration.k8s.io/v1", "kind": "MutatingWebhookConfiguration",
                "metadata": {"name": "w"},
                "webhooks": [{"name": "a", "clientConfig": {}, "rules": [{"operations": ["*"], "apiGroups": ["b"], "scope": "*"}]}]
            }),
            json!({
                "apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingAdmissionPolicy",
                "metadata": {"name": "p"},
                "spec": {
                    "matchConstraints": {"resourceRules": [{"operations": ["CREATE"], "resourceNames": ["n"]}]},
                    "validations": [{"expression": "true"}], "variables": [{"name": "v", "expression": "1"}]
                }
            }),
            json!({
                "apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": {"name": "l"},
                "spec": {"holderIdentity": "me", "leaseDurationSeconds": 15, "renewTime": "2026-01-02T03:04:05.000006Z"}
            }),
            json!({
                "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
                "metadata": {"name": "a.b.c"},
                "spec": {"versions": [{"name": "v1", "schema": {"openAPIV3Schema": {
                    "type": "object", "default": {"a": [1, 2.5]}, "maximum": 1.5,
                    "properties": {"e": {"default": "", "example": ""}, "l": {"type": "array", "items": {"type": "string"}}},
                    "additionalProperties": {"type": "string"}, "x-kubernetes-list-type": "set"
                }}}]}
            }),
            json!({
                "apiVersion": "apiextensions.k8s.io/v1beta1", "kind": "CustomResourceDefinition",
                "metadata": {"name": "a.b.c"},
                "spec": {
                    "version": "v1", "validation": {"openAPIV3Schema": {"type": "object"}}, "preserveUnknownFields": false,
                    "additionalPrinterColumns": [{"name": "a", "JSONPath": ".a", "priority": 1}],
                    "versions": [{"name": "v1", "served": true, "storage": true}],
                    "conversion": {"strategy": "Webhook", "conversionReviewVersions": ["v1beta1"], "webhookClientConfig": {"url": "u"}}
                }
            }),
            json!({
                "apiVersion": "v1", "kind": "APIResourceList", "groupVersion": "a.b/v1",
                "resources": [{"name": "cs/status", "namespaced": true, "kind": "C", "verbs": ["get", "patch"]}]
            }),
            json!({
                "apiVersion": "apidiscovery.k8s.io/v2", "kind": "APIGroupDiscoveryList",
                "items": [{"metadata": {"name": "a.b"}, "versions": [{
                    "version": "v1", "freshness": "Current",
                    "resources": [{"resource": "cs", "responseKind": {"group": "a.b", "version": "v1", "kind": "C"}, "verbs": ["get"]}]
                }]}]
            }),
            json!({
                "apiVersion": "extensions/v1beta1", "kind": "ThirdPartyResource", "metadata": {"name": "a.b.c"},
                "description": "d", "versions": [{"name": "v1"}, {"name": "v2"}]
            }),
        ];
        for object in objects {
            let bytes = encode(&object).unwrap();
            let read = decode(&bytes).unwrap();
            assert_eq!(encode(&read).unwrap(), bytes, "{object}");
            assert!(holds(&read, &object), "{read}");
        }
    }

    /// Whether a value has everything that `wanted` has. Messages also have the zero values of fields that are not
    /// pointers.
    fn holds(value: &Value, wanted: &Value) -> bool {
        match (value, wanted) {
            (Value::Object(map), Value::Object(wanted)) => {
                wanted.iter().all(|(key, wanted)| map.get(key).is_some_and(|value| holds(value, wanted)))
            }
            (Value::Array(items), Value::Array(wanted)) => {
                items.len() == wanted.len() && items.iter().zip(wanted).all(|(item, wanted)| holds(item, wanted))
            }
            (value, wanted) => value == wanted,
        }
    }

    #[test]
    fn rejects_malformed_messages() {
        assert_eq!(decode(b""), Err(ProtobufError::Empty));
        assert_eq!(decode(b"hello"), Err(ProtobufError::MissingPrefix));
        let bytes = encode(&json!({"apiVersion": "v1", "kind": "ConfigMap", "data": {"k": "v"}})).unwrap();
        for end in 4..bytes.len() {
            let _ = decode(&bytes[..end]);
        }
        let unknown = ProtobufError::UnknownKind { api_version: "v1".to_owned(), kind: "Pot".to_owned() };
        assert_eq!(decode(&envelope("v1", "Pot", b"")), Err(unknown));
    }
}
