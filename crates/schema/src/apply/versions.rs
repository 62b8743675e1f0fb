//! Converts objects to the versions that managedFields entries name.

use super::fieldpath::FieldSet;
use super::typed::{Duplicates, errors_text, validate};
use super::types::TypeSchema;
use crate::limits::RENDITIONS_MAX;
use machinery::{Text, Value};
use std::borrow::Cow;

/// Why an object cannot be converted to a version.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ConvertError {
    /// The version does not exist, so its entries are dropped.
    MissingVersion,
    Failed(String),
}

/// The types of a resource in each of its versions. Versions are written as in `apiVersion`.
pub trait Versions: Sync {
    /// The types of a version; `None` if there is no such version.
    fn types(&self, api_version: &str) -> Option<&TypeSchema>;

    fn convert(&self, object: &Value, api_version: &str) -> Result<Value, ConvertError>;

    /// The fields that the request's endpoint resets, in objects of a version. A write through the endpoint does not
    /// own them.
    fn reset_fields(&self, _api_version: &str) -> Option<&FieldSet> {
        None
    }
}

/// An object in a version.
#[derive(Clone)]
pub(crate) struct Versioned<'v> {
    pub value: Cow<'v, Value>,
    pub version: Text,
}

impl<'v> Versioned<'v> {
    /// Converts the object to another version, and checks it against the types of that version.
    pub fn to<'s>(&'s self, versions: &dyn Versions, version: &Text) -> Result<Versioned<'s>, ConvertError> {
        if self.version == *version {
            return Ok(Versioned { value: Cow::Borrowed(&*self.value), version: version.clone() });
        }
        let converted = versions.convert(&self.value, version)?;
        let types = versions.types(version).ok_or(ConvertError::MissingVersion)?;
        validate(types, &converted, Duplicates::Refused)
            .map_err(|errors| ConvertError::Failed(errors_text(&errors)))?;
        Ok(Versioned { value: Cow::Owned(converted), version: version.clone() })
    }

    pub fn into_owned(self) -> Versioned<'static> {
        Versioned { value: Cow::Owned(self.value.into_owned()), version: self.version }
    }
}

/// An object that is converted to versions on demand. The results for up to [`RENDITIONS_MAX`] versions are kept.
pub(crate) struct Renditions<'v> {
    versions: &'v dyn Versions,
    source: Versioned<'v>,
    others: Vec<(Text, Value)>,
}

impl<'v> Renditions<'v> {
    pub fn new(versions: &'v dyn Versions, value: &'v Value, version: &Text) -> Renditions<'v> {
        let source = Versioned { value: Cow::Borrowed(value), version: version.clone() };
        Renditions { versions, source, others: vec![] }
    }

    pub fn get(&mut self, version: &Text) -> Result<Cow<'_, Value>, ConvertError> {
        if self.source.version == *version {
            return Ok(Cow::Borrowed(&self.source.value));
        }
        let known = self.others.iter().position(|(v, _)| v == version);
        let at = match known {
            Some(at) => at,
            None => {
                let converted = self.source.to(self.versions, version)?.value.into_owned();
                if self.others.len() >= RENDITIONS_MAX {
                    return Ok(Cow::Owned(converted));
                }
                self.others.push((version.clone(), converted));
                self.others.len() - 1
            }
        };
        Ok(Cow::Borrowed(&self.others[at].1))
    }
}
