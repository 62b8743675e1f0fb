//! The rules for groups and names of definitions.

use machinery::names as label;

use crate::at::At;

pub(super) fn validate_group(group: At) {
    let problems = label::dns1123_subdomain(group.as_text());
    if group.as_text().is_empty() {
        group.required("");
    } else if !problems.is_empty() {
        group.invalid(problems.join(","));
    } else {
        group.invalid_if(!group.as_text().contains('.'), "should be a domain with at least one dot");
    }
}

pub(super) fn validate_required(names: At) {
    for key in ["plural", "singular", "kind", "listKind"] {
        names.field(key).require_text("");
    }
}

/// Requires a DNS-1035 label. The error has all reasons in one text.
pub(super) fn validate_label(name: At) {
    let problems = label::dns1035_label(name.as_text());
    name.invalid_if(!problems.is_empty(), &problems.join(","));
}

/// Validates the syntax of the given names.
pub(super) fn validate(names: At) {
    for name in ["plural", "singular"].map(|key| names.field(key)) {
        if !name.as_text().is_empty() {
            validate_label(name);
        }
    }
    let (kind, list_kind) = (names.field("kind"), names.field("listKind"));
    for name in [kind, list_kind] {
        name.check_text_unless_empty(|text| crate::embedded::kind_problem(text).into_iter().collect());
    }
    names.items_of("shortNames").for_each(|name| validate_label(name));
    let is_repeated = !kind.as_text().is_empty() && kind.as_text() == list_kind.as_text();
    list_kind.invalid_if(is_repeated, "kind and listKind may not be the same");
    names.items_of("categories").for_each(|name| validate_label(name));
}
