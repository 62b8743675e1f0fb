//! Optional APIs: `--runtime-config` of kube-apiserver.
//!
//! They are disabled by default: kube-apiserver has removed them, or has them as beta APIs.

use base::request::FeatureGates;
use machinery::Release;

use super::{BuiltIn, autoscaling, group_version, kinds, optional, unstable};

/// The name of the stable APIs, which has no effect here.
const STABLE: &str = "api/ga";

/// The names of several APIs.
const SEVERAL: [&str; 4] = ["api/all", "api/alpha", "api/beta", "api/legacy"];

/// The versions of kube-apiserver that are off by default.
const OFF_BY_DEFAULT: [&str; 18] = [
    "admissionregistration.k8s.io/v1alpha1",
    "admissionregistration.k8s.io/v1beta1",
    "authentication.k8s.io/v1alpha1",
    "authentication.k8s.io/v1beta1",
    "certificates.k8s.io/v1alpha1",
    "certificates.k8s.io/v1beta1",
    "coordination.k8s.io/v1alpha2",
    "coordination.k8s.io/v1beta1",
    "internal.apiserver.k8s.io/v1alpha1",
    "lifecycle.k8s.io/v1alpha1",
    "networking.k8s.io/v1beta1",
    "resource.k8s.io/v1alpha3",
    "resource.k8s.io/v1beta1",
    "resource.k8s.io/v1beta2",
    "scheduling.k8s.io/v1alpha3",
    "scheduling.k8s.io/v1beta1",
    "storage.k8s.io/v1beta1",
    "storagemigration.k8s.io/v1beta1",
];

/// An API that is served if it is enabled.
struct Switch {
    name: &'static str,
    /// Names of several APIs that include this one; the others are always served here, or never.
    among: &'static [&'static str],
    set: fn(&mut RuntimeConfig, bool),
}

/// The names that include the APIs that kube-apiserver has removed.
const REMOVED: [&str; 3] = ["api/all", "api/beta", "api/legacy"];

static SWITCHES: [Switch; 2] = [
    // CRDs in v1beta1, 1.7 to 1.21
    Switch { name: "apiextensions.k8s.io/v1beta1", among: &REMOVED, set: |config, on| config.beta_definitions = on },
    // ThirdPartyResources, 1.1 to 1.7
    Switch { name: "extensions/v1beta1", among: &REMOVED, set: |config, on| config.third_party_resources = on },
];

/// The optional APIs that are enabled.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RuntimeConfig {
    pub release: Release,
    /// `apiextensions.k8s.io/v1beta1`.
    pub beta_definitions: bool,
    /// `extensions/v1beta1`.
    pub third_party_resources: bool,
    gates: FeatureGates,
    /// The kinds that are switched on: a bit for each of [`optional_rows`].
    on: u64,
    /// The kinds that are switched off: a bit for each of [`switchable`].
    off: u128,
}

/// The kinds that are served by default and can be switched off.
fn switchable() -> impl Iterator<Item = &'static BuiltIn> {
    kinds().chain([autoscaling::v1()])
}

/// The kinds, and the versions of kinds, that have to be switched on, unless they are on by default.
fn optional_rows() -> impl Iterator<Item = &'static BuiltIn> {
    unstable::rows().iter().chain(optional::rows())
}

/// The place of a row.
fn place_of(mut rows: impl Iterator<Item = &'static BuiltIn>, row: &BuiltIn) -> Option<usize> {
    rows.position(|known| (known.group, known.version, known.plural) == (row.group, row.version, row.plural))
}

impl RuntimeConfig {
    /// Parses `name=true`, `name=false`, or `name` for true. A name of one API takes precedence over a name of several;
    /// otherwise the last one wins. Versions whose feature gate is off are not served in any case. The error is one line.
    pub fn parse(list: &[String], gates: &FeatureGates) -> Result<RuntimeConfig, String> {
        let mut entries = list.iter().map(|entry| Entry::parse(entry)).collect::<Result<Vec<_>, _>>()?;
        entries.sort_by_key(|entry| !SEVERAL.contains(&entry.name));
        let mut config = RuntimeConfig::of(gates);
        for &Entry { name, on } in &entries {
            let meant = SWITCHES.iter().filter(|switch| switch.name == name || switch.among.contains(&name));
            meant.for_each(|switch| (switch.set)(&mut config, on));
        }
        // the name of a resource counts more than that of its version
        entries.sort_by_key(|entry| version_of(entry.name) != entry.name);
        for &Entry { name, on } in &entries {
            for (bit, _) in switchable().enumerate().filter(|(_, row)| names(name, row)) {
                config.off = config.off & !(1 << bit) | u128::from(!on) << bit;
            }
            for (bit, _) in optional_rows().enumerate().filter(|(_, row)| includes(name, row)) {
                config.on = config.on & !(1 << bit) | u64::from(on) << bit;
            }
        }
        Ok(config)
    }

    /// The defaults.
    fn of(gates: &FeatureGates) -> RuntimeConfig {
        let release = gates.release();
        let bits = optional_rows().enumerate().filter(|(_, row)| row.on_by_default);
        let on = bits.fold(0, |on, (bit, _)| on | 1 << bit);
        RuntimeConfig { release, gates: gates.clone(), on, ..RuntimeConfig::default() }
    }

    /// Whether a kind, or a version of one, that has to be switched on is on.
    pub fn enables(&self, row: &BuiltIn) -> bool {
        self.has(row) && place_of(optional_rows(), row).is_some_and(|bit| self.on >> bit & 1 == 1)
    }

    /// Whether a kind that is served by default is still on.
    pub fn serves(&self, row: &BuiltIn) -> bool {
        self.has(row) && place_of(switchable(), row).is_none_or(|bit| self.off >> bit & 1 == 0)
    }

    /// Whether a release has a version, and its feature gate is on.
    fn has(&self, row: &BuiltIn) -> bool {
        let is_removed = row.removed_release.parse().is_ok_and(|removed: Release| self.release >= removed);
        self.release >= row.since && !is_removed && (row.gate.is_empty() || self.gates.is_on(row.gate))
    }
}

/// Whether the name of a version or a resource is that of a kind.
fn names(name: &str, row: &BuiltIn) -> bool {
    let version = group_version(row.group, row.version);
    let resource = name.strip_prefix(version.as_str()).and_then(|rest| rest.strip_prefix('/'));
    name == version.as_str() || resource == Some(row.plural)
}

/// Whether a name includes a kind that is off by default: that of its version, of its resource, or of several APIs.
fn includes(name: &str, row: &BuiltIn) -> bool {
    match name {
        "api/all" => true,
        "api/alpha" => row.version.contains("alpha"),
        "api/beta" => row.version.contains("beta"),
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
        let known = SWITCHES.iter().map(|switch| switch.name).chain(SEVERAL).chain([STABLE]).any(|known| known == name);
        let is_optional =
            || optional_rows().any(|row| names(name, row) || group_version(row.group, row.version) == version_of(name));
        if known || is_always_served(name) || OFF_BY_DEFAULT.contains(&version_of(name)) || is_optional() {
            return Ok(Entry { name, on });
        }
        let group = name.split('/').next().unwrap_or_default();
        let is_group = |version: &str| version.split_once('/').is_some_and(|(known, _)| known == group);
        let served = || kinds().map(|built_in| group_version(built_in.group, built_in.version));
        if OFF_BY_DEFAULT.iter().any(|version| is_group(version)) || served().any(|version| is_group(&version)) {
            return Err(format!("group version {} that has not been registered", version_of(name)));
        }
        Err(format!("unknown api groups {group}"))
    }
}

/// The group and version of a name, which may be followed by a resource.
fn version_of(name: &str) -> &str {
    name.match_indices('/').nth(1).map_or(name, |(at, _)| &name[..at])
}

fn is_always_served(name: &str) -> bool {
    switchable().any(|built_in| group_version(built_in.group, built_in.version) == version_of(name))
}

impl RuntimeConfig {
    /// The names that change nothing: those of APIs that are as named anyway, and of APIs that are not served.
    pub fn without_effect<'a>(list: &'a [String], gates: &FeatureGates) -> Vec<&'a str> {
        let changes = |entry: &Entry<'_>| {
            let served = |on: bool| {
                RuntimeConfig::parse(&[format!("{}={on}", entry.name)], gates).ok().map(|config| config.served())
            };
            // the requested value is the default
            let holds = entry.name == STABLE || (is_always_served(entry.name) && entry.on);
            let is_off = !entry.on && OFF_BY_DEFAULT.contains(&entry.name);
            holds || is_off || served(true) != served(false)
        };
        let entries = list.iter().filter_map(|entry| Entry::parse(entry).ok());
        entries.filter(|entry| !changes(entry)).map(|entry| entry.name).collect()
    }

    /// What is served of all that can be switched.
    fn served(&self) -> (bool, bool, Vec<bool>) {
        let rows = optional_rows().map(|row| self.enables(row)).chain(switchable().map(|row| self.serves(row)));
        (self.beta_definitions, self.third_party_resources, rows.collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn enables_apis_by_name() {
        type Want = Result<(bool, bool), &'static str>;
        let cases: [(&str, Want); 12] = [
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
        ];
        for (text, want) in cases {
            let list: Vec<String> = text.split(',').filter(|entry| !entry.is_empty()).map(str::to_owned).collect();
            let got = RuntimeConfig::parse(&list, &FeatureGates::of(Release::V1_35))
                .map(|c| (c.beta_definitions, c.third_party_resources));
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

    #[test]
    fn optional_kinds_are_optional_rows() {
        let on = |text: &str| -> String {
            let list: Vec<String> = text.split(',').filter(|entry| !entry.is_empty()).map(str::to_owned).collect();
            let config = RuntimeConfig::parse(&list, &FeatureGates::default()).unwrap();
            let all = optional::rows().filter(|row| config.enables(row));
            all.map(|row| format!("{} {}", row.version, row.plural)).collect::<Vec<_>>().join(", ")
        };
        const STABLE: &str =
            "v1 mutatingadmissionpolicies, v1 mutatingadmissionpolicybindings, v1 storageversionmigrations";
        const NONE: &str = "storagemigration.k8s.io/v1=false,admissionregistration.k8s.io/v1=false";
        let cases = [("", STABLE), (NONE, "")];
        for (text, want) in cases {
            assert_eq!(on(text), want, "{text}");
        }
        let beta = "v1beta1 mutatingadmissionpolicies, v1beta1 mutatingadmissionpolicybindings, v1beta1 storageversionmigrations, v1beta1 leasecandidates";
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
            assert_eq!(unstable::rows().iter().filter(|row| config.enables(row)).count(), want, "{text}");
        }
    }

    #[test]
    fn kinds_are_switched_off() {
        assert!(switchable().count() < 128 && optional_rows().count() < 64, "a bit for each");
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
            let is_on = |name: &&str| switchable().any(|row| names(name, row) && config.serves(row));
            let all = ["apps/v1/deployments", "batch/v1/jobs", "autoscaling/v1/horizontalpodautoscalers"];
            assert_eq!(all.into_iter().filter(is_on).collect::<Vec<_>>().join(" "), want, "{text}");
        }
    }

    #[test]
    fn kinds_of_other_releases_are_not_served() {
        let served = |release: Release, text: &str, gate: &str| -> String {
            let gates = FeatureGates::parse(&[gate.to_owned()], release).unwrap();
            let config = RuntimeConfig::parse(&[text.to_owned()], &gates).unwrap();
            let versions = super::super::served::served(&config).into_iter().flatten();
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
            let rows = optional::rows().filter(|row| groups.contains(&row.group) && config.enables(row));
            let shown: Vec<&str> = rows.map(|row| row.version).collect();
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
            ("api/beta=true", "", Release::V1_37, "v1,v1beta1,v1,v1beta1,v1beta1,v1"),
            ("storagemigration.k8s.io/v1=false", "", Release::V1_37, "v1,v1"),
            ("api/legacy=true", "", Release::V1_37, "v1,v1,v1"),
        ];
        for (text, gates, release, want) in cases {
            assert_eq!(on(text, gates, release), want, "{text} {gates} {release:?}");
        }
    }
}
