//! Optional APIs: `--runtime-config` of kube-apiserver.
//!
//! They are disabled by default: kube-apiserver has removed them, or has them as beta APIs.

use machinery::Release;

use super::{group_version, kinds};

/// Accepted names without effect here.
const FIXED: [&str; 2] = ["api/alpha", "api/ga"];

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
}

impl RuntimeConfig {
    /// Parses `name=true`, `name=false`, or `name` for true. A name of one API takes precedence over a name of several;
    /// otherwise the last one wins. The error is one line.
    pub fn parse(list: &[String], release: Release) -> Result<RuntimeConfig, String> {
        let mut entries = list.iter().map(|entry| Entry::parse(entry)).collect::<Result<Vec<_>, _>>()?;
        entries.sort_by_key(|entry| !ALL.contains(&entry.name));
        let migrations = release >= Release::V1_37;
        let mut config = RuntimeConfig { release, migrations, ..RuntimeConfig::default() };
        for Entry { name, on } in entries {
            let meant = SWITCHES.iter().filter(|switch| switch.name == name || switch.among.contains(&name));
            meant.for_each(|switch| (switch.set)(&mut config, on));
        }
        Ok(config)
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
        let always =
            FIXED.contains(&name) || kinds().any(|built_in| group_version(built_in.group, built_in.version) == name);
        if always && !on {
            return Err(format!("{name}=false: it can't be switched off"));
        }
        let known: Vec<&str> = SWITCHES.iter().map(|switch| switch.name).chain(ALL).collect();
        if !always && !known.contains(&name) {
            let known = known.join(", ");
            return Err(format!("{name:?} is not known; what can be switched on is: {known}"));
        }
        Ok(Entry { name, on })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn enables_apis_by_name() {
        type Want = Result<(bool, bool), &'static str>;
        let cases: [(&str, Want); 11] = [
            ("", Ok((false, false))),
            ("apiextensions.k8s.io/v1beta1=true", Ok((true, false))),
            ("extensions/v1beta1", Ok((false, true))),
            ("extensions/v1beta1=true,apiextensions.k8s.io/v1beta1=true", Ok((true, true))),
            ("extensions/v1beta1=false,api/all=true", Ok((true, false))),
            ("api/legacy=true,api/beta=false", Ok((false, false))),
            ("v1=true,coordination.k8s.io/v1=true,api/ga=true", Ok((false, false))),
            ("admissionregistration.k8s.io/v1beta1=true", Ok((false, false))),
            ("rbac.authorization.k8s.io/v1=false", Err("rbac.authorization.k8s.io/v1=false: it can't be switched off")),
            ("api/all=yes", Err("api/all=yes: a value is true or false")),
            (
                "batch/v7=true",
                Err(
                    "\"batch/v7\" is not known; what can be switched on is: admissionregistration.k8s.io/v1beta1, apiextensions.k8s.io/v1beta1, extensions/v1beta1, storagemigration.k8s.io/v1beta1, storagemigration.k8s.io/v1, api/all, api/beta, api/legacy",
                ),
            ),
        ];
        for (text, want) in cases {
            let list: Vec<String> = text.split(',').filter(|entry| !entry.is_empty()).map(str::to_owned).collect();
            let got =
                RuntimeConfig::parse(&list, Release::V1_35).map(|c| (c.beta_definitions, c.third_party_resources));
            assert_eq!(got, want.map_err(str::to_owned), "{text}");
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
