//! Patches, compared with a library that implements the RFCs exactly.
//!
//! An input is the seed of a random document and patch. Patches for which kube-apiserver deviates from the RFC (upserting
//! `replace`, negative indices, nulls in arrays, …) are not generated; tables of cases beside the code cover them.

use json_patch::{merge, patch};
use machinery::patch::{Unknown, json_patch as own, merge_patch};
use machinery::value::decode;
use machinery::{Value, json};

use super::Target;
use crate::random::Random;

pub const JSON: Target = Target { name: "json-patch", seeds: SEEDS, check: check_json };
pub const MERGE: Target = Target { name: "merge-patch", seeds: SEEDS, check: check_merge };

const SEEDS: &[&[u8]] = &[b"a", b"seed of a document and a patch"];
const OPERATIONS_MAX: usize = 4;
const DEPTH: usize = 3;

fn reference(value: &Value) -> serde_json::Value {
    serde_json::from_str(&value.to_json()).expect("JSON")
}

fn own_value(value: &serde_json::Value) -> Value {
    decode(value.to_string().as_bytes()).expect("JSON")
}

fn check_merge(input: &[u8]) {
    let mut random = Random::from_input(input);
    let document = Value::Object(random.members(DEPTH, true));
    let patch_value = Value::Object(random.members(DEPTH, true));
    let mut expected = reference(&document);
    merge(&mut expected, &reference(&patch_value));
    let result = merge_patch::apply(document.clone(), patch_value.clone());
    assert_eq!(result, own_value(&expected), "{document} patched with {patch_value}");
}

/// The JSON pointers of all values below `value`.
fn places(value: &Value, at: &str, found: &mut Vec<String>) {
    let escape = |name: &str| name.replace('~', "~0").replace('/', "~1");
    match value {
        Value::Object(map) => {
            for (name, below) in map.iter() {
                let path = format!("{at}/{}", escape(name));
                places(below, &path, found);
                found.push(path);
            }
        }
        Value::Array(items) => {
            for (i, below) in items.iter().enumerate() {
                let path = format!("{at}/{i}");
                places(below, &path, found);
                found.push(path);
            }
        }
        _ => {}
    }
}

/// An operation on a document with the pointers `existing`.
fn operation(random: &mut Random, existing: &[String]) -> Value {
    let existing = |random: &mut Random| Value::from(random.one_of(existing));
    let new = |random: &mut Random, at: &Value| {
        let parent = at.as_str().and_then(|at| at.rsplit_once('/')).map(|(parent, _)| parent).unwrap_or_default();
        Value::from(format!("{parent}/{}", random.one_of(&["a", "new", "0", "1", "2", "-"])))
    };
    let at = existing(random);
    match random.below(6) {
        0 => json!({"op": "add", "path": (new(random, &at)), "value": (random.value(2, true))}),
        1 => json!({"op": "remove", "path": at}),
        2 => json!({"op": "replace", "path": at, "value": (random.value(2, true))}),
        3 => json!({"op": "test", "path": at, "value": (random.value(1, false))}),
        4 => {
            let to = existing(random);
            json!({"op": "copy", "from": at, "path": (new(random, &to))})
        }
        _ => {
            let to = existing(random);
            json!({"op": "move", "from": at, "path": (new(random, &to))})
        }
    }
}

/// Whether an operation moves a value into itself, which the RFC forbids and kube-apiserver's library does not always reject.
fn moves_into_itself(operation: &Value) -> bool {
    let (from, path) = (operation.str_at(&["from"]), operation.str_at(&["path"]));
    operation.str_at(&["op"]) == "move" && path.starts_with(from)
}

fn check_json(input: &[u8]) {
    let mut random = Random::from_input(input);
    let mut document = Value::Object(random.members(DEPTH, true));
    for _ in 0..OPERATIONS_MAX {
        let mut existing = vec![];
        places(&document, "", &mut existing);
        if existing.is_empty() {
            return;
        }
        let step = operation(&mut random, &existing);
        if moves_into_itself(&step) {
            continue;
        }
        let patch_value: Value = [step].into_iter().collect();
        let mut expected = reference(&document);
        let operations: json_patch::Patch = serde_json::from_value(reference(&patch_value)).expect("a patch");
        let expected = patch(&mut expected, &operations).ok().map(|()| own_value(&expected));
        let decoded = own::decode_patch(patch_value.to_json().as_bytes(), Unknown::Reported).expect("a patch");
        let result = own::apply(document.clone(), &decoded).ok();
        assert_eq!(result, expected, "{document} patched with {patch_value}");
        document = result.unwrap_or(document);
    }
}
