//! The texts of managedFields that cannot be read.

use super::json_error;
use machinery::Status;
use machinery::value::quote;
use schema::apply::{ApplyError, ManagedFieldsError};

/// The response to an apply that failed.
pub fn apply_error(error: ApplyError) -> Status {
    match error {
        ApplyError::Status(status) => status,
        ApplyError::ManagedFields(error) => {
            Status::untyped(500, format!("failed to decode managed fields: {}", managed_fields_error(&error)))
        }
    }
}

/// The text of a managedFields error.
pub fn managed_fields_error(error: &ManagedFieldsError) -> String {
    match error {
        ManagedFieldsError::EntryNotAnObject => "entry must be an object".to_owned(),
        ManagedFieldsError::NotAString { field } => format!("{field} must be a string"),
        ManagedFieldsError::UnknownOperation => "operation must be `Apply` or `Update`".to_owned(),
        ManagedFieldsError::EmptyVersion => "apiVersion must not be empty".to_owned(),
        ManagedFieldsError::MissingFieldsType { index } => {
            format!("missing fieldsType in managed fields entry {index}")
        }
        ManagedFieldsError::UnknownFieldsType { index, found } => {
            format!("invalid fieldsType {} in managed fields entry {index}", quote(found))
        }
        ManagedFieldsError::InvalidTime => "time must be a time".to_owned(),
        ManagedFieldsError::FieldsNotAnObject => "expected object".to_owned(),
        ManagedFieldsError::KeyTooShort => "key must be 2 characters long:".to_owned(),
        ManagedFieldsError::MissingColon { key } => format!("missing colon: {key}"),
        ManagedFieldsError::KeyNotAnObject { text } => format!("expected object: {text}"),
        ManagedFieldsError::InvalidIndex { text } => format!("strconv.Atoi: parsing {}: invalid syntax", quote(text)),
        ManagedFieldsError::Json(error) => json_error(error),
        other => other.to_string(),
    }
}
