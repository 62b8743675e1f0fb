//! LeaseCandidates: the servers among which coordinated leader election chooses.

use cel::Version;
use machinery::names;

use schema::at::At;

/// The only strategy that Kubernetes defines.
const OLDEST: &str = "OldestEmulationVersion";

pub fn validate(at: At) {
    let spec = at.field("spec");
    let [lease_name, binary_at, emulation_at] =
        ["leaseName", "binaryVersion", "emulationVersion"].map(|name| spec.field(name));
    lease_name.require_text("");
    let emulation = version(emulation_at);
    binary_at.require_text("");
    let binary = version(binary_at);
    let are_given = !binary_at.as_text().is_empty() && !emulation_at.as_text().is_empty();
    if are_given && is_less(binary.as_ref(), emulation.as_ref()) {
        binary_at.invalid("must be greater than or equal to `emulationVersion`");
    }
    strategy(spec, emulation.as_ref());
    lease_name.or_empty().immutable();
}

/// Whether a version is less than another one. One that is absent or malformed counts as the zero version.
fn is_less(one: Option<&Version>, other: Option<&Version>) -> bool {
    let Ok(zero) = Version::parse("0.0.0") else { return false };
    one.unwrap_or(&zero).compare(other.unwrap_or(&zero)).is_lt()
}

/// The version at a place, if there is one. Reports a malformed one.
fn version(at: At) -> Option<Version> {
    let parsed = (!at.as_text().is_empty()).then(|| Version::parse(at.as_text()))?;
    at.invalid_if(parsed.is_err(), "must be a valid semantic version");
    parsed.ok()
}

fn strategy(spec: At, emulation: Option<&Version>) {
    let strategy = spec.field("strategy");
    let given = strategy.as_text();
    if given.is_empty() {
        return strategy.required("");
    }
    // as in kube-apiserver, an emulation version that is malformed or 0.0.0 counts as missing
    if given == OLDEST && !is_less(None, emulation) && !is_less(emulation, None) {
        spec.field("emulationVersion").required("must be specified when `strategy` is 'OldestEmulationVersion'");
    }
    // kube-apiserver repeats the name of the field
    let repeated = strategy.field("strategy").with_value(strategy.value);
    if given.contains('/') { repeated.check_text(names::qualified_name) } else { repeated.one_of(&[OLDEST]) }
}
