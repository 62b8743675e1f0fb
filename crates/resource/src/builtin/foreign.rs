//! Types of kube-apiserver that this server does not serve: errors distinguish a body of such a type from an unknown
//! one.
use machinery::Value;
use machinery::types::{go_struct, message_name};

use super::served::{registered, row_of};
use super::{BuiltIn, Shaped};

/// Types that every group version registers besides its kinds.
const OPTIONS: [&str; 7] =
    ["CreateOptions", "DeleteOptions", "GetOptions", "ListOptions", "PatchOptions", "UpdateOptions", "WatchEvent"];

/// Kinds that are not resources, with their `apiVersion`. Each has a list.
const POSTED: [(&str, &str); 2] = [("autoscaling/v1", "Scale"), ("policy/v1", "Eviction")];

/// Types that are known in every version of every group, even of unknown ones.
const UNVERSIONED: [&str; 5] = ["APIGroup", "APIGroupList", "APIResourceList", "APIVersions", "Status"];

/// Whether kube-apiserver can read a body of this type.
pub fn is_known(api_version: &str, kind: &str) -> bool {
    let is = |known: &str| known == kind || kind.strip_suffix("List") == Some(known);
    let is_row = |row: &BuiltIn| row.api_version == api_version && is(row.kind);
    let is_posted = |(of, known): &(&str, &str)| *of == api_version && is(known);
    let listed = registered().any(is_row) || POSTED.iter().any(is_posted);
    listed || UNVERSIONED.contains(&kind) || (OPTIONS.contains(&kind) && is_group_version(api_version))
}

/// As [`is_known`], for a server whose scheme has only the types of one group.
pub fn is_known_in_scheme_of(group: &str, api_version: &str, kind: &str) -> bool {
    let of_group = || api_version.rsplit_once('/').is_some_and(|(of, _)| of == group) && is_group_version(api_version);
    UNVERSIONED.contains(&kind) || (OPTIONS.contains(&kind) && (api_version == "v1" || of_group()))
}

/// The version of the Go type of a kind. Types that belong to no group are those of `meta/v1`.
pub fn type_version<'a>(api_version: &'a str, kind: &str) -> &'a str {
    if is_shared(kind) { "v1" } else { api_version.rsplit('/').next().unwrap_or_default() }
}

/// Whether a type belongs to `meta/v1` whatever group version registers it.
fn is_shared(kind: &str) -> bool {
    UNVERSIONED.contains(&kind) || OPTIONS.contains(&kind)
}

/// Decodes an object of a known type, which is a kind, a list, or a type of `meta/v1`. `None` if the Go type has no
/// row and is not in the table of types.
pub fn shape(api_version: &str, kind: &str, object: &Value) -> Option<Shaped> {
    if is_shared(kind) {
        return meta_shape(kind, object);
    }
    if let Some(row) = row_of(api_version, kind) {
        return Some(row.shape(object));
    }
    let item = kind.strip_suffix("List").and_then(|item| row_of(api_version, item));
    // the table has no shape for CRDs, which have a decoder of their own
    let is_shaped = is_known(api_version, kind) && !item.is_some_and(|row| row.is_definition());
    if is_shaped { shape_of_type(&message_name(api_version, kind), object) } else { None }
}

/// Decodes an object of a type of `meta/v1`. `None` if the type is not in the table of types.
pub fn meta_shape(kind: &str, object: &Value) -> Option<Shaped> {
    shape_of_type(&format!("meta.v1.{kind}"), object)
}

fn shape_of_type(name: &str, object: &Value) -> Option<Shaped> {
    let read = schema::shape::read_request(object, schema::shape::named(go_struct(name)?.name));
    Some(Shaped { value: read.value, unknown: read.unknown, error: read.error, errors: read.errors })
}

fn is_group_version(api_version: &str) -> bool {
    registered().any(|row| row.api_version == api_version)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bodies_of_every_known_type_are_decoded() {
        let wrong = Value::from([("metadata", Value::from("x"))]);
        for row in registered() {
            let api_version = row.api_version;
            for kind in [row.kind.to_owned(), format!("{}List", row.kind)] {
                let error = shape(api_version, &kind, &wrong).map(|shaped| shaped.error.unwrap_or_default());
                assert!(error.is_none_or(|error| error.contains(".metadata of type")), "{api_version} {kind}");
            }
        }
        for kind in UNVERSIONED.into_iter().chain(OPTIONS) {
            assert!(shape("v1", kind, &wrong).is_some(), "{kind}");
        }
    }

    #[test]
    fn types_are_known_by_version_and_kind() {
        for (api_version, kind) in [
            ("v1", "Pod"),
            ("v1", "PodList"),
            ("v1", "Status"),
            ("x/v1", "Status"),
            ("apps/v1", "Deployment"),
            ("coordination.k8s.io/v1", "DeleteOptions"),
            ("batch/v1", "WatchEvent"),
            ("resource.k8s.io/v1beta2", "DeleteOptions"),
            ("coordination.k8s.io/v1alpha2", "LeaseCandidate"),
        ] {
            assert!(is_known(api_version, kind), "{api_version} {kind}");
        }
        for (api_version, kind) in [("v2", "Pod"), ("apps/v1", "Pod"), ("", "DeleteOptions"), ("x/v1", "DeleteOptions")]
        {
            assert!(!is_known(api_version, kind), "{api_version} {kind}");
        }
        for (api_version, kind, want) in [
            ("v9", "Status", true),
            ("v1", "CreateOptions", true),
            ("apiregistration.k8s.io/v1", "WatchEvent", true),
            ("apps/v1", "CreateOptions", false),
            ("apps/v1", "Deployment", false),
        ] {
            assert_eq!(
                is_known_in_scheme_of("apiregistration.k8s.io", api_version, kind),
                want,
                "{api_version} {kind}"
            );
        }
    }
}
