//! Types of kube-apiserver that this server does not serve: errors distinguish a body of such a type from an unknown
//! one.
use machinery::Value;
use machinery::types::{go_struct, message_name};

use super::{Form, Shaped};

/// Types that every group version registers besides its kinds.
const OPTIONS: [&str; 7] =
    ["CreateOptions", "DeleteOptions", "GetOptions", "ListOptions", "PatchOptions", "UpdateOptions", "WatchEvent"];

/// Kinds by their `apiVersion`; each has a list.
const KINDS: [(&str, &[&str]); 3] = [
    ("v1", &["ComponentStatus"]),
    ("autoscaling/v1", &["HorizontalPodAutoscaler", "Scale"]),
    ("policy/v1", &["Eviction"]),
];

/// Groups of kube-apiserver with none of these kinds.
const OTHER_GROUPS: [&str; 1] = ["internal.apiserver.k8s.io"];

/// Whether a group is kube-apiserver's own, though this server has no kind in it. The paths of such a group belong to
/// its built-in routes, which know nothing of CustomResourceDefinitions.
pub fn is_group(group: &str) -> bool {
    OTHER_GROUPS.contains(&group)
        || KINDS.iter().any(|(api_version, _)| api_version.split_once('/').is_some_and(|(known, _)| known == group))
}

/// Types that are known in every version of every group, even of unknown ones.
const UNVERSIONED: [&str; 5] = ["APIGroup", "APIGroupList", "APIResourceList", "APIVersions", "Status"];

/// Whether kube-apiserver can read a body of this type.
pub fn is_known(api_version: &str, kind: &str) -> bool {
    let kinds = KINDS.iter().filter(|(known, _)| *known == api_version).flat_map(|(_, kinds)| kinds.iter());
    let is = |known: &str| known == kind || kind.strip_suffix("List") == Some(known);
    let served = |row: &super::BuiltIn| is(row.kind) && super::group_version(row.group, row.version) == api_version;
    let listed = kinds.copied().any(is) || registered().any(served);
    listed || UNVERSIONED.contains(&kind) || (OPTIONS.contains(&kind) && is_group_version(api_version))
}

/// The same for a server that has a scheme of its own, with the types of one group.
pub fn is_known_in_scheme_of(group: &str, api_version: &str, kind: &str) -> bool {
    let of_group = || api_version.rsplit_once('/').is_some_and(|(of, _)| of == group) && is_group_version(api_version);
    UNVERSIONED.contains(&kind) || (OPTIONS.contains(&kind) && (api_version == "v1" || of_group()))
}

/// The version of the Go type of a kind. Types that are no kinds of a group are those of `meta/v1`.
pub fn type_version<'a>(api_version: &'a str, kind: &str) -> &'a str {
    if is_shared(kind) { "v1" } else { api_version.rsplit('/').next().unwrap_or_default() }
}

/// Whether a type is of `meta/v1`, whatever the group version that registers it.
fn is_shared(kind: &str) -> bool {
    UNVERSIONED.contains(&kind) || OPTIONS.contains(&kind)
}

/// An object of a known type, decoded as that: a kind, a list, or a type of `meta/v1`. None if the Go type has no row
/// and is not in the table of types.
pub fn shape(api_version: &str, kind: &str, object: &Value) -> Option<Shaped> {
    if is_shared(kind) {
        return meta_shape(kind, object);
    }
    if let Some(row) = row_of(api_version, kind) {
        return Some(row.shape(object));
    }
    let item = kind.strip_suffix("List").and_then(|item| row_of(api_version, item));
    // the table has no shape of CRDs, which decode parts of themselves
    let is_shaped = is_known(api_version, kind) && !item.is_some_and(|row| matches!(row.form, Form::Definition(_)));
    if is_shaped { shape_of_type(&message_name(api_version, kind), object) } else { None }
}

/// An object of a type of `meta/v1`, decoded as that. None if the type is not in the table of types.
pub fn meta_shape(kind: &str, object: &Value) -> Option<Shaped> {
    shape_of_type(&format!("meta.v1.{kind}"), object)
}

fn shape_of_type(name: &str, object: &Value) -> Option<Shaped> {
    let read = schema::shape::read_request(object, schema::shape::named(go_struct(name)?.name));
    Some(Shaped { value: read.value, unknown: read.unknown, error: read.error, errors: read.errors })
}

/// The row of a kind, whether it is served or not.
pub fn row_of(api_version: &str, kind: &str) -> Option<&'static super::BuiltIn> {
    registered().find(|row| row.kind == kind && super::group_version(row.group, row.version) == api_version)
}

/// The rows of all versions, whether they are served or not: kube-apiserver registers their types anyway.
fn registered() -> impl Iterator<Item = &'static super::BuiltIn> {
    super::kinds().chain(super::unstable::rows()).chain(super::optional::rows())
}

fn is_group_version(api_version: &str) -> bool {
    let is_version_of = |row: &super::BuiltIn| super::group_version(row.group, row.version) == api_version;
    registered().any(is_version_of) || KINDS.iter().any(|(known, _)| *known == api_version)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bodies_of_every_known_type_are_decoded() {
        let wrong = Value::from([("metadata", Value::from("x"))]);
        for row in registered() {
            let api_version = super::super::group_version(row.group, row.version);
            for kind in [row.kind.to_owned(), format!("{}List", row.kind)] {
                let error = shape(&api_version, &kind, &wrong).map(|shaped| shaped.error.unwrap_or_default());
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
