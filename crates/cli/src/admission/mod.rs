//! The flags of admission plugins, under kube-apiserver's names.

mod configuration;
mod manifests;

use std::path::PathBuf;

use clap::Args;
use client::{Failure, Result};
use server::{EnabledPlugins, FeatureGates, ManifestDirectory, PluginFlags, PluginSettings, Plugins};

use configuration::PluginConfigurations;

#[derive(Args)]
#[command(next_help_heading = "Admission")]
pub struct AdmissionFlags {
    /// Admission plugins to enable besides those that kube-apiserver enables by default, comma separated.
    #[arg(long, value_name = "NAME,...", value_delimiter = ',')]
    enable_admission_plugins: Vec<String>,

    /// Admission plugins to disable, comma separated.
    #[arg(long, value_name = "NAME,...", value_delimiter = ',')]
    disable_admission_plugins: Vec<String>,

    /// Deprecated: the only admission plugins to run, comma separated.
    #[arg(long, value_name = "NAME,...", value_delimiter = ',', hide = true)]
    admission_control: Vec<String>,

    /// AdmissionConfiguration (apiserver.config.k8s.io/v1): the configuration of PodSecurity, and directories of manifests of
    /// webhooks and policies.
    #[arg(long, value_name = "FILE")]
    admission_control_config_file: Option<PathBuf>,

    /// Seconds for which Pods tolerate nodes that are not ready, unless they say otherwise.
    #[arg(long, value_name = "SECONDS", default_value_t = 300)]
    default_not_ready_toleration_seconds: i64,

    /// Seconds for which Pods tolerate unreachable nodes, unless they say otherwise.
    #[arg(long, value_name = "SECONDS", default_value_t = 300)]
    default_unreachable_toleration_seconds: i64,
}

/// The configuration of admission.
pub struct Admission {
    pub plugins: Plugins,
    pub manifests: Vec<ManifestDirectory>,
    /// The plugins whose configuration has no effect.
    pub without_effect: Vec<String>,
}

const SERVICE_ACCOUNT: &str = "ServiceAccount";
/// A plugin that runs only if the feature gate of the same name is on.
const MUTATING_POLICY: &str = "MutatingAdmissionPolicy";

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

    /// The plugins and their configuration. The plugin ServiceAccount rejects Pods in namespaces without a ServiceAccount
    /// `default`; it is disabled unless it is enabled by name or a controller creates these accounts (`has_accounts`). The
    /// error is one line.
    pub fn admission(&self, gates: &FeatureGates, has_accounts: bool) -> Result<Admission> {
        let mut names = self.names();
        let is_named = |list: &[String]| list.iter().any(|name| name == SERVICE_ACCOUNT);
        if !has_accounts && names.only.is_empty() && !is_named(&names.enable) && !is_named(&names.disable) {
            names.disable.push(SERVICE_ACCOUNT.to_owned());
        }
        let selection = EnabledPlugins::parse(&names)?;
        let wrong = |why: Failure| format!("--admission-control-config-file: {}", in_one_line(&why.to_string()));
        let PluginConfigurations { pod_security, directories, without_effect } =
            match &self.admission_control_config_file {
                Some(path) => PluginConfigurations::read(path, &selection, gates).map_err(wrong)?,
                None => PluginConfigurations::default(),
            };
        let manifests = directories.into_iter().map(|(plugin, path)| manifests::open(plugin, path, gates));
        let manifests = manifests.collect::<Result<_, _>>().map_err(wrong)?;
        let settings = PluginSettings {
            release: gates.release(),
            not_ready_seconds: self.default_not_ready_toleration_seconds,
            unreachable_seconds: self.default_unreachable_toleration_seconds,
            pod_security,
        };
        let selection = if gates.is_on(MUTATING_POLICY) { selection } else { selection.without(MUTATING_POLICY) };
        Ok(Admission { plugins: Plugins { selection, settings }, manifests, without_effect })
    }
}

/// Joins the lines of an error, since errors of expressions and of YAML have several.
fn in_one_line(why: &str) -> String {
    why.split('\n').map(str::trim).collect::<Vec<_>>().join(" ")
}
