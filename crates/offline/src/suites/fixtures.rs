//! Objects of cases that stand in files of their own: `{file: boats/small.yaml}` in place of an object.

use std::path::Path;

use machinery::Value;

use sources::Input;

/// A file with the objects in it; the error of a file that cannot be read is one line.
pub type Read = Result<Vec<Value>, String>;

/// The fields of cases that have objects.
const OBJECTS: [&str; 7] = ["initial", "updated", "expected", "create", "update", "apply", "object"];
/// The fields that have lists of objects.
const LISTS: [&str; 2] = ["given", "objects"];

/// Puts the objects of files in the places that name them. Fails with a one-line message.
pub fn insert(suite: &Path, value: &mut Value) -> Result<(), String> {
    let directory = suite.parent().unwrap_or(Path::new(""));
    if let Some(given) = value.get_mut("given") {
        of_list(directory, given)?;
    }
    let Some(forms) = value.get_mut("tests").and_then(Value::as_object_mut) else { return Ok(()) };
    let cases = forms.values_mut().filter_map(Value::as_array_mut).flatten();
    for case in cases {
        of_case(directory, case)?;
        let steps = case.get_mut("steps").and_then(Value::as_array_mut);
        steps.into_iter().flatten().try_for_each(|step| of_case(directory, step))?;
    }
    Ok(())
}

fn of_case(directory: &Path, case: &mut Value) -> Result<(), String> {
    let Some(fields) = case.as_object_mut() else { return Ok(()) };
    for (name, value) in fields.iter_mut() {
        if LISTS.contains(&name.as_str()) {
            of_list(directory, value)?;
        } else if let Some(objects) = named(directory, value).filter(|_| OBJECTS.contains(&name.as_str())) {
            *value = match <[Value; 1]>::try_from(objects?) {
                Ok([object]) => object,
                Err(objects) => return Err(format!("{name}: wanted a file with one object, not {}", objects.len())),
            };
        }
    }
    Ok(())
}

/// A list of objects; an item that names a file becomes all of its objects.
fn of_list(directory: &Path, list: &mut Value) -> Result<(), String> {
    let Some(items) = list.as_array_mut() else { return Ok(()) };
    let mut all = vec![];
    for item in std::mem::take(items) {
        match named(directory, &item) {
            Some(objects) => all.extend(objects?),
            None => all.push(item),
        }
    }
    *items = all;
    Ok(())
}

/// The objects of the file that a value names.
fn named(directory: &Path, value: &Value) -> Option<Read> {
    let fields = value.as_object().filter(|fields| fields.len() == 1)?;
    Some(read(&directory.join(fields.get("file")?.as_str()?)))
}

/// The objects of a file.
pub fn read(file: &Path) -> Read {
    let objects = Input::File(file.to_owned()).objects().map_err(|error| error.to_string())?;
    Ok(objects.into_iter().map(|(_, object)| object.into_value()).collect())
}
