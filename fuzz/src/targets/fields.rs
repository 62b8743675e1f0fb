//! `fieldsV1`: a set is encoded and decoded again as the same set, and sets obey the laws of sets.

use machinery::{Value, value};
use schema::apply::{FieldSet, encode_fields_v1, parse_fields_v1};

use super::Target;

pub const TARGET: Target = Target { name: "fields", seeds: SEEDS, check };

const SEEDS: &[&[u8]] = &[
    br#"{"f:metadata":{"f:labels":{".":{},"f:app":{}}},"f:spec":{"f:replicas":{}}}"#,
    br#"{"f:spec":{"f:ports":{"k:{\"port\":80,\"protocol\":\"TCP\"}":{".":{},"f:name":{}}},"f:set":{"v:\"a\"":{},"v:1":{}}}}"#,
    br#"{"i:0":{},"i:-1":{},"v:null":{},"k:{}":{},"x:unknown":{}}"#,
];

fn check(input: &[u8]) {
    let Ok(value) = value::decode(input) else { return };
    let (read, encoded) = (parse_fields_v1(&value), parse_fields_v1(&Value::Encoded(value.to_json().into())));
    assert_eq!(format!("{encoded:?}"), format!("{read:?}"), "the text is decoded as another set than the tree");
    let Ok(set) = read else { return };
    let written = encode_fields_v1(&set);
    let again = parse_fields_v1(&written).expect("the encoded set can't be decoded");
    assert_eq!(again.paths(), set.paths(), "{written}");
    laws(&set);
}

/// Checks the laws for a set and its first half.
fn laws(set: &FieldSet) {
    let mut half = FieldSet::new();
    for (element, node) in set.iter().take(set.iter().len() / 2) {
        half.insert(element.clone(), node.clone());
    }
    assert!(half.is_subset(set));
    let rest = set.difference(&half);
    assert!(rest.intersection(&half).is_empty(), "{:?} {:?}", rest.paths(), half.paths());
    assert_eq!(rest.union(half).paths(), set.paths());
    assert!(set.difference(set).is_empty());
}
