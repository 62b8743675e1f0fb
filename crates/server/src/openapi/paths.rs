//! The paths of a resource and their operations, in both versions of OpenAPI.
//!
//! Invariant: the fields that clients look up are inline in the operation: `x-kubernetes-action`, the group, version
//! and kind as an object, and the media types and query parameters of PATCH, from which kubectl derives the patch type
//! and the support of field validation.

use machinery::{Map, Release, Text, Value, json};

use super::Dialect;
use super::index::ServedResource;
use super::schema;
use super::standard::{self, DELETE_OPTIONS, PATCH, SCALE, STATUS, reference};

/// The path items of a resource by path.
pub fn items(served: &ServedResource, dialect: Dialect) -> Vec<(String, Value)> {
    Paths::new(served, dialect).all()
}

const LIST_PARAMETERS: [&str; 11] = [
    "allowWatchBookmarks",
    "continue",
    "fieldSelector",
    "labelSelector",
    "limit",
    "resourceVersion",
    "resourceVersionMatch",
    "sendInitialEvents",
    standard::SHARD_SELECTOR,
    "timeoutSeconds",
    "watch",
];
const WRITE_PARAMETERS: [&str; 3] = ["dryRun", "fieldManager", "fieldValidation"];
const PATCH_PARAMETERS: [&str; 4] = ["dryRun", "fieldManager-patch", "fieldValidation", "force"];
const DELETE_PARAMETERS: [&str; 5] = [
    "dryRun",
    "gracePeriodSeconds",
    "ignoreStoreReadErrorWithClusterBreakingPotential",
    "orphanDependents",
    "propagationPolicy",
];
const JSON_AND_YAML: [&str; 2] = ["application/json", "application/yaml"];
const ANY: [&str; 1] = ["*/*"];
const CUSTOM_PATCHES: [&str; 3] =
    ["application/json-patch+json", "application/merge-patch+json", "application/apply-patch+yaml"];
const BUILT_IN_PATCHES: [&str; 4] = [
    "application/json-patch+json",
    "application/merge-patch+json",
    "application/strategic-merge-patch+json",
    "application/apply-patch+yaml",
];

/// One operation of a path item.
struct Operation<'a> {
    /// `x-kubernetes-action`.
    action: &'static str,
    /// The first word of the `operationId`.
    verb: &'static str,
    /// The part of the `operationId` after the group and version.
    subject: String,
    description: String,
    parameters: &'a [&'static str],
    /// The schema of the request body.
    body: Option<&'a str>,
    /// The schema of successful responses.
    response: &'a str,
    /// Codes and descriptions of successful responses.
    codes: &'static [(&'static str, &'static str)],
}

const OK: (&str, &str) = ("200", "OK");
const CREATED: (&str, &str) = ("201", "Created");
const ACCEPTED: (&str, &str) = ("202", "Accepted");

struct Paths<'a> {
    served: &'a ServedResource,
    dialect: Dialect,
    kind: &'a str,
    /// `Namespaced` for namespaced resources, otherwise empty; part of each `operationId`.
    scope: &'static str,
    /// The schema names of objects and lists.
    object: String,
    list: String,
    /// Group and version as part of each `operationId`.
    prefix: String,
    /// Group and version as the tag of operations.
    tag: String,
}

impl<'a> Paths<'a> {
    fn new(served: &'a ServedResource, dialect: Dialect) -> Paths<'a> {
        let resource = &served.resource;
        let group = match resource.group.as_str() {
            "" => "core",
            group => group.strip_suffix(".k8s.io").unwrap_or(group),
        };
        let version = &served.version.name;
        Paths {
            served,
            dialect,
            kind: &resource.kind,
            scope: if resource.namespaced { "Namespaced" } else { "" },
            object: schema::name(served, &resource.kind),
            list: schema::name(served, &resource.list_kind),
            prefix: format!("{}{}", identifier(group, true), identifier(version, true)),
            tag: format!("{}_{version}", identifier(group, false)),
        }
    }

    fn all(&self) -> Vec<(String, Value)> {
        let resource = &self.served.resource;
        let version = &self.served.version;
        let base = match resource.group.as_str() {
            "" => format!("/api/{}", version.name),
            group => format!("/apis/{group}/{}", version.name),
        };
        let plural = &resource.plural;
        let collection = if resource.namespaced {
            format!("{base}/namespaces/{{namespace}}/{plural}")
        } else {
            format!("{base}/{plural}")
        };
        let item = format!("{collection}/{{name}}");
        let mut out = vec![];
        if resource.namespaced {
            out.push((format!("{base}/{plural}"), self.everywhere()));
        }
        out.push((collection, self.collection()));
        for own in resource.own_subresources().iter().filter(|own| own.kind().is_none()) {
            out.push((format!("{item}/{}", own.name), self.replaced(own.name)));
        }
        if version.scale.is_some() {
            out.push((format!("{item}/scale"), self.subresource("scale", SCALE)));
        }
        if version.status {
            out.push((format!("{item}/status"), self.subresource("status", &self.object)));
        }
        out.push((item, self.item()));
        out
    }

    /// The path item that lists the objects of all namespaces.
    fn everywhere(&self) -> Value {
        let get = Operation {
            action: "list",
            verb: "list",
            subject: format!("{}ForAllNamespaces", capitalized(self.kind)),
            description: format!("list objects of kind {}", self.kind),
            parameters: &[],
            body: None,
            response: &self.list,
            codes: &[OK],
        };
        let mut keys = LIST_PARAMETERS.to_vec();
        keys.push("pretty");
        keys.sort_unstable();
        let parameters = self.parameters(&keys).into_iter().collect();
        [("get", self.operation(&get)), ("parameters", parameters)].into()
    }

    fn collection(&self) -> Value {
        let kind = self.kind;
        let list = Operation {
            action: "list",
            verb: "list",
            subject: format!("{}{kind}", self.scope),
            description: format!("list objects of kind {kind}"),
            parameters: &LIST_PARAMETERS,
            body: None,
            response: &self.list,
            codes: &[OK],
        };
        let create = Operation {
            action: "post",
            verb: "create",
            subject: format!("{}{kind}", self.scope),
            description: format!("create{}{kind}", article(kind)),
            parameters: &WRITE_PARAMETERS,
            body: Some(&self.object),
            response: &self.object,
            codes: &[OK, CREATED, ACCEPTED],
        };
        let delete = Operation {
            action: "deletecollection",
            verb: "delete",
            subject: format!("Collection{}{kind}", self.scope),
            description: format!("delete collection of {kind}"),
            parameters: &LIST_PARAMETERS,
            body: None,
            response: STATUS,
            codes: &[OK],
        };
        let mut item: Value = [("get", self.operation(&list)), ("post", self.operation(&create))].into();
        if self.served.resource.has_delete_collection() {
            item.set_at(&["delete"], self.operation(&delete));
        }
        item.set_at(&["parameters"], self.path_parameters(false));
        item
    }

    fn item(&self) -> Value {
        let kind = self.kind;
        let returned = self.served.resource.deletion.returns_object;
        let delete = Operation {
            action: "delete",
            verb: "delete",
            subject: format!("{}{kind}", self.scope),
            description: format!("delete{}{kind}", article(kind)),
            parameters: &DELETE_PARAMETERS,
            body: Some(DELETE_OPTIONS),
            response: if returned { &self.object } else { STATUS },
            codes: &[OK, ACCEPTED],
        };
        let mut item = self.read_and_write("", &self.object);
        item.set_at(&["delete"], self.operation(&delete));
        item
    }

    fn subresource(&self, name: &str, response: &str) -> Value {
        self.read_and_write(name, response)
    }

    /// The path item of a subresource that can only be replaced.
    fn replaced(&self, name: &str) -> Value {
        let put = self.replace(name, &self.object);
        [("put", self.operation(&put)), ("parameters", self.path_parameters(true))].into()
    }

    fn replace<'b>(&self, name: &str, response: &'b str) -> Operation<'b> {
        Operation {
            action: "put",
            verb: "replace",
            subject: self.subject(name),
            description: format!("replace {}the specified {}", of(name), self.kind),
            parameters: &WRITE_PARAMETERS,
            body: Some(response),
            response,
            codes: &[OK, CREATED],
        }
    }

    fn subject(&self, name: &str) -> String {
        format!("{}{}{}", self.scope, self.kind, identifier(name, true))
    }

    /// GET, PUT and PATCH of an object or of one of its subresources.
    fn read_and_write(&self, name: &str, response: &str) -> Value {
        let get = Operation {
            action: "get",
            verb: "read",
            subject: self.subject(name),
            description: format!("read {}the specified {}", of(name), self.kind),
            parameters: &["resourceVersion"],
            body: None,
            response,
            codes: &[OK],
        };
        let patch = Operation {
            action: "patch",
            verb: "patch",
            subject: self.subject(name),
            description: format!("partially update {}the specified {}", of(name), self.kind),
            parameters: &PATCH_PARAMETERS,
            body: Some(PATCH),
            response,
            codes: &[OK],
        };
        [
            ("get", self.operation(&get)),
            ("put", self.operation(&self.replace(name, response))),
            ("patch", self.operation(&patch)),
            ("parameters", self.path_parameters(true)),
        ]
        .into()
    }

    fn path_parameters(&self, named: bool) -> Value {
        let mut list = vec![];
        if named {
            list.push(standard::name_parameter(self.dialect, self.kind));
        }
        if self.served.resource.namespaced {
            list.push(standard::parameter(self.dialect, "namespace"));
        }
        list.push(standard::parameter(self.dialect, "pretty"));
        Value::Array(list)
    }

    /// The parameters that the release has.
    fn parameters(&self, keys: &[&str]) -> Vec<Value> {
        let release = self.served.resource.release;
        let published = keys.iter().filter(|key| **key != standard::SHARD_SELECTOR || release > Release::V1_35);
        published.map(|key| standard::parameter(self.dialect, key)).collect()
    }

    fn operation(&self, operation: &Operation) -> Value {
        let mut out = json!({
            "description": (operation.description.as_str()),
            "operationId": (format!("{}{}{}", operation.verb, self.prefix, operation.subject)),
            "tags": [(self.tag.as_str())],
            "x-kubernetes-action": (operation.action),
            "x-kubernetes-group-version-kind": (schema::group_version_kind(self.served, self.kind))
        });
        let parameters = self.parameters(operation.parameters);
        if !parameters.is_empty() {
            out.set_at(&["parameters"], Value::Array(parameters));
        }
        let serving = self.served.resource.serving;
        let content: &[&str] = match operation.body {
            Some(PATCH) if serving.strategic_merge => &BUILT_IN_PATCHES,
            Some(PATCH) => &CUSTOM_PATCHES,
            _ if serving.protobuf => &ANY,
            _ => &JSON_AND_YAML,
        };
        match self.dialect {
            Dialect::V2 => self.fill_v2(&mut out, operation, content),
            Dialect::V3 => self.fill_v3(&mut out, operation, content),
        }
        out
    }

    fn fill_v2(&self, out: &mut Value, operation: &Operation, content: &[&'static str]) {
        out.set_at(&["schemes"], json!(["https"]));
        out.set_at(&["consumes"], texts(content));
        out.set_at(&["produces"], texts(&JSON_AND_YAML));
        if let Some(body) = operation.body {
            let parameter = standard::body_parameter(body);
            let parameters = out.get_mut("parameters").and_then(Value::as_array_mut);
            parameters.into_iter().for_each(|list| list.insert(0, parameter.clone()));
        }
        for (code, text) in operation.codes {
            let response = json!({"description": (*text), "schema": (reference(self.dialect, operation.response))});
            out.set_at(&["responses", code], response);
        }
        out.set_at(&["responses", "401"], json!({"description": "Unauthorized"}));
    }

    fn fill_v3(&self, out: &mut Value, operation: &Operation, content: &[&'static str]) {
        let of = |media: &[&'static str], name: &str| {
            let schema = json!({"schema": (reference(self.dialect, name))});
            Value::Object(media.iter().map(|m| (Text::new_static(m), schema.clone())).collect::<Map>())
        };
        if let Some(body) = operation.body {
            let mut request = json!({"content": (of(content, body))});
            if body != DELETE_OPTIONS {
                request.set_at(&["required"], Value::Bool(true));
            }
            out.set_at(&["requestBody"], request);
        }
        for (code, text) in operation.codes {
            let response = json!({"description": (*text), "content": (of(&JSON_AND_YAML, operation.response))});
            out.set_at(&["responses", code], response);
        }
        out.set_at(&["responses", "401"], json!({"description": "Unauthorized"}));
    }
}

fn texts(list: &[&'static str]) -> Value {
    list.iter().map(|text| Value::String(Text::new_static(text))).collect()
}

fn of(subresource: &str) -> String {
    if subresource.is_empty() { String::new() } else { format!("{subresource} of ") }
}

/// The indefinite article of a noun, between spaces; a single space for plurals.
fn article(noun: &str) -> &'static str {
    let plural = noun.ends_with('s') && !noun.ends_with("ss");
    match noun.chars().next().map(|c| c.to_ascii_lowercase()) {
        _ if plural => " ",
        Some('a' | 'e' | 'i' | 'o' | 'u') => " an ",
        _ => " a ",
    }
}

/// Converts a text to camel case, without punctuation. The first letter is capitalized only if `capital` is true.
fn identifier(text: &str, capital: bool) -> String {
    let mut out = String::with_capacity(text.len());
    let mut upper = capital;
    for c in text.chars() {
        match c.is_alphanumeric() {
            true if upper => out.extend(c.to_uppercase()),
            true => out.push(c),
            false => {}
        }
        upper = !c.is_alphanumeric();
    }
    out
}

/// A kind with an upper-case first letter, as in upstream's `operationId` of the list of all namespaces.
fn capitalized(kind: &str) -> String {
    let mut letters = kind.chars();
    letters.next().map_or_else(String::new, |first| first.to_uppercase().chain(letters).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn operation_ids_are_camel_case() {
        assert_eq!(identifier("read-openapi.example.com", true), "ReadOpenapiExampleCom");
        assert_eq!(identifier("read-openapi.example.com", false), "readOpenapiExampleCom");
        assert_eq!(identifier("v1alpha1", true), "V1alpha1");
        for (noun, expected) in [("Kite", " a "), ("Event", " an "), ("Endpoints", " "), ("Class", " a "), ("", " a ")]
        {
            assert_eq!(article(noun), expected, "{noun}");
        }
    }
}
