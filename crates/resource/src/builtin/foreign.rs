//! Types of kube-apiserver that this server does not serve: errors distinguish a body of such a type from an unknown
//! one.
use machinery::Value;
use machinery::types::{go_struct, message_name};

use super::catalogue::Catalogue;
use super::{BuiltIn, Shaped};

/// Types that every group version registers besides its kinds.
const OPTIONS: [&str; 7] =
    ["CreateOptions", "DeleteOptions", "GetOptions", "ListOptions", "PatchOptions", "UpdateOptions", "WatchEvent"];

/// Types that are known in every version of every group, even of unknown ones.
const UNVERSIONED: [&str; 5] = ["APIGroup", "APIGroupList", "APIResourceList", "APIVersions", "Status"];

impl Catalogue {
    /// Whether kube-apiserver can read a body of this type.
    pub fn is_known(&'static self, api_version: &str, kind: &str) -> bool {
        let item = kind.strip_suffix("List");
        let is_row = |row: &BuiltIn| {
            let is_list = || row.review().is_none() && item == Some(row.kind);
            row.api_version == api_version && (row.kind == kind || is_list())
        };
        let is_further = |further: &str| match further.strip_suffix('*') {
            Some(listed) => listed == kind || item == Some(listed),
            None => further == kind,
        };
        self.registered().any(is_row)
            || self.further_types(api_version).is_some_and(|mut types| types.any(is_further))
            || UNVERSIONED.contains(&kind)
            || (OPTIONS.contains(&kind) && self.is_group_version(api_version))
    }

    /// Lists the types of the scheme that this server does not serve; `None` if it serves all of the version.
    fn further_types(&'static self, api_version: &str) -> Option<impl Iterator<Item = &'static str>> {
        let mut lines = self.sources().scheme.lines();
        lines.find_map(|line| Some(line.strip_prefix(api_version)?.strip_prefix(' ')?.split(' ')))
    }

    /// As [`Catalogue::is_known`], for a server whose scheme has only the types of one group.
    pub fn is_known_in_scheme_of(&'static self, group: &str, api_version: &str, kind: &str) -> bool {
        let of_group =
            || api_version.rsplit_once('/').is_some_and(|(of, _)| of == group) && self.is_group_version(api_version);
        UNVERSIONED.contains(&kind) || (OPTIONS.contains(&kind) && (api_version == "v1" || of_group()))
    }

    /// Decodes an object of a known type, which is a kind, a list, or a type of `meta/v1`. `None` if the Go type has no
    /// row and is not in the table of types.
    pub fn shape_of(&'static self, api_version: &str, kind: &str, object: &Value) -> Option<Shaped> {
        if is_shared(kind) {
            return meta_shape(kind, object);
        }
        if let Some(row) = self.row_of(api_version, kind) {
            return Some(row.shape(object));
        }
        let item = kind.strip_suffix("List").and_then(|item| self.row_of(api_version, item));
        // the table has no shape for CRDs, which have a decoder of their own
        let is_shaped = self.is_known(api_version, kind) && !item.is_some_and(|row| row.is_definition());
        if is_shaped { shape_of_type(&message_name(api_version, kind), object) } else { None }
    }

    fn is_group_version(&'static self, api_version: &str) -> bool {
        self.registered().any(|row| row.api_version == api_version) || self.further_types(api_version).is_some()
    }
}

/// The version of the Go type of a kind. Types that belong to no group are those of `meta/v1`.
pub fn type_version<'a>(api_version: &'a str, kind: &str) -> &'a str {
    if is_shared(kind) { "v1" } else { api_version.rsplit('/').next().unwrap_or_default() }
}

/// Whether a type is known in every version of every group.
pub fn is_unversioned(kind: &str) -> bool {
    UNVERSIONED.contains(&kind)
}

/// Whether a type belongs to `meta/v1` whatever group version registers it.
fn is_shared(kind: &str) -> bool {
    UNVERSIONED.contains(&kind) || OPTIONS.contains(&kind)
}

/// Decodes an object of a type of `meta/v1`. `None` if the type is not in the table of types.
pub fn meta_shape(kind: &str, object: &Value) -> Option<Shaped> {
    shape_of_type(&format!("meta.v1.{kind}"), object)
}

fn shape_of_type(name: &str, object: &Value) -> Option<Shaped> {
    let read = schema::shape::read_request(object, schema::shape::named(go_struct(name)?.name));
    Some(Shaped { value: read.value, unknown: read.unknown, error: read.error, errors: read.errors })
}
