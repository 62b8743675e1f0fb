//! Setting defaults.

use machinery::Value;

/// Sets a field that has no value.
pub fn set_default(object: &mut Value, path: &[&str], value: Value) {
    if object.at(path).is_none_or(Value::is_null) {
        object.set_at(path, value);
    }
}

/// The field at a path, if it is there.
pub fn at_mut<'a>(object: &'a mut Value, path: &[&str]) -> Option<&'a mut Value> {
    path.iter().try_fold(object, |value, name| value.get_mut(name))
}

/// Gives a field the value that it has in `old`, or removes it if it has none there.
pub fn restore(object: &mut Value, old: &Value, path: &[&str]) {
    object.put_at(path, old.at(path).cloned());
}
