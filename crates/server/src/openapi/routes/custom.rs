//! The routes of custom resources.

use super::super::index::ServedResource;
use super::super::schema;
use super::super::standard::{DELETE_OPTIONS, PATCH, SCALE, STATUS};
use super::{
    ACCEPTED, CREATED, Content, DELETE_PARAMETERS, GroupNames, LIST_PARAMETERS, OK, PATCH_PARAMETERS, Parameter,
    PathOperation, WRITE_PARAMETERS, article,
};

const JSON_AND_YAML: [&str; 2] = ["application/json", "application/yaml"];
const PATCHES: [&str; 3] =
    ["application/json-patch+json", "application/merge-patch+json", "application/apply-patch+yaml"];

/// The routes of a custom resource in one version.
pub fn routes(served: &ServedResource) -> Vec<PathOperation> {
    let resource = &served.resource;
    let routes = Custom {
        served,
        kind: &resource.kind,
        scope: if resource.namespaced { "Namespaced" } else { "" },
        object: schema::name(served, &resource.kind),
        list: schema::name(served, &resource.list_kind),
        names: GroupNames::new(&resource.group, &served.version.name),
    };
    routes.all()
}

struct Custom<'a> {
    served: &'a ServedResource,
    kind: &'a str,
    /// `Namespaced` for namespaced resources, otherwise empty; part of each `operationId`.
    scope: &'static str,
    /// The schema names of objects and lists.
    object: String,
    list: String,
    names: GroupNames,
}

/// The parts that differ between operations.
struct CustomOperation<'a> {
    method: &'static str,
    /// `x-kubernetes-action`.
    action: &'static str,
    /// The first word of the `operationId`.
    verb: &'static str,
    /// The part of the `operationId` after the group and version.
    subject: String,
    description: String,
    parameters: &'a [&'static str],
    body: Option<&'a str>,
    response: &'a str,
    codes: &'static [(&'static str, &'static str)],
}

impl Custom<'_> {
    fn all(&self) -> Vec<PathOperation> {
        let version = &self.served.version;
        let plural = &self.served.resource.plural;
        let base = &self.names.base;
        let everywhere = format!("{base}/{plural}");
        let (mut out, collection) = if self.served.resource.namespaced {
            (vec![self.everywhere(&everywhere)], format!("{base}/namespaces/{{namespace}}/{plural}"))
        } else {
            (vec![], everywhere)
        };
        out.extend(self.collection(&collection));
        let item = format!("{collection}/{{name}}");
        if version.scale.is_some() {
            out.extend(self.read_and_write(&format!("{item}/scale"), "scale", SCALE));
        }
        if version.status {
            out.extend(self.read_and_write(&format!("{item}/status"), "status", &self.object));
        }
        out.extend(self.read_and_write(&item, "", &self.object));
        out.push(self.delete(&item));
        out
    }

    /// The list of the objects of all namespaces.
    fn everywhere(&self, path: &str) -> PathOperation {
        let mut letters = self.kind.chars();
        let kind: String = letters.next().into_iter().flat_map(char::to_uppercase).chain(letters).collect();
        let list = CustomOperation {
            method: "get",
            action: "list",
            verb: "list",
            subject: format!("{kind}ForAllNamespaces"),
            description: format!("list objects of kind {}", self.kind),
            parameters: &LIST_PARAMETERS,
            body: None,
            response: &self.list,
            codes: &[OK],
        };
        let mut route = self.route(path, list, vec![]);
        route.parameters.retain(|parameter| *parameter != Parameter::Named("namespace"));
        route
    }

    fn collection(&self, path: &str) -> [PathOperation; 3] {
        let kind = self.kind;
        let list = CustomOperation {
            method: "get",
            action: "list",
            verb: "list",
            subject: format!("{}{kind}", self.scope),
            description: format!("list objects of kind {kind}"),
            parameters: &LIST_PARAMETERS,
            body: None,
            response: &self.list,
            codes: &[OK],
        };
        let create = CustomOperation {
            method: "post",
            action: "post",
            verb: "create",
            subject: format!("{}{kind}", self.scope),
            description: format!("create{}{kind}", article(kind)),
            parameters: &WRITE_PARAMETERS,
            body: Some(&self.object),
            response: &self.object,
            codes: &[OK, CREATED, ACCEPTED],
        };
        let delete = CustomOperation {
            method: "delete",
            action: "deletecollection",
            verb: "delete",
            subject: format!("Collection{}{kind}", self.scope),
            description: format!("delete collection of {kind}"),
            parameters: &LIST_PARAMETERS,
            body: None,
            response: STATUS,
            codes: &[OK],
        };
        [list, create, delete].map(|operation| self.route(path, operation, vec![]))
    }

    fn delete(&self, path: &str) -> PathOperation {
        let returned = self.served.resource.deletion.returns_object;
        let delete = CustomOperation {
            method: "delete",
            action: "delete",
            verb: "delete",
            subject: format!("{}{}", self.scope, self.kind),
            description: format!("delete{}{}", article(self.kind), self.kind),
            parameters: &DELETE_PARAMETERS,
            body: Some(DELETE_OPTIONS),
            response: if returned { &self.object } else { STATUS },
            codes: &[OK, ACCEPTED],
        };
        self.route(path, delete, self.name())
    }

    /// GET, PUT and PATCH of an object or of one of its subresources.
    fn read_and_write(&self, path: &str, name: &str, response: &str) -> [PathOperation; 3] {
        let subject = || format!("{}{}{}", self.scope, self.kind, super::capital_identifier(name));
        let of = if name.is_empty() { String::new() } else { format!("{name} of ") };
        let get = CustomOperation {
            method: "get",
            action: "get",
            verb: "read",
            subject: subject(),
            description: format!("read {of}the specified {}", self.kind),
            parameters: &["resourceVersion"],
            body: None,
            response,
            codes: &[OK],
        };
        let put = CustomOperation {
            method: "put",
            action: "put",
            verb: "replace",
            subject: subject(),
            description: format!("replace {of}the specified {}", self.kind),
            parameters: &WRITE_PARAMETERS,
            body: Some(response),
            response,
            codes: &[OK, CREATED],
        };
        let patch = CustomOperation {
            method: "patch",
            action: "patch",
            verb: "patch",
            subject: subject(),
            description: format!("partially update {of}the specified {}", self.kind),
            parameters: &PATCH_PARAMETERS,
            body: Some(PATCH),
            response,
            codes: &[OK],
        };
        [get, put, patch].map(|operation| self.route(path, operation, self.name()))
    }

    /// The parameter of the paths of objects.
    fn name(&self) -> Vec<Parameter> {
        vec![Parameter::Name(self.kind.to_owned())]
    }

    fn route(&self, path: &str, operation: CustomOperation, of_path: Vec<Parameter>) -> PathOperation {
        let resource = &self.served.resource;
        let mut parameters = vec![Parameter::Named("pretty")];
        parameters.extend(of_path);
        if resource.namespaced {
            parameters.push(Parameter::Named("namespace"));
        }
        parameters.extend(operation.parameters.iter().map(|key| Parameter::Named(key)));
        PathOperation {
            path: path.to_owned(),
            method: operation.method,
            id: format!("{}{}{}", operation.verb, self.names.prefix, operation.subject),
            tag: self.names.tag.clone(),
            description: operation.description,
            action: Some((operation.action, schema::kind(self.served, self.kind))),
            parameters,
            body: operation.body.map(str::to_owned),
            consumes: if operation.body == Some(PATCH) { PATCHES.to_vec() } else { JSON_AND_YAML.to_vec() },
            produces: JSON_AND_YAML.to_vec(),
            response: Some(Content::Schema(operation.response.to_owned())),
            codes: operation.codes,
        }
    }
}
