//! LeaseCandidates: the servers among which coordinated leader election chooses.

use cel::Version;
use machinery::field::{FieldError, FieldPath};
use machinery::{Release, Value, names};

use super::checks::text;

/// The only strategy that Kubernetes defines.
const OLDEST: &str = "OldestEmulationVersion";

pub fn validate(candidate: &Value, old: Option<&Value>, _release: Release) -> Vec<FieldError> {
    let (path, spec) = (FieldPath::new("spec"), candidate.get("spec").unwrap_or(&Value::Null));
    let mut errors = vec![];
    if text(spec, "leaseName").is_empty() {
        errors.push(FieldError::required(&path.child("leaseName"), ""));
    }
    let emulation = version(spec, "emulationVersion", &path, &mut errors);
    if text(spec, "binaryVersion").is_empty() {
        errors.push(FieldError::required(&path.child("binaryVersion"), ""));
    }
    let binary = version(spec, "binaryVersion", &path, &mut errors);
    let are_given = ["binaryVersion", "emulationVersion"].iter().all(|name| !text(spec, name).is_empty());
    if are_given && is_less(binary.as_ref(), emulation.as_ref()) {
        let why = "must be greater than or equal to `emulationVersion`";
        errors.push(FieldError::invalid(&path.child("binaryVersion"), &Value::from(text(spec, "binaryVersion")), why));
    }
    strategy(spec, emulation.as_ref(), &path, &mut errors);
    let name = ["spec", "leaseName"];
    if old.is_some_and(|old| old.str_at(&name) != candidate.str_at(&name)) {
        let value = Value::from(candidate.str_at(&name));
        errors.push(FieldError::invalid(&path.child("leaseName"), &value, "field is immutable"));
    }
    errors
}

/// Whether a version is less than another one. One that is absent or malformed counts as the zero version.
fn is_less(one: Option<&Version>, other: Option<&Version>) -> bool {
    let Ok(zero) = Version::parse("0.0.0") else { return false };
    one.unwrap_or(&zero).compare(other.unwrap_or(&zero)).is_lt()
}

/// The version in a field, if there is one; an error if it is malformed.
fn version(spec: &Value, name: &str, path: &FieldPath, errors: &mut Vec<FieldError>) -> Option<Version> {
    let given = text(spec, name);
    let parsed = (!given.is_empty()).then(|| Version::parse(given))?;
    if parsed.is_err() {
        let why = "must be a valid semantic version";
        errors.push(FieldError::invalid(&path.child(name), &Value::from(given), why));
    }
    parsed.ok()
}

fn strategy(spec: &Value, emulation: Option<&Version>, path: &FieldPath, errors: &mut Vec<FieldError>) {
    let given = text(spec, "strategy");
    if given.is_empty() {
        return errors.push(FieldError::required(&path.child("strategy"), ""));
    }
    if given == OLDEST && !is_less(None, emulation) && !is_less(emulation, None) {
        let why = "must be specified when `strategy` is 'OldestEmulationVersion'";
        errors.push(FieldError::required(&path.child("emulationVersion"), why));
    }
    // kube-apiserver repeats the name of the field
    let (path, value) = (path.child("strategy").child("strategy"), Value::from(given));
    if given.contains('/') {
        let problems = names::qualified_name(given);
        errors.extend(problems.into_iter().map(|why| FieldError::invalid(&path, &value, why)));
    } else if given != OLDEST {
        errors.push(FieldError::not_supported(&path, &value, &[OLDEST]));
    }
}
