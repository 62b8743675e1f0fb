//! CustomResourceDefinition.

use machinery::Value;
use machinery::field::FieldError;
use schema::definition::{self, ApiVersion, decode};

use super::{BASE, DEFINITION_GROUP, DEFINITIONS, Form, Shaped, Shipped, StatusMetadata, StoredAs, columns};

pub const DEFINITION: Shipped = Shipped {
    group: DEFINITION_GROUP,
    kind: "CustomResourceDefinition",
    plural: DEFINITIONS,
    singular: "customresourcedefinition",
    short_names: &["crd", "crds"],
    categories: &["api-extensions"],
    namespaced: false,
    status: true,
    status_metadata: StatusMetadata::Unowned,
    unconditional_update: false,
    generation: true,
    form: Form::Definition(ApiVersion::V1),
    prepare,
    validate,
    validate_status: definition::validate_status_update,
    warnings,
    columns: columns::PLAIN,
    ..BASE
};

/// The same objects as releases 1.7 to 1.21 show them.
pub const BETA: Shipped = Shipped {
    version: "v1beta1",
    deprecation: "apiextensions.k8s.io/v1beta1 CustomResourceDefinition is deprecated in v1.16+, unavailable in v1.22+; \
                  use apiextensions.k8s.io/v1 CustomResourceDefinition",
    form: Form::Definition(ApiVersion::V1Beta1),
    stored_as: Some(&StoredAs {
        group: DEFINITION_GROUP,
        to_stored: |beta| definition::beta_to_stored(&beta),
        to_shown: |stored| definition::to_beta(&stored),
    }),
    prepare: |beta, old| match old {
        None => definition::prepare_beta_for_create(beta),
        Some(old) => definition::prepare_beta_for_update(beta, old),
    },
    validate: |beta, old| match old {
        None => definition::validate_beta_create(beta),
        Some(old) => definition::validate_beta_update(beta, old),
    },
    warnings: |beta, old| warnings(&definition::from_beta(beta), old.map(definition::from_beta).as_ref()),
    ..DEFINITION
};

/// A definition of which nothing is given.
pub fn zero(version: ApiVersion) -> Value {
    let zero = definition::to_stored(&Value::object());
    match version {
        ApiVersion::V1 => zero,
        ApiVersion::V1Beta1 => definition::to_beta(&zero),
    }
}

/// A body read as a definition.
pub fn shape(value: &Value, version: ApiVersion) -> Shaped {
    match decode(value, version) {
        Ok(decoded) => Shaped { value: decoded.definition, unknown: decoded.unknown, error: None, errors: vec![] },
        Err(errors) => {
            Shaped { value: Value::object(), unknown: vec![], error: schema::shape::first_error(&errors, None), errors }
        }
    }
}

/// What a definition is before it is validated: status of its own, generation by its spec.
fn prepare(object: &mut Value, old: Option<&Value>) {
    match old {
        None => definition::prepare_for_create(object),
        Some(old) => definition::prepare_for_update(object, old),
    }
}

fn validate(new: &Value, old: Option<&Value>) -> Vec<FieldError> {
    match old {
        None => definition::validate_create(new),
        Some(old) => definition::validate_update(new, old),
    }
}

/// Formats that are not enforced, told once when they appear.
fn warnings(new: &Value, old: Option<&Value>) -> Vec<String> {
    match old {
        None => definition::warnings_on_create(new),
        Some(old) => definition::warnings_on_update(new, old),
    }
}
