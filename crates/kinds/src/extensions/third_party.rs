//! ThirdPartyResource: a name, a description and versions, all at the top.

pub const THIRD_PARTY_GROUP: &str = "extensions";
/// Their plural.
pub const THIRD_PARTY_RESOURCES: &str = "thirdpartyresources";
