//! Routing of a path to a resource and of a method to a verb that the resource supports.

use std::sync::Arc;

use base::request::{RequestInfo, Verb};
use http::header::ACCEPT;
use http::{HeaderMap, Method};
use machinery::status::Reason;
use machinery::{Result, Status, Text};
use resource::builtin::{OwnEndpoint, OwnSubresource};
use resource::{Resource, Version, no_such_method};

use super::chain::Edge;
use super::negotiate::{self, Accepted, Media};
use super::respond::{Reply, header};
use crate::verbs::{self, Request, Subresource};

/// The resource, version and subresource of a path.
pub(super) struct Route {
    pub resource: Arc<Resource>,
    pub version: Arc<Version>,
    pub subresource: Subresource,
    /// The resource to which an object of another kind is posted.
    pub posted_to: Option<Arc<Resource>>,
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
        let group = info.group.as_str();
        let is_own_group = group.is_empty() || self.context.registry.is_own_group(group);
        let unknown =
            || if is_own_group { NotServed::Status(Status::no_such_resource(), None) } else { NotServed::Plain };
        if info.malformed {
            return Err(NotServed::Plain);
        }
        let resource = self.context.registry.get(&info.group, &info.resource).ok_or_else(unknown)?;
        if (group.is_empty() || kinds::CATALOGUE.is_reserved_group(group)) && !resource.is_allowed_in_reserved_groups()
        {
            return Err(unknown());
        }
        let version = resource.served(&info.version).cloned().ok_or_else(unknown)?;
        if is_own_group && info.rest > 0 && resource.own_subresource(&info.subresource).is_none() {
            return Err(unknown());
        }
        if resource.broken {
            return Err(NotServed::Status(Status::internal("error resolving resource"), None));
        }
        let is_namespace = kinds::is_namespaces(&resource);
        let below = || info.path.starts_with(&format!("/api/v1/namespaces/{}/namespaces", info.namespace));
        if is_namespace && (info.namespace != info.name || below()) {
            // a namespace contains no namespaces
            return Err(unknown());
        }
        let has_namespace = !info.namespace.is_empty() && !is_namespace;
        if !has_right_scope(info, &resource, has_namespace) {
            let lists_all = resource.serving.routes && resource.namespaced && resource.verbs().contains(&"list");
            if lists_all && info.name.is_empty() && info.subresource.is_empty() {
                // the path exists, since GET on it lists all namespaces
                return Err(NotServed::Status(no_such_method(), None));
            }
            return Err(unknown());
        }
        let is_watchable = info.subresource.is_empty() && resource.is_stored();
        if resource.serving.routes && info.watch_path && !is_watchable {
            return Err(unknown());
        }
        let subresource = match info.subresource.as_str() {
            "" => Subresource::None,
            "status" if version.status => Subresource::Status,
            "scale" if version.scale.is_some() => Subresource::Scale,
            name => match resource.own_subresource(name) {
                Some(own) if info.rest > 0 && !own.takes_paths() => return Err(unknown()),
                Some(OwnSubresource { name, endpoint: OwnEndpoint::Posted(row), .. }) => {
                    let (posted_to, resource) = (Some(resource), self.context.unregistered(row));
                    let version = resource.storage_version().clone();
                    return Ok(Route { resource, version, subresource: Subresource::Own(name), posted_to });
                }
                Some(own) => Subresource::Own(own.name),
                None => {
                    let warning = version.deprecation.clone().filter(|_| !resource.serving.routes);
                    return Err(NotServed::Status(resource.no_subresource(&info.name), warning));
                }
            },
        };
        Ok(Route { resource, version, subresource, posted_to: None })
    }
}

/// Whether a path has a namespace exactly if the resource and the verb need one.
fn has_right_scope(info: &RequestInfo, resource: &Resource, has_namespace: bool) -> bool {
    match (resource.namespaced, has_namespace) {
        // resources with routes report the missing namespace when the object is looked up
        (true, false) if info.has_empty_namespace && resource.serving.routes => true,
        (true, false) if resource.serving.routes && !resource.verbs().contains(&"list") => false,
        // paths with /watch/ of custom resources may have a name
        (true, false) => {
            matches!(info.verb, Verb::List | Verb::Watch | Verb::Proxy)
                && (info.name.is_empty() || !resource.serving.routes)
        }
        (false, true) => false,
        _ => true,
    }
}

/// The verb of a request, or an error if the resource does not support it.
pub(super) fn verb_of(request: &Request) -> Result<Verb> {
    let info = &request.authorized.info;
    let verb = info.verb;
    let has_name = !info.name.is_empty();
    let (resource, subresource) = (&request.resource, request.subresource);
    let has_routes = resource.serving.routes;
    let not_supported = || resource.verb_not_supported(verb.as_str());
    if has_routes && verb == Verb::Watch && info.method != Method::GET {
        // the routes of paths with /watch/ have one method
        return Err(no_such_method());
    }
    if resource.is_review() {
        if has_name && subresource == Subresource::None {
            return Err(Status::no_such_resource());
        }
        let is_allowed = verb == Verb::Create && has_name == (subresource != Subresource::None);
        return if is_allowed { Ok(verb) } else { Err(not_supported()) };
    }
    if let Some(own) = resource.own_subresource(subresource.as_str()) {
        // proxies take OPTIONS, which has no verb, like any other method
        let is_relayed = own.takes_paths() && info.method == Method::OPTIONS;
        let has_method = own.verbs.contains(&verb.as_str()) && (own.takes_paths() || info.method != Method::HEAD);
        return if is_relayed || has_method { Ok(verb) } else { Err(not_supported()) };
    }
    // a watch shares the route of the list, which refuses it later
    if resource.is_computed() && verb != Verb::Watch && !resource.verbs().contains(&verb.as_str()) {
        return Err(not_supported());
    }
    if verb == Verb::DeleteCollection && !resource.has_delete_collection() {
        return Err(not_supported());
    }
    if info.method == Method::HEAD && has_routes {
        return Err(not_supported());
    }
    if subresource != Subresource::None {
        return match verb {
            Verb::Get | Verb::Update | Verb::Patch => Ok(verb),
            _ => Err(not_supported()),
        };
    }
    match verb {
        // for resources without routes, POST to an item creates it, and a missing name is reported when the request is
        // performed
        Verb::Create if has_name && has_routes => Err(not_supported()),
        Verb::Update | Verb::Patch if !has_name && has_routes => Err(not_supported()),
        Verb::Proxy | Verb::None => Err(not_supported()),
        verb => Ok(verb),
    }
}

/// Fails with 406 if the client does not accept a log. The route of logs serves text as well, but as in kube-apiserver the client
/// has to accept a media type of objects, too.
pub(super) fn check_accept_of_log(headers: &HeaderMap, reply: &Reply) -> Result<()> {
    const TEXT: &str = "text/plain";
    let accept = header(headers, ACCEPT);
    if !reply.named && !negotiate::lists(accept, &[TEXT]) {
        return Err(negotiate::not_available(&format!("{TEXT}, {}", negotiate::media_list(reply.served))));
    }
    match reply.accepted.iter().any(|accepted| accepted.shape != negotiate::Shape::Table) {
        true => Ok(()),
        false => Err(negotiate::not_acceptable(reply.served)),
    }
}

/// Fails if the client asks for the metadata of a log. kube-apiserver checks this when it has found the Pod.
pub(super) fn check_shape_of_log(reply: &Reply) -> Result<()> {
    use negotiate::Shape;
    match reply.accepted.iter().map(|accepted| accepted.shape).find(|shape| *shape != Shape::Table) {
        Some(Shape::Partial) => Err(Status::untyped(500, "object does not implement the Object interfaces")),
        Some(Shape::PartialList) => {
            let message = "you requested PartialObjectMetadataList, but the requested object is not a list (*rest.LocationStreamer)";
            Err(Status::new(Reason::NotAcceptable, message))
        }
        _ => Ok(()),
    }
}

/// Fails with 406 if the client accepts no form that the resource supports.
pub(super) fn check_accept(request: &Request, verb: Verb, reply: &Reply) -> Result<()> {
    let whole = |a: &Accepted| a.media == Media::Protobuf && a.shape == negotiate::Shape::Whole;
    let not_encodable = !request.resource.serving.protobuf;
    if not_encodable && !reply.accepted.is_empty() && reply.accepted.iter().all(whole) {
        return Err(negotiate::not_acceptable(reply.served));
    }
    if request.resource.serving.routes && !reply.named {
        // list and watch have the same route
        let mut list = negotiate::media_list(reply.served);
        if matches!(verb, Verb::List | Verb::Watch) {
            list = [list, negotiate::stream_list(reply.served)].join(", ");
        }
        return Err(negotiate::not_available(&list));
    }
    if reply.forms(request).next().is_none() { Err(negotiate::not_acceptable(reply.served)) } else { Ok(()) }
}
