//! Checks beyond the schemas of this group: unknown fields, and conditions that can never be met.
//!
//! The schemas keep unknown fields, so that a typo is refused with the path of the field, whatever the client says about
//! validation. Pruned, an unknown field of `match` would leave a fault that hits everything.

use base::request::Verb;
use machinery::{Release, Result, Status, Value};
use schema::at::{At, errors_of};

use super::definition::{GROUP, PLURALS, schema_of};
use super::fault::Fault;
use super::trigger::Trigger;

/// Refuses an object whose spec has a mistake.
pub fn check(object: &Value) -> Result<()> {
    let kind = object.str_at(&["kind"]);
    let errors = errors_of(object, None, Release::default(), |object| {
        let spec = object.field("spec");
        if let Some(schema) = schema_of(kind) {
            unknown_fields(spec, schema);
        }
        check_resources(spec.field("match"));
        if kind == "Fault" && object.count() == 0 {
            check_verbs(spec.field("match"), &Fault::read(object.value));
            check_trigger(spec.field("when").field("trigger"));
        }
    });
    if errors.is_empty() {
        return Ok(());
    }
    Err(Status::invalid(GROUP, kind, object.str_at(&["metadata", "name"]), &errors))
}

/// Fields that a schema does not have.
fn unknown_fields(at: At, schema: &Value) {
    let (Some(fields), Some(known)) = (at.value.as_object(), schema.get("properties").and_then(Value::as_object))
    else {
        schema.get("items").into_iter().for_each(|schema| at.items().for_each(|item| unknown_fields(item, schema)));
        return;
    };
    for (name, _) in fields.iter() {
        let field = at.field_with_dots(name);
        match known.get(name) {
            Some(schema) => unknown_fields(field, schema),
            None => {
                let names: Vec<&str> = known.iter().map(|(name, _)| name.as_str()).collect();
                field.forbidden(format!("unknown field; there are {}", names.join(", ")));
            }
        }
    }
}

/// Resources that nothing matches: those of this group, which is never intercepted, and names with a group.
fn check_resources(matching: At) {
    let names_group = !matching.list("groups").is_empty();
    for at in matching.items_of("resources") {
        let resource = at.as_text();
        if resource.contains('.') {
            at.invalid("a resource is named without its group, which match.groups may name");
        } else if !names_group && PLURALS.contains(&resource.split('/').next().unwrap_or_default()) {
            at.invalid(
                "requests for testing.pintle.dev are never intercepted; for another resource of this name, give its \
                 group in match.groups",
            );
        }
    }
}

/// Verbs that no effect of a fault applies to.
fn check_verbs(matching: At, fault: &Fault) {
    for at in matching.items_of("verbs") {
        let verb = Verb::parse(at.as_text()).filter(|verb| !matches!(verb, Verb::Proxy | Verb::None));
        let Some(verb) = verb else { continue };
        if !fault.rules.is_empty() && !fault.rules.iter().any(|rule| rule.effect.concerns(verb)) {
            at.invalid(format!("the effect never applies to this verb: {}", fault.rules[0].effect.subjects()));
        }
    }
}

fn check_trigger(trigger: At) {
    if trigger.is_given()
        && let Err(why) = Trigger::read(trigger.value)
    {
        trigger.field("expression").invalid(why);
    }
}
