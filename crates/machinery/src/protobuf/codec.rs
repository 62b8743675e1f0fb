//! Conversion of built-in kinds between protobuf and JSON, driven by the table of messages.
//!
//! A few messages have a JSON form of another type: times and quantities are strings, and raw JSON is itself.

use crate::limits::PROTOBUF_DEPTH_MAX;
use crate::types::message_name;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

use super::error::ProtobufError;
use super::table::{Count, FieldKind, MessageField, message};
use super::{Field, MAGIC, Writer, envelope, envelope_around, fields, open};
use crate::time;
use crate::value::{Map, Text, Value, decode as decode_json};

/// Decodes an enveloped object to JSON.
///
/// Go's generated code writes an unset string as an empty one, unless it is a pointer. So a string may be empty where
/// JSON would omit the field; the shape of the kind knows which fields these are.
pub fn decode(bytes: &[u8]) -> Result<Value, ProtobufError> {
    let envelope = open(bytes)?;
    let name = message_name(&envelope.api_version, &envelope.kind);
    let Some(message_fields) = message(&name) else {
        return Err(ProtobufError::UnknownKind { api_version: envelope.api_version, kind: envelope.kind });
    };
    let mut object = read(message_fields, envelope.raw, 0).ok_or(ProtobufError::Malformed)?;
    object.insert("apiVersion", Value::from(envelope.api_version));
    object.insert("kind", Value::from(envelope.kind));
    Ok(Value::Object(object))
}

fn read(message_fields: &'static [MessageField], bytes: &[u8], depth: usize) -> Option<Map> {
    if depth > PROTOBUF_DEPTH_MAX {
        return None;
    }
    let mut out = Map::new();
    for field in fields(bytes)? {
        let number = match field {
            Field::Int(n, _) | Field::Double(n, _) | Field::Bytes(n, _) => n,
        };
        let Some(message_field) = message_fields.iter().find(|m| m.number == number) else { continue };
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
    Some(out)
}

fn read_entry(kind: FieldKind, entry: &[u8], depth: usize) -> Option<(String, Value)> {
    let mut key = String::new();
    let mut value = match kind {
        FieldKind::Text | FieldKind::Bytes => Value::from(""),
        _ => Value::Null,
    };
    for field in fields(entry)? {
        match field {
            Field::Bytes(1, text) => key = String::from_utf8_lossy(text).into_owned(),
            Field::Bytes(2, _) | Field::Int(2, _) | Field::Double(2, _) => value = read_value(kind, field, depth)?,
            _ => {}
        }
    }
    Some((key, value))
}

fn read_value(kind: FieldKind, field: Field<'_>, depth: usize) -> Option<Value> {
    match (kind, field) {
        (FieldKind::Text, Field::Bytes(_, text)) => Some(Value::from(String::from_utf8_lossy(text).into_owned())),
        (FieldKind::Bytes, Field::Bytes(_, bytes)) => Some(Value::from(STANDARD.encode(bytes))),
        (FieldKind::Bool, Field::Int(_, i)) => Some(Value::Bool(i != 0)),
        (FieldKind::Int, Field::Int(_, i)) => Some(Value::Int(i as i64)),
        (FieldKind::Double, Field::Double(_, f)) => Some(Value::Float(f)),
        (FieldKind::Message(name), Field::Bytes(_, bytes)) => read_message(name, bytes, depth + 1),
        _ => None,
    }
}

fn read_message(name: &str, bytes: &[u8], depth: usize) -> Option<Value> {
    let message_fields = message(name)?;
    match name {
        "meta.v1.Time" | "meta.v1.MicroTime" => read_time(name, bytes),
        "meta.v1.FieldsV1" | "runtime.RawExtension" | "apiextensions.v1.JSON" => match fields(bytes)?.first() {
            Some(Field::Bytes(1, raw)) if !raw.is_empty() => decode_json(raw).ok(),
            _ => Some(Value::Null),
        },
        "resource.Quantity" | "intstr.IntOrString" | "apiextensions.v1.JSONSchemaPropsOrBool" => {
            let map = read(message_fields, bytes, depth)?;
            let part = |key: &str| map.get(key).cloned();
            Some(match name {
                "resource.Quantity" => part("string").unwrap_or_default(),
                "intstr.IntOrString" if part("type") == Some(Value::Int(1)) => part("strVal").unwrap_or_default(),
                "intstr.IntOrString" => part("intVal").unwrap_or(Value::Int(0)),
                _ => part("schema").or_else(|| part("allows")).unwrap_or(Value::Bool(false)),
            })
        }
        "apiextensions.v1.JSONSchemaPropsOrArray" | "apiextensions.v1.JSONSchemaPropsOrStringArray" => {
            let mut map = read(message_fields, bytes, depth)?;
            Some(map.remove("schema").or_else(|| map.into_iter().next().map(|(_, v)| v)).unwrap_or_default())
        }
        "authentication.v1.ExtraValue" | "meta.v1.Verbs" => {
            let mut map = read(message_fields, bytes, depth)?;
            Some(map.remove("items").unwrap_or(Value::Array(vec![])))
        }
        // the claim template of a StatefulSet, whose type is shown in JSON but is not part of the message
        "core.v1.PersistentVolumeClaim" if depth >= CLAIM_TEMPLATE_DEPTH => {
            let mut claim = read(message_fields, bytes, depth)?;
            claim.insert("apiVersion", Value::from("v1"));
            claim.insert("kind", Value::from("PersistentVolumeClaim"));
            Some(Value::Object(claim))
        }
        _ => read(message_fields, bytes, depth).map(Value::Object),
    }
}

/// The depth of `volumeClaimTemplates` in a StatefulSet. The items of a PersistentVolumeClaimList are less deep.
const CLAIM_TEMPLATE_DEPTH: usize = 2;

/// The text of a time; null for an empty message, which stands for a time that is not set.
fn read_time(name: &str, bytes: &[u8]) -> Option<Value> {
    let (mut seconds, mut nanos, mut set) = (0i64, 0i64, false);
    for field in fields(bytes)? {
        match field {
            Field::Int(1, s) => (seconds, set) = (s as i64, true),
            Field::Int(2, n) => (nanos, set) = (n as i64, true),
            _ => {}
        }
    }
    if !set {
        return Some(Value::Null);
    }
    Some(Value::from(match name {
        "meta.v1.Time" => time::rfc3339(seconds),
        _ => time::rfc3339_micro(seconds.saturating_mul(1_000_000).saturating_add(nanos / 1000)),
    }))
}

/// An object as an enveloped message; `None` for kinds that have none.
pub fn encode(object: &Value) -> Option<Vec<u8>> {
    let (api_version, kind) = (object.str_at(&["apiVersion"]), object.str_at(&["kind"]));
    let raw = raw(api_version, kind, object)?;
    Some(envelope(api_version, kind, &raw))
}

fn raw(api_version: &str, kind: &str, object: &Value) -> Option<Vec<u8>> {
    let message_fields = message(&message_name(api_version, kind))?;
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
    let message_fields = message(&message_name(api_version, list_kind))?;
    let list: Value = [("metadata", metadata.clone())].into();
    let mut raw = Writer::default();
    write(message_fields, list.as_object()?, &mut raw);
    Some(envelope_around(api_version, list_kind, &raw.into_bytes(), items_bytes))
}

/// One object as an item of a list; `None` for kinds that have no message.
pub fn encode_list_item(api_version: &str, list_kind: &str, item: Value) -> Option<Vec<u8>> {
    let message_fields = message(&message_name(api_version, list_kind))?;
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
            out.message(message_field.number, |inner| write(message(name).unwrap_or_default(), map, inner));
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
                name => write(message(name).unwrap_or_default(), &Map::new(), inner),
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
            if let Some(message_fields) = message(name) {
                write(message_fields, map, out);
            }
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
