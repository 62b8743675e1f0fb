//! Admission that is configured by manifests (KEP-5793): webhook configurations and policies in files of a directory.
//! They are not objects of the API, and come before those that are.
//!
//! Invariant: this module reads no files; a directory is its [`ManifestFile`]s.

mod documents;
mod follow;
mod rules;
#[cfg(test)]
mod tests;

use std::collections::HashMap;

use base::digest::Sha256;
use base::request::FeatureGates;
use kinds::{ManifestKinds, ManifestObject, manifest_objects};
use machinery::Value;
use resource::Document;

use super::GROUP;
pub use follow::ManifestDirectory;

machinery::text_enum! {
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub enum ManifestPlugin {
        MutatingPolicies = "MutatingAdmissionPolicy",
        MutatingWebhooks = "MutatingAdmissionWebhook",
        ValidatingPolicies = "ValidatingAdmissionPolicy",
        ValidatingWebhooks = "ValidatingAdmissionWebhook",
    }
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ManifestFile {
    pub path: String,
    pub content: Vec<u8>,
}

/// The objects of a directory of manifests, all of them valid, in order of their names.
#[derive(Debug)]
pub struct Manifests {
    pub plugin: ManifestPlugin,
    pub objects: Vec<Value>,
    /// Bindings of policies.
    pub bindings: Vec<Value>,
    /// The hash of all files that are not empty, as metrics show it; empty without files.
    pub hash: String,
}

impl ManifestPlugin {
    /// Whether its objects are policies, rather than webhook configurations.
    pub fn has_policies(self) -> bool {
        matches!(self, ManifestPlugin::MutatingPolicies | ManifestPlugin::ValidatingPolicies)
    }

    /// The kinds of its objects and, if they are policies, of their bindings.
    fn kinds(self) -> &'static [&'static str] {
        match self {
            ManifestPlugin::MutatingPolicies => &["MutatingAdmissionPolicy", "MutatingAdmissionPolicyBinding"],
            ManifestPlugin::MutatingWebhooks => &["MutatingWebhookConfiguration"],
            ManifestPlugin::ValidatingPolicies => &["ValidatingAdmissionPolicy", "ValidatingAdmissionPolicyBinding"],
            ManifestPlugin::ValidatingWebhooks => &["ValidatingWebhookConfiguration"],
        }
    }
}

/// The hash of files, by which changes are noticed.
fn hash(files: &[ManifestFile]) -> String {
    let mut contents = files.iter().map(|file| &file.content).filter(|content| !content.is_empty()).peekable();
    if contents.peek().is_none() {
        return String::new();
    }
    let mut hash = Sha256::default();
    for content in contents {
        hash.update(content);
        hash.update(&[0]);
    }
    format!("sha256:{}", hash.hex())
}

impl Manifests {
    /// Decodes, defaults and validates the files of a directory, in order of their names. The error is kube-apiserver's.
    pub fn parse(plugin: ManifestPlugin, files: &[ManifestFile], gates: &FeatureGates) -> Result<Manifests, String> {
        let mut manifests = Manifests { plugin, objects: vec![], bindings: vec![], hash: hash(files) };
        let mut names = HashMap::new();
        for file in files {
            let path = machinery::value::quote(&file.path);
            let documents = documents::split(&file.content);
            let documents = documents.map_err(|why| format!("failed to split YAML documents in file {path}: {why}"))?;
            for document in documents {
                let added = manifests.add(&document, &file.path, &mut names, gates);
                added.map_err(|why| format!("error loading {}: {why}", file.path))?;
            }
        }
        rules::check_references(&manifests)?;
        for list in [&mut manifests.objects, &mut manifests.bindings] {
            list.sort_by(|a, b| name(a).cmp(name(b)));
        }
        Ok(manifests)
    }

    /// Adds the objects of a document; `names` has those that are known, with their files.
    fn add(
        &mut self,
        document: &Document,
        path: &str,
        names: &mut HashMap<(&'static str, String), String>,
        gates: &FeatureGates,
    ) -> Result<(), String> {
        let kinds = ManifestKinds { group: GROUP, kinds: self.plugin.kinds() };
        for ManifestObject { row, value } in manifest_objects(document, kinds, gates)? {
            rules::check_name(row.kind, name(&value), path, names)?;
            let is_binding = row.kind != self.plugin.kinds()[0];
            match (self.plugin.has_policies(), is_binding) {
                (false, _) => rules::check_webhooks(&value, path)?,
                (true, false) => rules::check_policy(row.kind, &value)?,
                (true, true) => rules::check_binding(&value)?,
            }
            if is_binding { &mut self.bindings } else { &mut self.objects }.push(value);
        }
        Ok(())
    }
}

fn name(object: &Value) -> &str {
    object.str_at(&["metadata", "name"])
}
