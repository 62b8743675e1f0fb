//! The templates of a StatefulSet's claims.

use machinery::{Value, json};

use crate::core::claims::{self, ApiGroups};
use resource::builtin::checks::{list, text};
use schema::at::{At, CheckStage};

/// The templates of a StatefulSet's claims, which never change.
pub fn check(spec: At) {
    let name = "volumeClaimTemplates";
    let claims = spec.field(name);
    let form = schema::shape::named("apps.v1.StatefulSetSpec").field(name);
    let is_same = |old| form.is_some_and(|form| schema::shape::same(Some(claims.value), Some(old), form));
    match claims.old {
        None => claims.items().for_each(|claim| claims::spec(claim.field("spec"), ApiGroups::Checked)),
        Some(old) if !is_same(old) => {
            let shown = claims.printed_items("core.PersistentVolumeClaim");
            claims.in_stage(CheckStage::Change).shown_verbatim(&shown).invalid("field is immutable");
        }
        Some(_) => {}
    }
}

/// The fields that the controller sets in Pods, so that the template is validated without them.
const OWN_NAMES: [&str; 2] = ["hostname", "subdomain"];

/// A StatefulSet as it is validated: the volumes of its Pods include the claims from its templates, before their own
/// volumes, and the template has no host names.
pub fn validated(set: &Value) -> Option<Value> {
    let with_claims = with_claims(set);
    let template = set.at(&["spec", "template", "spec"])?;
    if !OWN_NAMES.iter().any(|name| !text(template, name).is_empty()) {
        return with_claims;
    }
    let mut set = with_claims.unwrap_or_else(|| set.clone());
    OWN_NAMES.iter().for_each(|name| drop(set.remove_at(&["spec", "template", "spec", name])));
    Some(set)
}

fn with_claims(set: &Value) -> Option<Value> {
    let spec = set.get("spec")?;
    let claims = list(spec, "volumeClaimTemplates");
    if claims.is_empty() {
        return None;
    }
    let name = |claim: &Value| claim.str_at(&["metadata", "name"]).to_owned();
    let mut names: Vec<String> = claims.iter().map(name).collect();
    names.sort();
    names.dedup();
    let own = spec.items_at(&["template", "spec", "volumes"]);
    let is_claimed = |volume: &Value| names.binary_search_by(|name| name.as_str().cmp(text(volume, "name"))).is_ok();
    let own = own.iter().filter(|volume| !is_claimed(volume)).cloned();
    let claimed = names
        .iter()
        .map(|name| json!({"name": (name.as_str()), "persistentVolumeClaim": {"claimName": (name.as_str())}}));
    let volumes = Value::Array(claimed.chain(own).collect());
    let mut set = set.clone();
    set.set_at(&["spec", "template", "spec", "volumes"], volumes);
    Some(set)
}
