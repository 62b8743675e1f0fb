//! Optional APIs: `--runtime-config` of kube-apiserver.
//!
//! They are disabled by default: kube-apiserver has removed them, or has them as beta APIs.

use machinery::Release;

use super::{BuiltIn, autoscaling, group_version, kinds, optional, unstable};

/// Accepted names without effect here.
const FIXED: [&str; 2] = ["api/alpha", "api/ga"];

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

const ALL: [&str; 3] = ["api/all", "api/beta", "api/legacy"];

static SWITCHES: [Switch; 5] = [
    // MutatingAdmissionPolicies in v1beta1, since 1.34
    Switch {
        name: "admissionregistration.k8s.io/v1beta1",
        among: &["api/all", "api/beta"],
        set: |config, on| config.beta_mutating_policies = on,
    },
    // CRDs in v1beta1, 1.7 to 1.21
    Switch { name: "apiextensions.k8s.io/v1beta1", among: &ALL, set: |config, on| config.beta_definitions = on },
    // ThirdPartyResources, 1.1 to 1.7
    Switch { name: "extensions/v1beta1", among: &ALL, set: |config, on| config.third_party_resources = on },
    // StorageVersionMigrations, since 1.35 and since 1.37
    Switch {
        name: "storagemigration.k8s.io/v1beta1",
        among: &["api/all", "api/beta"],
        set: |config, on| config.beta_migrations = on,
    },
    Switch { name: "storagemigration.k8s.io/v1", among: &["api/all"], set: |config, on| config.migrations = on },
];

/// The optional APIs that are enabled.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RuntimeConfig {
    pub release: Release,
    /// `apiextensions.k8s.io/v1beta1`.
    pub beta_definitions: bool,
    /// `extensions/v1beta1`.
    pub third_party_resources: bool,
    /// `storagemigration.k8s.io/v1beta1`.
    pub beta_migrations: bool,
    /// `storagemigration.k8s.io/v1`.
    pub migrations: bool,
    /// `mutatingadmissionpolicies`, by their feature gate.
    pub mutating_policies: bool,
    /// `admissionregistration.k8s.io/v1beta1`.
    pub beta_mutating_policies: bool,
    /// The versions of [`unstable::VERSIONS`] that are on: a bit for each.
    unstable: u8,
    /// The rows of [`optional::rows`] that are on: a bit for each.
    optional: u8,
    /// The kinds that are switched off: a bit for each of [`switchable`].
    off: u128,
}

/// The kinds that are served by default and can be switched off.
fn switchable() -> impl Iterator<Item = &'static BuiltIn> {
    kinds().chain([autoscaling::v1()])
}

impl RuntimeConfig {
    /// Parses `name=true`, `name=false`, or `name` for true. A name of one API takes precedence over a name of several;
    /// otherwise the last one wins. The error is one line.
    pub fn parse(list: &[String], release: Release) -> Result<RuntimeConfig, String> {
        let mut entries = list.iter().map(|entry| Entry::parse(entry)).collect::<Result<Vec<_>, _>>()?;
        entries.sort_by_key(|entry| !ALL.iter().chain(&FIXED).any(|name| *name == entry.name));
        let migrations = release >= Release::V1_37;
        let mut config = RuntimeConfig { release, migrations, ..RuntimeConfig::default() };
        for &Entry { name, on } in &entries {
            let meant = SWITCHES.iter().filter(|switch| switch.name == name || switch.among.contains(&name));
            meant.for_each(|switch| (switch.set)(&mut config, on));
            for (bit, version) in unstable::VERSIONS.iter().enumerate() {
                if version.name == name || version.among.contains(&name) {
                    config.unstable = config.unstable & !(1 << bit) | u8::from(on) << bit;
                }
            }
        }
        for (bit, row) in optional::rows().enumerate() {
            let mut meant: Vec<&Entry<'_>> =
                entries.iter().filter(|entry| optional::is_meant(entry.name, row)).collect();
            meant.sort_by_key(|entry| entry.name.matches('/').count());
            config.optional |= u8::from(meant.last().is_some_and(|entry| entry.on)) << bit;
        }
        // what names a resource counts more than what names its version
        let mut named: Vec<&Entry<'_>> = entries.iter().filter(|entry| is_always_served(entry.name)).collect();
        named.sort_by_key(|entry| version_of(entry.name) != entry.name);
        for entry in named {
            for (bit, _) in switchable().enumerate().filter(|(_, row)| names(entry.name, row)) {
                config.off = config.off & !(1 << bit) | u128::from(!entry.on) << bit;
            }
        }
        Ok(config)
    }

    /// Whether a version of [`unstable::VERSIONS`] is on, given its place.
    pub fn serves_unstable(&self, place: usize) -> bool {
        self.unstable >> place & 1 == 1
    }

    /// Whether a row of [`optional::rows`] is on, given its place.
    pub fn is_on(&self, place: usize) -> bool {
        self.optional >> place & 1 == 1
    }

    /// Whether a kind that is served by default is still on.
    pub fn serves(&self, row: &BuiltIn) -> bool {
        let is_same =
            |known: &BuiltIn| (known.group, known.version, known.plural) == (row.group, row.version, row.plural);
        switchable().position(is_same).is_none_or(|bit| self.off >> bit & 1 == 0)
    }
}

/// Whether the name of a version or a resource is that of a kind.
fn names(name: &str, row: &BuiltIn) -> bool {
    let version = group_version(row.group, row.version);
    let resource = name.strip_prefix(version.as_str()).and_then(|rest| rest.strip_prefix('/'));
    name == version.as_str() || resource == Some(row.plural)
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
        let known = SWITCHES.iter().map(|switch| switch.name).chain(ALL).chain(FIXED).any(|known| known == name);
        if known || is_always_served(name) || OFF_BY_DEFAULT.contains(&version_of(name)) {
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
    pub fn without_effect(list: &[String], release: Release) -> Vec<&str> {
        let changes = |entry: &Entry<'_>| {
            let config = |on: bool| RuntimeConfig::parse(&[format!("{}={on}", entry.name)], release).ok();
            // what is asked for is the default
            let holds = FIXED.contains(&entry.name) || (is_always_served(entry.name) && entry.on);
            let is_off = !entry.on && OFF_BY_DEFAULT.contains(&entry.name);
            holds || is_off || config(true) != config(false)
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
            let got =
                RuntimeConfig::parse(&list, Release::V1_35).map(|c| (c.beta_definitions, c.third_party_resources));
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
            ("apiextensions.k8s.io/v1beta1=true", ""),
            ("apps/v1/deployments=false", ""),
            ("apps/v1/deployments=true", ""),
        ];
        for (entry, want) in cases {
            let list = [entry.to_owned()];
            assert_eq!(RuntimeConfig::without_effect(&list, Release::NEWEST).join(","), want, "{entry}");
        }
    }

    #[test]
    fn optional_kinds_are_off_by_default() {
        let on = |text: &str| -> String {
            let list: Vec<String> = text.split(',').filter(|entry| !entry.is_empty()).map(str::to_owned).collect();
            let config = RuntimeConfig::parse(&list, Release::NEWEST).unwrap();
            let all = optional::served(Release::NEWEST, |place| config.is_on(place))
                .flat_map(|(first, others)| std::iter::once(first).chain(others));
            all.map(|row| format!("{} {}", row.version, row.plural)).collect::<Vec<_>>().join(", ")
        };
        let alpha = "v1alpha2 leasecandidates, v1alpha3 resourcepoolstatusrequests, v1alpha1 storageversions";
        let cases = [
            ("", ""),
            ("api/beta", "v1beta1 leasecandidates"),
            ("api/alpha=true", alpha),
            ("coordination.k8s.io/v1alpha2", "v1alpha2 leasecandidates"),
            (
                "coordination.k8s.io/v1beta1,coordination.k8s.io/v1alpha2",
                "v1beta1 leasecandidates, v1alpha2 leasecandidates",
            ),
            (
                "api/all,resource.k8s.io/v1alpha3=false,internal.apiserver.k8s.io/v1alpha1/storageversions=false",
                "v1beta1 leasecandidates, v1alpha2 leasecandidates",
            ),
        ];
        for (text, want) in cases {
            assert_eq!(on(text), want, "{text}");
        }
    }

    #[test]
    fn kinds_are_switched_off() {
        assert!(switchable().count() < 128, "a bit for each");
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
            let config = RuntimeConfig::parse(&list, Release::NEWEST).unwrap();
            let is_on = |name: &&str| switchable().any(|row| names(name, row) && config.serves(row));
            let all = ["apps/v1/deployments", "batch/v1/jobs", "autoscaling/v1/horizontalpodautoscalers"];
            assert_eq!(all.into_iter().filter(is_on).collect::<Vec<_>>().join(" "), want, "{text}");
        }
    }

    #[test]
    fn enables_migrations_by_version() {
        let cases = [
            ("storagemigration.k8s.io/v1beta1=true", (true, false)),
            ("storagemigration.k8s.io/v1=true", (false, true)),
            ("api/all=true", (true, true)),
            ("api/beta=true,storagemigration.k8s.io/v1", (true, true)),
            ("api/legacy=true", (false, false)),
        ];
        for (text, want) in cases {
            let list: Vec<String> = text.split(',').map(str::to_owned).collect();
            let config = RuntimeConfig::parse(&list, Release::V1_36).unwrap();
            assert_eq!((config.beta_migrations, config.migrations), want, "{text}");
        }
        assert!(RuntimeConfig::parse(&[], Release::V1_37).unwrap().migrations);
        let off = ["storagemigration.k8s.io/v1=false".to_owned()];
        assert!(!RuntimeConfig::parse(&off, Release::V1_37).unwrap().migrations);
    }
}
