//! A plan as JSON.

use machinery::{Value, json};

use super::{Action, Line, Plan, Refusal};
use crate::compare::{FieldChange, ObjectKey};

/// The placeholder of a value that must not be shown.
const SENSITIVE: &str = "(sensitive)";

fn texts(list: &[String]) -> Value {
    list.iter().map(|text| Value::from(text.as_str())).collect()
}

fn set_place(value: &mut Value, ObjectKey { resource, namespace, name }: &ObjectKey) {
    for (field, text) in [("resource", resource), ("namespace", namespace), ("name", name)] {
        value.put_text(&[field], text);
    }
}

impl Line {
    fn value(&self) -> Value {
        let field = |field: &FieldChange| {
            let mut change = json!({"path": (field.path.as_str())});
            for (side, value) in [("old", &field.old), ("new", &field.new)] {
                let shown = value.clone().map(|value| if self.is_sensitive(field) { SENSITIVE.into() } else { value });
                shown.into_iter().for_each(|shown| change.set_at(&[side], shown));
            }
            change
        };
        let mut value = json!({"action": (self.action.as_str())});
        set_place(&mut value, &self.key);
        value.set_at(&["by"], texts(&self.by));
        value.put_text(&["reason"], &self.reason);
        value.set_at(&["fields"], self.fields.iter().map(field).collect());
        value
    }
}

impl Refusal {
    fn value(&self) -> Value {
        let mut value = json!({"by": (self.by.as_str()), "verb": (self.verb.as_str())});
        set_place(&mut value, &self.key);
        value.set_at(&["message"], Value::from(self.message.as_str()));
        value.set_at(&["count"], Value::from(self.count));
        value
    }
}

impl Plan {
    pub fn value(&self) -> Value {
        let mut summary = json!({});
        for action in Action::ALL {
            summary.set_at(&[action.as_str()], Value::from(self.count(action)));
        }
        json!({
            "changes": (self.lines.iter().map(Line::value).collect::<Value>()),
            "summary": summary,
            "refused": (self.refused.iter().map(Refusal::value).collect::<Value>()),
            "varying": (texts(&self.varying)),
            "webhooks": (texts(&self.webhooks)),
            "hosts": (texts(&self.hosts)),
        })
    }
}
