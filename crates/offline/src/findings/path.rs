//! Field paths in the errors of the server, such as `spec.versions[0].schema` and `metadata.annotations[example.com/a]`.

use machinery::Value;
use machinery::yaml::FieldStep;

/// The steps of a field path in an object. A key of a map may have dots, which the server does not quote in custom resources:
/// the longest key that the object has counts.
pub fn steps_in(object: &Value, field: &str) -> Vec<FieldStep> {
    let (mut at, mut rest, mut found) = (object, field.trim_start_matches('.'), vec![]);
    while !rest.is_empty() && rest != "<nil>" {
        let key = at.fields().map(|(key, _)| key.as_str());
        let ends = |after: &str| after.is_empty() || after.starts_with(['.', '[']);
        let key = key.filter(|key| rest.strip_prefix(key).is_some_and(ends)).max_by_key(|key| key.len());
        let (step, after) = match (key, steps(rest).into_iter().next()) {
            (Some(key), _) if !key.is_empty() => (FieldStep::Field(key.to_owned()), &rest[key.len()..]),
            (_, Some(step)) => (step, after_first(rest)),
            (_, None) => break,
        };
        at = match &step {
            FieldStep::Field(name) => at.get(name).unwrap_or(&Value::Null),
            FieldStep::Item(index) => at.as_array().and_then(|items| items.get(*index)).unwrap_or(&Value::Null),
        };
        found.push(step);
        rest = after.strip_prefix('.').unwrap_or(after);
    }
    found
}

/// The text of a path behind its first step.
fn after_first(path: &str) -> &str {
    match path.strip_prefix('[') {
        Some(inside) => inside.split_once(']').map_or("", |(_, after)| after),
        None => &path[path.find(['.', '[']).unwrap_or(path.len())..],
    }
}

/// The steps of a field path. What is in brackets is an index or the key of a map.
pub fn steps(field: &str) -> Vec<FieldStep> {
    let mut steps = vec![];
    let mut rest = field.trim_start_matches('.');
    if rest == "<nil>" {
        return steps;
    }
    while !rest.is_empty() {
        if let Some(inside) = rest.strip_prefix('[') {
            let (key, after) = inside.split_once(']').unwrap_or((inside, ""));
            let key = key.trim_matches(['"', '\'']);
            steps.push(key.parse().map_or_else(|_| FieldStep::Field(key.to_owned()), FieldStep::Item));
            rest = after;
        } else {
            let end = rest.find(['.', '[']).unwrap_or(rest.len());
            steps.push(FieldStep::Field(rest[..end].to_owned()));
            rest = &rest[end..];
        }
        rest = rest.strip_prefix('.').unwrap_or(rest);
    }
    steps
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_with_dots_are_those_of_the_object() {
        let object =
            machinery::yaml::decode(b"spec: {labels: {a: b, d.e/f: g, d: {e: h}}, l: [{x.y: 1}]}").unwrap().value;
        let field = |name: &str| FieldStep::Field(name.to_owned());
        for (text, want) in [
            ("spec.labels.d.e/f", vec![field("spec"), field("labels"), field("d.e/f")]),
            ("spec.labels.d.e", vec![field("spec"), field("labels"), field("d"), field("e")]),
            ("spec.labels[d.e/f]", vec![field("spec"), field("labels"), field("d.e/f")]),
            ("spec.l[0].x.y", vec![field("spec"), field("l"), FieldStep::Item(0), field("x.y")]),
            ("spec.none.x[1]", vec![field("spec"), field("none"), field("x"), FieldStep::Item(1)]),
            ("<nil>", vec![]),
            ("", vec![]),
        ] {
            assert_eq!(steps_in(&object, text), want, "{text}");
        }
    }

    #[test]
    fn paths() {
        let field = |name: &str| FieldStep::Field(name.to_owned());
        for (text, want) in [
            ("", vec![]),
            ("<nil>", vec![]),
            ("spec", vec![field("spec")]),
            (".spec.a[0].b", vec![field("spec"), field("a"), FieldStep::Item(0), field("b")]),
            ("metadata.annotations[a.b/c]", vec![field("metadata"), field("annotations"), field("a.b/c")]),
            ("a[0][x", vec![field("a"), FieldStep::Item(0), field("x")]),
            ("a..b", vec![field("a"), field(""), field("b")]),
        ] {
            assert_eq!(steps(text), want, "{text}");
        }
    }
}
