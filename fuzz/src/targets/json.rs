//! JSON: a decoded value is encoded and decoded again as the same value, except that `1.0` becomes `1` and `-0.0` becomes `0`.

use machinery::Value;
use machinery::value::{decode, decode_strict, key_order};

use super::Target;

pub const TARGET: Target = Target { name: "json", seeds: SEEDS, check };

const SEEDS: &[&[u8]] = &[
    br#"{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"a","labels":{"x":"\u00e4\ud83d\ude00"}},"data":null}"#,
    br#"[0,-0,1.0,1e3,-1.5e-7,9223372036854775807,9223372036854775808,1e308,true,false,null,"\"\\\/\b\f\n\r\t<>&"]"#,
    br#"{"a":{"b":[{"c":1,"c":2}]},"a":1}"#,
    br#" [ [ [ [ ] ] , { } ] ] "#,
    b"\"\xe2\x80\xa8\xff\"",
];

fn without_negative_zeros(value: &Value) -> Value {
    match value {
        Value::Float(0.0) => Value::Int(0),
        Value::Array(items) => items.iter().map(without_negative_zeros).collect(),
        Value::Object(map) => {
            Value::Object(map.iter().map(|(name, value)| (name.clone(), without_negative_zeros(value))).collect())
        }
        other => other.clone(),
    }
}

fn check(input: &[u8]) {
    let strict = decode_strict(input);
    let Ok(value) = decode(input) else {
        assert!(strict.is_err(), "strict decoding accepts invalid JSON");
        return;
    };
    let strict = strict.expect("strict decoding rejects JSON");
    assert_eq!(strict.value, value, "strict decoding returns another value");
    let written = value.to_json();
    let again = decode(written.as_bytes()).expect("the encoded value can't be decoded");
    assert_eq!(again.to_json(), without_negative_zeros(&value).to_json());
    let _ = key_order(input);
    if let (Ok(text), Ok(reference)) = (std::str::from_utf8(input), serde_json::from_slice::<serde_json::Value>(input))
    {
        // the reference rounds floats differently, and -0 is a float there
        if !text.contains(['.', 'e', 'E']) && !text.contains("-0") && !text.contains("0000") {
            let reference = decode(reference.to_string().as_bytes()).expect("a reference is JSON");
            assert_eq!(value.to_json(), reference.to_json(), "the reference decodes another value");
        }
    }
}
