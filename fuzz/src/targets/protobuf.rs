//! Protobuf: what is read is written and read again as the same value; so is what was JSON.

use machinery::{protobuf, value};

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
    let Some(written) = protobuf::encode(&object) else { return };
    // values that don't fit their fields are left out, so the second form is the one that has to stay
    let second = protobuf::decode(&written).expect("what was written can't be read");
    let rewritten = protobuf::encode(&second).expect("what was read can't be written");
    let third = protobuf::decode(&rewritten).expect("what was written can't be read");
    assert_eq!(second, third);
}
