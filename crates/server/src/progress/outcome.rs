//! Reads the effects of a rule from the values of its expressions.

use machinery::patch::merge_patch;
use machinery::{Text, Value};

use crate::limits;

/// The writes of a rule.
#[derive(Default)]
pub struct Effects {
    pub create: Vec<Value>,
    pub apply: Vec<Value>,
    pub patch: Vec<Value>,
    pub delete: Vec<Value>,
    pub merge: Option<Value>,
    pub status: Option<Value>,
    /// Type, reason and message of an Event.
    pub event: Option<(Text, Text, Text)>,
}

/// The objects of a value: one, or a list of them. The error is one line.
fn objects(value: Value) -> Result<Vec<Value>, String> {
    let all = match value {
        Value::Null => vec![],
        Value::Array(items) => items,
        one => vec![one],
    };
    if all.len() > limits::PROGRESS_OBJECTS_MAX {
        return Err(format!("{} objects are more than {}", all.len(), limits::PROGRESS_OBJECTS_MAX));
    }
    match all.iter().find(|object| object.str_at(&["apiVersion"]).is_empty() || object.str_at(&["kind"]).is_empty()) {
        Some(_) => Err("an object has no apiVersion or no kind".to_owned()),
        None => Ok(all),
    }
}

impl Effects {
    /// Adds the value of a field of a rule. The error is one line.
    pub fn add(&mut self, field: &str, value: Value) -> Result<(), String> {
        match field {
            "create" => self.create = objects(value)?,
            "apply" => self.apply = objects(value)?,
            "patch" => self.patch = objects(value)?,
            "delete" => self.delete = objects(value)?,
            "merge" => self.merge = Some(value).filter(|value| !value.is_null()),
            _ => self.status = Some(value).filter(|value| !value.is_null()),
        }
        Ok(())
    }
}

impl Effects {
    /// Whether the writes, and the removal of these finalizers, may change anything, as far as that can be seen from the object alone.
    pub fn change(&self, object: &Value, finalizers: &[Text]) -> bool {
        let others = [&self.create, &self.apply, &self.patch, &self.delete];
        let changes = |patch: &Option<Value>, current: &Value| {
            patch.as_ref().is_some_and(|patch| merge_patch::changes(current, patch))
        };
        others.iter().any(|objects| !objects.is_empty())
            || !finalizers.is_empty()
            || changes(&self.merge, object)
            || changes(&self.status, object.get("status").unwrap_or(&Value::Null))
    }
}
