//! Defaults and simple rules of Go types, which are data: `rules.txt`.

use std::collections::HashMap;
use std::sync::OnceLock;

use machinery::field::{FieldError, FieldPath};
use machinery::{Map, Value};

use super::{Field, Print, Shape, Struct};

static TEXT: &str = include_str!("rules.txt");

/// What is required of a field.
#[derive(Clone, Debug, Default)]
pub struct Rules {
    /// The value of a field that is not set.
    pub default: Option<Value>,
    pub is_required: bool,
    /// The supported values; any if there are none.
    pub values: Vec<&'static str>,
}

/// The rules of a field, if it has any.
pub(super) fn of_field(go_struct: &'static str, field: &'static str) -> Option<&'static Rules> {
    type Index = HashMap<(&'static str, &'static str), Rules>;
    static RULES: OnceLock<Index> = OnceLock::new();
    let parse = || {
        let mut all = Index::new();
        for line in TEXT.lines().filter(|line| !line.starts_with('#')) {
            let mut parts = line.splitn(3, ' ');
            let (Some(name), Some(field), Some(rule)) = (parts.next(), parts.next(), parts.next()) else { continue };
            add(all.entry((name, field)).or_default(), rule);
        }
        all
    };
    RULES.get_or_init(parse).get(&(go_struct, field))
}

fn add(rules: &mut Rules, rule: &'static str) {
    if let Some(json) = rule.strip_prefix("= ") {
        rules.default = machinery::value::decode(json.as_bytes()).ok();
    } else if let Some(values) = rule.strip_prefix("in ") {
        rules.values = values.split(',').collect();
    } else {
        rules.is_required = rule == "required";
    }
}

/// Sets the defaults of fields that are not set.
pub fn set_defaults(value: &mut Value, shape: &'static Struct) {
    let Some(object) = value.as_object_mut() else { return };
    for field in shape.fields {
        let default = field.rules.and_then(|rules| rules.default.as_ref());
        if let Some(default) = default
            && is_unset(object.get(field.name), field)
        {
            object.insert(field.name, default.clone());
        }
        if let Some(inner) = object.get_mut(field.name) {
            visit_mut(inner, &field.shape);
        }
    }
}

fn visit_mut(value: &mut Value, shape: &'static Shape) {
    match (shape, value) {
        (Shape::Struct(inner), value) => set_defaults(value, inner),
        (Shape::List(_, item), Value::Array(items)) => items.iter_mut().for_each(|value| visit_mut(value, item)),
        (Shape::Map(_, item), Value::Object(map)) => map.iter_mut().for_each(|(_, value)| visit_mut(value, item)),
        _ => {}
    }
}

/// A pointer is not set if it is absent; other fields if they are empty.
fn is_unset(value: Option<&Value>, field: &Field) -> bool {
    match value {
        None | Some(Value::Null) => true,
        Some(Value::String(text)) => field.print != Print::Given && text.is_empty(),
        Some(Value::Int(0)) => field.print != Print::Given,
        Some(_) => false,
    }
}

/// The errors of fields whose rules the object violates.
pub fn rule_errors(value: &Value, shape: &'static Struct, path: &FieldPath, errors: &mut Vec<FieldError>) {
    let Some(object) = value.as_object() else { return };
    for field in shape.fields {
        let (value, path) = (object.get(field.name), path.child(field.name));
        if let Some(rules) = field.rules {
            errors.extend(field_error(value, rules, &path));
        }
        if let Some(inner) = value {
            visit(inner, &field.shape, &path, errors);
        }
    }
}

fn visit(value: &Value, shape: &'static Shape, path: &FieldPath, errors: &mut Vec<FieldError>) {
    match (shape, value) {
        (Shape::Struct(inner), value) => rule_errors(value, inner, path, errors),
        (Shape::List(_, item), Value::Array(items)) => {
            items.iter().enumerate().for_each(|(i, value)| visit(value, item, &path.index(i), errors));
        }
        (Shape::Map(_, item), Value::Object(map)) => {
            Map::iter(map).for_each(|(key, value)| visit(value, item, &path.key(key), errors));
        }
        _ => {}
    }
}

fn field_error(value: Option<&Value>, rules: &Rules, path: &FieldPath) -> Option<FieldError> {
    let text = value.and_then(Value::as_str).unwrap_or_default();
    if text.is_empty() {
        return rules.is_required.then(|| FieldError::required(path, ""));
    }
    let is_supported = rules.values.is_empty() || rules.values.contains(&text);
    (!is_supported).then(|| FieldError::not_supported(path, &Value::from(text), &rules.values))
}

#[cfg(test)]
mod tests {
    use machinery::json;

    use super::*;
    use crate::shape::named;

    #[test]
    fn every_rule_names_a_field() {
        for line in TEXT.lines().filter(|line| !line.starts_with('#')) {
            let parts: Vec<_> = line.splitn(3, ' ').collect();
            let found = machinery::types::go_struct(parts[0]).unwrap_or_else(|| panic!("{line}"));
            assert!(found.fields.iter().any(|field| field.name == parts[1]), "{line}");
            assert!(parts[2].starts_with("= ") || parts[2].starts_with("in ") || parts[2] == "required", "{line}");
        }
    }

    #[test]
    fn defaults_apply_at_every_depth() {
        let mut job = json!({"spec": {"template": {"spec": {"containers": [{"name": "a", "livenessProbe": {}}]}}}});
        set_defaults(&mut job, named("apps.v1.ReplicaSet"));
        assert_eq!(job.at(&["spec", "replicas"]), Some(&json!(1)));
        let spec = job.at(&["spec", "template", "spec"]).unwrap();
        assert_eq!(spec.str_at(&["dnsPolicy"]), "ClusterFirst");
        let container = &spec.get("containers").and_then(Value::as_array).unwrap()[0];
        assert_eq!(container.at(&["livenessProbe", "periodSeconds"]), Some(&json!(10)));
    }

    #[test]
    fn violations_are_reported_at_their_position() {
        let pod = json!({"spec": {"restartPolicy": "Often", "containers": [{"name": ""}]}});
        let mut errors = vec![];
        rule_errors(&pod, named("core.v1.Pod"), &FieldPath::root(), &mut errors);
        let texts: Vec<String> = errors.iter().map(ToString::to_string).collect();
        assert_eq!(
            texts,
            [
                "spec.containers[0].name: Required value",
                "spec.restartPolicy: Unsupported value: \"Often\": supported values: \"Always\", \"Never\", \"OnFailure\""
            ]
        );
    }
}
