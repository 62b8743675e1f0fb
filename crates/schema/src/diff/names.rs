//! Group, names and scope.

use machinery::Value;
use machinery::value::quote;

use super::{FoundChanges, checks};

pub(super) fn compare(old: &Value, new: &Value, changes: &mut FoundChanges) {
    let texts = [
        ("spec.group", &["spec", "group"][..], &checks::GROUP_CHANGED),
        ("spec.names.plural", &["spec", "names", "plural"], &checks::PLURAL_CHANGED),
        ("spec.names.kind", &["spec", "names", "kind"], &checks::KIND_CHANGED),
        ("spec.scope", &["spec", "scope"], &checks::SCOPE_CHANGED),
        ("spec.names.listKind", &["spec", "names", "listKind"], &checks::LIST_KIND_CHANGED),
    ];
    for (path, keys, check) in texts {
        let (before, after) = (old.str_at(keys), new.str_at(keys));
        if before != after {
            let name = keys.last().copied().unwrap_or_default();
            changes.add(check, path, format!("the {name} changes from {} to {}", quote(before), quote(after)));
        }
    }
    let singular = ["spec", "names", "singular"];
    let kept = |name: &str| {
        let lists = ["shortNames", "categories"];
        lists.iter().any(|list| new.texts_at(&["spec", "names", list]).any(|kept| kept == name))
            || new.str_at(&singular) == name
    };
    if old.str_at(&singular) != new.str_at(&singular) && !kept(old.str_at(&singular)) {
        let reason = format!("the singular {} is removed", quote(old.str_at(&singular)));
        changes.add(&checks::NAME_REMOVED, "spec.names.singular", reason);
    }
    for (list, what) in [("shortNames", "short name"), ("categories", "category")] {
        for name in old.texts_at(&["spec", "names", list]).filter(|name| !kept(name)) {
            let reason = format!("the {what} {} is removed", quote(name));
            changes.add(&checks::NAME_REMOVED, &format!("spec.names.{list}"), reason);
        }
    }
    let preserves = |definition: &Value| definition.is_true_at(&["spec", "preserveUnknownFields"]);
    match (preserves(old), preserves(new)) {
        (true, false) => {
            let reason = "unknown fields are no longer preserved".to_owned();
            changes.add(&checks::UNKNOWN_FIELDS_PRUNED, "spec.preserveUnknownFields", reason);
        }
        (false, true) => {
            let reason = "unknown fields are preserved".to_owned();
            changes.add(&checks::UNKNOWN_FIELDS_PRESERVED, "spec.preserveUnknownFields", reason);
        }
        _ => {}
    }
}
