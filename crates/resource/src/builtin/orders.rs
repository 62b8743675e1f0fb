//! The order of errors, which is data: `orders.txt`.

use std::collections::HashMap;
use std::sync::LazyLock;

use machinery::field::{FieldError, FieldErrorKind};

static TEXT: &str = include_str!("orders.txt");

/// What orders the errors at a path of a kind.
enum Order {
    /// The ranks of the fields: a name, and of some the kind of the errors or a word of their details.
    Fields(Vec<(&'static str, Option<&'static str>)>),
    /// That of another kind, at its root.
    Of(&'static str),
}

type Orders = HashMap<(&'static str, &'static str), Order>;

static ORDERS: LazyLock<Orders> = LazyLock::new(|| {
    let lines = TEXT.lines().filter(|line| !line.starts_with('#'));
    let parts = lines.filter_map(|line| line.split(' ').collect::<Vec<_>>().try_into().ok());
    let each = parts.flat_map(|[kinds, path, fields]: [&'static str; 3]| {
        kinds.split(',').map(move |kind| ((kind, path), order(fields)))
    });
    each.collect()
});

fn order(fields: &'static str) -> Order {
    let field = |field: &'static str| field.split_once(':').map_or((field, None), |(name, what)| (name, Some(what)));
    match fields.strip_prefix('=') {
        Some(kind) => Order::Of(kind),
        None => Order::Fields(fields.split(',').map(field).collect()),
    }
}

/// The place of an error: whether it is about a change, and then a rank and an index for each level that a line orders.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
struct Place {
    is_change: bool,
    levels: Vec<(usize, usize)>,
    /// What is required comes first, unless the field has a line of its own.
    is_given: bool,
}

/// Brings errors into the order of their kind. What a line does not order keeps its place among its like.
pub fn sort(kind: &str, errors: &mut [FieldError]) {
    if errors.len() > 1 && ORDERS.keys().any(|(known, _)| *known == kind) {
        errors.sort_by_cached_key(|error| place(kind, error));
    }
}

/// Errors of changes come last, unless a line says where.
const CHANGE: &str = "immutable";

/// The rank of a field that has an error, or of the path itself; `kind` is that of the error.
fn rank(fields: &[(&str, Option<&str>)], name: &str, kind: &str, error: &FieldError) -> usize {
    let is_meant = |what: &str| what == kind || error.detail.contains(&what.replace('_', " "));
    let special = fields.iter().position(|(field, what)| *field == name && what.is_some_and(is_meant));
    let rank = special.or_else(|| fields.iter().position(|field| *field == (name, None)));
    rank.map_or(if name == "." { 0 } else { fields.len() + 1 }, |rank| rank + 1)
}

fn place(kind: &str, error: &FieldError) -> Place {
    let (mut kind, mut levels, mut path) = (kind, vec![], String::new());
    let of_kind = format!("{:?}", error.kind);
    let (mut is_change, mut is_given) = (error.detail.contains(CHANGE), error.kind != FieldErrorKind::Required);
    let mut segments = error.field.split('.');
    loop {
        let at = if path.is_empty() { "." } else { &path };
        let fields = match ORDERS.get(&(kind, at)) {
            Some(Order::Fields(fields)) => fields,
            Some(Order::Of(other)) => {
                (kind, path) = (other, String::new());
                continue;
            }
            None => break,
        };
        let segment = segments.next();
        let (name, rest) = segment.map_or((".", ""), |segment| segment.split_once('[').unwrap_or((segment, "")));
        let index = rest.split(']').next().and_then(|index| index.parse().ok()).unwrap_or_default();
        is_change &= !fields.contains(&(name, Some(CHANGE)));
        levels.push((rank(fields, name, &of_kind, error), index));
        if segment.is_none() {
            // the errors of a field that has a line keep their order
            is_given = true;
            break;
        }
        path = if path.is_empty() { name.to_owned() } else { format!("{path}.{name}") };
    }
    Place { is_change, levels, is_given }
}

#[cfg(test)]
mod tests {
    use machinery::field::FieldPath;

    use super::*;

    #[test]
    fn references_end() {
        for order in ORDERS.values() {
            if let Order::Of(kind) = order {
                assert!(matches!(ORDERS.get(&(*kind, ".")), Some(Order::Fields(_))), "{kind}");
            }
        }
    }

    #[test]
    fn parts_have_an_order_of_their_own() {
        let path = |text: &str| FieldPath::new(text);
        let mut errors = vec![
            FieldError::forbidden(&path("spec"), "changed"),
            FieldError::duplicate(&path("spec.containers[0].name"), &machinery::Value::Null),
            FieldError::required(&path("spec.containers[1].name"), ""),
            FieldError::required(&path("spec.containers[0].image"), ""),
            FieldError::required(&path("spec.volumes[1].nfs.path"), ""),
            FieldError::required(&path("spec.volumes[1].nfs.server"), ""),
        ];
        let want = [
            errors[5].clone(),
            errors[4].clone(),
            errors[3].clone(),
            errors[1].clone(),
            errors[2].clone(),
            errors[0].clone(),
        ];
        sort("Pod", &mut errors);
        assert_eq!(errors, want);
    }

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
