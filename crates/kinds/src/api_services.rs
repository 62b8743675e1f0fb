//! The local APIServices: those of the groups and versions that the registry serves.

use std::collections::{BTreeMap, BTreeSet};

use machinery::{Text, Value, json};

use crate::apiregistration::apiservices::{MANAGED, MANAGED_ALWAYS, MANAGED_AT_START, REGISTRATION_GROUP};
use crate::catalogue::CATALOGUE;
use resource::{Registry, Resource};

/// The local APIService of a group and version; `managed` is the value of the label [`MANAGED`].
fn api_service(group: &str, version: &str, managed: &str) -> Value {
    let mut spec = json!({
        "version": version, "groupPriorityMinimum": (i64::from(CATALOGUE.group_priority(group))),
        "versionPriority": (CATALOGUE.version_priority(group, version))
    });
    spec.put_text(&["group"], group);
    let labels: Value = [(MANAGED, Value::from(managed))].into();
    json!({"metadata": {"name": (format!("{version}.{group}")), "labels": labels}, "spec": spec})
}

/// The local APIServices of built-in kinds, by name, except that of `apiregistration.k8s.io` itself, which has none in any
/// cluster.
pub fn built_in_api_services(registry: &Registry) -> BTreeMap<Text, Value> {
    let versions = served_versions(registry, |resource| !resource.is_custom());
    named(versions.into_iter().filter(|(group, _)| group != REGISTRATION_GROUP), MANAGED_AT_START)
}

/// The local APIServices of CRDs, by name, including those of CRDs that are not served yet.
pub fn custom_api_services(registry: &Registry) -> BTreeMap<Text, Value> {
    let versions =
        served_versions(registry, |resource| resource.is_custom()).into_iter().chain(registry.names().announced());
    let is_local = |group: &str| group != REGISTRATION_GROUP && !CATALOGUE.is_built_in_group(group);
    named(versions.filter(|(group, _)| is_local(group)), MANAGED_ALWAYS)
}

fn served_versions(registry: &Registry, is_wanted: fn(&Resource) -> bool) -> BTreeSet<(Text, Text)> {
    let all = registry.snapshot();
    let versions = all
        .values()
        .filter(|resource| is_wanted(resource))
        .flat_map(|resource| resource.served_versions().map(|version| (resource.group.clone(), version.name.clone())));
    versions.collect()
}

fn named(versions: impl Iterator<Item = (Text, Text)>, managed: &str) -> BTreeMap<Text, Value> {
    let service = |(group, version): (Text, Text)| {
        (Text::from(format!("{version}.{group}")), api_service(&group, &version, managed))
    };
    versions.map(service).collect()
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
        let row = CATALOGUE.row_of("apiregistration.k8s.io/v1", "APIService").unwrap();
        for (group, version, of_group, of_version) in cases {
            let spec = api_service(group, version, "true");
            assert_eq!(spec.at(&["spec", "groupPriorityMinimum"]), Some(&Value::Int(of_group)), "{group}");
            assert_eq!(spec.at(&["spec", "versionPriority"]), Some(&Value::Int(of_version)), "{group} {version}");
            assert_eq!(row.errors(&spec, None, machinery::Release::NEWEST), [], "{group}");
        }
    }
}
