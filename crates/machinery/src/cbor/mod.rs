//! CBOR (RFC 8949) in the profile of Kubernetes (KEP-4222).
//!
//! The encoder is deterministic: text as byte strings, fields in the order of their encoded names, numbers in their
//! shortest form, behind the tag of self-described CBOR. The decoder also accepts text strings, indefinite lengths and
//! tags. It rejects values that JSON cannot express, and duplicate keys.

mod decode;
mod encode;
mod error;

use crate::value::Value;

pub use decode::{decode, decode_stored};
pub use encode::{encode, watch_event};
pub use error::{CborError, CborProblem};

/// The bytes that begin a document: tag 55799.
pub const SELF_DESCRIBED: [u8; 3] = [0xd9, 0xd9, 0xf7];

/// Limits on the size of a document.
#[derive(Clone, Copy)]
struct Bounds {
    /// The greatest nesting depth.
    depth: usize,
    /// The greatest number of items of an array and of fields of a map.
    length: usize,
}

impl Bounds {
    /// The limits of kube-apiserver's decoder, for requests and etcd.
    const REQUEST: Bounds = Bounds { depth: 64, length: 1024 };
    /// The depth limit of JSON. The number of items needs no limit, since each takes at least one byte of the input.
    const STORED: Bounds = Bounds { depth: 10_000, length: usize::MAX };
}

/// Whether kube-apiserver can read a value as CBOR.
pub fn is_readable(value: &Value) -> bool {
    fn within(value: &Value, depth: usize) -> bool {
        let bounds = Bounds::REQUEST;
        depth <= bounds.depth
            && match value {
                Value::Array(items) => items.len() <= bounds.length && items.iter().all(|item| within(item, depth + 1)),
                Value::Object(map) => {
                    map.len() <= bounds.length && map.iter().all(|(_, value)| within(value, depth + 1))
                }
                _ => true,
            }
    }
    // the tag of self-described CBOR counts as a level
    within(value, 1)
}

/// A half-precision float.
fn from_half(bits: u16) -> f64 {
    let fraction = f64::from(bits & 0x03ff);
    let magnitude = match i32::from(bits >> 10 & 0x1f) {
        0 => fraction * 2f64.powi(-24),
        31 if fraction == 0.0 => f64::INFINITY,
        31 => f64::NAN,
        exponent => (fraction + 1024.0) * 2f64.powi(exponent - 25),
    };
    if bits & 0x8000 == 0 { magnitude } else { -magnitude }
}

/// The half-precision float that is equal to `value`, if there is one.
fn to_half(value: f64) -> Option<u16> {
    let bits = value.to_bits();
    let sign = (bits >> 48 & 0x8000) as u16;
    let exponent = (bits >> 52 & 0x7ff) as i32 - 1023;
    let candidate = match exponent {
        -14..=15 => sign | ((exponent + 15) as u16) << 10 | (bits >> 42 & 0x03ff) as u16,
        // below 2^-14 the fraction counts multiples of 2^-24
        _ if value.abs() < 2f64.powi(-14) => sign | (value.abs() * 2f64.powi(24)) as u16,
        _ => return None,
    };
    (from_half(candidate).to_bits() == bits).then_some(candidate)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::value;

    fn hex(bytes: &[u8]) -> String {
        bytes.iter().map(|byte| format!("{byte:02x}")).collect()
    }

    fn bytes(hex: &str) -> Vec<u8> {
        let digit = |at: usize| u8::from_str_radix(&hex[at..at + 2], 16).expect("hex");
        (0..hex.len()).step_by(2).map(digit).collect()
    }

    #[test]
    fn canonical_cbor_profile_is_used() {
        for (json, wanted) in [
            ("null", "f6"),
            ("[true,false]", "82f5f4"),
            ("[0,23,24,255,256,-1,-256,65536]", "8800171818 18ff190100 20 38ff 1a00010000"),
            ("[9223372036854775807,-9223372036854775808]", "821b7fffffffffffffff3b7fffffffffffffff"),
            ("[1.5,-0.0,65504.0,100000.5,1.1]", "85f93e00f98000f97bfffa47c35040fb3ff199999999999a"),
            ("[5.960464477539063e-8,0.00006103515625,65520.0]", "83f90001f90400fa477ff000"),
            (r#""ä""#, "42c3a4"),
            (r#"{"bb":1,"a":2,"c":{}}"#, "a3 4161 02 4163 a0 426262 01"),
        ] {
            let value = value::decode(json.as_bytes()).expect("JSON");
            assert_eq!(hex(&encode(&value)), format!("d9d9f7{}", wanted.replace(' ', "")), "{json}");
            assert_eq!(decode(&encode(&value)), Ok(value), "{json}");
        }
    }

    #[test]
    fn non_canonical_cbor_is_decoded() {
        for (given, json) in [
            ("626162", r#""ab""#),
            ("5f41614162ff", r#""ab""#),
            ("7f61616162ff", r#""ab""#),
            ("9f0102ff", "[1,2]"),
            ("bf616101ff", r#"{"a":1}"#),
            ("d64161", r#""YQ==""#),
            ("d54161", r#""YQ""#),
            ("d74161", r#""61""#),
            ("c074323032362d30312d30315430303a30303a30305a", r#""2026-01-01T00:00:00Z""#),
            ("c11a00000001", r#""1970-01-01T00:00:01Z""#),
            ("d9d9f7d9d9f701", "1"),
            ("fa3f800000", "1"),
            ("1817", "23"),
        ] {
            assert_eq!(decode(&bytes(given)).map(|value| value.to_json()), Ok(json.to_owned()), "{given}");
        }
    }

    #[test]
    fn rejects_values_that_json_cannot_hold() {
        let deep = "81".repeat(Bounds::REQUEST.depth + 1) + "00";
        let long = format!("9904 01{}", "00".repeat(Bounds::REQUEST.length + 1)).replace(' ', "");
        for given in [
            "", "1b8000000000000000", "f97e00", "f97c00", "fb7ff8000000000000", "f7", "f0", "f8ff", "61ff",
            "a24161014161 02", "a10102", "a1f601", "c249010000000000000000", "8201", "0101", "1c", "ff", "5f6161ff",
            "c0614f", &deep, &long,
        ] {
            let given = given.replace(' ', "");
            assert!(decode(&bytes(&given)).is_err(), "{given}");
        }
    }

    #[test]
    fn half_precision_floats_round_trip() {
        for bits in 0..=u16::MAX {
            let value = from_half(bits);
            if value.is_finite() {
                assert_eq!(to_half(value), Some(bits), "{value}");
            }
        }
    }
}
