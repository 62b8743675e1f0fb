//! JSON patches, as far as the recordings use them.

use machinery::Value;

/// `None` if an operation does not apply.
pub fn apply(target: &mut Value, operations: &Value) -> Option<()> {
    for operation in operations.as_array()? {
        let path: Vec<String> =
            operation.str_at(&["path"]).split('/').skip(1).map(|p| p.replace("~1", "/").replace("~0", "~")).collect();
        let value = operation.get("value").cloned();
        match operation.str_at(&["op"]) {
            "add" => edit(target, &path, value?, true)?,
            "replace" => edit(target, &path, value?, false)?,
            "remove" => remove(target, &path)?,
            _ => return None,
        }
    }
    Some(())
}

fn parent<'a>(target: &'a mut Value, path: &[String]) -> Option<&'a mut Value> {
    path.iter().try_fold(target, |node, key| match node {
        Value::Object(map) => map.get_mut(key),
        Value::Array(items) => items.get_mut(key.parse::<usize>().ok()?),
        _ => None,
    })
}

fn edit(target: &mut Value, path: &[String], value: Value, insert: bool) -> Option<()> {
    let Some((last, front)) = path.split_last() else {
        *target = value;
        return Some(());
    };
    match parent(target, front)? {
        Value::Object(map) => {
            map.insert(last.as_str(), value);
        }
        Value::Array(items) if last == "-" => items.push(value),
        Value::Array(items) => {
            let i: usize = last.parse().ok()?;
            if insert {
                items.insert(i, value);
            } else {
                *items.get_mut(i)? = value;
            }
        }
        _ => return None,
    }
    Some(())
}

fn remove(target: &mut Value, path: &[String]) -> Option<()> {
    let (last, front) = path.split_last()?;
    match parent(target, front)? {
        Value::Object(map) => map.remove(last).map(|_| ()),
        Value::Array(items) => {
            let i: usize = last.parse().ok()?;
            (i < items.len()).then(|| items.remove(i)).map(|_| ())
        }
        _ => None,
    }
}
