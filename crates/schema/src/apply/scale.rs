//! managedFields of a resource as its `/scale` shows them: converts the entries that own the replicas, in both
//! directions.

use super::error::ManagedFieldsError;
use super::fieldpath::{FieldSet, PathElement};
use super::owners::{Identity, Owner, Owners, UniqueOwners};
use machinery::{Text, Value};
use std::collections::HashMap;

const SCALE_VERSION: &str = "autoscaling/v1";
const REPLICAS: [&str; 2] = ["spec", "replicas"];

/// The path of the replicas in a version: `["spec", "replicas"]` for `spec.replicas`; `None` if the version has no
/// scale.
#[derive(Clone, Debug)]
pub struct ScalePath {
    pub api_version: Text,
    pub replicas: Option<Vec<Text>>,
}

fn set_of(path: &[Text]) -> FieldSet {
    let names: Vec<&str> = path.iter().map(Text::as_str).collect();
    FieldSet::of_fields(&[&names])
}

fn has(set: &FieldSet, path: &[Text]) -> bool {
    let Some((last, parents)) = path.split_last() else { return false };
    let below = parents
        .iter()
        .try_fold(set, |set, name| set.get(&PathElement::TypeField(name.clone())).map(|node| &node.children));
    below.and_then(|set| set.get_field(last)).is_some_and(|node| node.member)
}

fn scale_path() -> Vec<Text> {
    REPLICAS.map(Text::new_static).to_vec()
}

impl ScalePath {
    /// The entries of the resource that own the replicas, as entries of its Scale.
    pub fn to_scale(list: Option<&Value>, paths: &[ScalePath]) -> Result<Option<Value>, ManagedFieldsError> {
        let owners = Owners::parse(list, None)?;
        let kept = owners.0.into_iter().filter_map(|owner| {
            let path = path_of(paths, &owner.version)?.as_ref()?;
            has(&owner.set, path).then(|| Owner {
                version: SCALE_VERSION.into(),
                set: set_of(&scale_path()).into(),
                ..owner
            })
        });
        Ok(Owners(kept.collect()).into_value())
    }

    /// The managedFields of the resource after a write through its Scale, which now has the managedFields `scale`.
    /// `api_version` is that of the request.
    pub fn to_resource(
        list: Option<&Value>,
        scale: Option<&Value>,
        api_version: &str,
        paths: &[ScalePath],
    ) -> Result<Option<Value>, ManagedFieldsError> {
        let mut scale = UniqueOwners::from(Owners::parse(scale, None)?);
        let mut kept = UniqueOwners::default();
        let owners = Owners::parse(list, None)?;
        // as in upstream, new entries have no time
        let times: HashMap<Identity, Option<i64>> = owners.0.iter().map(|o| (o.identity.clone(), o.time)).collect();
        for mut owner in owners.0 {
            let Some(path) = path_of(paths, &owner.version) else { continue };
            if let Some(path) = path.as_ref().filter(|path| has(&owner.set, path))
                && scale.take(&owner.identity).is_none()
            {
                owner.set.to_mut().remove(&set_of(path));
            }
            if !owner.set.is_empty() {
                kept.insert(owner);
            }
        }
        let path = path_of(paths, api_version).and_then(Option::as_ref);
        for owner in scale.into_owners().0 {
            if let Some(path) = path.filter(|_| has(&owner.set, &scale_path())) {
                let time = times.get(&owner.identity).copied().flatten();
                kept.insert(Owner { version: api_version.into(), set: set_of(path).into(), time, ..owner });
            }
        }
        Ok(kept.into_owners().into_value())
    }
}

fn path_of<'p>(paths: &'p [ScalePath], api_version: &str) -> Option<&'p Option<Vec<Text>>> {
    paths.iter().find(|p| p.api_version == api_version).map(|p| &p.replicas)
}

#[cfg(test)]
mod tests {
    use super::*;
    use machinery::json;

    fn entry(manager: &str, api_version: &str, subresource: &str, fields: Value) -> Value {
        let mut entry = json!({
            "manager": manager, "operation": "Update", "apiVersion": api_version,
            "fieldsType": "FieldsV1", "fieldsV1": fields
        });
        entry.put_text(&["subresource"], subresource);
        entry
    }

    #[test]
    fn scale_transfers_ownership_of_replicas() {
        let path = ScalePath { api_version: "g/v1".into(), replicas: Some(vec!["spec".into(), "size".into()]) };
        let paths = [path];
        let owned = json!({"f:spec": {"f:size": {}, "f:x": {}}});
        let list = json!([(entry("maker", "g/v1", "", owned))]);
        let seen = ScalePath::to_scale(Some(&list), &paths).expect("readable").expect("an owner");
        let replicas = json!({"f:spec": {"f:replicas": {}}});
        assert_eq!(seen, json!([(entry("maker", "autoscaling/v1", "", replicas.clone()))]));

        let mut after = entry("hpa", "autoscaling/v1", "scale", replicas);
        after.set_at(&["time"], Value::from("2026-01-01T00:00:00Z"));
        let after = json!([after]);
        let list =
            ScalePath::to_resource(Some(&list), Some(&after), "g/v1", &paths).expect("readable").expect("owners");
        let want = json!([
            (entry("hpa", "g/v1", "scale", json!({"f:spec": {"f:size": {}}}))),
            (entry("maker", "g/v1", "", json!({"f:spec": {"f:x": {}}})))
        ]);
        assert_eq!(list, want);
    }
}
