//! Conflicts: the error of an apply that would change fields that other managers own.

use super::fieldpath::FieldSet;
use super::ownership::Conflict;
use crate::limits::CONFLICTS_BYTES_MAX;
use machinery::Status;
use machinery::status::{Cause, Details, Reason};

/// The conflicts without the given paths.
pub(crate) fn without(conflicts: Vec<Conflict>, allowed: &FieldSet) -> Vec<Conflict> {
    let rest = conflicts.into_iter().filter_map(|mut conflict| {
        conflict.fields.remove(allowed);
        (!conflict.fields.is_empty()).then_some(conflict)
    });
    rest.collect()
}

/// The error of all conflicts, sorted by owner. Conflicts beyond [`CONFLICTS_BYTES_MAX`] are only counted, since their
/// paths together may be much longer than the object: each begins with the names of its parents.
pub(crate) fn status(mut conflicts: Vec<Conflict>) -> Status {
    conflicts.sort_by(|a, b| a.owner.compare(&b.owner));
    let mut causes = vec![];
    let mut blocks = vec![];
    let (mut count, mut bytes) = (0_usize, 0_usize);
    for conflict in &conflicts {
        let owner = conflict.owner.print();
        if bytes <= CONFLICTS_BYTES_MAX {
            blocks.push(format!("conflicts with {owner}:"));
        }
        conflict.fields.for_each(&mut |path| {
            count += 1;
            bytes = bytes.saturating_add(2 * path.len() + owner.len() + size_of::<Cause>());
            if bytes > CONFLICTS_BYTES_MAX {
                return;
            }
            blocks.push(format!("- {path}"));
            causes.push(Cause {
                reason: "FieldManagerConflict".into(),
                message: format!("conflict with {owner}"),
                field: path.to_owned(),
            });
        });
    }
    let left = count - causes.len();
    if left > 0 {
        blocks.push(format!("and {left} more"));
    }
    let message = match (count, causes.as_slice()) {
        (1, [one]) => format!("Apply failed with 1 conflict: {}: {}", one.message, one.field),
        _ => format!("Apply failed with {count} conflicts: {}", blocks.join("\n")),
    };
    Status::new(Reason::Conflict, message).with_details(Details { causes, ..Details::default() })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::apply::owners::{Identity, Operation};

    fn conflict(manager: &str, operation: Operation, subresource: &str, paths: &[&[&str]]) -> Conflict {
        let owner = Identity::new(manager, operation, "example.com/v1", subresource);
        Conflict { owner, fields: FieldSet::of_fields(paths) }
    }

    #[test]
    fn conflict_messages_match_upstream() {
        let one = vec![conflict("ed", Operation::Update, "scale", &[&["spec", "x"]])];
        let text = "Apply failed with 1 conflict: conflict with \"ed\" with subresource \"scale\" using example.com/v1: .spec.x";
        assert_eq!(status(one).message, text);
        let two = vec![
            conflict("zoe", Operation::Apply, "", &[&["spec", "a"]]),
            conflict("ed", Operation::Update, "", &[&["spec", "b", "c"], &["spec", "z"]]),
        ];
        let text = "Apply failed with 3 conflicts: conflicts with \"ed\" using example.com/v1:\n- .spec.z\n- .spec.b.c\nconflicts with \"zoe\":\n- .spec.a";
        let status = status(two);
        assert_eq!((status.code, status.message.as_str()), (409, text));
    }

    /// Each of many fields deep in an object has a path that is as long as the object.
    #[test]
    fn conflicts_beyond_a_bound_are_counted() {
        let parents: Vec<String> = (0..100).map(|i| format!("{i}{}", "n".repeat(980))).collect();
        let names: Vec<String> = (0..3_000).map(|i| format!("f{i}")).collect();
        let path = |name| parents.iter().map(String::as_str).chain([name]).collect::<Vec<_>>();
        let paths: Vec<Vec<&str>> = names.iter().map(|name| path(name.as_str())).collect();
        let paths: Vec<&[&str]> = paths.iter().map(Vec::as_slice).collect();
        let of = |manager| conflict(manager, Operation::Apply, "", &paths);
        let status = status(vec![of("ed"), of("zoe")]);
        let causes = status.details.as_ref().map_or(0, |details| details.causes.len());
        assert!((10..100).contains(&causes), "{causes}");
        assert!(status.message.starts_with("Apply failed with 6000 conflicts: conflicts with \"ed\":\n- .0nn"));
        assert!(status.message.ends_with(&format!("\nand {} more", 6_000 - causes)));
        assert!(status.message.len() < CONFLICTS_BYTES_MAX);
    }
}
