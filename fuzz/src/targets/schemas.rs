//! Schemas: any document is compiled and applied without a panic. With the schema of a valid definition, a second pruning and
//! defaulting changes nothing.

use machinery::{Value, json, value};
use schema::definition::{self, ApiVersion};
use schema::{CompileOptions, Malformed, Prior, Schema};

use super::Target;

pub const TARGET: Target = Target { name: "schemas", seeds: SEEDS, check };

/// `{"schema": …, "object": …}`.
const SEEDS: &[&[u8]] = &[
    br#"{"schema":{"type":"object","required":["spec"],"properties":{"spec":{"type":"object","properties":{"n":{"type":"integer","minimum":1,"maximum":2.5,"multipleOf":2,"default":3},"s":{"type":"string","pattern":"^a+$","maxLength":3,"format":"date","enum":["a","b"],"nullable":true},"l":{"type":"array","maxItems":2,"x-kubernetes-list-type":"map","x-kubernetes-list-map-keys":["k"],"items":{"type":"object","required":["k"],"properties":{"k":{"type":"string"},"d":{"type":"boolean","default":true}}}}}}}},"object":{"spec":{"n":1.0,"s":null,"l":[{"k":"a"},{"k":"a"},null],"x":[{"y":1}]}}}"#,
    br#"{"schema":{"type":"object","properties":{"m":{"type":"object","additionalProperties":{"type":"array","items":{"x-kubernetes-int-or-string":true}}},"e":{"type":"object","x-kubernetes-embedded-resource":true,"x-kubernetes-preserve-unknown-fields":true},"a":{"type":"object","properties":{"x":{"type":"number"}},"anyOf":[{"required":["x"]},{"properties":{"x":{"not":{"maximum":1}}}}],"oneOf":[{"minProperties":1}],"allOf":[{"maxProperties":9}]}}},"object":{"m":{"a.b":[1,"x",1.5,null]},"e":{"kind":5,"apiVersion":"a/b/c","metadata":{"name":"A","labels":{"x":1}}},"a":{"x":0.5}}}"#,
    br#"{"schema":{"type":"object","x-kubernetes-validations":[{"rule":"self.a > oldSelf.a","message":"grow"}],"properties":{"a":{"type":"integer","x-kubernetes-validations":[{"rule":"self < 5","messageExpression":"string(self)"}]},"status":{"type":"object","properties":{"x":{"type":"string","default":"y"}},"default":{}}}},"object":{"a":7,"status":null}}"#,
    br#"{"schema":{"type":["x"],"items":[{"$ref":"a"}],"properties":[],"allOf":{"a":1},"pattern":"(","default":{"a":{}},"enum":[null]},"object":[1,{"a":null}]}"#,
];

fn check(input: &[u8]) {
    let Ok(document) = value::decode(input) else { return };
    let given = document.get("schema").unwrap_or(&Value::Null);
    let schema = Schema::compile(given, &CompileOptions::default());
    let mut object = document.get("object").cloned().unwrap_or_default();
    let accepted = prepare(&schema, &mut object);
    if accepted && is_valid(given) {
        let once = object.clone();
        schema.prune(&mut object, &mut vec![]);
        let _ = schema.default(&mut object);
        assert_eq!(object.to_json(), once.to_json(), "pruned and defaulted again");
    }
    let _ = schema.validate_after(Prior::Metadata(vec![]), &object, None);
    let same = schema.validate_after(Prior::Metadata(vec![]), &object, Some(&object));
    let status = schema.validate_status(Prior::Metadata(vec![]), &object, &object);
    assert!(same.errors.len() < 100_000 && status.errors.len() < 100_000);
}

/// Prunes and defaults a request body. Returns false if it is rejected.
fn prepare(schema: &Schema, object: &mut Value) -> bool {
    let mut unknown = vec![];
    schema.prune(object, &mut unknown);
    let embedded = schema.coerce_embedded(object, Malformed::Refuse, &mut unknown);
    let _ = schema.default(object);
    embedded.is_ok()
}

/// Whether a definition with this schema is accepted.
fn is_valid(schema: &Value) -> bool {
    let body = json!({"metadata": {"name": "kites.example.com"}, "spec": {
        "group": "example.com", "scope": "Cluster", "names": {"plural": "kites", "kind": "Kite"},
        "versions": [{"name": "v1", "served": true, "storage": true, "schema": {"openAPIV3Schema": (schema.clone())}}]}});
    let Ok(decoded) = definition::decode(&body, ApiVersion::V1) else { return false };
    let mut definition = decoded.definition;
    definition::prepare_for_create(&mut definition);
    definition::validate_create(&definition, machinery::Release::default()).is_empty()
        && *schema == stored_schema(&definition)
}

/// The schema in the stored definition, without unknown fields.
fn stored_schema(definition: &Value) -> Value {
    let stored = definition::to_stored(definition);
    let version = stored.at(&["spec", "versions"]).and_then(Value::as_array).and_then(<[Value]>::first).cloned();
    version.and_then(|version| version.at(&["schema", "openAPIV3Schema"]).cloned()).unwrap_or_default()
}
