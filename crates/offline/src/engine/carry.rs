//! Fields that a server has added to an object, carried over to its next version, as a patch of kubectl leaves them alone.

use machinery::Value;
use server::Addition;

/// Fields that every update gets from the stored object, or again from the server.
const RESTORED: [&str; 4] = ["apiVersion", "kind", "metadata", "status"];

/// Adds what the server has added to an object to its next version.
pub fn carry(addition: &Addition, new: &mut Value) {
    let (Some(created), Some(fields)) = (addition.created.as_object(), new.as_object_mut()) else { return };
    for (name, created) in created.iter().filter(|(name, _)| !RESTORED.contains(&name.as_str())) {
        carry_field(name, addition.given.get(name), created, fields);
    }
}

fn carry_field(name: &str, given: Option<&Value>, created: &Value, new: &mut machinery::Map) {
    match (given, new.get_mut(name)) {
        (None, None) => drop(new.insert(name, created.clone())),
        (Some(given), Some(next)) => carry_into(given, created, next),
        // the file may never have had it, if it is a default
        (Some(given @ Value::Object(_)), None) => {
            let mut next = Value::object();
            carry_into(given, created, &mut next);
            if next.as_object().is_some_and(|next| !next.is_empty()) {
                new.insert(name, next);
            }
        }
        // the file has removed it, or sets it now
        _ => {}
    }
}

fn carry_into(given: &Value, created: &Value, new: &mut Value) {
    match (given, created, new) {
        (Value::Object(given), Value::Object(created), Value::Object(new)) => {
            for (name, created) in created.iter() {
                carry_field(name, given.get(name), created, new);
            }
        }
        // what a plugin appends to a list is kept as long as the file has the same items
        (Value::Array(given), Value::Array(created), Value::Array(new))
            if new.len() == given.len() && created.len() >= given.len() =>
        {
            let is_same = given.iter().zip(created).zip(&*new).all(|((given, created), new)| {
                let name = given.str_at(&["name"]);
                match name {
                    "" => given == created && given == new,
                    name => created.str_at(&["name"]) == name && new.str_at(&["name"]) == name,
                }
            });
            if is_same {
                let items = given.iter().zip(created).zip(new.iter_mut());
                items.for_each(|((given, created), new)| carry_into(given, created, new));
                new.extend(created[given.len()..].iter().cloned());
            }
        }
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use machinery::yaml;

    use super::*;

    #[test]
    fn additions_are_carried_where_the_file_says_nothing() {
        let value = |text: &str| yaml::decode(text.as_bytes()).unwrap().value;
        for (given, created, new, want) in [
            ("spec: {}", "spec: {selector: {uid: a}}", "spec: {}", "spec: {selector: {uid: a}}"),
            ("spec: {a: 1}", "spec: {a: 1, b: 2}", "spec: {a: 3, b: 4}", "spec: {a: 3, b: 4}"),
            ("t: {metadata: {}}", "t: {metadata: {u: v}}", "t: {}", "t: {metadata: {u: v}}"),
            // removed from the file
            ("spec: {s: {a: 1}}", "spec: {s: {a: 1}}", "spec: {}", "spec: {}"),
            ("spec: {a: 1}", "spec: {a: 1}", "spec: {}", "spec: {}"),
            ("spec: {t: {l: {x: y}}}", "spec: {t: {l: {x: y, u: v}}}", "spec: {t: {l: {}}}", "spec: {t: {l: {u: v}}}"),
            (
                "l: [{name: c}]",
                "l: [{name: c, r: 1}, {name: d}]",
                "l: [{name: c, i: 2}]",
                "l: [{name: c, i: 2, r: 1}, {name: d}]",
            ),
            ("l: [{name: c}]", "l: [{name: c, r: 1}]", "l: [{name: b}]", "l: [{name: b}]"),
            ("l: [{k: x}]", "l: [{k: x}, {k: y}]", "l: [{k: x}]", "l: [{k: x}, {k: y}]"),
            ("l: [{k: x}]", "l: [{k: x}, {k: y}]", "l: [{k: z}]", "l: [{k: z}]"),
            ("metadata: {}", "metadata: {uid: a}\nstatus: {phase: b}", "metadata: {}", "metadata: {}"),
        ] {
            let mut found = value(new);
            carry(&Addition { given: value(given), created: value(created) }, &mut found);
            assert_eq!(found, value(want), "{given} | {created} | {new}");
        }
    }
}
