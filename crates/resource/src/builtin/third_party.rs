//! ThirdPartyResource: a name, a description and versions, all at the top.

use machinery::{FieldError, FieldPath};
use schema::definition::validate_third_party;
use schema::shape::{OBJECT_META, Shape, Struct, TEXT, always, non_empty};

use super::{BASE, BuiltIn, Form, Hooks, columns};

/// The group of ThirdPartyResources.
pub const THIRD_PARTY_GROUP: &str = "extensions";
/// Their plural.
pub const THIRD_PARTY_RESOURCES: &str = "thirdpartyresources";

static VERSION: Struct = Struct { name: "APIVersion", fields: &[non_empty("name", TEXT)] };

static SHAPE: Struct = Struct {
    name: "ThirdPartyResource",
    fields: &[
        non_empty("apiVersion", TEXT),
        non_empty("description", TEXT),
        non_empty("kind", TEXT),
        always("metadata", Shape::Struct(&OBJECT_META)),
        non_empty("versions", Shape::List("[]v1beta1.APIVersion", &Shape::Struct(&VERSION))),
    ],
};

pub const THIRD_PARTY_RESOURCE: BuiltIn = BuiltIn {
    group: THIRD_PARTY_GROUP,
    version: "v1beta1",
    kind: "ThirdPartyResource",
    plural: THIRD_PARTY_RESOURCES,
    singular: "thirdpartyresource",
    namespaced: false,
    hooks: Hooks::ThirdPartyResource,
    check_body: |registration| match registration.str_at(&["metadata", "namespace"]) {
        "" => None,
        _ => Some(FieldError::forbidden(&FieldPath::new("metadata.namespace"), "not allowed on this type")),
    },
    form: Form::Typed(&SHAPE),
    validate: |registration, _, _| validate_third_party(registration),
    columns: &[columns::DESCRIPTION, columns::VERSIONS],
    ..BASE
};
