//! PodSecurityConfiguration: the defaults of namespaces without labels, and the exemptions.

use base::configuration::{ConfigurationKind, UnknownFields};
use machinery::Value;

use super::policy::{LevelVersion, SecurityPolicy, parse_level, parse_version};

const KIND: ConfigurationKind = ConfigurationKind {
    api_versions: &[
        "pod-security.admission.config.k8s.io/v1",
        "pod-security.admission.config.k8s.io/v1beta1",
        "pod-security.admission.config.k8s.io/v1alpha1",
    ],
    go: "podsecurity_config.v1.PodSecurityConfiguration",
    unknown_fields: UnknownFields::Refused,
};

#[derive(Clone, Debug, Default)]
pub struct PodSecurity {
    pub(super) defaults: SecurityPolicy,
    namespaces: Vec<String>,
    users: Vec<String>,
    runtime_classes: Vec<String>,
}

impl PodSecurity {
    /// Reads a PodSecurityConfiguration. Fails with a one-line message.
    pub fn parse(value: &Value) -> Result<PodSecurity, String> {
        let value = &KIND.read(value)?;
        let mode = |mode: &str| -> Result<LevelVersion, String> {
            let field = |name: &str| Some(value.str_at(&["defaults", name])).filter(|text| !text.is_empty());
            let wrong = |name: &str, why: &str| format!("defaults.{name}: {why}");
            let level = parse_level(field(mode).unwrap_or("privileged")).map_err(|why| wrong(mode, why))?;
            let name = format!("{mode}-version");
            let version = parse_version(field(&name).unwrap_or("latest")).map_err(|why| wrong(&name, why))?;
            Ok(LevelVersion { level, version })
        };
        let texts = |field: &str| value.texts_at(&["exemptions", field]).map(str::to_owned).collect();
        Ok(PodSecurity {
            defaults: SecurityPolicy { enforce: mode("enforce")?, audit: mode("audit")?, warn: mode("warn")? },
            namespaces: texts("namespaces"),
            users: texts("usernames"),
            runtime_classes: texts("runtimeClasses"),
        })
    }

    pub(super) fn exempts_namespace(&self, name: &str) -> bool {
        self.namespaces.iter().any(|exempt| exempt == name)
    }

    pub(super) fn exempts_user(&self, name: &str) -> bool {
        self.users.iter().any(|exempt| exempt == name)
    }

    pub(super) fn exempts_runtime_class(&self, name: &str) -> bool {
        self.runtime_classes.iter().any(|exempt| exempt == name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use machinery::json;

    #[test]
    fn configurations_have_defaults_and_exemptions() {
        let of = |defaults: Value| {
            json!({"apiVersion": "pod-security.admission.config.k8s.io/v1", "kind": "PodSecurityConfiguration",
                "defaults": defaults, "exemptions": {"namespaces": ["a"], "usernames": ["u"]}})
        };
        let read = PodSecurity::parse(&of(json!({"enforce": "baseline", "enforce-version": "v1.30"}))).unwrap();
        assert_eq!(read.defaults.enforce.to_string(), "baseline:v1.30");
        assert_eq!(read.defaults.warn, LevelVersion::PRIVILEGED);
        assert!(read.exempts_namespace("a") && read.exempts_user("u") && !read.exempts_runtime_class("a"));
        let wrong = PodSecurity::parse(&of(json!({"audit": "most"}))).unwrap_err();
        assert_eq!(wrong, "defaults.audit: must be one of privileged, baseline, restricted");
        assert!(PodSecurity::parse(&json!({"kind": "Boat"})).is_err());
    }
}
