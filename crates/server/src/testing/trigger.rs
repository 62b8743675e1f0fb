//! The state of an object at which a fault begins.

use cel::{Decl, Environment, Program, Type, Val, from_json};
use machinery::{Release, Text, Value};
use objects::{Event, EventKind, Key};

use crate::limits;

/// A condition on a write.
pub struct Trigger {
    group: Text,
    resource: Text,
    namespace: Text,
    name: Text,
    program: Program,
}

impl Trigger {
    /// Reads a `trigger` that its schema has validated. The error is one line about its expression.
    pub fn read(value: &Value) -> Result<Trigger, String> {
        let text = |field: &str| Text::from(value.str_at(&[field]));
        let environment = Environment::kubernetes(Release::default().minor());
        let environment = environment.declared("object", Decl::json()).declared("oldObject", Decl::json());
        let checked = environment.check(value.str_at(&["expression"])).map_err(|error| error.to_string())?;
        if !matches!(checked.output_type(), Type::Bool | Type::Dyn) {
            return Err("must evaluate to bool".to_owned());
        }
        let program = Program::new(&environment, &checked).map_err(|error| error.to_string())?;
        let (group, resource) = (text("group"), text("resource"));
        Ok(Trigger { group, resource, namespace: text("namespace"), name: text("name"), program })
    }

    /// Whether a write fulfils the condition. An expression that fails, as for a field that is absent, or that costs too much,
    /// does not.
    pub fn fires(&self, key: &Key, event: &Event) -> bool {
        let (namespace, name) = key.path.split_once('/').unwrap_or(("", &key.path));
        let is_it = |wanted: &Text, found: &str| wanted.is_empty() || *wanted == found;
        if self.group != key.group || self.resource != key.plural {
            return false;
        }
        if !is_it(&self.namespace, namespace) || !is_it(&self.name, name) {
            return false;
        }
        let last = event.object.body.to_value(event.object.revision);
        let (object, old) = match event.kind {
            EventKind::Deleted => (Value::Null, last),
            _ => (last, event.previous.as_ref().map(|old| old.body.to_value(old.revision)).unwrap_or_default()),
        };
        self.holds(&object, &old)
    }

    fn holds(&self, object: &Value, old: &Value) -> bool {
        let value = |value| from_json(value, Decl::json());
        let (Ok(object), Ok(old)) = (value(object), value(old)) else { return false };
        let outcome = self.program.eval(&[("object", object), ("oldObject", old)], limits::FAULT_TRIGGER_COST_MAX);
        matches!(outcome.result, Ok(Val::Bool(true)))
    }
}

#[cfg(test)]
mod tests {
    use machinery::json;

    use super::*;

    #[test]
    fn conditions_compare_an_object_with_its_last_state() {
        let ready = json!({"status": {"phase": "Ready"}});
        for (expression, object, old, wanted) in [
            ("object.status.phase == 'Ready'", ready.clone(), Value::Null, true),
            ("object.status.phase == 'Ready'", json!({}), Value::Null, false),
            ("object == null", Value::Null, ready.clone(), true),
            ("oldObject == null", ready.clone(), Value::Null, true),
            (
                "object.spec.replicas > oldObject.spec.replicas",
                json!({"spec": {"replicas": 2}}),
                json!({"spec": {"replicas": 1}}),
                true,
            ),
        ] {
            let trigger = Trigger::read(&json!({"resource": "pods", "expression": expression})).unwrap();
            assert_eq!(trigger.holds(&object, &old), wanted, "{expression}");
        }
        let costly = "[1, 2, 3, 4, 5, 6, 7, 8, 9].map(a, [1, 2, 3, 4, 5, 6, 7, 8, 9].map(b, [1, 2, 3, 4, 5, 6, 7, 8, 9].map(c, [1, 2, 3, 4, 5, 6, 7, 8, 9].map(d, a * b * c * d)))).size() == 9";
        let trigger = Trigger::read(&json!({"resource": "pods", "expression": costly})).unwrap();
        assert!(!trigger.holds(&ready, &Value::Null), "writes wait for it");
        for (expression, why) in
            [("object.", "Syntax error"), ("1", "must evaluate to bool"), ("self.x", "undeclared reference")]
        {
            let error = Trigger::read(&json!({"resource": "pods", "expression": expression})).err().unwrap();
            assert!(error.contains(why), "{expression}: {error}");
        }
    }
}
