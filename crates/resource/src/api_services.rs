//! The local APIServices: those of the groups and versions that the registry serves.

use std::collections::{BTreeMap, BTreeSet};

use machinery::{Text, Value, json};

use super::Registry;
use super::builtin::{self, MANAGED, MANAGED_ALWAYS, MANAGED_AT_START, REGISTRATION_GROUP, version_priority};

/// The local APIService of a group and version; `managed` is the value of the label [`MANAGED`].
fn api_service(group: &str, version: &str, managed: &str) -> Value {
    let mut spec = json!({
        "version": version, "groupPriorityMinimum": (i64::from(builtin::group_priority(group))),
        "versionPriority": (version_priority(group, version))
    });
    if !group.is_empty() {
        spec.set_at(&["group"], Value::from(group));
    }
    let labels: Value = [(MANAGED, Value::from(managed))].into();
    json!({"metadata": {"name": (format!("{version}.{group}")), "labels": labels}, "spec": spec})
}

/// The local APIServices, by name: those of CRDs if `custom`, including CRDs that are not served yet; else those of
/// built-in kinds, except `apiregistration.k8s.io` itself, which has none in any cluster.
pub fn api_services(registry: &Registry, custom: bool) -> BTreeMap<Text, Value> {
    let served = registry.snapshot();
    let of_kind = served.values().filter(|resource| resource.is_custom() == custom);
    let versions = of_kind.flat_map(|resource| {
        let served = resource.versions.iter().filter(|version| version.served);
        served.map(|version| (resource.group.clone(), version.name.clone()))
    });
    let announced = if custom { registry.names().announced() } else { BTreeSet::new() };
    let managed = if custom { MANAGED_ALWAYS } else { MANAGED_AT_START };
    let mut all = BTreeMap::new();
    for (group, version) in versions.chain(announced) {
        if group == REGISTRATION_GROUP || (custom && builtin::is_built_in_group(&group)) {
            continue;
        }
        let name = Text::from(format!("{version}.{group}"));
        all.entry(name).or_insert_with(|| api_service(&group, &version, managed));
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn priorities_match_upstream() {
        let cases = [
            ("", "v1", 18_000, 1),
            ("flowcontrol.apiserver.k8s.io", "v1", 16_100, 21),
            ("admissionregistration.k8s.io", "v1beta1", 16_700, 12),
            ("apiextensions.k8s.io", "v1beta1", 16_700, 9),
            ("storagemigration.k8s.io", "v1beta1", 15_800, 9),
            ("example.com", "v1", 1_000, 100),
        ];
        let row = builtin::row_of("apiregistration.k8s.io/v1", "APIService").unwrap();
        for (group, version, of_group, of_version) in cases {
            let spec = api_service(group, version, "true");
            assert_eq!(spec.at(&["spec", "groupPriorityMinimum"]), Some(&Value::Int(of_group)), "{group}");
            assert_eq!(spec.at(&["spec", "versionPriority"]), Some(&Value::Int(of_version)), "{group} {version}");
            assert_eq!(row.errors(&spec, None, machinery::Release::NEWEST), [], "{group}");
        }
    }
}
