//! Warnings about existing Pods that violate the new enforced level of their namespace.

use std::collections::{BTreeMap, BTreeSet};

use machinery::Value;

use super::policy::LevelVersion;
use super::{PluginRequest, Pod, checks};
use crate::limits;

/// The Pods that violate a level for the same reasons.
struct Alike {
    /// The first of them, by name.
    name: String,
    count: usize,
}

pub fn warnings(call: &PluginRequest<'_>, namespace: &str, level: LevelVersion) -> Vec<String> {
    let pods = pods(call);
    let checked = pods.len().min(limits::POD_SECURITY_PODS_MAX);
    let mut violations: BTreeMap<String, Alike> = BTreeMap::new();
    for pod in &pods[..checked] {
        let reasons = checks::reasons(&checks::evaluate(level, Pod::of(pod), call.settings.release));
        if reasons.is_empty() {
            continue;
        }
        let name = pod.str_at(&["metadata", "name"]);
        let alike = violations.entry(reasons).or_insert_with(|| Alike { name: name.to_owned(), count: 0 });
        alike.count += 1;
        if name < alike.name.as_str() {
            name.clone_into(&mut alike.name);
        }
    }
    let mut warnings = vec![];
    if checked < pods.len() {
        warnings.push(format!(
            "new PodSecurity enforce level only checked against the first {checked} of {} existing pods",
            pods.len()
        ));
    }
    if !violations.is_empty() {
        warnings.push(format!(
            "existing pods in namespace {namespace:?} violate the new PodSecurity enforce level \"{level}\""
        ));
    }
    let mut by_pod: Vec<String> = violations.iter().map(|(reasons, alike)| format!("{alike}: {reasons}")).collect();
    by_pod.sort();
    warnings.extend(by_pod);
    warnings
}

impl std::fmt::Display for Alike {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.name)?;
        match self.count {
            0 | 1 => Ok(()),
            2 => f.write_str(" (and 1 other pod)"),
            count => write!(f, " (and {} other pods)", count - 1),
        }
    }
}

/// Finds the Pods of a namespace that are not exempt. Those without a controller and the first Pod of each controller come before
/// the others, since perhaps only some are checked.
fn pods(call: &PluginRequest<'_>) -> Vec<Value> {
    let (mut first, mut rest) = (vec![], vec![]);
    let mut controllers: BTreeSet<String> = BTreeSet::new();
    for pod in call.all_here("", "pods") {
        if call.settings.pod_security.exempts_runtime_class(pod.str_at(&["spec", "runtimeClassName"])) {
            continue;
        }
        let owners = pod.items_at(&["metadata", "ownerReferences"]);
        let controller = owners.iter().find(|owner| owner.is_true_at(&["controller"]));
        let is_repeated = controller.is_some_and(|owner| !controllers.insert(owner.str_at(&["uid"]).to_owned()));
        if is_repeated { rest.push(pod) } else { first.push(pod) }
    }
    first.append(&mut rest);
    first
}
