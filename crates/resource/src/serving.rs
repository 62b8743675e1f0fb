//! How the endpoints of a resource are served over HTTP and published.
//!
//! kube-apiserver serves all custom resources by one handler, and installs routes for each built-in kind. What follows from
//! that is in [`Serving`]; what a single kind has besides, such as `namespaces/finalize`, is in its row.

use machinery::Status;
use machinery::status::Reason;

use super::Resource;
use super::builtin::OwnSubresource;
use super::rules::Subresource;

/// The behaviour of the endpoints of a resource.
#[derive(Debug, PartialEq, Eq)]
pub struct Serving {
    /// Each path has a route for each of its methods, which refuses a request before its options and its body are read.
    /// Without routes, one handler takes requests of any form, and the verb refuses them.
    pub routes: bool,
    /// Objects can be encoded in protobuf.
    pub protobuf: bool,
    /// Strategic merge patches are accepted.
    pub strategic_merge: bool,
    /// Lists are those of Go's `unstructured.UnstructuredList`: their items have `apiVersion` and `kind`, and their metadata
    /// always `continue`.
    pub unstructured: bool,
    /// The verbs in the order of discovery, and those of a resource that is being deleted.
    verbs: &'static [&'static str],
    terminating_verbs: &'static [&'static str],
}

impl Serving {
    pub const CUSTOM: Serving = Serving {
        routes: false,
        protobuf: false,
        strategic_merge: false,
        unstructured: true,
        verbs: &["delete", "deletecollection", "get", "list", "patch", "create", "update", "watch"],
        terminating_verbs: &["delete", "deletecollection", "get", "list", "watch"],
    };

    pub const BUILT_IN: Serving = Serving {
        routes: true,
        protobuf: true,
        strategic_merge: true,
        unstructured: false,
        verbs: &["create", "delete", "deletecollection", "get", "list", "patch", "update", "watch"],
        terminating_verbs: &["delete", "deletecollection", "get", "list", "watch"],
    };
}

impl Resource {
    /// The verbs that discovery lists.
    pub fn verbs(&self) -> Vec<&'static str> {
        if self.is_review() {
            return vec!["create"];
        }
        if self.is_computed() {
            return vec!["get", "list"];
        }
        let verbs = if self.terminating { self.serving.terminating_verbs } else { self.serving.verbs };
        verbs.iter().copied().filter(|verb| *verb != "deletecollection" || self.has_delete_collection()).collect()
    }

    pub fn has_delete_collection(&self) -> bool {
        self.built_in.is_none_or(|row| row.delete_collection)
    }

    /// The subresources of this kind alone.
    pub fn own_subresources(&self) -> &'static [OwnSubresource] {
        self.built_in.map_or(&[], |row| row.subresources)
    }

    /// A subresource of this kind alone.
    pub fn own_subresource(&self, name: &str) -> Option<&'static OwnSubresource> {
        self.built_in.and_then(|row| row.own_subresource(name))
    }

    /// Whether the objects of an endpoint can be shown as a table.
    pub fn has_tables(&self, subresource: Subresource) -> bool {
        match subresource {
            Subresource::Status => self.built_in.is_none_or(|row| row.status_tables),
            Subresource::Own(_) => false,
            _ => !self.is_review(),
        }
    }

    /// Whether the resource may be served if its group is one of kube-apiserver's own.
    pub fn is_allowed_in_reserved_groups(&self) -> bool {
        self.built_in.is_some() || self.third_party
    }

    /// The 405 of a verb that the resource does not support.
    pub fn verb_not_supported(&self, verb: &str) -> Status {
        if self.serving.routes {
            no_such_method()
        } else {
            Status::method_not_supported(&self.group, &self.plural, verb)
        }
    }

    /// The 404 of a subresource that the resource does not have.
    pub fn no_subresource(&self, name: &str) -> Status {
        if self.serving.routes { Status::no_such_resource() } else { self.not_found(name) }
    }

    /// The Go type of objects, as errors print it; `None` for custom resources.
    pub fn go_type(&self) -> Option<String> {
        self.built_in.map(|row| format!("*{}.{}", row.go_package(), row.kind))
    }

    /// The Go type of lists, as errors print it.
    pub fn go_list_type(&self) -> String {
        match self.built_in {
            Some(row) => format!("*{}.{}", row.go_package(), self.list_kind),
            None => "*unstructured.UnstructuredList".to_owned(),
        }
    }
}

/// The 405 of a built-in route that does not support the method.
pub fn no_such_method() -> Status {
    let message = "the server does not allow this method on the requested resource";
    Status::new(Reason::MethodNotAllowed, message).with_details(Default::default())
}
