//! Merges an apply configuration without ownership, for the patches of MutatingAdmissionPolicies (KEP-3962).

use super::typed::{Duplicates, errors_text, merge, validate, validate_foreign};
use super::types::{Part, TypeId, TypeSchema};
use super::{MANAGED_FIELDS, list_of};
use cel::Configuration;
use machinery::value::Paths;
use machinery::{Text, Value};

/// Merges `configuration` into `object` as an apply does, but without ownership. The configuration must not contain
/// atomic values, since each would replace the whole value. Fails with a one-line message.
pub fn merge_configuration(types: &TypeSchema, object: &Value, configuration: &Configuration) -> Result<Value, String> {
    let Configuration { value, empty, foreign } = configuration;
    let unfit = |what: &'static str| {
        move |errors: Vec<_>| format!("failed to convert {what} to typed object: {}", errors_text(&errors))
    };
    validate_foreign(types, value, foreign, Duplicates::Refused).map_err(unfit("patch object"))?;
    let mut found = Paths::default();
    atomic(types, types.root(), value, &mut String::new(), &mut found);
    if !found.is_empty() {
        let found = found.into_list().join(", ");
        return Err(format!("invalid ApplyConfiguration: may not mutate atomic arrays, maps or structs: {found}"));
    }
    validate(types, object, Duplicates::Allowed).map_err(unfit("original object"))?;
    let mut merged =
        merge(types, object, value).map_err(|errors| format!("failed to merge patch: {}", errors_text(&errors)))?;
    // an empty list of the configuration adds nothing, not even itself
    for path in empty {
        let path: Vec<&str> = path.iter().map(Text::as_str).collect();
        if merged.at(&path).and_then(Value::as_array).is_some_and(<[Value]>::is_empty) {
            merged.remove_at(&path);
        }
    }
    // the merge skips managedFields
    if let Some(owners) = list_of(object) {
        merged.set_at(&MANAGED_FIELDS, owners.clone());
    }
    Ok(merged)
}

/// Adds the paths of atomic values to `found`. `path` is the path of `value`.
fn atomic(types: &TypeSchema, id: TypeId, value: &Value, path: &mut String, found: &mut Paths) {
    let length = path.len();
    match (types.atom(id).part_of(value), value) {
        (Some(Part::Map(map)), Value::Object(_)) if map.is_atomic() => found.add(|| path.clone()),
        (Some(Part::List(list)), Value::Array(_)) if list.is_atomic() => found.add(|| path.clone()),
        (Some(Part::Map(map)), Value::Object(fields)) => {
            for (name, field) in fields.iter() {
                if let Some(child) = map.field(name).map(|field| field.node) {
                    path.push('.');
                    path.push_str(name);
                    atomic(types, child, field, path, found);
                    path.truncate(length);
                }
            }
        }
        (Some(Part::List(list)), Value::Array(items)) => {
            for (i, item) in items.iter().enumerate() {
                path.push_str(&format!("[{i}]"));
                atomic(types, list.element, item, path, found);
                path.truncate(length);
            }
        }
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use machinery::json;

    #[test]
    fn configurations_are_merged() {
        let schema = json!({
            "type": "object", "properties": {
                "metadata": {"type": "object"},
                "spec": {"type": "object", "properties": {
                    "a": {"type": "string"}, "plain": {"type": "array", "items": {"type": "string"}},
                    "whole": {"type": "object", "x-kubernetes-map-type": "atomic", "additionalProperties": {"type": "string"}},
                    "byName": {
                        "type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["name"],
                        "items": {"type": "object", "properties": {"name": {"type": "string"}, "v": {"type": "string"}}}
                    }
                }}
            }
        });
        let types = TypeSchema::compile(&schema);
        let object = json!({
            "metadata": {"name": "n", "managedFields": [{"manager": "m"}], "labels": {"l": "1"}},
            "spec": {"a": "1", "byName": [{"name": "x", "v": "1"}]}
        });
        let configuration = json!({
            "metadata": {"labels": {"k": "2"}}, "spec": {"a": "2", "byName": [{"name": "y", "v": "2"}]}
        });
        let merged =
            merge_configuration(&types, &object, &Configuration { value: configuration, ..Configuration::default() })
                .unwrap();
        let wanted = json!({
            "metadata": {"labels": {"k": "2", "l": "1"}, "managedFields": [{"manager": "m"}], "name": "n"},
            "spec": {"a": "2", "byName": [{"name": "x", "v": "1"}, {"name": "y", "v": "2"}]}
        });
        assert_eq!(merged, wanted, "{}", merged.to_json());
        let refused = |value: Value| {
            merge_configuration(&types, &object, &Configuration { value, ..Configuration::default() }).unwrap_err()
        };
        assert_eq!(
            refused(json!({"spec": {"plain": ["x"], "whole": {}}})),
            "invalid ApplyConfiguration: may not mutate atomic arrays, maps or structs: .spec.plain, .spec.whole"
        );
        assert!(refused(json!({"spec": {"unknown": 1}})).contains("field not declared in schema"));
    }
}
