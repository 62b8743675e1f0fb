//! Documents that configure the server: their kind is checked, and their fields are those of a Go type.

use machinery::field::{FieldError, FieldPath};
use machinery::value::quote;
use machinery::{Value, status};
use schema::shape;

/// The versions of kinds of `apiserver.config.k8s.io`, whose fields are the same in all of them.
pub const API_VERSIONS: &[&str] =
    &["apiserver.config.k8s.io/v1", "apiserver.config.k8s.io/v1beta1", "apiserver.config.k8s.io/v1alpha1"];

pub struct ConfigurationKind {
    /// The accepted values of `apiVersion`.
    pub api_versions: &'static [&'static str],
    /// The Go type in `machinery::types`, which ends with the kind.
    pub go: &'static str,
    /// Whether unknown fields are errors.
    pub unknown_fields: UnknownFields,
}

/// How a kind treats unknown fields; kube-apiserver refuses them in some kinds and drops them in others.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum UnknownFields {
    /// They are errors.
    Refused,
    /// They have no effect.
    Dropped,
}

impl ConfigurationKind {
    /// Reads a document as its Go type: with the fields of that type only, whose values have its types. The error is one
    /// line, in the words of Kubernetes' decoder.
    pub fn read(&self, document: &Value) -> Result<Value, String> {
        let (version, kind) = (document.str_at(&["apiVersion"]), document.str_at(&["kind"]));
        let structure = shape::named(self.go);
        if kind != structure.name() || !self.api_versions.contains(&version) {
            return Err(format!("no kind {} is registered for version {}", quote(kind), quote(version)));
        }
        let read = shape::read(document, structure);
        match read.error {
            Some(why) => Err(why),
            None if self.unknown_fields == UnknownFields::Dropped || read.unknown.is_empty() => Ok(read.value),
            None => Err(format!("strict decoding error: {}", unknown_fields(&read.unknown).join(", "))),
        }
    }

    /// The errors of unknown fields, which a kind may have although they have no effect.
    pub fn unknown_fields(&self, document: &Value) -> Vec<String> {
        unknown_fields(&shape::read(document, shape::named(self.go)).unknown)
    }
}

fn unknown_fields(paths: &[String]) -> Vec<String> {
    paths.iter().map(|path| format!("unknown field {}", quote(path))).collect()
}

/// The errors of a configuration, collected while its parts are built.
#[derive(Default)]
pub struct ConfigurationErrors(Vec<FieldError>);

impl ConfigurationErrors {
    pub fn push(&mut self, error: FieldError) {
        self.0.push(error);
    }

    pub fn required(&mut self, path: &FieldPath, why: impl Into<String>) {
        self.push(FieldError::required(path, why));
    }

    pub fn invalid(&mut self, path: &FieldPath, value: impl Into<Value>, why: impl Into<String>) {
        self.push(FieldError::invalid(path, &value.into(), why));
    }

    pub fn duplicate(&mut self, path: &FieldPath, value: impl Into<Value>) {
        self.push(FieldError::duplicate(path, &value.into()));
    }

    pub fn not_supported(&mut self, path: &FieldPath, value: &str, supported: &[&str]) {
        self.push(FieldError::not_supported(path, &Value::from(value), supported));
    }

    /// Fails if there are errors, with one line for all of them.
    pub fn check(self) -> Result<(), String> {
        if self.0.is_empty() { Ok(()) } else { Err(status::aggregate(&self.0)) }
    }
}

#[cfg(test)]
mod tests {
    use machinery::json;

    use super::*;

    #[test]
    fn documents_are_read_as_their_go_types() {
        let kind = |unknown_fields| ConfigurationKind {
            api_versions: API_VERSIONS,
            go: "apiserver_config.v1.AuthorizationConfiguration",
            unknown_fields,
        };
        let read = |fields: &[(&str, Value)], unknown_fields| {
            let mut document = json!({"apiVersion": (API_VERSIONS[0]), "kind": "AuthorizationConfiguration"});
            fields.iter().for_each(|(name, value)| document.set_at(&[name], value.clone()));
            kind(unknown_fields).read(&document).map(|mut read| read.remove_at(&["authorizers"]).unwrap_or_default())
        };
        let (refused, dropped) = (UnknownFields::Refused, UnknownFields::Dropped);
        let authorizer = |field: &str, value: Value| {
            let mut authorizer = json!({"name": "a"});
            authorizer.set_at(&[field], value);
            ("authorizers", json!([authorizer]))
        };
        let cases = [
            (vec![authorizer("webhook", Value::Null)], refused, Ok(json!([{"name": "a"}]))),
            (vec![authorizer("boat", 1.into())], dropped, Ok(json!([{"name": "a"}]))),
            (
                vec![authorizer("boat", 1.into()), ("raft", 1.into())],
                refused,
                Err("strict decoding error: unknown field \"authorizers[0].boat\", unknown field \"raft\""),
            ),
            (
                vec![authorizer("type", 1.into())],
                dropped,
                Err(
                    "json: cannot unmarshal number into Go struct field AuthorizerConfiguration.authorizers.type of type string",
                ),
            ),
            (
                vec![("kind", "Boat".into())],
                dropped,
                Err("no kind \"Boat\" is registered for version \"apiserver.config.k8s.io/v1\""),
            ),
            (
                vec![("apiVersion", "v1".into())],
                dropped,
                Err("no kind \"AuthorizationConfiguration\" is registered for version \"v1\""),
            ),
        ];
        for (fields, unknown_fields, want) in cases {
            assert_eq!(read(&fields, unknown_fields), want.map_err(str::to_owned), "{fields:?}");
        }
    }
}
