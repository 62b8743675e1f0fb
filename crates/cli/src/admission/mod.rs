//! The flags of admission plugins, under kube-apiserver's names.

use std::path::{Path, PathBuf};

use clap::Args;
use machinery::Value;
use server::{EnabledPlugins, PluginFlags, PluginSettings, Plugins, PodSecurity, Release};

use crate::files::read_yaml;

#[derive(Args)]
pub struct AdmissionFlags {
    /// Admission plugins to enable besides those that kube-apiserver enables by default, comma separated.
    #[arg(long, value_name = "NAME,...", value_delimiter = ',', help_heading = "Admission")]
    enable_admission_plugins: Vec<String>,

    /// Admission plugins to disable, comma separated.
    #[arg(long, value_name = "NAME,...", value_delimiter = ',', help_heading = "Admission")]
    disable_admission_plugins: Vec<String>,

    /// Deprecated: the only admission plugins to run, comma separated.
    #[arg(long, value_name = "NAME,...", value_delimiter = ',', hide = true)]
    admission_control: Vec<String>,

    /// AdmissionConfiguration (apiserver.config.k8s.io/v1); the configuration of PodSecurity has an effect.
    #[arg(long, value_name = "FILE", help_heading = "Admission")]
    admission_control_config_file: Option<PathBuf>,

    /// Seconds for which Pods tolerate nodes that are not ready, unless they say otherwise.
    #[arg(long, value_name = "SECONDS", default_value_t = 300, help_heading = "Admission")]
    default_not_ready_toleration_seconds: i64,

    /// Seconds for which Pods tolerate unreachable nodes, unless they say otherwise.
    #[arg(long, value_name = "SECONDS", default_value_t = 300, help_heading = "Admission")]
    default_unreachable_toleration_seconds: i64,
}

const SERVICE_ACCOUNT: &str = "ServiceAccount";

impl AdmissionFlags {
    fn names(&self) -> PluginFlags {
        PluginFlags {
            enable: self.enable_admission_plugins.clone(),
            disable: self.disable_admission_plugins.clone(),
            only: self.admission_control.clone(),
        }
    }

    /// The enabled plugins that have no effect.
    pub fn without_effect(&self) -> Vec<&'static str> {
        self.names().without_effect()
    }

    /// The plugins, and the names of those whose configuration has no effect. The plugin ServiceAccount rejects Pods in namespaces
    /// without a ServiceAccount `default`; it is disabled unless it is enabled by name or a controller creates these accounts
    /// (`has_accounts`). The error is one line.
    pub fn plugins(&self, release: Release, has_accounts: bool) -> Result<(Plugins, Vec<String>), String> {
        let mut names = self.names();
        let is_named = |list: &[String]| list.iter().any(|name| name == SERVICE_ACCOUNT);
        if !has_accounts && names.only.is_empty() && !is_named(&names.enable) && !is_named(&names.disable) {
            names.disable.push(SERVICE_ACCOUNT.to_owned());
        }
        let selection = EnabledPlugins::parse(&names)?;
        let (pod_security, others) = match &self.admission_control_config_file {
            Some(path) => read(path).map_err(|why| format!("--admission-control-config-file: {why}"))?,
            None => (PodSecurity::default(), vec![]),
        };
        let settings = PluginSettings {
            release,
            not_ready_seconds: self.default_not_ready_toleration_seconds,
            unreachable_seconds: self.default_unreachable_toleration_seconds,
            pod_security,
        };
        Ok((Plugins { selection, settings }, others))
    }
}

/// The configuration of PodSecurity in an AdmissionConfiguration, and the names of the other plugins in it.
fn read(path: &Path) -> Result<(PodSecurity, Vec<String>), String> {
    let configuration = read_yaml(path)?;
    let (kind, version) = (configuration.str_at(&["kind"]), configuration.str_at(&["apiVersion"]));
    if kind != "AdmissionConfiguration" || !version.starts_with("apiserver.config.k8s.io/v1") {
        return Err(format!("{}: no kind {kind:?} is registered for version {version:?}", path.display()));
    }
    let (mut pod_security, mut others) = (PodSecurity::default(), vec![]);
    for plugin in configuration.get("plugins").and_then(Value::as_array).unwrap_or_default() {
        let name = plugin.str_at(&["name"]);
        if name != "PodSecurity" {
            others.push(name.to_owned());
            continue;
        }
        let settings = match plugin.get("configuration").filter(|settings| !settings.is_null()) {
            Some(settings) => settings.clone(),
            None => read_yaml(&path.parent().unwrap_or(Path::new(".")).join(plugin.str_at(&["path"])))?,
        };
        pod_security = PodSecurity::parse(&settings).map_err(|why| format!("PodSecurity: {why}"))?;
    }
    Ok((pod_security, others))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn configurations_of_plugins_are_read() {
        let directory = std::env::temp_dir().join(format!("pintle-admission-{}", std::process::id()));
        std::fs::create_dir_all(&directory).unwrap();
        let path = directory.join("admission.yaml");
        let head = "apiVersion: apiserver.config.k8s.io/v1\nkind: AdmissionConfiguration\nplugins:\n";
        let own = "apiVersion: pod-security.admission.config.k8s.io/v1\nkind: PodSecurityConfiguration\ndefaults: {enforce: baseline}\n";
        std::fs::write(directory.join("own.yaml"), own).unwrap();
        let write = |plugins: &str| std::fs::write(&path, format!("{head}{plugins}")).unwrap();
        write("- {name: EventRateLimit, path: x}\n- {name: PodSecurity, path: own.yaml}\n");
        assert_eq!(read(&path).unwrap().1, ["EventRateLimit"]);
        write("- {name: PodSecurity, configuration: {kind: Boat}}\n");
        assert!(read(&path).unwrap_err().starts_with("PodSecurity: no kind \"Boat\""));
        std::fs::write(&path, "kind: Boat").unwrap();
        assert!(read(&path).unwrap_err().contains("\"Boat\""));
        std::fs::remove_dir_all(&directory).unwrap();
    }
}
