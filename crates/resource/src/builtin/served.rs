//! The built-in kinds and versions that are served or stored.

use super::DEFINITION_GROUP;
use super::catalogue::{Availability, BuiltIn, Catalogue};

impl Catalogue {
    /// The versions that kube-apiserver registers, whether they are served or not.
    pub fn registered(&'static self) -> impl Iterator<Item = &'static BuiltIn> {
        let is_unregistered =
            |row: &&BuiltIn| matches!(row.lifecycle.availability, Availability::Legacy | Availability::Never);
        self.rows().iter().filter(move |row| !is_unregistered(row))
    }

    /// The version of a kind, served or not.
    pub fn row_of(&'static self, api_version: &str, kind: &str) -> Option<&'static BuiltIn> {
        self.registered().find(|row| row.kind == kind && row.api_version == api_version)
    }

    /// The row of CRDs in `v1beta1`: a kube-apiserver may have stored CRDs in that version.
    pub fn beta_definition(&'static self) -> &'static BuiltIn {
        let beta = |row: &&BuiltIn| row.group == DEFINITION_GROUP && row.version == "v1beta1";
        self.rows().iter().find(beta).unwrap_or(&self.rows()[0])
    }

    /// The built-in kinds that are stored as they are. Kinds that are stored as another kind (`stored_as`) are left
    /// out.
    pub fn stored_kinds(&'static self) -> impl Iterator<Item = &'static BuiltIn> {
        self.rows().iter().filter(|row| row.is_stored() && row.stored_as.is_none())
    }
}

impl BuiltIn {
    /// The row of the same kind in another version or group, if both share their stored objects. It need not be
    /// served.
    pub fn sibling(&self, api_version: &str) -> Option<&'static BuiltIn> {
        let found = self.catalogue.rows().iter().find(|row| row.kind == self.kind && row.api_version == api_version)?;
        let is_other = found.api_version != self.api_version;
        (is_other && found.storage_group() == self.storage_group()).then_some(found)
    }
}
