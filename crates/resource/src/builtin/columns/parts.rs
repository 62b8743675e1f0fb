//! Parts of cells that several kinds share.

use machinery::{Value, jsonpath};

use crate::builtin::checks::text;

pub const NONE: &str = "<none>";

/// The condition of a type, if it is true.
pub fn condition<'a>(object: &'a Value, kind: &str) -> Option<&'a Value> {
    let is = |condition: &&Value| text(condition, "type") == kind && text(condition, "status") == "True";
    object.items_at(&["status", "conditions"]).iter().find(is)
}

pub fn since(time: &str, now: i64) -> String {
    jsonpath::columns::age(time, now)
}

/// The first three texts, and how many more there are.
pub fn shortened(texts: &[&str]) -> String {
    match texts {
        [one, two, three, others @ ..] if !others.is_empty() => {
            format!("{one},{two},{three} + {} more...", others.len())
        }
        few => few.join(","),
    }
}
