//! ThirdPartyResource: a name, a description and versions, all at the top.

use schema::shape::{OBJECT_META, Shape, Struct, TEXT, always, non_empty};

/// The group of ThirdPartyResources.
pub const THIRD_PARTY_GROUP: &str = "extensions";
/// Their plural.
pub const THIRD_PARTY_RESOURCES: &str = "thirdpartyresources";

static VERSION: Struct = Struct { name: "APIVersion", fields: &[non_empty("name", TEXT)] };

pub static SHAPE: Struct = Struct {
    name: "ThirdPartyResource",
    fields: &[
        non_empty("apiVersion", TEXT),
        non_empty("description", TEXT),
        non_empty("kind", TEXT),
        always("metadata", Shape::Struct(&OBJECT_META)),
        non_empty("versions", Shape::List("[]v1beta1.APIVersion", &Shape::Struct(&VERSION))),
    ],
};
