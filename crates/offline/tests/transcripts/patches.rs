//! What a patch makes of the object that is stored: the update that `pintle validate --old` checks.

use machinery::patch::{Unknown, json_patch, merge_patch, strategic_merge};
use machinery::types::message_name;
use machinery::{Value, value};

/// The media types of patches.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    Json,
    Merge,
    Strategic,
}

impl Kind {
    pub fn of(media_type: &str) -> Option<Kind> {
        match media_type {
            "application/json-patch+json" => Some(Kind::Json),
            "" | "application/merge-patch+json" => Some(Kind::Merge),
            "application/strategic-merge-patch+json" => Some(Kind::Strategic),
            _ => None,
        }
    }
}

/// The patched object; `None` if the patch itself is wrong, or does not fit the object.
pub fn patched(stored: &Value, kind: Kind, patch: &str) -> Option<Value> {
    let (stored_as, bytes) = (stored.clone(), patch.as_bytes());
    // a field that is given twice is reported by the decoder of patches
    if value::decode_strict(bytes).is_ok_and(|decoded| !decoded.duplicates.is_empty()) {
        return None;
    }
    match kind {
        Kind::Json => {
            let patch = json_patch::decode_patch(bytes, Unknown::Reported).ok()?;
            patch.strict_errors.is_empty().then(|| json_patch::apply(stored_as, &patch).ok())?
        }
        Kind::Merge => {
            let patch = merge_patch::decode_patch(bytes, Unknown::Reported).ok()?;
            Some(merge_patch::apply(stored_as, patch.value))
        }
        Kind::Strategic => {
            let patch = strategic_merge::decode_patch(bytes, Unknown::Reported).ok()?;
            let name = message_name(stored.str_at(&["apiVersion"]), stored.str_at(&["kind"]));
            let meta = strategic_merge::PatchMeta::of_type(&name);
            strategic_merge::apply(stored_as, patch.value, meta).ok()
        }
    }
}
