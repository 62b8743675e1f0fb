//! Requests to aggregated API servers, which are proxied with the authenticated user in `X-Remote-*` headers.

use std::net::IpAddr;

use access::authorization::Authorized;
use base::request::Verb;
use bytes::Bytes;
use http::header::{HeaderMap, HeaderName, HeaderValue, LOCATION};
use http::{Request, Response, StatusCode, Uri, request};
use http_body_util::BodyExt as _;
use hyper::body::Incoming;
use hyper::upgrade::OnUpgrade;
use hyper_util::rt::TokioIo;
use tokio::sync::watch;

use super::body::{Body, NextPiece, PieceSource};
use super::chain::{Edge, HttpResponse};
use super::open::OpenGuard;
use super::request_body::RequestBody;
use super::respond;
use crate::aggregation::{Remote, introduce, remove_hop_by_hop, set_upgrade, upgrade_of};

impl Edge {
    /// Proxies a request to an aggregated API server and returns its response. Both bodies are streamed. If the server
    /// upgrades the connection, the client's is upgraded too, and bytes are copied both ways.
    pub(super) async fn relay(
        &self,
        remote: &Remote,
        authorized: &Authorized,
        parts: &mut request::Parts,
        address: IpAddr,
        audit_id: &str,
        body: RequestBody,
    ) -> HttpResponse {
        let mut request = Request::new(body);
        *request.method_mut() = parts.method.clone();
        // the path that was authorized, in its canonical encoding
        let (path, query) = (machinery::url::encode_path(&authorized.info.path), authorized.info.query.encode());
        let target = if query.is_empty() { path } else { format!("{path}?{query}") };
        match Uri::try_from(target) {
            Ok(target) => *request.uri_mut() = target,
            Err(_) => return respond::text(400, "400 Bad Request"),
        }
        *request.headers_mut() = parts.headers.clone();
        let headers = request.headers_mut();
        self.context.authentication.proxy.forget(headers);
        if let Err(why) = introduce(&authorized.user, headers) {
            return respond::text(503, &format!("error trying to reach service: {why}\n"));
        }
        append_forwarded_for(headers, address);
        if let Ok(id) = HeaderValue::from_str(audit_id) {
            headers.insert("audit-id", id);
        }
        let mut response = match self.context.aggregation.forward(remote, request).await {
            Ok(response) => response,
            Err((code, why)) => return respond::text(code, &why),
        };
        if response.status().is_redirection() && response.headers().contains_key(LOCATION) {
            let mut refusal =
                respond::text(502, "the backend attempted to redirect this request, which is not permitted");
            refusal.headers_mut().remove("x-content-type-options");
            return refusal;
        }
        if response.status() == StatusCode::SWITCHING_PROTOCOLS {
            let client = upgrade_of(&parts.headers).and_then(|_| parts.extensions.remove::<OnUpgrade>());
            let Some(client) = client else {
                return respond::text(502, "the backend upgraded the connection without a request to do so");
            };
            let server = hyper::upgrade::on(&mut response);
            base::task::spawn("upgraded connection", tunnel(client, server, self.stop.clone(), self.open.enter()));
            return switched(response);
        }
        let watching = authorized.info.verb == Verb::Watch;
        relayed(response, watching.then(|| self.stop.clone()))
    }
}

/// Copies bytes between two upgraded connections until one of them ends or `stop` becomes true.
async fn tunnel(client: OnUpgrade, server: OnUpgrade, mut stop: watch::Receiver<bool>, _open: OpenGuard) {
    let Ok((client, server)) = tokio::try_join!(client, server) else { return };
    let (mut client, mut server) = (TokioIo::new(client), TokioIo::new(server));
    tokio::select! {
        // an error means that a side is gone, so it cannot be reported
        _ = tokio::io::copy_bidirectional(&mut client, &mut server) => {}
        _ = stop.wait_for(|stop| *stop) => {}
    }
}

/// The response 101 for the client, with the headers of the server's.
fn switched(response: Response<Incoming>) -> HttpResponse {
    let (mut parts, _) = response.into_parts();
    if let Some(protocol) = remove_hop_by_hop(&mut parts.headers) {
        set_upgrade(&mut parts.headers, protocol);
    }
    let mut response = respond::response(parts.status, Body::Empty);
    *response.headers_mut() = parts.headers;
    response
}

/// Appends the address of the client to `X-Forwarded-For`.
fn append_forwarded_for(headers: &mut HeaderMap, address: IpAddr) {
    const FROM: HeaderName = HeaderName::from_static("x-forwarded-for");
    let before: Vec<&str> = headers.get_all(FROM).iter().filter_map(|value| value.to_str().ok()).collect();
    let address = address.to_string();
    let all = before.into_iter().chain([address.as_str()]).collect::<Vec<_>>().join(", ");
    if let Ok(all) = HeaderValue::from_str(&all) {
        headers.insert(FROM, all);
    }
}

/// Converts the response of an aggregated API server, without hop-by-hop headers. With `stop`, the body ends once that
/// is true.
fn relayed(response: Response<Incoming>, stop: Option<watch::Receiver<bool>>) -> HttpResponse {
    let (mut parts, body) = response.into_parts();
    remove_hop_by_hop(&mut parts.headers);
    let body = match stop {
        Some(stop) => Body::stream(Box::new(RelayedWatch { body, stop })),
        None => Body::Relayed(body),
    };
    let mut response = respond::response(parts.status, body);
    *response.headers_mut() = parts.headers;
    response
}

/// The body of a proxied watch.
struct RelayedWatch {
    body: Incoming,
    stop: watch::Receiver<bool>,
}

impl PieceSource for RelayedWatch {
    fn next(mut self: Box<Self>) -> NextPiece {
        Box::pin(async move {
            let piece = tokio::select! {
                piece = next_data(&mut self.body) => piece,
                _ = self.stop.wait_for(|stop| *stop) => None,
            };
            Ok(piece.map(|piece| (piece, self as Box<dyn PieceSource>)))
        })
    }
}

/// The next bytes of a body; `None` at its end or if it is aborted.
async fn next_data(body: &mut Incoming) -> Option<Bytes> {
    loop {
        if let Ok(data) = body.frame().await?.ok()?.into_data() {
            return Some(data);
        }
    }
}
