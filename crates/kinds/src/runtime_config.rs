//! Optional APIs: `--runtime-config` of kube-apiserver.
//!
//! They are disabled by default: kube-apiserver has removed them, or has them as beta APIs.

use std::collections::BTreeSet;

use base::request::FeatureGates;
use machinery::Release;

use crate::catalogue::CATALOGUE;
use crate::extensions::third_party::THIRD_PARTY_GROUP;
use resource::builtin::{Availability, BuiltIn, Key};
use resource::group_version;

/// The name of the stable APIs, which has no effect here.
const STABLE: &str = "api/ga";

/// The names that stand for several APIs.
const SEVERAL: [&str; 4] = ["api/all", "api/alpha", "api/beta", "api/legacy"];

/// The APIs that are enabled.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RuntimeConfig {
    pub release: Release,
    gates: FeatureGates,
    /// The versions of kinds that differ from their default.
    switched: BTreeSet<Key>,
}

impl RuntimeConfig {
    /// Parses `name=true`, `name=false`, or `name` for true. The name of a single API takes precedence over a name for
    /// several, and the name of a resource over that of its version; otherwise the last entry wins. A version whose
    /// feature gate is off is never served. Fails with a one-line message.
    pub fn parse(list: &[String], gates: &FeatureGates) -> Result<RuntimeConfig, String> {
        let mut entries = list.iter().map(|entry| Entry::parse(entry)).collect::<Result<Vec<_>, _>>()?;
        entries.sort_by_key(|entry| (!SEVERAL.contains(&entry.name), version_of(entry.name) != entry.name));
        let mut config =
            RuntimeConfig { release: gates.release(), gates: gates.clone(), switched: BTreeSet::default() };
        for Entry { name, on } in entries {
            for row in CATALOGUE.rows().iter().filter(|row| is_switched_by(row, name)) {
                match row.is_on_by_default() == on {
                    true => config.switched.remove(&row.key()),
                    false => config.switched.insert(row.key()),
                };
            }
        }
        Ok(config)
    }

    /// Whether a version of a kind is served: it is enabled, the release has it, and its feature gate is on.
    pub fn serves(&self, row: &BuiltIn) -> bool {
        let is_on = row.is_on_by_default() != self.switched.contains(&row.key());
        let is_removed = row
            .lifecycle
            .removed
            .and_then(|removed| removed.parse().ok())
            .is_some_and(|removed| self.release >= removed);
        is_on
            && self.release >= row.lifecycle.since
            && !is_removed
            && row.gate.is_none_or(|gate| self.gates.is_on(gate))
    }

    /// Whether ThirdPartyResources are served.
    pub fn third_party_resources(&self) -> bool {
        CATALOGUE.rows().iter().any(|row| row.group == THIRD_PARTY_GROUP && self.serves(row))
    }
}

/// The versions that are served of each built-in kind that is, in the order of discovery.
pub fn served(config: &RuntimeConfig) -> Vec<Vec<&'static BuiltIn>> {
    let of_kind = |versions: &'static [BuiltIn]| versions.iter().filter(|row| config.serves(row)).collect();
    let all = CATALOGUE.rows().chunk_by(PartialEq::eq).map(of_kind);
    all.filter(|versions: &Vec<_>| !versions.is_empty()).collect()
}

/// Whether a name is that of the version or the resource of a kind.
fn names(name: &str, row: &BuiltIn) -> bool {
    let resource = name.strip_prefix(row.api_version).and_then(|rest| rest.strip_prefix('/'));
    name == row.api_version || resource == Some(row.plural)
}

/// Whether a name switches a kind: it names its version, its resource, or several APIs that include it.
fn is_switched_by(row: &BuiltIn, name: &str) -> bool {
    let (is_several, is_legacy) = match row.lifecycle.availability {
        Availability::Never => return false,
        Availability::Default => (false, false),
        Availability::On | Availability::Off => (true, false),
        Availability::Legacy => (true, true),
    };
    match name {
        "api/all" => is_several,
        "api/alpha" => is_several && row.version.contains("alpha"),
        "api/beta" => is_several && row.version.contains("beta"),
        "api/legacy" => is_legacy,
        _ => names(name, row),
    }
}

struct Entry<'a> {
    name: &'a str,
    on: bool,
}

impl<'a> Entry<'a> {
    fn parse(entry: &'a str) -> Result<Entry<'a>, String> {
        let (name, value) = entry.trim().split_once('=').unwrap_or((entry.trim(), "true"));
        let on = match value {
            "true" => true,
            "false" => false,
            other => return Err(format!("{name}={other}: a value is true or false")),
        };
        if name == STABLE || SEVERAL.contains(&name) || is_version(version_of(name)) {
            return Ok(Entry { name, on });
        }
        let group = name.split('/').next().unwrap_or_default();
        let is_known = |row: &BuiltIn| row.group == group && row.lifecycle.availability != Availability::Legacy;
        if !group.is_empty() && CATALOGUE.rows().iter().any(is_known) {
            return Err(format!("group version {} that has not been registered", version_of(name)));
        }
        Err(format!("unknown api groups {group}"))
    }
}

/// The group and version at the beginning of a name; a resource may follow.
fn version_of(name: &str) -> &str {
    name.match_indices('/').nth(1).map_or(name, |(at, _)| &name[..at])
}

fn is_version(name: &str) -> bool {
    let of_group = |version: &str, group: &str| group_version(group, version) == name;
    CATALOGUE.groups().iter().any(|group| group.versions.iter().any(|(version, _)| of_group(version, group.name)))
}

/// Whether a version has kinds that are served by default.
fn is_served_by_default(name: &str) -> bool {
    CATALOGUE.rows().iter().any(|row| row.lifecycle.availability == Availability::Default && row.api_version == name)
}

impl RuntimeConfig {
    /// The names that change nothing although their value is not the default, such as those of APIs that are not
    /// served.
    pub fn without_effect<'a>(list: &'a [String], gates: &FeatureGates) -> Vec<&'a str> {
        let changes = |entry: &Entry<'_>| {
            let served = |on: bool| -> Option<Vec<bool>> {
                let config = RuntimeConfig::parse(&[format!("{}={on}", entry.name)], gates).ok()?;
                Some(CATALOGUE.rows().iter().map(|row| config.serves(row)).collect())
            };
            // the requested value is the default
            let is_default = match entry.on {
                true => entry.name == STABLE || is_served_by_default(version_of(entry.name)),
                false => entry.name == STABLE || is_version(entry.name) && !is_served_by_default(entry.name),
            };
            is_default || served(true) != served(false)
        };
        let entries = list.iter().filter_map(|entry| Entry::parse(entry).ok());
        entries.filter(|entry| !changes(entry)).map(|entry| entry.name).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn enables_apis_by_name() {
        type Want = Result<(bool, bool), &'static str>;
        let cases: [(&str, Want); 13] = [
            ("", Ok((false, false))),
            ("apiextensions.k8s.io/v1beta1=true", Ok((true, false))),
            ("extensions/v1beta1", Ok((false, true))),
            ("extensions/v1beta1=true,apiextensions.k8s.io/v1beta1=true", Ok((true, true))),
            ("extensions/v1beta1=false,api/all=true", Ok((true, false))),
            ("api/legacy=true,api/beta=false", Ok((false, false))),
            ("v1=true,coordination.k8s.io/v1=true,api/ga=true", Ok((false, false))),
            ("admissionregistration.k8s.io/v1beta1=true", Ok((false, false))),
            ("rbac.authorization.k8s.io/v1=false", Ok((false, false))),
            ("api/all=yes", Err("api/all=yes: a value is true or false")),
            ("batch/v7=true", Err("group version batch/v7 that has not been registered")),
            ("boats/v1=true", Err("unknown api groups boats")),
            ("extensions/v1=true", Err("unknown api groups extensions")),
        ];
        for (text, want) in cases {
            let list: Vec<String> = text.split(',').filter(|entry| !entry.is_empty()).map(str::to_owned).collect();
            let got = RuntimeConfig::parse(&list, &FeatureGates::of(Release::V1_35))
                .map(|config| (config.serves(CATALOGUE.beta_definition()), config.third_party_resources()));
            assert_eq!(got, want.map_err(str::to_owned), "{text}");
        }
    }

    #[test]
    fn names_without_effect() {
        let cases = [
            ("api/all=true", ""),
            ("v1=true", ""),
            ("rbac.authorization.k8s.io/v1=false", ""),
            ("lifecycle.k8s.io/v1alpha1=true", "lifecycle.k8s.io/v1alpha1"),
            ("lifecycle.k8s.io/v1alpha1=false", ""),
            ("internal.apiserver.k8s.io/v1alpha1=true", ""),
            ("resource.k8s.io/v1beta2=true", ""),
            ("resource.k8s.io/v1beta2/resourceclaims=true", ""),
            ("api/alpha=true", ""),
            ("api/ga=true", ""),
            ("apiextensions.k8s.io/v1beta1=true", ""),
            ("apps/v1/deployments=false", ""),
            ("apps/v1/deployments=true", ""),
        ];
        for (entry, want) in cases {
            let list = [entry.to_owned()];
            assert_eq!(RuntimeConfig::without_effect(&list, &FeatureGates::default()).join(","), want, "{entry}");
        }
    }

    /// Whether none of the versions of a kind is always served, so that they are switched one by one.
    fn is_single(row: &BuiltIn) -> bool {
        let is_switched =
            |version: &BuiltIn| matches!(version.lifecycle.availability, Availability::On | Availability::Off);
        CATALOGUE.rows().iter().filter(|version| *version == row).all(is_switched)
    }

    #[test]
    fn optional_kinds_are_switched_on() {
        let on = |text: &str| -> String {
            let list: Vec<String> = text.split(',').filter(|entry| !entry.is_empty()).map(str::to_owned).collect();
            let config = RuntimeConfig::parse(&list, &FeatureGates::default()).unwrap();
            let all = CATALOGUE.rows().iter().filter(|row| is_single(row) && config.serves(row));
            all.map(|row| format!("{} {}", row.version, row.plural)).collect::<Vec<_>>().join(", ")
        };
        const STABLE: &str =
            "v1 mutatingadmissionpolicies, v1 mutatingadmissionpolicybindings, v1 storageversionmigrations";
        const NONE: &str = "storagemigration.k8s.io/v1=false,admissionregistration.k8s.io/v1=false";
        let cases = [("", STABLE), (NONE, "")];
        for (text, want) in cases {
            assert_eq!(on(text), want, "{text}");
        }
        let beta = "v1beta1 mutatingadmissionpolicies, v1beta1 mutatingadmissionpolicybindings, v1beta1 leasecandidates, v1beta1 storageversionmigrations";
        let alpha = "v1alpha1 mutatingadmissionpolicies, v1alpha1 mutatingadmissionpolicybindings, v1alpha2 leasecandidates, v1alpha3 resourcepoolstatusrequests, v1alpha1 storageversions";
        let cases = [
            ("api/beta", beta),
            ("api/alpha=true", alpha),
            ("admissionregistration.k8s.io/v1alpha1/mutatingadmissionpolicies", "v1alpha1 mutatingadmissionpolicies"),
            ("coordination.k8s.io/v1alpha2", "v1alpha2 leasecandidates"),
            (
                "api/all,admissionregistration.k8s.io/v1beta1=false,admissionregistration.k8s.io/v1alpha1=false,storagemigration.k8s.io/v1beta1=false,resource.k8s.io/v1alpha3=false,internal.apiserver.k8s.io/v1alpha1/storageversions=false",
                "v1beta1 leasecandidates, v1alpha2 leasecandidates",
            ),
        ];
        for (text, want) in cases {
            assert_eq!(on(&format!("{text},{NONE}")), want, "{text}");
        }
    }

    #[test]
    fn versions_of_kinds_are_switched_on() {
        let cases = [
            ("", 0),
            ("resource.k8s.io/v1beta2", 5),
            ("resource.k8s.io/v1beta2/resourceclaims", 1),
            ("resource.k8s.io/v1beta2/resourceclaims=false,resource.k8s.io/v1beta2", 4),
            ("resource.k8s.io/v1beta2=false,api/beta", 6),
            ("certificates.k8s.io/v1beta1", 2),
            ("resource.k8s.io/v1beta1", 4),
        ];
        for (text, want) in cases {
            let list: Vec<String> = text.split(',').filter(|entry| !entry.is_empty()).map(str::to_owned).collect();
            let config = RuntimeConfig::parse(&list, &FeatureGates::default()).unwrap();
            let older = CATALOGUE
                .rows()
                .iter()
                .filter(|row| row.lifecycle.availability == Availability::Off && !is_single(row));
            assert_eq!(older.filter(|row| config.serves(row)).count(), want, "{text}");
        }
    }

    #[test]
    fn kinds_are_switched_off() {
        let cases = [
            ("", "apps/v1/deployments batch/v1/jobs autoscaling/v1/horizontalpodautoscalers"),
            ("batch/v1=false", "apps/v1/deployments autoscaling/v1/horizontalpodautoscalers"),
            ("apps/v1/deployments=false,autoscaling/v1=false", "batch/v1/jobs"),
            (
                "batch/v1/jobs=true,batch/v1=false,apps/v1=false",
                "batch/v1/jobs autoscaling/v1/horizontalpodautoscalers",
            ),
        ];
        for (text, want) in cases {
            let list: Vec<String> = text.split(',').filter(|entry| !entry.is_empty()).map(str::to_owned).collect();
            let config = RuntimeConfig::parse(&list, &FeatureGates::default()).unwrap();
            let is_on = |name: &&str| CATALOGUE.rows().iter().any(|row| names(name, row) && config.serves(row));
            let all = ["apps/v1/deployments", "batch/v1/jobs", "autoscaling/v1/horizontalpodautoscalers"];
            assert_eq!(all.into_iter().filter(is_on).collect::<Vec<_>>().join(" "), want, "{text}");
        }
    }

    #[test]
    fn kinds_of_other_releases_are_not_served() {
        let served = |release: Release, text: &str, gate: &str| -> String {
            let gates = FeatureGates::parse(&[gate.to_owned()], release).unwrap();
            let config = RuntimeConfig::parse(&[text.to_owned()], &gates).unwrap();
            let versions = served(&config).into_iter().flatten();
            let wanted = ["devicetaintrules", "clustertrustbundles", "ipaddresses", "resourcepoolstatusrequests"];
            let found = versions.filter(|row| wanted.contains(&row.plural));
            found.map(|row| format!("{} {}", row.version, row.plural)).collect::<Vec<_>>().join(", ")
        };
        const TRUST: &str = "ClusterTrustBundle=true";
        let cases = [
            (Release::V1_35, "v1=true", TRUST, "v1 ipaddresses"),
            (Release::V1_35, "api/beta=true", "AllAlpha=false", "v1 ipaddresses, v1beta1 ipaddresses"),
            (Release::V1_35, "certificates.k8s.io/v1beta1", TRUST, "v1beta1 clustertrustbundles, v1 ipaddresses"),
            (Release::V1_36, "certificates.k8s.io/v1alpha1", TRUST, "v1alpha1 clustertrustbundles, v1 ipaddresses"),
            (Release::V1_36, "resource.k8s.io/v1beta2=true", TRUST, "v1 ipaddresses, v1beta2 devicetaintrules"),
            (
                Release::V1_36,
                "resource.k8s.io/v1alpha3=true",
                TRUST,
                "v1 ipaddresses, v1alpha3 devicetaintrules, v1alpha3 resourcepoolstatusrequests",
            ),
            (
                Release::V1_37,
                "networking.k8s.io/v1beta1",
                TRUST,
                "v1 clustertrustbundles, v1 ipaddresses, v1 devicetaintrules",
            ),
            (Release::V1_37, "v1=true", "ClusterTrustBundle=false", "v1 ipaddresses, v1 devicetaintrules"),
        ];
        for (release, text, gate, want) in cases {
            assert_eq!(served(release, text, gate), want, "{release:?} {text} {gate}");
        }
    }

    #[test]
    fn versions_follow_the_release_and_the_gates() {
        let on = |text: &str, gates: &str, release: Release| -> String {
            let split = |text: &str| -> Vec<String> {
                text.split(',').filter(|entry| !entry.is_empty()).map(str::to_owned).collect()
            };
            let gates = FeatureGates::parse(&split(gates), release).unwrap();
            let config = RuntimeConfig::parse(&split(text), &gates).unwrap();
            let groups = ["storagemigration.k8s.io", "admissionregistration.k8s.io"];
            let of_groups = CATALOGUE.rows().iter().filter(|row| groups.contains(&row.group) && is_single(row));
            let shown: Vec<&str> = of_groups.filter(|row| config.serves(row)).map(|row| row.version).collect();
            shown.join(",")
        };
        let cases = [
            ("", "", Release::V1_37, "v1,v1,v1"),
            ("", "MutatingAdmissionPolicy=false", Release::V1_36, "v1,v1"),
            ("", "", Release::V1_36, "v1,v1"),
            ("", "MutatingAdmissionPolicy=true", Release::V1_35, ""),
            ("admissionregistration.k8s.io/v1beta1=true", "", Release::V1_35, "v1beta1,v1beta1"),
            ("storagemigration.k8s.io/v1beta1=true", "", Release::V1_36, "v1,v1"),
            ("storagemigration.k8s.io/v1beta1=true", "StorageVersionMigrator=true", Release::V1_36, "v1,v1,v1beta1"),
            ("api/beta=true", "", Release::V1_37, "v1,v1beta1,v1,v1beta1,v1,v1beta1"),
            ("storagemigration.k8s.io/v1=false", "", Release::V1_37, "v1,v1"),
            ("api/legacy=true", "", Release::V1_37, "v1,v1,v1"),
        ];
        for (text, gates, release, want) in cases {
            assert_eq!(on(text, gates, release), want, "{text} {gates} {release:?}");
        }
    }
}
