//! CBOR: a decoded value, of CBOR or JSON, is encoded and decoded again as the same value.

use machinery::{cbor, value};

use super::Target;

pub const TARGET: Target = Target { name: "cbor", seeds: SEEDS, check };

const SEEDS: &[&[u8]] = &[
    b"\xd9\xd9\xf7\xa2\x44kind\x49ConfigMap\x44data\xa1\x41k\xd6\x42hi",
    b"\xbf\x61a\x9f\x01\x20\x18\xff\xf9\x3e\x00\xfa\x3f\x80\x00\x00\xfb\x3f\xf1\x99\x99\x99\x99\x99\x9a\xff\xff",
    b"\xc0\x74\x32026-01-01T00:00:00Z",
    b"\xc1\x1a\x00\x00\x00\x01",
    br#"{"a":[0,-1,1.5,1e300,"x",null,true,{"bb":{}}],"b":9223372036854775807}"#,
];

fn check(input: &[u8]) {
    let value = match cbor::decode(input) {
        Ok(value) => value,
        Err(_) => match value::decode(input) {
            // arrays and maps may be longer, and nest deeper, in JSON
            Ok(value) if cbor::decode(&cbor::encode(&value)).is_ok() => value,
            _ => return,
        },
    };
    let written = cbor::encode(&value);
    assert_eq!(cbor::decode(&written).as_ref(), Ok(&value));
    assert_eq!(cbor::encode(&value), written);
}
