//! The texts of patches that cannot be decoded.

use super::json_error;
use machinery::Status;
use machinery::patch::json_patch::OPERATIONS_MAX;
use machinery::patch::{PatchError, PatchPart, StrictError, Unknown};
use machinery::status::Reason;
use machinery::value::{JsonError, JsonProblem};

const NOT_A_MERGE_PATCH: &str = "Invalid JSON Patch";
const OBJECT: &str = "value of type map[string]interface {}";

/// A JSON patch that cannot be decoded.
pub fn json_patch_error(error: &PatchError, unknown: Unknown) -> Status {
    if let PatchError::TooManyOperations { count } = error {
        let limit = "Request entity too large: The allowed maximum operations in a JSON patch is";
        return Status::new(Reason::RequestEntityTooLarge, format!("{limit} {OPERATIONS_MAX}, got {count}"));
    }
    match unknown {
        Unknown::Reported => decoding(&match error {
            // only a value can contain a number that no float can hold
            PatchError::Json(JsonError { problem: JsonProblem::NumberOutOfRange { literal }, .. }) => {
                format!(
                    "json: cannot unmarshal number {literal} into Go struct field jsonPatchOp.value of type float64"
                )
            }
            error => text(error, ["value of type []handlers.jsonPatchOp", "value of type handlers.jsonPatchOp"]),
        }),
        Unknown::Ignored => Status::bad_request(lenient_json_patch_error(error)),
    }
}

/// The text of a JSON patch that cannot be decoded, where unknown fields are ignored.
pub fn lenient_json_patch_error(error: &PatchError) -> String {
    text(error, ["value of type jsonpatch.Patch", "value of type jsonpatch.Operation"])
}

/// A merge patch that cannot be decoded.
pub fn merge_patch_error(error: &PatchError, unknown: Unknown) -> Status {
    match (unknown, error) {
        (Unknown::Ignored, _) | (_, PatchError::WrongType { found: "null", .. }) => {
            Status::bad_request(NOT_A_MERGE_PATCH)
        }
        (Unknown::Reported, error) => decoding(&text(error, [OBJECT; 2])),
    }
}

/// A strategic merge patch that cannot be decoded.
pub fn strategic_patch_error(error: &PatchError) -> Status {
    Status::bad_request(text(error, [OBJECT; 2]))
}

fn decoding(why: &str) -> Status {
    Status::bad_request(format!("error decoding patch: {why}"))
}

/// `types` are the Go types of the list of operations and of an operation.
fn text(error: &PatchError, types: [&str; 2]) -> String {
    let (found, part) = match error {
        PatchError::Json(error) => return json_error(error),
        PatchError::WrongType { found, part } => (found, part),
        other => return other.to_string(),
    };
    let wanted = match part {
        PatchPart::Document => OBJECT,
        PatchPart::Operations => types[0],
        PatchPart::Operation => types[1],
        PatchPart::OperationField(name) => {
            return format!("json: cannot unmarshal {found} into Go struct field jsonPatchOp.{name} of type string");
        }
    };
    format!("json: cannot unmarshal {found} into Go {wanted}")
}

/// The message of strict validation about a field of a merge patch.
pub fn strict_error(error: &StrictError) -> String {
    let kind = if error.is_duplicate { "duplicate" } else { "unknown" };
    format!("{kind} field {}", machinery::value::quote(&error.path))
}

#[cfg(test)]
mod tests {
    use super::*;
    use machinery::patch::{json_patch, merge_patch};

    #[test]
    fn patches() {
        for (patch, want) in [
            ("{}", "json: cannot unmarshal object into Go value of type []handlers.jsonPatchOp"),
            ("[1]", "json: cannot unmarshal number into Go value of type handlers.jsonPatchOp"),
            (
                r#"[{"op":"add","path":5}]"#,
                "json: cannot unmarshal number into Go struct field jsonPatchOp.path of type string",
            ),
            ("", "unexpected end of JSON input"),
            (
                r#"[{"value":1e309}]"#,
                "json: cannot unmarshal number 1e309 into Go struct field jsonPatchOp.value of type float64",
            ),
        ] {
            let error = json_patch::decode_patch(patch.as_bytes(), Unknown::Reported).unwrap_err();
            let status = json_patch_error(&error, Unknown::Reported);
            assert_eq!(status.message, format!("error decoding patch: {want}"));
        }
        let merge = |text: &str, unknown| {
            let error = merge_patch::decode_patch(text.as_bytes(), unknown).unwrap_err();
            merge_patch_error(&error, unknown).message.clone()
        };
        let object = "error decoding patch: json: cannot unmarshal array into Go value of type map[string]interface {}";
        assert_eq!(merge("[]", Unknown::Reported), object);
        assert_eq!(merge("null", Unknown::Reported), NOT_A_MERGE_PATCH);
        assert_eq!(merge("{", Unknown::Ignored), NOT_A_MERGE_PATCH);
    }
}
