//! ConfigMap, and the rules for data that Secrets share.

use machinery::{Map, Value};

use crate::limits;
use crate::names::data_key;
use schema::at::At;

/// The decoded length of a base64 text, in bytes.
pub fn decoded_len(text: &str) -> usize {
    let padding = text.bytes().rev().take_while(|byte| *byte == b'=').count();
    (text.len() / 4 * 3).saturating_sub(padding)
}

/// Reports changes to `fields` of an object that is `immutable`.
pub fn unchanged(at: At, fields: &[&str]) {
    let immutable = at.field("immutable");
    if immutable.old != Some(&Value::Bool(true)) {
        return;
    }
    let why = "field is immutable when `immutable` is set";
    immutable.forbidden_if(*immutable.value != Value::Bool(true), why);
    let fields = fields.iter().map(|name| at.field(name)).filter(|field| field.old != Some(field.value));
    fields.for_each(|field| field.forbidden(why));
}

pub fn validate(at: At) {
    // kube-apiserver defaults `data` to an empty map, but not `binaryData`
    let is_empty = |data: &Value| data.as_object().is_none_or(Map::is_empty);
    let data = at.field("data");
    let has_no_data = is_empty(data.value) && data.old.is_none_or(is_empty);
    unchanged(at, if has_no_data { &["binaryData"] } else { &["data", "binaryData"] });
    let (binary, mut size) = (at.field("binaryData"), 0);
    for field in ["data", "binaryData"] {
        for (key, value) in at.entries_of(field) {
            value.shown_as_text(key).invalid_each(data_key(key));
            if field == "data" && binary.value.get(key).is_some() {
                value.shown_as_text(key).invalid("duplicate of key present in binaryData");
            }
            size += if field == "data" { value.as_text().len() } else { decoded_len(value.as_text()) };
        }
    }
    if size > limits::DATA_BYTES_MAX {
        at.field_with_dots("[]").too_long(limits::DATA_BYTES_MAX);
    }
}
