//! Protobuf: a decoded object, of protobuf or JSON, is encoded and decoded again as the same object.

use machinery::{Value, protobuf, value};

use super::Target;

pub const TARGET: Target = Target { name: "protobuf", seeds: SEEDS, check };

const SEEDS: &[&[u8]] = &[
    b"k8s\0\x0a\x0f\x0a\x02v1\x12\x09ConfigMap\x12\x17\x0a\x03\x0a\x01a\x12\x06\x0a\x01k\x12\x01v\x12\x08\x0a\x01l\x12\x03vvv\x1a\0\"\0",
    b"k8s\0\x0a\x0f\x0a\x02v1\x12\x09Namespace\x12\x10\x0a\x0a\x0a\x01a*\x05\x08\x01\x10\x02\x12\0\x1a\0",
    br#"{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"a","creationTimestamp":"2026-01-01T00:00:00Z"},"data":{"k":"v"},"binaryData":{"b":"aGk="}}"#,
    br#"{"apiVersion":"v1","kind":"Secret","metadata":{"name":"a","generation":3,"finalizers":["x/y"]},"type":"Opaque"}"#,
    br#"{"apiVersion":"admissionregistration.k8s.io/v1","kind":"ValidatingWebhookConfiguration","webhooks":[{"name":"a","rules":[{"operations":["*"],"apiGroups":[""],"resources":["*"]}]}]}"#,
    br#"{"apiVersion":"coordination.k8s.io/v1","kind":"Lease","metadata":{"name":"a"},"spec":{"leaseDurationSeconds":15,"renewTime":"2026-01-01T00:00:00.000001Z"}}"#,
];

fn check(input: &[u8]) {
    let object = match protobuf::decode(input) {
        Ok(object) => object,
        Err(_) => match value::decode(input) {
            Ok(object) => object,
            Err(_) => return,
        },
    };
    let Some(second) = reread(&object) else { return };
    // the second object lacks values that do not fit their fields, and the third has the zero values of required fields
    let third = reread(&second).expect("the decoded object can't be encoded");
    assert_eq!(reread(&third).as_ref(), Some(&third));
}

/// The object after encoding and decoding; `None` for kinds without a message.
fn reread(object: &Value) -> Option<Value> {
    let written = protobuf::encode(object)?;
    Some(protobuf::decode(&written).expect("the encoded object can't be decoded"))
}
