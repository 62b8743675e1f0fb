//! The order of errors, for kinds that do not report them in the order in which they are found.

use machinery::field::{FieldError, FieldErrorKind};

use super::Ruled;
use super::words::Order;

/// The rank of an error: whether it is about a change, and then a rank and an index for each level that has an order.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
struct ErrorRank {
    is_change: bool,
    levels: Vec<(usize, usize)>,
    /// Errors of missing fields come first, unless the field has an order of its own.
    is_given: bool,
}

/// Sorts errors in the order of their kind. Errors without an order keep their relative positions.
pub fn sort(of: Option<&'static Ruled>, errors: &mut [FieldError]) {
    if let Some(of) = of.filter(|of| errors.len() > 1 && of.order.is_some()) {
        errors.sort_by_cached_key(|error| place(of, error));
    }
}

/// Errors of changes come last, unless the order gives them a position.
const CHANGE: &str = "immutable";

fn place(of: &'static Ruled, error: &FieldError) -> ErrorRank {
    let (mut levels, mut next) = (vec![], Some((of, of.order.as_ref())));
    let (mut is_change, mut is_given) = (error.detail.contains(CHANGE), error.kind != FieldErrorKind::Required);
    let mut segments = error.field.split('.').filter(|segment| !segment.is_empty());
    while let Some((of, Some(order))) = next {
        let segment = segments.next();
        let (name, rest) = segment.map_or((".", ""), |segment| segment.split_once('[').unwrap_or((segment, "")));
        let index = rest.split(']').next().and_then(|index| index.parse().ok()).unwrap_or_default();
        is_change &= !order.contains(&(name, Some(CHANGE)));
        levels.push((rank(of, order, name, error), index));
        if segment.is_none() {
            // the errors of a field that has an order keep theirs
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

/// The rank of a field that has an error, or of the struct itself.
fn rank(of: &Ruled, order: &Order, name: &str, error: &FieldError) -> usize {
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
    place.map_or(if name == "." { 0 } else { last }, |place| place + 1)
}
