//! The order of errors. kube-apiserver's functions check each struct in an order of their own, and some fields
//! several times: containers, say, in five places of a Pod. Here, the table checks each field where it stands, and
//! the code of a kind checks one concern per function, so errors are found in another order. They are then sorted
//! by the fields on their paths and the stages that found them, as the rule `order` in `rules.txt` says.

use machinery::field::{FieldError, FieldErrorKind};

use super::Ruled;
use super::words::{Order, OrderedErrors};
use schema::at::{CheckStage, FoundError};

/// The position of an error. Positions are compared by these fields, from the first to the last.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
struct ErrorRank {
    /// Errors of changes to immutable fields come last, unless an order gives them a position.
    is_change: bool,
    /// For each struct on the path that has an order, the rank of the field in it, and the index if it is a list.
    levels: Vec<(usize, usize)>,
    /// False for the error that a field is missing, which comes before its other errors unless the field has an
    /// order.
    is_given: bool,
}

/// The errors of an object of the type `of` in their order. Errors that no order distinguishes stay as they were found.
pub fn in_order(of: Option<&'static Ruled>, mut found: Vec<FoundError>) -> Vec<FieldError> {
    if let Some(of) = of.filter(|of| found.len() > 1 && of.order.is_some()) {
        found.sort_by_cached_key(|found| error_rank(of, found));
    }
    found.into_iter().map(|found| found.error).collect()
}

fn error_rank(of: &'static Ruled, found: &FoundError) -> ErrorRank {
    let error = &found.error;
    let (mut levels, mut next) = (vec![], Some((of, of.order.as_ref())));
    let (mut is_change, mut is_given) = (found.stage == CheckStage::Change, error.kind != FieldErrorKind::Required);
    let mut segments = error.field.split('.').filter(|segment| !segment.is_empty());
    while let Some((of, Some(order))) = next {
        let segment = segments.next();
        // `.` stands for an error at the struct itself, where the path ends
        let (name, rest) = segment.map_or((".", ""), |segment| segment.split_once('[').unwrap_or((segment, "")));
        let index = rest.split(']').next().and_then(|index| index.parse().ok()).unwrap_or_default();
        is_change &= !order.contains(&(name, OrderedErrors::CheckStage(CheckStage::Change)));
        levels.push((field_rank(of, order, name, found), index));
        if segment.is_none() {
            // a struct that has an order does not sort the error that it is missing before its others
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

/// The rank of an error at the field `name` of a struct, or below it. An entry for this kind or stage of errors takes
/// precedence over one for all errors of the field.
fn field_rank(of: &Ruled, order: &Order, name: &str, found: &FoundError) -> usize {
    let last = of.fields.len() + order.len() + 1;
    let is_meant = |which: &OrderedErrors| match which {
        OrderedErrors::All => false,
        OrderedErrors::Kind(kind) => *kind == found.error.kind,
        OrderedErrors::CheckStage(stage) => *stage == found.stage,
    };
    let is_name = |field: &str| field.strip_prefix('~').unwrap_or(field) == name;
    let place = match order[..] {
        [] => of.fields.iter().position(|field| field.go.name == name),
        _ => {
            let special = order.iter().position(|(field, which)| is_name(field) && is_meant(which));
            special.or_else(|| order.iter().position(|(field, which)| is_name(field) && *which == OrderedErrors::All))
        }
    };
    // without an entry, errors at the struct itself come first, and those of other fields last
    place.map_or(if name == "." { 0 } else { last }, |place| place + 1)
}
