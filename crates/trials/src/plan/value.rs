//! A plan as JSON.

use machinery::{Value, json};

use super::{Action, Line, Plan, Refusal};
use crate::compare::ObjectKey;

/// The placeholder of a value that must not be shown.
const SENSITIVE: &str = "(sensitive)";

fn texts(list: &[String]) -> Value {
    list.iter().map(|text| Value::from(text.as_str())).collect()
}

/// Sets the place of an object.
fn place(value: &mut Value, key: &ObjectKey) {
    for (field, text) in [("resource", &key.resource), ("namespace", &key.namespace), ("name", &key.name)] {
        if !text.is_empty() {
            value.set_at(&[field], Value::from(text));
        }
    }
}

impl Line {
    fn value(&self) -> Value {
        let mut value = json!({"action": (self.action.verb())});
        place(&mut value, &self.key);
        value.set_at(&["by"], texts(&self.by));
        if !self.reason.is_empty() {
            value.set_at(&["reason"], Value::from(self.reason.as_str()));
        }
        let fields = self.fields.iter().map(|field| {
            let mut change = json!({"path": (field.path.as_str())});
            for (side, shown) in [("old", &field.old), ("new", &field.new)] {
                let shown =
                    shown.as_ref().map(|shown| if self.is_sensitive(field) { SENSITIVE.into() } else { shown.clone() });
                shown.into_iter().for_each(|shown| change.set_at(&[side], shown));
            }
            change
        });
        value.set_at(&["fields"], fields.collect());
        value
    }
}

impl Refusal {
    fn value(&self) -> Value {
        let mut value = json!({"by": (self.by.as_str()), "verb": (self.verb.as_str())});
        place(&mut value, &self.key);
        value.set_at(&["message"], Value::from(self.message.as_str()));
        value.set_at(&["count"], Value::from(self.count));
        value
    }
}

impl Plan {
    pub fn value(&self) -> Value {
        let mut summary = json!({});
        for action in Action::ALL {
            summary.set_at(&[action.verb()], Value::from(self.count(action)));
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
