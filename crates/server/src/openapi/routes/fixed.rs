//! The routes that belong to no resource: discovery, the version, and keys of ServiceAccount tokens.

use super::{Content, GroupNames, OK, PathOperation, capital_identifier, identifier, short_group};

const META: &str = "io.k8s.apimachinery.pkg.apis.meta.v1";
const ENCODINGS: [&str; 3] = ["application/json", "application/yaml", "application/vnd.kubernetes.protobuf"];

/// The routes of a document other than those of its resources. The name is one of `standard::FIXED`, `apis/<group>`, or
/// the name of a group version with built-in kinds.
pub fn of_document(name: &str) -> Vec<PathOperation> {
    let path = format!("/{name}/");
    let route = |id: &str, tag: &str| PathOperation { path: path.clone(), ..get(id, tag) };
    let text = |id: &str, tag: &str, media: &'static str| PathOperation {
        produces: vec![media],
        response: Some(Content::Text),
        ..route(id, tag)
    };
    let discovery = |id: &str, tag: &str, kind: &str| PathOperation {
        consumes: ENCODINGS.to_vec(),
        produces: ENCODINGS.to_vec(),
        response: Some(Content::Schema(format!("{META}.{kind}"))),
        ..route(id, tag)
    };
    match name.split('/').collect::<Vec<_>>()[..] {
        ["api"] => vec![discovery("getCoreAPIVersions", "core", "APIVersions")],
        ["apis"] => vec![discovery("getAPIVersions", "apis", "APIGroupList")],
        ["apis", group] => {
            let group = short_group(group);
            let id = format!("get{}APIGroup", capital_identifier(group));
            vec![discovery(&id, &identifier(group), "APIGroup")]
        }
        ["api", version] => vec![resources(GroupNames::new("", version), discovery)],
        ["apis", group, version] => vec![resources(GroupNames::new(group, version), discovery)],
        ["version"] => vec![PathOperation {
            consumes: vec!["application/json"],
            produces: vec!["application/json"],
            response: Some(Content::Schema("io.k8s.apimachinery.pkg.version.Info".to_owned())),
            ..route("getCodeVersion", "version")
        }],
        ["openid", ..] => vec![text("getServiceAccountIssuerOpenIDKeyset", "openid", "application/jwk-set+json")],
        [".well-known", ..] => {
            vec![text("getServiceAccountIssuerOpenIDConfiguration", "WellKnown", "application/json")]
        }
        _ => vec![],
    }
}

/// The list of the resources of a group version.
fn resources(names: GroupNames, discovery: impl Fn(&str, &str, &str) -> PathOperation) -> PathOperation {
    discovery(&format!("get{}APIResources", names.prefix), &names.tag, "APIResourceList")
}

fn get(id: &str, tag: &str) -> PathOperation {
    PathOperation {
        path: String::new(),
        method: "get",
        id: id.to_owned(),
        tag: tag.to_owned(),
        description: String::new(),
        action: None,
        parameters: vec![],
        body: None,
        consumes: vec![],
        produces: vec![],
        response: None,
        codes: &[OK],
    }
}
