//! The routes of resources. kube-apiserver has a generator for built-in kinds and one for custom resources, whose
//! differences are a [`RouteForm`].

use ::resource::builtin::{Connect, GroupVersionKind, OwnEndpoint, OwnSubresource};
use machinery::types::{GoField, go_struct};

use super::super::index::ServedResource;
use super::super::schema;
use super::super::standard::{self, DELETE_OPTIONS, PATCH, SCALE, STATUS, WATCH_EVENT};
use super::{
    ACCEPTED, CREATED, Content, DELETE_PARAMETERS, GroupNames, Kind, LIST_PARAMETERS, OK, PATCH_PARAMETERS, Parameter,
    PathOperation, WATCH_PARAMETERS, WRITE_PARAMETERS, article, capital, capital_identifier,
};

/// The differences between built-in kinds and custom resources.
struct RouteForm {
    is_custom: bool,
    /// The encodings of bodies, of responses, of lists, and of patches.
    bodies: &'static [&'static str],
    responses: &'static [&'static str],
    lists: &'static [&'static str],
    patches: &'static [&'static str],
    /// The parameters of reads.
    reads: &'static [&'static str],
    list: &'static str,
    patched: &'static [(&'static str, &'static str)],
}

static CUSTOM: RouteForm = RouteForm {
    is_custom: true,
    bodies: &["application/json", "application/yaml"],
    responses: &["application/json", "application/yaml"],
    lists: &["application/json", "application/yaml"],
    patches: &["application/json-patch+json", "application/merge-patch+json", "application/apply-patch+yaml"],
    reads: &["resourceVersion"],
    list: "list",
    patched: &[OK],
};

static BUILT_IN: RouteForm = RouteForm {
    is_custom: false,
    bodies: &ANY,
    responses: &["application/json", "application/yaml", "application/vnd.kubernetes.protobuf"],
    // which may be watched
    lists: &[
        "application/json",
        "application/yaml",
        "application/vnd.kubernetes.protobuf",
        "application/json;stream=watch",
        "application/vnd.kubernetes.protobuf;stream=watch",
    ],
    patches: &[
        "application/json-patch+json",
        "application/merge-patch+json",
        "application/strategic-merge-patch+json",
        "application/apply-patch+yaml",
    ],
    reads: &[],
    list: "list or watch",
    patched: &[OK, CREATED],
};

const LOGS: [&str; 4] = ["text/plain", "application/json", "application/yaml", "application/vnd.kubernetes.protobuf"];
const ANY: [&str; 1] = ["*/*"];
const STREAM_METHODS: [&str; 2] = ["get", "post"];
const PROXY_METHODS: [&str; 7] = ["get", "post", "put", "delete", "head", "options", "patch"];

pub fn routes(served: &ServedResource) -> Vec<PathOperation> {
    let resource = &served.resource;
    let names = GroupNames::new(&resource.group, &served.version.name);
    let scope = if resource.namespaced { "namespaces/{namespace}/" } else { "" };
    let main = Endpoint {
        served,
        form: if served.version.built_in.is_some() { &BUILT_IN } else { &CUSTOM },
        kind: schema::kind(served, &resource.kind),
        object: schema::name(served, &resource.kind),
        path: format!("{scope}{}", resource.plural),
        named: false,
        subject: format!("{}{}", if resource.namespaced { "Namespaced" } else { "" }, resource.kind),
        subresource: "",
        names: &names,
    };
    let mut out = main.collection();
    out.extend(main.object());
    let version = &served.version;
    if version.status {
        out.extend(main.part("status").writes(&["get", "patch", "update"]));
    }
    if version.scale.is_some() {
        let mut scale = Endpoint { object: SCALE.to_owned(), ..main.part("scale") };
        if !main.form.is_custom {
            scale.kind = owned(GroupVersionKind { group: "autoscaling", version: "v1", kind: "Scale" });
        }
        out.extend(scale.writes(&["get", "patch", "update"]));
    }
    resource.own_subresources().iter().for_each(|own| out.extend(main.own(own)));
    out
}

/// A path of a kind: that of its collection, of an object or of a subresource.
#[derive(Clone)]
struct Endpoint<'a> {
    served: &'a ServedResource,
    form: &'static RouteForm,
    /// The kind of the objects that are sent, and its schema.
    kind: Kind,
    object: String,
    /// The path below the group version.
    path: String,
    /// Whether the path has the name of an object.
    named: bool,
    /// The part of each `operationId` after the group and version.
    subject: String,
    subresource: &'static str,
    names: &'a GroupNames,
}

/// The parts that differ between operations.
struct Operation {
    method: &'static str,
    action: &'static str,
    /// The first word of the `operationId`.
    verb: &'static str,
    description: String,
    parameters: Vec<Parameter>,
    codes: &'static [(&'static str, &'static str)],
}

impl<'a> Endpoint<'a> {
    /// The verbs that are published: those of a custom resource even while its definition is deleted.
    fn verbs(&self) -> Vec<&'static str> {
        let resource = &self.served.resource;
        if self.form.is_custom { resource.serving.verbs.to_vec() } else { resource.verbs() }
    }

    /// The routes of the collection, watches included.
    fn collection(&self) -> Vec<PathOperation> {
        let verbs = self.verbs();
        let mut out = vec![];
        if verbs.contains(&"list") {
            out.push(self.list("list"));
        }
        if verbs.contains(&"create") {
            out.push(self.create());
        }
        if verbs.contains(&"deletecollection") {
            out.push(self.delete_collection());
        }
        let watches = verbs.contains(&"watch") && !self.form.is_custom;
        if watches {
            out.push(self.list("watch"));
        }
        if self.served.resource.namespaced && verbs.contains(&"list") {
            let subject = capital(&self.served.resource.kind);
            let everywhere = Endpoint { path: self.served.resource.plural.to_string(), subject, ..self.clone() };
            for &verb in if watches { &["list", "watch"][..] } else { &["list"] } {
                let mut route = everywhere.list(verb);
                route.id.push_str("ForAllNamespaces");
                route.parameters.retain(|parameter| *parameter != Parameter::Named("namespace"));
                out.push(route);
            }
        }
        out
    }

    /// The routes of an object, its watch included.
    fn object(&self) -> Vec<PathOperation> {
        let verbs = self.verbs();
        let object = Endpoint { path: format!("{}/{{name}}", self.path), named: true, ..self.clone() };
        let mut out = object.writes(&verbs);
        if verbs.contains(&"delete") {
            out.push(object.delete());
        }
        if verbs.contains(&"watch") && !self.form.is_custom {
            out.push(object.watch("watch changes to an object of kind", "watch", "watch"));
        }
        out
    }

    /// The endpoint of a subresource with objects of the same kind.
    fn part(&self, name: &'static str) -> Endpoint<'a> {
        let subject = format!("{}{}", self.subject, capital_identifier(name));
        Endpoint {
            path: format!("{}/{{name}}/{name}", self.path),
            named: true,
            subject,
            subresource: name,
            ..self.clone()
        }
    }

    /// The routes of a subresource of this kind alone.
    fn own(&self, own: &'static OwnSubresource) -> Vec<PathOperation> {
        let part = self.part(own.name);
        match (own.endpoint, own.kind().map(owned)) {
            (OwnEndpoint::Part(_), _) => part.writes(&own.verbs),
            (OwnEndpoint::Posted(row), Some(kind)) => {
                let object = schema::built_in_name(row.group, row.version, row.kind);
                vec![Endpoint { kind, object, ..part }.create()]
            }
            (OwnEndpoint::Connect(Connect::Streams(options)), Some(kind)) => {
                Endpoint { kind, ..part }.connect(&STREAM_METHODS, options)
            }
            (OwnEndpoint::Connect(Connect::Proxy(options)), Some(kind)) => {
                let proxy = Endpoint { kind, ..part };
                let mut out = proxy.connect(&PROXY_METHODS, options);
                let path = format!("{}/{{path}}", proxy.path);
                let below = Endpoint { path, subject: format!("{}WithPath", proxy.subject), ..proxy };
                for mut route in below.connect(&PROXY_METHODS, options) {
                    route.parameters.push(Parameter::Named(standard::PATH));
                    out.push(route);
                }
                out
            }
            (OwnEndpoint::Connect(Connect::Log), _) => vec![part.log()],
            (_, None) => vec![],
        }
    }

    fn list(&self, verb: &'static str) -> PathOperation {
        if verb == "watch" {
            let mut route = self.watch("watch individual changes to a list of", "watch", "watchlist");
            route.id.push_str("List");
            return route;
        }
        let operation = Operation {
            method: "get",
            action: "list",
            verb,
            description: format!("{} objects of kind {}", self.form.list, self.kind.name),
            parameters: named(&LIST_PARAMETERS),
            codes: &[OK],
        };
        let list = schema::name(self.served, &self.served.resource.list_kind);
        let produces = self.form.lists.to_vec();
        PathOperation { produces, response: Some(Content::Schema(list)), ..self.route(operation) }
    }

    fn watch(&self, what: &str, verb: &'static str, action: &'static str) -> PathOperation {
        let operation = Operation {
            method: "get",
            action,
            verb,
            description: format!("{what} {}; deprecated in favor of lists with the parameter 'watch'", self.kind.name),
            parameters: named(&LIST_PARAMETERS),
            codes: &[OK],
        };
        let route = self.route(operation);
        let path = format!("{}/watch/{}", self.names.base, self.path);
        PathOperation {
            path,
            produces: self.form.lists.to_vec(),
            response: Some(Content::Schema(WATCH_EVENT.to_owned())),
            ..route
        }
    }

    fn create(&self) -> PathOperation {
        let operation = Operation {
            method: "post",
            action: "post",
            verb: "create",
            description: format!("create{}{}", article(&self.kind.name), self.kind.name),
            parameters: named(&WRITE_PARAMETERS),
            codes: &[OK, CREATED, ACCEPTED],
        };
        PathOperation { body: Some(self.object.clone()), ..self.route(operation) }
    }

    fn delete_collection(&self) -> PathOperation {
        let lists = LIST_PARAMETERS.iter().filter(|key| !WATCH_PARAMETERS.contains(key));
        let parameters = match self.form.is_custom {
            true => named(&LIST_PARAMETERS),
            false => lists.chain(&DELETE_PARAMETERS).map(|key| Parameter::Named(key)).collect(),
        };
        let operation = Operation {
            method: "delete",
            action: "deletecollection",
            verb: "delete",
            description: format!("delete collection of {}", self.kind.name),
            parameters,
            codes: &[OK],
        };
        let mut route = self.route(operation);
        route.id = format!("delete{}Collection{}", self.names.prefix, self.subject);
        PathOperation {
            body: (!self.form.is_custom).then(|| DELETE_OPTIONS.to_owned()),
            response: Some(Content::Schema(STATUS.to_owned())),
            ..route
        }
    }

    fn delete(&self) -> PathOperation {
        let operation = Operation {
            method: "delete",
            action: "delete",
            verb: "delete",
            description: format!("delete{}{}", article(&self.kind.name), self.kind.name),
            parameters: named(&DELETE_PARAMETERS),
            codes: &[OK, ACCEPTED],
        };
        let resource = &self.served.resource;
        // the deletion of a namespace returns the namespace, but the published response is a Status
        let is_returned = resource.deletion.returns_object && !kinds::is_namespaces(resource);
        let response = if is_returned { self.object.clone() } else { STATUS.to_owned() };
        let (body, response) = (Some(DELETE_OPTIONS.to_owned()), Some(Content::Schema(response)));
        PathOperation { body, response, ..self.route(operation) }
    }

    /// GET, PUT and PATCH, as far as they are among the verbs.
    fn writes(&self, verbs: &[&str]) -> Vec<PathOperation> {
        let kind = &self.served.resource.kind;
        let of = if self.subresource.is_empty() { String::new() } else { format!("{} of ", self.subresource) };
        let operation = |method, verb, what: &str, parameters, codes| Operation {
            method,
            action: method,
            verb,
            description: format!("{what} {of}the specified {kind}"),
            parameters,
            codes,
        };
        let mut out = vec![];
        if verbs.contains(&"get") {
            out.push(self.route(operation("get", "read", "read", named(self.form.reads), &[OK])));
        }
        if verbs.contains(&"update") {
            let put = operation("put", "replace", "replace", named(&WRITE_PARAMETERS), &[OK, CREATED]);
            out.push(PathOperation { body: Some(self.object.clone()), ..self.route(put) });
        }
        if verbs.contains(&"patch") {
            let patch = operation("patch", "patch", "partially update", named(&PATCH_PARAMETERS), self.form.patched);
            let consumes = self.form.patches.to_vec();
            out.push(PathOperation { body: Some(PATCH.to_owned()), consumes, ..self.route(patch) });
        }
        out
    }

    fn log(&self) -> PathOperation {
        let operation = Operation {
            method: "get",
            action: "get",
            verb: "read",
            description: format!("read log of the specified {}", self.kind.name),
            parameters: options("PodLogOptions"),
            codes: &[OK],
        };
        PathOperation { produces: LOGS.to_vec(), response: Some(Content::Text), ..self.route(operation) }
    }

    fn connect(&self, methods: &'static [&'static str], kind: &'static str) -> Vec<PathOperation> {
        let route = |method: &'static str| {
            let operation = Operation {
                method,
                action: "connect",
                verb: "connect",
                description: format!("connect {} requests to {}", method.to_uppercase(), self.subresource),
                parameters: options(kind),
                codes: &[OK],
            };
            let mut route = self.route(operation);
            route.parameters.retain(|parameter| *parameter != Parameter::Named("pretty"));
            let id = format!("connect{}{}{}", self.names.prefix, capital_identifier(method), self.subject);
            PathOperation { id, produces: ANY.to_vec(), response: Some(Content::Text), ..route }
        };
        methods.iter().copied().map(route).collect()
    }

    /// A route that returns an object.
    fn route(&self, operation: Operation) -> PathOperation {
        let mut parameters = vec![Parameter::Named("pretty")];
        if self.served.resource.namespaced {
            parameters.push(Parameter::Named("namespace"));
        }
        if self.named {
            parameters.push(Parameter::Name(self.kind.name.clone()));
        }
        parameters.extend(operation.parameters);
        PathOperation {
            path: format!("{}/{}", self.names.base, self.path),
            method: operation.method,
            id: format!("{}{}{}", operation.verb, self.names.prefix, self.subject),
            tag: self.names.tag.clone(),
            description: operation.description,
            action: Some((operation.action, self.kind.clone())),
            parameters,
            body: None,
            consumes: self.form.bodies.to_vec(),
            produces: self.form.responses.to_vec(),
            response: Some(Content::Schema(self.object.clone())),
            codes: operation.codes,
        }
    }
}

fn owned(GroupVersionKind { group, version, kind }: GroupVersionKind) -> Kind {
    Kind { group: group.to_owned(), version: version.to_owned(), name: kind.to_owned() }
}

fn named(keys: &[&'static str]) -> Vec<Parameter> {
    keys.iter().map(|key| Parameter::Named(key)).collect()
}

/// The parameters for the fields of options of the core group, except objects, which cannot be query parameters.
fn options(kind: &str) -> Vec<Parameter> {
    let fields = go_struct(&format!("core.v1.{kind}")).map(|go| go.fields.as_slice()).unwrap_or_default();
    fields.iter().filter_map(option).collect()
}

fn option(field: &'static GoField) -> Option<Parameter> {
    standard::option_type(field).map(|kind| Parameter::Option(field.name, kind, field.parameter))
}
