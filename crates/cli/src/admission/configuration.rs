//! The file of `--admission-control-config-file`.

use std::collections::HashSet;
use std::path::Path;

use base::configuration::{ConfigurationKind, UnknownFields};
use client::{Context as _, Result, fail};
use machinery::Value;
use machinery::field::{FieldError, FieldPath};
use machinery::value::quote;
use server::{EnabledPlugins, Feature, FeatureGates, ManifestPlugin, PodSecurity};

use crate::files::read_yaml;

const KIND: ConfigurationKind = ConfigurationKind {
    api_versions: &["apiserver.config.k8s.io/v1", "apiserver.k8s.io/v1alpha1"],
    go: "apiserver_config.v1.AdmissionConfiguration",
    unknown_fields: UnknownFields::Dropped,
};
const POD_SECURITY: &str = "PodSecurity";
const DIRECTORY: &str = "staticManifestsDir";
const KUBECONFIG: &str = "kubeConfigFile";

#[derive(Debug, Default)]
pub struct PluginConfigurations {
    pub pod_security: PodSecurity,
    pub directories: Vec<(ManifestPlugin, String)>,
    /// The plugins whose configuration has no effect.
    pub without_effect: Vec<String>,
}

impl PluginConfigurations {
    /// Reads an AdmissionConfiguration. The configuration of a plugin that does not run is not checked.
    pub fn read(path: &Path, enabled: &EnabledPlugins, gates: &FeatureGates) -> Result<PluginConfigurations> {
        let file = KIND.read(&read_yaml(path)?).context(path.display())?;
        let mut configuration = PluginConfigurations::default();
        let mut known = HashSet::new();
        for plugin in file.items_at(&["plugins"]) {
            let name = plugin.str_at(&["name"]);
            if known.insert(name) {
                configuration.add(name, plugin, path, enabled, gates)?;
            }
        }
        Ok(configuration)
    }

    fn add(
        &mut self,
        name: &str,
        plugin: &Value,
        path: &Path,
        enabled: &EnabledPlugins,
        gates: &FeatureGates,
    ) -> Result<()> {
        if name == POD_SECURITY {
            let parsed = PodSecurity::parse(&settings(plugin, path)?);
            self.pod_security = parsed.context(POD_SECURITY)?;
            return Ok(());
        }
        let with_manifests = ManifestPlugin::parse(name);
        let Some(known) = with_manifests.filter(|_| enabled.runs(name)) else {
            self.without_effect.push(name.to_owned());
            return Ok(());
        };
        let settings = settings(plugin, path)?;
        let found = manifests(known, &settings, gates);
        let directory = found.context(format_args!("couldn't init admission plugin {}", quote(name)))?;
        if !settings.str_at(&[KUBECONFIG]).is_empty() {
            self.without_effect.push(name.to_owned());
        }
        // without its gate, the plugin does nothing
        let runs = known != ManifestPlugin::MutatingPolicies || gates.has(Feature::MutatingAdmissionPolicy);
        self.directories.extend(directory.filter(|_| runs).map(|directory| (known, directory)));
        Ok(())
    }
}

/// The configuration of a plugin: nested, or in a file of its own.
fn settings(plugin: &Value, path: &Path) -> Result<Value> {
    match plugin.get("configuration") {
        Some(settings) => Ok(settings.clone()),
        None => read_yaml(&path.parent().unwrap_or(Path::new(".")).join(plugin.str_at(&["path"]))),
    }
}

/// The directory of manifests that the configuration of a plugin names, if it does. The error is kube-apiserver's.
fn manifests(plugin: ManifestPlugin, settings: &Value, gates: &FeatureGates) -> Result<Option<String>> {
    let go = match plugin {
        ManifestPlugin::MutatingPolicies => "apiserver_config.v1.MutatingAdmissionPolicyConfiguration",
        ManifestPlugin::ValidatingPolicies => "apiserver_config.v1.ValidatingAdmissionPolicyConfiguration",
        ManifestPlugin::MutatingWebhooks | ManifestPlugin::ValidatingWebhooks => {
            "apiserver_config.v1.WebhookAdmissionConfiguration"
        }
    };
    let api_versions = &["apiserver.config.k8s.io/v1"];
    let settings = ConfigurationKind { api_versions, go, unknown_fields: UnknownFields::Refused }.read(settings)?;
    let kubeconfig = settings.str_at(&[KUBECONFIG]);
    if !kubeconfig.is_empty() && !Path::new(kubeconfig).is_absolute() {
        return invalid(KUBECONFIG, kubeconfig, "must be an absolute file path");
    }
    match settings.str_at(&[DIRECTORY]) {
        "" => Ok(None),
        directory => check_directory(directory, gates).map(|()| Some(directory.to_owned())),
    }
}

fn invalid<T>(field: &str, value: &str, why: &str) -> Result<T> {
    fail(FieldError::invalid(&FieldPath::new(field), &Value::from(value), why).to_string())
}

fn check_directory(directory: &str, gates: &FeatureGates) -> Result<()> {
    if !gates.has(Feature::AdmissionManifests) {
        let why = "staticManifestsDir requires the ManifestBasedAdmissionControlConfig feature gate to be enabled";
        return fail(FieldError::forbidden(&FieldPath::new(DIRECTORY), why).to_string());
    }
    if !Path::new(directory).is_absolute() {
        return invalid(DIRECTORY, directory, "must be an absolute file path");
    }
    match std::fs::metadata(directory) {
        Err(error) => invalid(DIRECTORY, directory, &format!("unable to read: {error}")),
        Ok(found) if !found.is_dir() => invalid(DIRECTORY, directory, "must be a directory"),
        Ok(_) => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use machinery::json;

    use super::*;

    fn read(directory: &Path, plugins: &str) -> Result<PluginConfigurations> {
        let path = directory.join("admission.yaml");
        let head = "apiVersion: apiserver.config.k8s.io/v1\nkind: AdmissionConfiguration\nplugins:\n";
        std::fs::write(&path, format!("{head}{plugins}")).unwrap();
        PluginConfigurations::read(&path, &EnabledPlugins::default(), &FeatureGates::default())
    }

    #[test]
    fn configurations_of_plugins_are_read() {
        let directory = tempfile::tempdir().unwrap();
        let directory = directory.path();
        let own = "apiVersion: pod-security.admission.config.k8s.io/v1\nkind: PodSecurityConfiguration\ndefaults: {enforce: baseline}\n";
        std::fs::write(directory.join("own.yaml"), own).unwrap();
        let found =
            read(directory, "- {name: EventRateLimit, path: x}\n- {name: PodSecurity, path: own.yaml}\n").unwrap();
        assert_eq!(found.without_effect, ["EventRateLimit"]);
        let wrong = read(directory, "- {name: PodSecurity, configuration: {kind: Boat}}\n").unwrap_err();
        assert!(wrong.to_string().starts_with("PodSecurity: no kind \"Boat\""), "{wrong}");
        let path = directory.join("admission.yaml");
        std::fs::write(&path, "kind: Boat").unwrap();
        let wrong =
            PluginConfigurations::read(&path, &EnabledPlugins::default(), &FeatureGates::default()).unwrap_err();
        assert!(wrong.to_string().contains("\"Boat\""), "{wrong}");
    }

    #[test]
    fn directories_of_manifests_are_found_once_for_each_plugin() {
        let directory = tempfile::tempdir().unwrap();
        let of = |name: &str, kind: &str, rest: &str| {
            let place = directory.path().display();
            format!(
                "- {{name: {name}, configuration: {{apiVersion: apiserver.config.k8s.io/v1, kind: {kind}, staticManifestsDir: {place}{rest}}}}}\n"
            )
        };
        let plugins = [
            of("ValidatingAdmissionWebhook", "WebhookAdmissionConfiguration", ", kubeConfigFile: /k"),
            of("MutatingAdmissionPolicy", "MutatingAdmissionPolicyConfiguration", ""),
            of("MutatingAdmissionPolicy", "Boat", ""),
            of("Boat", "Boat", ""),
        ];
        let found = read(directory.path(), &plugins.concat()).unwrap();
        let names: Vec<&str> = found.directories.iter().map(|(plugin, _)| plugin.as_str()).collect();
        assert_eq!(names, ["ValidatingAdmissionWebhook", "MutatingAdmissionPolicy"]);
        assert_eq!(found.without_effect, ["ValidatingAdmissionWebhook", "Boat"]);
    }

    #[test]
    fn wrong_configurations_are_refused() {
        let configuration = |kind: &str, field: &str, value: Value| {
            let mut settings = json!({"apiVersion": "apiserver.config.k8s.io/v1", "kind": (kind)});
            settings.set_at(&[field], value);
            settings
        };
        let kind = "ValidatingAdmissionPolicyConfiguration";
        let cases = [
            (configuration("Boat", DIRECTORY, "/".into()), "no kind \"Boat\" is registered"),
            (configuration("WebhookAdmissionConfiguration", DIRECTORY, "/".into()), "no kind \"Webhook"),
            (configuration(kind, "apiVersion", "v1".into()), "is registered for version \"v1\""),
            (configuration(kind, "directory", "/".into()), "strict decoding error: unknown field \"directory\""),
            (configuration(kind, KUBECONFIG, "/".into()), "strict decoding error: unknown field \"kubeConfigFile\""),
            (configuration(kind, DIRECTORY, Value::Int(7)), "json: cannot unmarshal number"),
            (configuration(kind, DIRECTORY, "x".into()), "Invalid value: \"x\": must be an absolute file path"),
            (configuration(kind, DIRECTORY, "/dev/null".into()), "Invalid value: \"/dev/null\": must be a directory"),
            (configuration(kind, DIRECTORY, "/nowhere".into()), "Invalid value: \"/nowhere\": unable to read: "),
        ];
        for (settings, want) in cases {
            let found = manifests(ManifestPlugin::ValidatingPolicies, &settings, &FeatureGates::default());
            assert!(found.as_ref().is_err_and(|why| why.to_string().contains(want)), "{settings:?}: {found:?}");
        }
        let off = FeatureGates::of(server::Release::V1_36);
        let settings = configuration(kind, DIRECTORY, "/".into());
        let found = manifests(ManifestPlugin::ValidatingPolicies, &settings, &off).unwrap_err();
        assert!(found.to_string().starts_with("staticManifestsDir: Forbidden: "), "{found}");
    }
}
