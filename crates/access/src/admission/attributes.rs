//! The attributes of a write for admission.

use base::request::User;
use machinery::{Map, Status, Text, Value, names};
use resource::builtin::{GroupVersionKind, OwnSubresource};
use resource::{Resource, Version};

use super::ClusterState;
use crate::audit::AuditContext;

machinery::text_enum! {
    /// The operation of a write.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub enum Operation {
        Create = "CREATE",
        Update = "UPDATE",
        Delete = "DELETE",
        /// Of a Pod, Service or Node: streams and proxies.
        Connect = "CONNECT",
    }
}

/// A write under admission, and the state of the cluster in which it is judged. Objects are in the version of the request.
#[derive(Clone, Copy)]
pub struct Attributes<'a> {
    pub cluster: ClusterState<'a>,
    pub user: &'a User,
    pub operation: Operation,
    pub resource: &'a Resource,
    pub version: &'a Version,
    pub subresource: &'static str,
    /// The namespace of the object; for a Namespace, its own name.
    pub namespace: &'a Text,
    /// Empty if the request has no name.
    pub name: &'a str,
    /// `None` for a deletion.
    pub object: Option<&'a Value>,
    /// `None` for a creation.
    pub old: Option<&'a Value>,
    /// CreateOptions, UpdateOptions or DeleteOptions.
    pub options: &'a Value,
    pub dry_run: bool,
    /// Receives warnings for the client.
    pub warn: &'a (dyn Fn(String) + Sync),
    /// The audit context of the request, if it is recorded.
    pub audit_context: Option<&'a AuditContext>,
}

fn is_key(key: &str) -> bool {
    key.contains('/') && names::qualified_name(key).is_empty()
}

/// Encodes a JSON object with its fields in this order, as kube-apiserver writes it in annotations.
pub fn in_order<'a>(fields: impl IntoIterator<Item = (&'a str, Value)>) -> String {
    let fields = fields.into_iter().map(|(key, value)| format!("{}:{}", Value::from(key).to_json(), value.to_json()));
    format!("{{{}}}", fields.collect::<Vec<_>>().join(","))
}

impl Attributes<'_> {
    /// Adds an audit annotation, if its key has the form `<prefix>/<name>`.
    pub fn annotate(&self, key: &str, value: impl FnOnce() -> String) {
        if let Some(audit_context) = self.audit_context.filter(|_| is_key(key)) {
            audit_context.annotate(key, value());
        }
    }

    /// Like [`Attributes::annotate`], if the audit level records request bodies.
    pub fn annotate_request(&self, key: &str, value: impl FnOnce() -> String) {
        if let Some(audit_context) = self.audit_context.filter(|_| is_key(key)) {
            audit_context.annotate_request(key, value);
        }
    }

    pub fn group(&self) -> &Text {
        &self.resource.group
    }

    pub fn plural(&self) -> &Text {
        &self.resource.plural
    }

    /// The namespace for admission: a Namespace belongs to itself.
    pub fn namespace_of<'b>(
        resource: &Resource,
        operation: Operation,
        namespace: &'b Text,
        name: &'b Text,
    ) -> &'b Text {
        if operation == Operation::Create && kinds::is_namespaces(resource) { name } else { namespace }
    }

    pub fn is_namespace(&self) -> bool {
        kinds::is_namespaces(self.resource)
    }

    /// The name for error messages: of the request or of the object, or its generateName.
    pub fn shown_name(&self) -> &str {
        if !self.name.is_empty() {
            return self.name;
        }
        let of_object = |key| self.object.map(|object| object.str_at(&["metadata", key])).unwrap_or_default();
        match (of_object("name"), of_object("generateName")) {
            ("", "") => "Unknown",
            ("", generated) => generated,
            (name, _) => name,
        }
    }

    /// The 403 of a plugin that has no Status of its own.
    pub fn forbidden(&self, why: &str) -> Status {
        Status::forbidden(self.group(), self.plural(), self.shown_name(), why)
    }

    /// The objects that are matched: the new and the old one, as far as they exist.
    pub fn objects(&self) -> impl Iterator<Item = &Value> {
        self.object.into_iter().chain(self.old)
    }

    /// The kind of the objects: that of the resource or of its subresource.
    fn kind(&self, version: &Version) -> Value {
        let own_kind = self.resource.own_subresource(self.subresource).and_then(OwnSubresource::kind);
        let (group, version, kind) = match (self.subresource, own_kind) {
            ("scale", _) => ("autoscaling", "v1", "Scale"),
            (_, Some(GroupVersionKind { group, version, kind })) => (group, version, kind),
            (_, None) => (self.group().as_str(), version.name.as_str(), self.resource.kind.as_str()),
        };
        [("group", Value::from(group)), ("version", Value::from(version)), ("kind", Value::from(kind))].into()
    }

    fn group_resource(&self, version: &Version) -> Value {
        let text = |text: &Text| Value::String(text.clone());
        [("group", text(self.group())), ("version", text(&version.name)), ("resource", text(self.plural()))].into()
    }

    /// Whether the objects are in a version of the resource. Those of some subresources, such as Scale, are not.
    pub fn is_versioned(&self) -> bool {
        let own_kind = self.resource.own_subresource(self.subresource).and_then(OwnSubresource::kind);
        self.subresource != "scale" && own_kind.is_none()
    }

    /// The request, for expressions and webhooks, without its objects; `version` is the one in which a rule matched.
    pub fn request(&self, version: &Version) -> Value {
        let mut request = Map::new();
        request.insert("kind", self.kind(version));
        request.insert("resource", self.group_resource(version));
        if !self.subresource.is_empty() {
            request.insert("subResource", Value::from(self.subresource));
        }
        request.insert("requestKind", self.kind(self.version));
        request.insert("requestResource", self.group_resource(self.version));
        if !self.subresource.is_empty() {
            request.insert("requestSubResource", Value::from(self.subresource));
        }
        let texts = [("name", self.name), ("namespace", self.namespace)];
        for (key, text) in texts.into_iter().filter(|(_, text)| !text.is_empty()) {
            request.insert(key, Value::from(text));
        }
        request.insert("operation", Value::from(self.operation.as_str()));
        request.insert("userInfo", self.user.to_value("username"));
        request.insert("dryRun", Value::from(self.dry_run));
        request.insert("options", self.options.clone());
        Value::Object(request)
    }
}
