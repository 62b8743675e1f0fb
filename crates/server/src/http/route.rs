//! Routing of a path to a resource and of a method to a verb that the resource supports.

use std::sync::Arc;

use base::request::{RequestInfo, Verb};
use http::Method;
use machinery::status::Reason;
use machinery::{Status, Text};
use resource::{Resource, Version};

use super::chain::Edge;
use super::negotiate::{self, Accepted, Media};
use super::respond::Reply;
use crate::verbs::{self, Request, Subresource};

/// The resource, version and subresource of a path.
pub(super) struct Route {
    pub resource: Arc<Resource>,
    pub version: Arc<Version>,
    pub subresource: Subresource,
}

/// Error of a path that is not served.
pub(super) enum NotServed {
    /// A 404 in plain text.
    Plain,
    /// A Status, with the warning of a deprecated version.
    Status(Status, Option<Text>),
}

impl Edge {
    /// Routes a path. If it is unknown, CRDs that other servers have committed to a shared store are read first.
    pub(super) async fn route_now(&self, info: &RequestInfo) -> Result<Route, NotServed> {
        let route = self.route(info);
        if route.is_err() && self.context.objects.store().is_shared() {
            verbs::catch_up(&self.context).await.map_err(|status| NotServed::Status(status, None))?;
            return self.route(info);
        }
        route
    }

    /// Routes a path with the current registry.
    fn route(&self, info: &RequestInfo) -> Result<Route, NotServed> {
        let own_group = info.group.is_empty() || resource::builtin::is_built_in_group(&info.group);
        let built_in = own_group || resource::builtin::is_reserved_group(&info.group);
        let unknown = || if built_in { NotServed::Status(Status::no_such_resource(), None) } else { NotServed::Plain };
        if info.malformed {
            return Err(NotServed::Plain);
        }
        if own_group && info.rest > 0 {
            return Err(unknown());
        }
        let resource = self.context.registry.get(&info.group, &info.resource).ok_or_else(unknown)?;
        if built_in && resource.is_custom() && !resource.third_party {
            return Err(unknown());
        }
        let version = resource.served(&info.version).cloned().ok_or_else(unknown)?;
        if resource.broken {
            return Err(NotServed::Status(Status::internal("error resolving resource"), None));
        }
        let named_scope = !info.namespace.is_empty() && info.resource != "namespaces";
        let scoped = match (resource.namespaced, named_scope) {
            // built-in routes report the missing namespace when the object is looked up
            (true, false) if info.nowhere && !resource.is_custom() => true,
            (true, false) => info.name.is_empty() && matches!(info.verb, Verb::List | Verb::Watch | Verb::Proxy),
            (false, true) => false,
            _ => true,
        };
        if !scoped && !resource.is_custom() && !resource.is_review() && resource.namespaced && info.name.is_empty() {
            // the path exists, since GET on it lists all namespaces
            return Err(NotServed::Status(no_such_method(), None));
        }
        if !scoped {
            return Err(unknown());
        }
        let subresource = match info.subresource.as_str() {
            "" => Subresource::None,
            "status" if version.status => Subresource::Status,
            "scale" if version.scale.is_some() => Subresource::Scale,
            "finalize" if info.resource == "namespaces" => Subresource::Finalize,
            "token" if info.group.is_empty() && info.resource == "serviceaccounts" => {
                let resource = self.context.token_requests.clone();
                let version = resource.storage_version().clone();
                return Ok(Route { resource, version, subresource: Subresource::Token });
            }
            _ if resource.is_custom() => {
                let deprecation = version.deprecation.clone();
                return Err(NotServed::Status(resource.not_found(&info.name), deprecation));
            }
            _ => return Err(NotServed::Status(Status::no_such_resource(), None)),
        };
        Ok(Route { resource, version, subresource })
    }
}

/// The 405 of a verb that the resource does not support.
pub(super) fn not_allowed(request: &Request, verb: Verb) -> Status {
    let resource = &request.resource;
    if resource.is_custom() {
        return Status::method_not_supported(&resource.group, &resource.plural, verb.as_str());
    }
    no_such_method()
}

/// The 405 of a built-in route that does not support the method.
pub(super) fn no_such_method() -> Status {
    let message = "the server does not allow this method on the requested resource";
    Status::new(Reason::MethodNotAllowed, message).with_details(Default::default())
}

/// The verb of a request, or an error if the resource does not support it.
pub(super) fn verb_of(request: &Request) -> Result<Verb, Status> {
    let info = &request.authorized.info;
    let verb = info.verb;
    let named = !info.name.is_empty();
    let refused = || not_allowed(request, verb);
    if request.resource.is_review() {
        if named && request.subresource == Subresource::None {
            return Err(Status::no_such_resource());
        }
        let fits = verb == Verb::Create && named == (request.subresource == Subresource::Token);
        return if fits { Ok(verb) } else { Err(refused()) };
    }
    if request.subresource == Subresource::Finalize && verb != Verb::Update {
        return Err(refused());
    }
    if verb == Verb::DeleteCollection && request.resource.built_in().is_some_and(|s| s.kind == "Namespace") {
        return Err(refused());
    }
    if info.method == Method::HEAD && !request.resource.is_custom() {
        return Err(refused());
    }
    if request.subresource != Subresource::None {
        return match verb {
            Verb::Get | Verb::Update | Verb::Patch => Ok(verb),
            _ => Err(refused()),
        };
    }
    match verb {
        // POST to an item is not supported for built-in kinds, and creates custom resources
        Verb::Create if named && !request.resource.is_custom() => Err(refused()),
        // for custom resources, the missing name is reported when the request is performed
        Verb::Update | Verb::Patch if !named && !request.resource.is_custom() => Err(refused()),
        Verb::Proxy | Verb::None => Err(refused()),
        verb => Ok(verb),
    }
}

/// Fails with 406 if the client accepts no form that the resource supports.
pub(super) fn check_accept(request: &Request, verb: Verb, reply: &Reply) -> Result<(), Status> {
    let whole = |a: &Accepted| a.media == Media::Protobuf && a.shape == negotiate::Shape::Whole;
    let not_encodable = request.resource.is_custom() && request.subresource != Subresource::Scale;
    if not_encodable && !reply.accepted.is_empty() && reply.accepted.iter().all(whole) {
        return Err(negotiate::not_acceptable(reply.served, false));
    }
    if !request.resource.is_custom() && !reply.named {
        // list and watch have the same route
        let mut list = negotiate::media_list(reply.served);
        if matches!(verb, Verb::List | Verb::Watch) {
            list = [list, negotiate::stream_list(reply.served)].join(", ");
        }
        return Err(negotiate::not_available(&list));
    }
    if reply.forms(request).next().is_none() {
        return Err(negotiate::not_acceptable(reply.served, false));
    }
    Ok(())
}
