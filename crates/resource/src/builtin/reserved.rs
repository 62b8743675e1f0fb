//! Names that are reserved for objects in manifests, which the server reads at its start.

use base::request::{Feature, FeatureGates};
use machinery::field::{FieldError, FieldPath};
use machinery::{Release, Value};

use super::BuiltIn;

/// The suffix of names that are reserved for manifests (KEP-5793).
pub const STATIC_SUFFIX: &str = ".static.k8s.io";

impl BuiltIn {
    fn reserved_name_problem(&self, object: &Value) -> Option<String> {
        let name = object.str_at(&["metadata", "name"]);
        (self.has_static_objects && name.ends_with(STATIC_SUFFIX)).then(|| {
            format!(
                "names ending with \"{STATIC_SUFFIX}\" are reserved for static manifest-based configurations and cannot be managed via the API"
            )
        })
    }

    pub fn reserved_name_error(&self, object: &Value, gates: &FeatureGates) -> Option<FieldError> {
        let problem = self.reserved_name_problem(object).filter(|_| gates.has(Feature::AdmissionManifests))?;
        let name = Value::from(object.str_at(&["metadata", "name"]));
        Some(FieldError::invalid(&FieldPath::new("metadata.name"), &name, problem))
    }

    /// The warning about an object with a reserved name that is not refused.
    pub fn reserved_name_warning(&self, object: &Value, gates: &FeatureGates) -> Option<String> {
        let problem = self.reserved_name_problem(object).filter(|_| gates.release() >= Release::V1_36)?;
        Some(format!("metadata.name: {problem}"))
    }
}
