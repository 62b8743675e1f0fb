//! How the endpoints of a resource are served over HTTP and published.
//!
//! kube-apiserver serves all custom resources by one handler, and installs routes for each built-in kind. What follows
//! from that is in [`Serving`]; what a single kind has besides, such as `namespaces/finalize`, is in its row.

use machinery::Status;
use machinery::status::Reason;

/// The behaviour of the endpoints of a resource.
#[derive(Debug, PartialEq, Eq)]
pub struct Serving {
    /// Each path has a route for each of its methods, which refuses a request before its options and its body are
    /// read. Without routes, one handler takes every request, and the verb refuses it.
    pub routes: bool,
    /// Objects can be encoded in protobuf.
    pub protobuf: bool,
    /// Strategic merge patches are accepted.
    pub strategic_merge: bool,
    /// Lists are those of Go's `unstructured.UnstructuredList`: their items have `apiVersion` and `kind`, and their
    /// metadata always `continue`.
    pub unstructured: bool,
    /// The verbs in the order of discovery.
    pub verbs: &'static [&'static str],
    /// The verbs of a resource that is being deleted.
    pub(super) terminating_verbs: &'static [&'static str],
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

/// The 405 of a built-in route that does not support the method.
pub fn no_such_method() -> Status {
    let message = "the server does not allow this method on the requested resource";
    Status::new(Reason::MethodNotAllowed, message).with_details(Default::default())
}
