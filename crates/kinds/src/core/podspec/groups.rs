//! The group that a Pod is scheduled with, and the responders to its eviction, both behind feature gates.

use std::collections::HashSet;

use machinery::names;

use resource::builtin::prefixed_names;
use schema::at::At;

const RESPONDERS_MAX: usize = 10;
const PRIORITY_MAX: i64 = 100_000;
/// Lower priorities are reserved for responders of Kubernetes.
const OWN_PRIORITY_MIN: i64 = 1000;

/// The PodGroup of a Pod.
pub fn scheduling_group(spec: At) {
    let Some(group) = spec.field_if_given("schedulingGroup") else { return };
    let name = group.field("podGroupName");
    match name.is_given() {
        true => name.check_text(names::dns1123_subdomain),
        false => name.invalid("must specify one of: `podGroupName`"),
    }
    group.forbidden_if(!spec.list("evictionResponders").is_empty(), "may not be set when evictionResponders is set");
}

pub fn eviction_responders(spec: At) {
    if !spec.field("evictionResponders").max_items(RESPONDERS_MAX) {
        return;
    }
    let mut known = HashSet::new();
    for responder in spec.items_of("evictionResponders").filter(|responder| !known.insert(responder.text("name"))) {
        responder
            .shown_verbatim(&machinery::types::published_json(responder.value, "core.v1.EvictionResponder"))
            .duplicate();
    }
    for responder in spec.items_of("evictionResponders") {
        responder.field("name").check_required_text(|name| {
            [prefixed_names::reserved_problems(name), prefixed_names::label_key_problems(name)].concat()
        });
        let priority = responder.field("priority");
        match priority.value.as_int() {
            None => priority.required(""),
            Some(..0) => priority.invalid("must be greater than or equal to 0"),
            Some(0..OWN_PRIORITY_MIN) => {
                priority.invalid("priorities 0-999 are reserved for responders with *.k8s.io suffix");
            }
            Some(OWN_PRIORITY_MIN..=PRIORITY_MAX) => {}
            Some(_) => priority.invalid(format!("must be less than or equal to {PRIORITY_MAX}")),
        }
    }
}
