//! Coerces the metadata of embedded resources.
//!
//! Pipeline: after [`Schema::prune`] of a request body (refusing what is malformed: the request is bad) or of a stored
//! object (dropping it, so that old data stays readable).

use machinery::value::Paths;
use machinery::{FieldError, Value};

use crate::metadata::{self, Malformed};
use crate::path::Path;
use crate::program::{Node, Schema};

impl Schema {
    /// Coerces `apiVersion`, `kind` and `metadata` of every embedded resource. Paths of unknown metadata fields are
    /// added to `unknown`, sorted. The first error refuses the body: 400 with the text of the error.
    pub fn coerce_embedded(
        &self,
        object: &mut Value,
        malformed: Malformed,
        unknown: &mut Vec<String>,
    ) -> Result<(), FieldError> {
        if !self.program.structural || !self.program.root.below.embedded {
            return Ok(());
        }
        let mut found = Paths::default();
        let mut coercer = Coercer { malformed, unknown: &mut found };
        coercer.coerce(object, &self.program.root, &Path::Root)?;
        let mut found = found.into_list();
        found.sort();
        unknown.append(&mut found);
        Ok(())
    }
}

pub(crate) fn coerce_node(value: &mut Value, node: &Node, malformed: Malformed) -> Option<FieldError> {
    coerce_at(value, node, malformed, &Path::Root)
}

pub(crate) fn coerce_at(value: &mut Value, node: &Node, malformed: Malformed, path: &Path<'_>) -> Option<FieldError> {
    if !node.below.embedded {
        return None;
    }
    Coercer { malformed, unknown: &mut Paths::default() }.coerce(value, node, path).err()
}

struct Coercer<'a> {
    malformed: Malformed,
    unknown: &'a mut Paths,
}

impl Coercer<'_> {
    fn coerce(&mut self, value: &mut Value, node: &Node, path: &Path<'_>) -> Result<(), FieldError> {
        if !node.below.embedded {
            return Ok(());
        }
        match value {
            Value::Object(map) => {
                if node.embedded {
                    self.resource(map, node, path)?;
                }
                for (key, inner) in map.iter_mut() {
                    if let Some(field) = node.field(key) {
                        self.coerce(inner, field, &Path::field(path, key))?;
                    } else if let Some(field) = node.additional.node() {
                        self.coerce(inner, field, &Path::Bracket(path, key))?;
                    }
                }
                Ok(())
            }
            Value::Array(items) => {
                let Some(inner) = &node.items else { return Ok(()) };
                items.iter_mut().enumerate().try_for_each(|(i, item)| self.coerce(item, inner, &Path::Index(path, i)))
            }
            _ => Ok(()),
        }
    }

    fn resource(&mut self, map: &mut machinery::Map, node: &Node, path: &Path<'_>) -> Result<(), FieldError> {
        let keeps_null = self.malformed == Malformed::RefuseExceptNull;
        for key in ["apiVersion", "kind"] {
            match map.get(key) {
                None | Some(Value::String(_)) => {}
                Some(Value::Null) if keeps_null => {}
                Some(_) if self.malformed == Malformed::Drop => {
                    map.remove(key);
                }
                Some(other) => {
                    let path = Path::Field(path, key).field_path();
                    return Err(FieldError::invalid(&path, other, "must be a string"));
                }
            }
        }
        if keeps_null && node.field("metadata").is_some() && map.get("metadata").is_some_and(Value::is_null) {
            return Ok(());
        }
        match metadata::coerce(map, self.malformed) {
            Ok(unknown) => {
                for field in unknown {
                    self.unknown.add(|| match path.text() {
                        prefix if prefix.is_empty() => field,
                        prefix => format!("{prefix}.{field}"),
                    });
                }
                Ok(())
            }
            Err(error) => {
                let given = map.get("metadata").cloned().unwrap_or_default();
                Err(FieldError::invalid(&Path::Field(path, "metadata").field_path(), &given, error))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use machinery::json;

    use super::*;
    use crate::CompileOptions;

    #[test]
    fn nulls_of_applied_embedded_resources_are_left_to_validation() {
        let embedded = |metadata: Value| {
            let mut schema = json!({"type": "object", "x-kubernetes-embedded-resource": true,
                "x-kubernetes-preserve-unknown-fields": true});
            if !metadata.is_null() {
                schema.set_at(&["properties", "metadata"], metadata);
            }
            let schema = json!({"type": "object", "properties": {"e": (schema)}});
            Schema::compile(&schema, &CompileOptions::default())
        };
        let coerced = |schema: &Schema, part: Value, malformed| {
            let mut object = json!({"e": (part)});
            let found = schema.coerce_embedded(&mut object, malformed, &mut vec![]);
            found.map(|()| object.to_json()).map_err(|error| error.to_string())
        };
        let (open, typed) = (embedded(Value::Null), embedded(json!({"type": "object"})));
        let null = json!({"apiVersion": null});
        assert_eq!(
            coerced(&open, null.clone(), Malformed::RefuseExceptNull),
            Ok(r#"{"e":{"apiVersion":null}}"#.into())
        );
        let why = "e.apiVersion: Invalid value: null: must be a string";
        assert_eq!(coerced(&open, null, Malformed::Refuse), Err(why.to_owned()));
        assert!(coerced(&open, json!({"kind": 5}), Malformed::RefuseExceptNull).is_err());
        let metadata = json!({"metadata": null});
        let run = |schema| coerced(schema, metadata.clone(), Malformed::RefuseExceptNull);
        assert_eq!(run(&open), Ok(r#"{"e":{"metadata":{}}}"#.into()));
        assert_eq!(run(&typed), Ok(r#"{"e":{"metadata":null}}"#.into()));
    }
}
