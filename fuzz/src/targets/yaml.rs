//! YAML: a decoded value is encoded and decoded again as the same value.

use machinery::{Value, yaml};

use super::Target;

pub const TARGET: Target = Target { name: "yaml", seeds: SEEDS, check };

const SEEDS: &[&[u8]] = &[
    b"apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: a\n  labels: {x: 'y', \"z\": yes}\ndata:\n  text: |\n    one\n    two\n",
    b"- 014\n- 0x1F\n- 0b11\n- 1_000\n- .5\n- +5\n- ~\n- null\n- off\n- 12:30:45\n- 2026-01-01\n- !!binary aGk=\n- 1e400\n",
    b"a: &x {b: 1}\nc:\n  <<: *x\n  d: >-\n    folded\n    text\n? e\n: f\n",
    b"--- {a: [1, 2, {b: c}], \"d\\n\": 'it''s'}\n...\n--- second\n",
    br##"{"a":{"b":[1,"true","01",""," x","- y","#z"]}}"##,
];

/// Whether a value has a key that go-yaml, and Pintle with it, writes as a merge key.
fn has_merge_key(value: &Value) -> bool {
    match value {
        Value::Object(map) => map.iter().any(|(key, value)| key.as_str() == "<<" || has_merge_key(value)),
        Value::Array(items) => items.iter().any(has_merge_key),
        _ => false,
    }
}

fn check(input: &[u8]) {
    let Ok(decoded) = yaml::decode(input) else { return };
    if has_merge_key(&decoded.value) {
        return;
    }
    let written = yaml::encode(&decoded.value);
    match yaml::decode(written.as_bytes()) {
        // compared as JSON, in which 1.0 is 1
        Ok(again) => assert_eq!(again.value.to_json(), decoded.value.to_json(), "{written:?}"),
        Err(error) => panic!("the encoded value can't be decoded: {error}: {written:?}"),
    }
}
