//! Checks beyond the schemas of this group: unknown fields, and conditions that can never be met.
//!
//! The schemas keep unknown fields, so that a typo is refused with the path of the field, whatever the client says about
//! validation. Pruned, an unknown field of `match` would leave a fault that hits everything.

use base::request::Verb;
use machinery::{FieldError, FieldPath, Status, Value};

use super::definition::{GROUP, PLURALS, schema_of};
use super::fault::Fault;
use super::trigger::Trigger;

/// Refuses an object whose spec has a mistake.
pub fn check(object: &Value) -> Result<(), Status> {
    let (kind, spec) = (object.str_at(&["kind"]), object.get("spec").unwrap_or(&Value::Null));
    let path = FieldPath::new("spec");
    let mut errors = vec![];
    if let Some(schema) = schema_of(kind) {
        unknown_fields(spec, schema, &path, &mut errors);
    }
    let matching = path.child("match");
    check_resources(spec, &matching, &mut errors);
    if kind == "Fault" && errors.is_empty() {
        check_verbs(object, &matching, &mut errors);
        check_trigger(spec, &path, &mut errors);
    }
    if errors.is_empty() {
        return Ok(());
    }
    Err(Status::invalid(GROUP, kind, object.str_at(&["metadata", "name"]), &errors))
}

/// Fields that a schema does not have.
fn unknown_fields(value: &Value, schema: &Value, path: &FieldPath, errors: &mut Vec<FieldError>) {
    let (Some(fields), Some(known)) = (value.as_object(), schema.get("properties").and_then(Value::as_object)) else {
        let items = schema
            .get("items")
            .into_iter()
            .flat_map(|schema| value.as_array().into_iter().flatten().map(move |item| (item, schema)));
        for (index, (item, schema)) in items.enumerate() {
            unknown_fields(item, schema, &path.index(index), errors);
        }
        return;
    };
    for (name, value) in fields.iter() {
        match known.get(name) {
            Some(schema) => unknown_fields(value, schema, &path.child(name), errors),
            None => {
                let names: Vec<&str> = known.iter().map(|(name, _)| name.as_str()).collect();
                let detail = format!("unknown field; there are {}", names.join(", "));
                errors.push(FieldError::forbidden(&path.child(name), detail));
            }
        }
    }
}

/// Resources that nothing matches: those of this group, which is never intercepted, and names with a group.
fn check_resources(spec: &Value, path: &FieldPath, errors: &mut Vec<FieldError>) {
    let names_group = !spec.items_at(&["match", "groups"]).is_empty();
    for (index, value) in spec.items_at(&["match", "resources"]).iter().enumerate() {
        let path = path.child("resources").index(index);
        let resource = value.as_str().unwrap_or_default();
        if resource.contains('.') {
            let detail = "a resource is named without its group, which match.groups may name";
            errors.push(FieldError::invalid(&path, value, detail));
        } else if !names_group && PLURALS.contains(&resource.split('/').next().unwrap_or_default()) {
            let detail = "requests for testing.pintle.dev are never intercepted; for another resource of this name, give its \
                          group in match.groups";
            errors.push(FieldError::invalid(&path, value, detail));
        }
    }
}

/// Verbs that no effect of a fault applies to.
fn check_verbs(object: &Value, path: &FieldPath, errors: &mut Vec<FieldError>) {
    let fault = Fault::read(object);
    for (index, value) in object.items_at(&["spec", "match", "verbs"]).iter().enumerate() {
        let is_of = |verb: &Verb| value.as_str() == Some(verb.as_str());
        let Some(verb) = Verb::ALL.iter().find(|verb| is_of(verb)) else { continue };
        if !fault.rules.is_empty() && !fault.rules.iter().any(|rule| rule.effect.concerns(*verb)) {
            let detail = format!("the effect never applies to this verb: {}", fault.rules[0].effect.subjects());
            errors.push(FieldError::invalid(&path.child("verbs").index(index), value, detail));
        }
    }
}

fn check_trigger(spec: &Value, path: &FieldPath, errors: &mut Vec<FieldError>) {
    let Some(trigger) = spec.at(&["when", "trigger"]) else { return };
    if let Err(why) = Trigger::read(trigger) {
        let path = path.child("when").child("trigger").child("expression");
        errors.push(FieldError::invalid(&path, trigger.get("expression").unwrap_or(&Value::Null), why));
    }
}
