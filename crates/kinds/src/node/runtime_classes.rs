//! RuntimeClass: the overhead and scheduling of its Pods.

use std::collections::HashSet;

use machinery::names;

use crate::core::podspec;
use resource::builtin::checks::labels;
use schema::at::At;

pub fn validate(at: At) {
    if !at.text("handler").is_empty() {
        at.field("handler").check_text(|handler| {
            let mut problems = names::dns1123_label(handler);
            if !at.is_update() {
                // the declared rule replaces the other one
                problems.iter_mut().for_each(|why| *why = why.replace("63 characters", "63 bytes"));
            }
            problems
        });
    }
    podspec::overhead(at.field("overhead.podFixed"), at.field("overhead"));
    labels(at.field("scheduling.nodeSelector"));
    let mut known = HashSet::new();
    for toleration in at.items_of("scheduling.tolerations") {
        podspec::toleration(toleration);
        if !known.insert(toleration.value.to_json()) {
            toleration.shown_as_go("core.Toleration").duplicate();
        }
    }
}
