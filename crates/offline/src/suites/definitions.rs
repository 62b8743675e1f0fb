//! The definitions that suites name, each read once.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use machinery::Value;

use super::fixtures::Read;
use super::format::Suite;
use crate::error::Error;

/// The annotations of openshift/api: the feature set, the major versions and the cluster profiles of a definition.
const FEATURE_SET: &str = "release.openshift.io/feature-set";
const MAJOR_VERSION: &str = "release.openshift.io/major-version";
const PROFILE: &str = "include.release.openshift.io/";

/// The directory with generated definitions, beside the one with tests.
const GENERATED: &str = "zz_generated.crd-manifests";

#[derive(Debug, Default)]
pub struct Files(pub BTreeMap<PathBuf, Arc<Read>>);

#[derive(Clone, Debug)]
pub struct TestedDefinition {
    pub file: PathBuf,
    /// The definition with the version of the suite only.
    pub value: Value,
    /// The definition as the file has it, to which patches are applied.
    pub original: Value,
}

impl TestedDefinition {
    /// In place of the definition of a suite that has none.
    fn none(suite: &Path) -> TestedDefinition {
        TestedDefinition { file: suite.to_owned(), value: Value::Null, original: Value::Null }
    }

    pub fn is_none(&self) -> bool {
        self.value.is_null()
    }
}

/// The files that a path names: itself, or the manifests in a directory, by name.
pub fn listed(path: &Path) -> Result<Vec<PathBuf>, Error> {
    if !path.is_dir() {
        return Ok(vec![path.to_owned()]);
    }
    let failed = |source| sources::Error::Unreadable { name: path.display().to_string(), source };
    let entries = std::fs::read_dir(path).map_err(failed)?.collect::<Result<Vec<_>, _>>().map_err(failed)?;
    let mut paths: Vec<PathBuf> = entries.into_iter().map(|entry| entry.path()).collect();
    let is_manifest = |path: &PathBuf| {
        path.extension()
            .and_then(|ending| ending.to_str())
            .is_some_and(|ending| ["yaml", "yml", "json"].contains(&ending))
    };
    paths.retain(is_manifest);
    paths.sort();
    Ok(paths)
}

/// The places where the definitions of a suite are: those that it names, the generated ones beside openshift/api's tests, or the
/// directory of the suite.
pub fn places(suite: &Suite) -> Vec<PathBuf> {
    let directory = suite.file.parent().unwrap_or(Path::new(""));
    if suite.definitions.is_empty() {
        let beside = directory.parent().and_then(Path::parent).unwrap_or(Path::new(""));
        let generated = beside.join(GENERATED);
        let own = if directory.as_os_str().is_empty() { Path::new(".") } else { directory };
        return vec![if generated.is_dir() { generated } else { own.to_owned() }];
    }
    suite.definitions.iter().map(|path| directory.join(path)).collect()
}

/// The directory with the feature gates of each payload, above a suite of openshift/api.
pub fn payloads(suite: &Suite) -> Option<PathBuf> {
    let above = suite.file.ancestors().skip(1).map(|directory| directory.join("payload-manifests/featuregates"));
    above.into_iter().find(|directory| directory.is_dir())
}

impl Files {
    fn objects(&self, file: &Path) -> Result<&[Value], Error> {
        match self.0.get(file).map(|read| &**read) {
            Some(Ok(objects)) => Ok(objects),
            Some(Err(why)) => Err(why.as_str().into()),
            None => Err(format!("cannot read {}", file.display()).into()),
        }
    }

    /// The definitions that a suite tests, each with the suite's version only. Fails with a one-line message.
    pub fn of_suite(&self, suite: &Suite) -> Result<Vec<TestedDefinition>, Error> {
        if suite.is_of_policies() {
            return Ok(vec![TestedDefinition::none(&suite.file)]);
        }
        let mut found = vec![];
        for place in places(suite) {
            for file in listed(&place)? {
                let objects = match self.objects(&file) {
                    // not every generated file is a manifest
                    Err(_) if suite.definitions.is_empty() => continue,
                    objects => objects?,
                };
                let is_tested = |object: &&Value| {
                    object.str_at(&["kind"]) == "CustomResourceDefinition"
                        && (suite.definition.is_empty() || object.str_at(&["metadata", "name"]) == suite.definition)
                };
                for value in objects.iter().filter(is_tested) {
                    if suite.feature_gates.is_empty() || self.has_gates(suite, value)? {
                        let (value, original) = (value.clone(), value.clone());
                        found.push(TestedDefinition { file: file.clone(), value, original });
                    }
                }
            }
        }
        if found.is_empty() {
            return Err("there is no definition for the suite".into());
        }
        found.iter_mut().try_for_each(|definition| reduce(definition, &suite.version))?;
        Ok(found)
    }

    /// The files of the objects that exist in every case of a suite, by kind and name.
    pub fn given_by(&self, suite: &Suite) -> BTreeMap<String, PathBuf> {
        let directory = suite.file.parent().unwrap_or(Path::new(""));
        let mut files = BTreeMap::new();
        for path in suite.files.iter().map(|file| directory.join(file)) {
            for object in self.objects(&path).unwrap_or_default() {
                files.insert(
                    format!("{} {}", object.str_at(&["kind"]), object.str_at(&["metadata", "name"])),
                    path.clone(),
                );
            }
        }
        files
    }

    /// The objects that exist in every case of a suite. Fails with a one-line message.
    pub fn given(&self, suite: &Suite) -> Result<Vec<Value>, Error> {
        let directory = suite.file.parent().unwrap_or(Path::new(""));
        let mut given = vec![];
        for file in &suite.files {
            given.extend_from_slice(self.objects(&directory.join(file))?);
        }
        given.extend_from_slice(&suite.given);
        Ok(given)
    }

    /// Whether a definition is generated with the feature gates that a suite wants, as openshift/api decides it.
    fn has_gates(&self, suite: &Suite, definition: &Value) -> Result<bool, Error> {
        let annotations = definition.at(&["metadata", "annotations"]).unwrap_or(&Value::Null);
        let mut sets: Vec<&str> = annotations.str_at(&[FEATURE_SET]).split(',').filter(|set| !set.is_empty()).collect();
        if sets.contains(&"CustomNoUpgrade") {
            return Ok(!suite.feature_gates.iter().any(|gate| gate.starts_with('-')));
        }
        let profiles = annotations.as_object().into_iter().flat_map(|all| all.iter());
        let mut profiles = profiles.filter(|(key, value)| key.starts_with(PROFILE) && value.as_str() == Some("true"));
        let Some((profile, _)) = profiles.next() else { return Ok(true) };
        if sets.is_empty() {
            sets.push("Default");
        }
        let gates = self.gates(suite, profile, &sets, &majors(annotations))?;
        for gate in &suite.feature_gates {
            let (name, wanted) = gate.strip_prefix('-').map_or((gate.as_str(), true), |name| (name, false));
            match gates.get(name) {
                Some(enabled) if *enabled == wanted => {}
                Some(_) => return Ok(false),
                None => return Err(format!("the feature gate {name} is in no payload").into()),
            }
        }
        Ok(true)
    }

    /// The feature gates of the first payload of a profile, of one of the feature sets, and of one of the versions.
    fn gates(
        &self,
        suite: &Suite,
        profile: &str,
        sets: &[&str],
        versions: &[u64],
    ) -> Result<BTreeMap<String, bool>, Error> {
        let directory = payloads(suite).ok_or("there are no payload-manifests/featuregates above the suite")?;
        for file in listed(&directory)? {
            let Some(payload) = self.objects(&file)?.first() else { continue };
            let annotations = payload.at(&["metadata", "annotations"]).unwrap_or(&Value::Null);
            let own = majors(annotations);
            let is_of_version = versions.is_empty() || own.iter().any(|version| versions.contains(version));
            let is_of_set = sets.contains(&annotations.str_at(&[FEATURE_SET]));
            if annotations.get(profile).is_none() || !is_of_set || !is_of_version {
                continue;
            }
            let first = payload.items_at(&["status", "featureGates"]).first().unwrap_or(&Value::Null);
            let named = |list: &str, enabled: bool| -> Vec<(String, bool)> {
                first.items_at(&[list]).iter().map(|gate| (gate.str_at(&["name"]).to_owned(), enabled)).collect()
            };
            return Ok(named("enabled", true).into_iter().chain(named("disabled", false)).collect());
        }
        Err(format!("no payload has {profile} and {}", sets.join(", ")).into())
    }
}

fn majors(annotations: &Value) -> Vec<u64> {
    annotations.str_at(&[MAJOR_VERSION]).split(',').filter_map(|version| version.trim().parse().ok()).collect()
}

/// Leaves only one version in a definition, which is served and stored.
fn reduce(definition: &mut TestedDefinition, version: &str) -> Result<(), Error> {
    if version.is_empty() {
        return Ok(());
    }
    let mut kept: Vec<Value> = definition.value.items_at(&["spec", "versions"]).to_vec();
    kept.retain(|kept| kept.str_at(&["name"]) == version);
    for version in &mut kept {
        version.set_at(&["served"], Value::Bool(true));
        version.set_at(&["storage"], Value::Bool(true));
    }
    if kept.is_empty() {
        return Err(format!("{}: there is no version {version}", definition.file.display()).into());
    }
    definition.value.set_at(&["spec", "versions"], Value::Array(kept));
    Ok(())
}
