//! Conflicts: the error of an apply that would change fields that other managers own.

use super::fieldpath::FieldSet;
use super::ownership::Conflict;
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

/// All of them, sorted by owner.
pub(crate) fn status(mut conflicts: Vec<Conflict>) -> Status {
    conflicts.sort_by(|a, b| a.owner.compare(&b.owner));
    let mut causes = vec![];
    let mut blocks = vec![];
    for conflict in &conflicts {
        let owner = conflict.owner.print();
        blocks.push(format!("conflicts with {owner}:"));
        conflict.fields.for_each(&mut |path| {
            blocks.push(format!("- {path}"));
            causes.push(Cause {
                reason: "FieldManagerConflict".into(),
                message: format!("conflict with {owner}"),
                field: path.to_owned(),
            });
        });
    }
    let message = match causes.as_slice() {
        [one] => format!("Apply failed with 1 conflict: {}: {}", one.message, one.field),
        many => format!("Apply failed with {} conflicts: {}", many.len(), blocks.join("\n")),
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
}
