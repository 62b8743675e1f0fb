//! The conversion between versions, and what is lost without one.

use machinery::Value;

use super::{FoundChanges, Severity, checks, versions};

const PATH: &str = "spec.conversion";

pub(super) fn compare(old: &Value, new: &Value, changes: &mut FoundChanges) {
    let several = new.items_at(&["spec", "versions"]).len() > 1;
    match (has_webhook(old), has_webhook(new)) {
        (true, false) if several => {
            changes.add(&checks::CONVERSION_REMOVED, PATH, "objects are no longer converted by a webhook".to_owned());
        }
        (false, true) => {
            changes.add(&checks::CONVERSION_ADDED, PATH, "objects are converted by a webhook".to_owned());
        }
        _ if old.at(&["spec", "conversion"]) != new.at(&["spec", "conversion"]) => {
            changes.add(&checks::CONVERSION_CHANGED, PATH, "the conversion webhook changes".to_owned());
        }
        _ => {}
    }
    differences(old, new, changes);
}

fn has_webhook(definition: &Value) -> bool {
    definition.str_at(&["spec", "conversion", "strategy"]) == "Webhook"
}

/// Adds the differences between served versions, unless they were there before. Whether a webhook converts them, only a
/// review can show.
fn differences(old: &Value, new: &Value, changes: &mut FoundChanges) {
    let (before, has_webhook) = (versions::pairs(old), has_webhook(new));
    for mut change in versions::pairs(new) {
        if before.contains(&change) {
            continue;
        }
        if has_webhook {
            change.severity = Severity::Warning;
        }
        let how = if has_webhook { "the webhook has to convert it" } else { "objects are not converted" };
        change.reason = format!("between the versions, {}: {how}", change.reason);
        changes.found.push(change);
    }
}
