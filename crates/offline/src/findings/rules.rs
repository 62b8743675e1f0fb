//! The reasons of findings, with a text for services that list them.

pub const UNREADABLE: &str = "Unreadable";

/// Reasons of causes and statuses of the server, and our own.
const TEXTS: [(&str, &str); 21] = [
    ("AlreadyExists", "The object exists already"),
    ("AmbiguousOld", "The former state of the object is in several files"),
    ("BadRequest", "The server cannot decode the object"),
    ("DuplicateKey", "A field is given more than once"),
    ("FieldValueDuplicate", "A value that must be unique is repeated"),
    ("FieldValueForbidden", "A field must not be set here"),
    ("FieldValueInvalid", "A value is invalid"),
    ("FieldValueNotFound", "A value refers to something that does not exist"),
    ("FieldValueNotSupported", "A value is not among those that are supported"),
    ("FieldValueRequired", "A required field is missing"),
    ("FieldValueTooLong", "A value is too long"),
    ("FieldValueTooMany", "A list has too many items"),
    ("FieldValueTypeInvalid", "A value has the wrong type"),
    ("Forbidden", "Admission refuses the object"),
    ("InternalError", "The server fails on the object"),
    ("Invalid", "The object is invalid, or a policy refuses it"),
    ("NoDefinition", "Nothing defines the kind of the object"),
    ("NotAnObject", "The document is no object of Kubernetes"),
    ("UnknownField", "A field is not part of the schema"),
    (UNREADABLE, "An input cannot be read"),
    ("Warning", "The server accepts the object with a warning"),
];

pub fn text(reason: &str) -> Option<&'static str> {
    let at = TEXTS.binary_search_by_key(&reason, |(known, _)| known).ok()?;
    Some(TEXTS[at].1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_reason_is_found() {
        for (reason, text) in TEXTS {
            assert_eq!(super::text(reason), Some(text));
        }
        assert_eq!(text("Other"), None);
    }
}
