//! The order of errors. Rules are checked field by field, but kube-apiserver's functions find errors in an order of their
//! own. The rule `order` states it; its words are explained in `rules.txt`.

use machinery::field::{FieldError, FieldErrorKind};

use super::Ruled;
use super::words::Order;

/// Where an error stands among the others: its fields are compared from the first to the last.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
struct ErrorRank {
    /// Errors of changes to immutable fields come last, unless an order gives them a position.
    is_change: bool,
    /// For each struct on the path that has an order, the rank of the field in it, and the index if it is a list.
    levels: Vec<(usize, usize)>,
    /// Of the errors of one field, that it is missing comes first, unless the field has an order of its own.
    is_given: bool,
}

/// Sorts the errors of an object of the type `of`. Errors between which there is no order stay as they were found.
pub fn sort(of: Option<&'static Ruled>, errors: &mut [FieldError]) {
    if let Some(of) = of.filter(|of| errors.len() > 1 && of.order.is_some()) {
        errors.sort_by_cached_key(|error| error_rank(of, error));
    }
}

/// What the details of errors of changes to immutable fields contain.
const CHANGE: &str = "immutable";

fn error_rank(of: &'static Ruled, error: &FieldError) -> ErrorRank {
    let (mut levels, mut next) = (vec![], Some((of, of.order.as_ref())));
    let (mut is_change, mut is_given) = (error.detail.contains(CHANGE), error.kind != FieldErrorKind::Required);
    let mut segments = error.field.split('.').filter(|segment| !segment.is_empty());
    while let Some((of, Some(order))) = next {
        let segment = segments.next();
        // `.` stands for an error at the struct itself, where the path ends
        let (name, rest) = segment.map_or((".", ""), |segment| segment.split_once('[').unwrap_or((segment, "")));
        let index = rest.split(']').next().and_then(|index| index.parse().ok()).unwrap_or_default();
        is_change &= !order.contains(&(name, Some(CHANGE)));
        levels.push((field_rank(of, order, name, error), index));
        if segment.is_none() {
            // an error at a struct that has an order: that it is missing has no special position
            is_given = true;
            break;
        }
        let field = of.fields.iter().find(|field| field.go.name == name);
        next = field.and_then(|field| {
            let inner = field.inner()?;
            Some((inner, field.rules.as_ref().and_then(|rules| rules.order.as_ref()).or(inner.order.as_ref())))
        });
    }
    ErrorRank { is_change, levels, is_given }
}

/// The rank of an error at the field `name` of a struct, or below it. An entry for this kind or text of errors takes
/// precedence over one for all errors of the field.
fn field_rank(of: &Ruled, order: &Order, name: &str, error: &FieldError) -> usize {
    let (last, of_kind) = (of.fields.len() + order.len() + 1, format!("{:?}", error.kind));
    let is_meant = |what: &str| what == of_kind || error.detail.contains(&what.replace('_', " "));
    let is_name = |field: &str| field.strip_prefix('~').unwrap_or(field) == name;
    let place = match order[..] {
        [] => of.fields.iter().position(|field| field.go.name == name),
        _ => {
            let special = order.iter().position(|(field, what)| is_name(field) && what.is_some_and(is_meant));
            special.or_else(|| order.iter().position(|(field, what)| is_name(field) && what.is_none()))
        }
    };
    // without an entry, errors at the struct itself come first, and those of other fields last
    place.map_or(if name == "." { 0 } else { last }, |place| place + 1)
}
