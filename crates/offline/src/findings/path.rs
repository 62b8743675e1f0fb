//! Field paths in the errors of the server, such as `spec.versions[0].schema` and `metadata.annotations[example.com/a]`.

use machinery::yaml::FieldStep;

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
