//! The templates of a StatefulSet's claims.

use machinery::field::{FieldError, FieldPath};
use machinery::{Value, json};

use super::checks::{items, list, text};

/// The templates of a StatefulSet's claims, which never change.
pub fn check(object: &Value, old: Option<&Value>, path: &FieldPath, errors: &mut Vec<FieldError>) {
    let spec = object.get("spec").unwrap_or(&Value::Null);
    let name = "volumeClaimTemplates";
    let form = schema::shape::named("apps.v1.StatefulSetSpec").field(name);
    let is_same = |old: Option<&Value>| form.is_some_and(|form| schema::shape::same(spec.get(name), old, form));
    match old.map(|old| old.at(&["spec", name])) {
        None => {
            for (path, claim) in items(spec, name, path) {
                super::claims::spec(claim.get("spec").unwrap_or(&Value::Null), true, &path.child("spec"), errors);
            }
        }
        Some(old) if !is_same(old) => {
            let shown = |claim| machinery::types::internal_json(claim, "core.PersistentVolumeClaim", false);
            let claims = spec.get(name).and_then(Value::as_array);
            let claims = claims.map(|claims| claims.iter().map(shown).collect::<Vec<_>>().join(","));
            let shown = claims.map_or_else(|| "null".to_owned(), |claims| format!("[{claims}]"));
            let error = FieldError::invalid(&path.child(name), &Value::Null, "field is immutable");
            errors.push(FieldError { value: shown, ..error });
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
    let own = spec.at(&["template", "spec", "volumes"]).and_then(Value::as_array).unwrap_or_default();
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
