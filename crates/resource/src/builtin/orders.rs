//! The order of errors, which is data: `orders.txt`.

use std::collections::HashMap;
use std::sync::LazyLock;

use machinery::field::{FieldError, FieldErrorKind};

static TEXT: &str = include_str!("orders.txt");

/// The ranks of the fields at a path of a kind.
type Orders = HashMap<(&'static str, &'static str), Vec<&'static str>>;

static ORDERS: LazyLock<Orders> = LazyLock::new(|| {
    let lines = TEXT.lines().filter(|line| !line.starts_with('#'));
    let parts = lines.filter_map(|line| line.split(' ').collect::<Vec<_>>().try_into().ok());
    parts.map(|[kind, path, fields]: [&str; 3]| ((kind, path), fields.split(',').collect())).collect()
});

/// The place of an error: whether it is about a change, and then a rank and an index for each level that a line orders.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
struct Place {
    is_change: bool,
    levels: Vec<(usize, usize)>,
    /// What is required comes first.
    is_given: bool,
}

/// Brings errors into the order of their kind. What a line does not order keeps its place among its like.
pub fn sort(kind: &str, errors: &mut [FieldError]) {
    if errors.len() > 1 && ORDERS.keys().any(|(known, _)| *known == kind) {
        errors.sort_by_cached_key(|error| place(kind, error));
    }
}

fn place(kind: &str, error: &FieldError) -> Place {
    let (mut levels, mut path) = (vec![], String::new());
    let mut segments = error.field.split('.');
    loop {
        let at = if path.is_empty() { "." } else { &path };
        let Some(fields) = ORDERS.get(&(kind, at)) else { break };
        let segment = segments.next();
        let (name, rest) = segment.map_or((".", ""), |segment| segment.split_once('[').unwrap_or((segment, "")));
        let rank = fields.iter().position(|field| *field == name);
        let rank = rank.map_or(if name == "." { 0 } else { fields.len() + 1 }, |rank| rank + 1);
        let index = rest.split(']').next().and_then(|index| index.parse().ok()).unwrap_or_default();
        levels.push((rank, index));
        if segment.is_none() {
            break;
        }
        path = if path.is_empty() { name.to_owned() } else { format!("{path}.{name}") };
    }
    let is_given = error.kind != FieldErrorKind::Required;
    Place { is_change: error.detail.contains("immutable"), levels, is_given }
}

#[cfg(test)]
mod tests {
    use machinery::field::FieldPath;

    use super::*;

    #[test]
    fn errors_are_in_the_order_of_their_kind() {
        let required = |path: &str| FieldError::required(&FieldPath::new(path), "");
        let changed = FieldError::forbidden(&FieldPath::new("spec.capacity"), "field is immutable");
        let mut errors = vec![
            changed.clone(),
            required("spec.zog"),
            required("spec.csi.driver"),
            required("spec"),
            required("spec.capacity"),
            required("spec.accessModes"),
        ];
        sort("PersistentVolume", &mut errors);
        let fields: Vec<&str> = errors.iter().map(|error| error.field.as_str()).collect();
        let want = ["spec.accessModes", "spec.capacity", "spec.csi.driver", "spec", "spec.zog", "spec.capacity"];
        assert_eq!(fields, want);
        // a kind without an order
        let mut errors = vec![changed, required("a")];
        sort("Zog", &mut errors);
        assert_eq!(errors[0].field, "spec.capacity");
    }
}
