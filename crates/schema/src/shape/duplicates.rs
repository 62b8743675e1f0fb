//! The duplicate fields that decoding into a Go struct reports.

use super::{Shape, Struct};

/// Whether kube-apiserver notices that the field at `path` (as strict decoding prints it) is repeated. It only checks
/// known fields, and none inside types that decode themselves.
pub fn sees_duplicate(path: &str, shape: &'static Struct) -> bool {
    let (name, rest) = path.split_once(['.', '[']).map_or((path, None), |(name, rest)| (name, Some(rest)));
    let Some(field) = shape.field(name) else { return false };
    match rest {
        None => true,
        Some(rest) => sees_duplicate_below(rest, &field.shape),
    }
}

/// `rest` follows a dot or an opening bracket.
fn sees_duplicate_below(rest: &str, shape: &'static Shape) -> bool {
    match shape {
        Shape::Struct(inner) => sees_duplicate(rest, inner),
        Shape::List(_, item) => match rest.split_once(']') {
            Some((_, after)) => after.strip_prefix('.').is_some_and(|after| sees_duplicate_below(after, item)),
            None => false,
        },
        Shape::Map(_, Shape::Struct(item)) => {
            // Keys may have dots in them: the first known field of the struct ends the key.
            let after = rest.match_indices('.').map(|(i, _)| &rest[i + 1..]);
            let known = |after: &&str| item.field(after.split(['.', '[']).next().unwrap_or_default()).is_some();
            after.into_iter().find(known).is_none_or(|after| sees_duplicate(after, item))
        }
        Shape::Map(..) => true,
        _ => false,
    }
}
