//! The encoding of responses: shapes, media types, pretty printing, compression.

use std::io::Write as _;
use std::sync::Arc;

use access::audit::AuditContext;
use access::flow::Classification;
use base::task::{self, Trace};
use base::trace::Span;
use bytes::Bytes;
use http::header::{AsHeaderName, CONTENT_TYPE, HeaderName, HeaderValue};
use http::{HeaderMap, Response, StatusCode};
use machinery::status::Reason;
use machinery::{Result, Status, Text, Value, cbor, json, yaml};
use objects::{ProtobufForm, Stored};

use super::body::Body;
use super::interceptor::{Observation, ShownObject, ShownStatus};
use super::list::{self, ListBody, ListEncoding};
use super::negotiate::{Accepted, Media, Shape};
use super::pretty::pretty;
use super::table;
use super::window::whole_bytes;
use crate::limits;
use crate::verbs::{Effect, Items, Lag, ListOutcome, Outcome, Request, ResponseObject, Subresource};

/// The form that the response to a request must have, and the state that it depends on.
pub struct Reply {
    /// The media types that the server serves.
    pub served: &'static [Media],
    /// The acceptable forms of objects and lists, best first.
    pub accepted: Vec<Accepted>,
    /// Whether Accept names a served media type, even if in a shape that is not available.
    pub named: bool,
    /// The acceptable forms of responses without alternative shapes, such as Status and discovery documents.
    pub plain: Vec<Accepted>,
    /// The form of aggregated discovery, if the client prefers it.
    pub aggregated: Option<Accepted>,
    /// Whether JSON is pretty-printed unless the Accept clause overrides it.
    pub pretty: bool,
    /// Whether the client wants no object in the response to a write, see [`super::VerdictOnly`].
    pub without_object: bool,
    /// Replaces the stored object in a dry run.
    pub stand_in: Option<Arc<Stored>>,
    /// Whether the client accepts gzip.
    pub gzip: bool,
    /// Warnings about the credentials of the request.
    pub warnings: Vec<&'static str>,
    /// The audit context, if the audit policy selects the request.
    pub audit_context: Option<Arc<AuditContext>>,
    /// The trace context of the request, and its span if that is sampled.
    pub trace_context: Option<Trace>,
    pub span: Option<Span>,
    /// The old cache that the request is to read from, if any.
    pub lag: Option<Lag>,
    /// The observation of the request, if there is an interceptor that observes it.
    pub observation: Option<Box<dyn Observation>>,
    /// Whether the connection is closed after this response, as kube-apiserver's feature gate
    /// `UnauthenticatedHTTP2DOSMitigation` closes HTTP/2 connections of unauthenticated clients.
    pub closes: bool,
    /// The flow schema and the priority level of the request.
    pub classification: Option<Classification>,
}

fn code(effect: Effect) -> StatusCode {
    match effect {
        Effect::Done => StatusCode::OK,
        Effect::Created => StatusCode::CREATED,
        Effect::Begun => StatusCode::ACCEPTED,
    }
}

/// The internal cause of an error, an extension of its response. It is logged but not sent to the client.
#[derive(Clone)]
pub struct InternalCause(pub String);

impl Reply {
    /// The best form other than protobuf.
    fn text(&self, request: &Request) -> Option<Accepted> {
        self.forms(request).find(|a| a.media != Media::Protobuf)
    }

    /// The acceptable forms that a resource supports, best first.
    pub fn forms(&self, request: &Request) -> impl Iterator<Item = Accepted> {
        let tables = request.resource.has_tables(request.subresource);
        self.accepted.iter().copied().filter(move |accepted| tables || accepted.shape != Shape::Table)
    }

    pub fn is_pretty(&self, accepted: &Accepted) -> bool {
        accepted.pretty.unwrap_or(self.pretty)
    }

    /// Responds with a Status, which has no other shapes. It is not audited if the client accepts no form of it.
    pub fn status(&self, status: &Status) -> Response<Body> {
        if !self.plain.is_empty() {
            self.audit(|audit| audit.status(&status.to_value()));
        }
        self.status_in(status, self.plain.first().copied())
    }

    /// Responds with a Status in the given form, or in pretty-printed JSON if the client accepts none.
    pub fn status_in(&self, status: &Status, plain: Option<Accepted>) -> Response<Body> {
        let code = StatusCode::from_u16(status.code).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
        let plain = plain.unwrap_or(Accepted { pretty: Some(true), ..Accepted::JSON });
        let mut response = match plain.media {
            Media::Protobuf => self.bytes(code, Media::Protobuf.as_str(), machinery::protobuf::status(status)),
            _ => self.tree(code, &status.to_value(), &plain),
        };
        if status.retry_after_seconds() > 0 {
            set(response.headers_mut(), "retry-after", &status.retry_after_seconds().to_string());
        }
        if !status.cause.is_empty() {
            response.extensions_mut().insert(InternalCause(status.cause.clone()));
        }
        if self.observation.is_some() {
            response
                .extensions_mut()
                .insert(ShownStatus { reason: status.reason, message: Text::from(status.message.as_str()) });
        }
        if status.code == 403 {
            set(response.headers_mut(), "x-content-type-options", "nosniff");
        }
        response
    }

    /// Responds with a value in a text encoding or CBOR.
    pub fn tree(&self, code: StatusCode, value: &Value, accepted: &Accepted) -> Response<Body> {
        let (media, bytes) = match accepted.media {
            Media::Yaml => (Media::Yaml, yaml::encode(value).into_bytes()),
            Media::Cbor => (Media::Cbor, cbor::encode(value)),
            _ if self.is_pretty(accepted) => (Media::Json, pretty(value).into_bytes()),
            _ => {
                let mut out = Vec::with_capacity(1024);
                machinery::value::write_json(value, &mut out);
                out.push(b'\n');
                (Media::Json, out)
            }
        };
        self.bytes(code, media.as_str(), bytes)
    }

    /// Responds with a value of a built-in kind, which may be encoded as protobuf, and audits it.
    pub fn built_in(&self, value: &Value, accepted: &Accepted) -> Response<Body> {
        self.record(|| value.clone());
        let message = if accepted.media == Media::Protobuf { self.envelope(StatusCode::OK, value) } else { None };
        message.unwrap_or_else(|| self.tree(StatusCode::OK, value, accepted))
    }

    /// Responds with encoded bytes, which are compressed if they exceed [`limits::GZIP_BYTES_MIN`].
    pub fn bytes(&self, code: StatusCode, content_type: &str, bytes: impl Into<Bytes>) -> Response<Body> {
        let bytes = bytes.into();
        let compress = self.gzip && bytes.len() > limits::GZIP_BYTES_MIN;
        let body = if compress { Bytes::from(task::blocking(|| gzip(&bytes))) } else { bytes };
        let mut response = response(code, Body::Full(body));
        self.set_content(response.headers_mut(), content_type, compress);
        response
    }

    /// Responds with a document that is compressed already.
    pub fn compressed(&self, content_type: &str, gzip: Bytes) -> Response<Body> {
        let mut response = Response::new(Body::Full(gzip));
        self.set_content(response.headers_mut(), content_type, true);
        response
    }

    pub async fn outcome(&self, request: &Arc<Request>, outcome: Outcome) -> Result<Response<Body>> {
        match outcome {
            Outcome::Success(effect, value) => {
                self.audit(|audit| audit.status(&value));
                let code = code(effect);
                if self.protobuf(request).is_some()
                    && let Some(response) = self.envelope(code, &value)
                {
                    return Ok(response);
                }
                let accepted = self.text(request).unwrap_or(Accepted::JSON);
                if accepted.shape == Shape::Table {
                    // a Status is never shown as a table, but invalid options of tables are still reported
                    table::Table::new(request, &accepted)?;
                }
                Ok(self.tree(code, &value, &Accepted { shape: Shape::Whole, ..accepted }))
            }
            Outcome::Object(effect, _) if self.without_object => {
                Ok(self.bytes(code(effect), Media::Json.as_str(), vec![]))
            }
            Outcome::Object(effect, shown) => {
                let respond = || self.object(request, code(effect), &shown);
                let is_large = shown.stored_bytes() > limits::INLINE_BYTES_MAX;
                let mut response = if is_large { task::blocking(respond) } else { respond() }?;
                if let (Some(_), ResponseObject::Stored(stored, _)) = (&self.observation, &shown) {
                    response.extensions_mut().insert(ShownObject(stored.clone()));
                }
                Ok(response)
            }
            Outcome::List(list) => Box::pin(self.list(request, list)).await,
        }
    }

    /// Adds to the audit context, if there is one.
    pub(super) fn audit(&self, add: impl FnOnce(&AuditContext)) {
        if let Some(audit_context) = &self.audit_context {
            add(audit_context);
        }
    }

    /// Adds the response object to the audit context.
    pub(super) fn record(&self, object: impl FnOnce() -> Value) {
        self.audit(|audit| audit.response(object));
    }

    /// Like [`Reply::tree`], but also audits the value.
    fn recorded(&self, code: StatusCode, value: &Value, accepted: &Accepted) -> Response<Body> {
        self.record(|| value.clone());
        self.tree(code, value, accepted)
    }

    /// The best form if it is protobuf and can be encoded: metadata alone has a message for every kind, whole objects
    /// only for some resources.
    fn protobuf(&self, request: &Request) -> Option<Accepted> {
        let best = self.forms(request).next().filter(|a| a.media == Media::Protobuf)?;
        (request.resource.serving.protobuf || best.shape != Shape::Whole).then_some(best)
    }

    /// Responds in protobuf; `None` if the kind has no message.
    fn envelope(&self, code: StatusCode, object: &Value) -> Option<Response<Body>> {
        let bytes = machinery::protobuf::encode(object)?;
        Some(self.bytes(code, Media::Protobuf.as_str(), bytes))
    }

    fn object(&self, request: &Request, code: StatusCode, shown: &ResponseObject) -> Result<Response<Body>> {
        if let Some(accepted) = self.protobuf(request) {
            let object = match accepted.shape {
                Shape::PartialList => return Err(no_list(request)),
                Shape::Partial => table::partial(&shown.to_value(), &accepted),
                _ => shown.to_value(),
            };
            if let Some(response) = self.envelope(code, &object) {
                self.record(|| object);
                return Ok(response);
            }
        }
        let accepted = self.text(request).ok_or_else(|| super::negotiate::not_acceptable(self.served))?;
        match accepted.shape {
            Shape::Whole if accepted.media == Media::Json && !self.is_pretty(&accepted) => {
                self.record(|| shown.to_value());
                let mut out = Vec::with_capacity(2048);
                shown.write(&mut out);
                out.push(b'\n');
                Ok(self.bytes(code, Media::Json.as_str(), out))
            }
            Shape::Whole => Ok(self.recorded(code, &shown.to_value(), &accepted)),
            Shape::Partial => Ok(self.recorded(code, &table::partial(&shown.to_value(), &accepted), &accepted)),
            Shape::PartialList => Err(no_list(request)),
            Shape::Table => {
                let table = table::Table::new(request, &accepted)?;
                Ok(self.recorded(code, &table.of_object(&shown.to_value()), &accepted))
            }
        }
    }

    async fn list(&self, request: &Arc<Request>, list: ListOutcome) -> Result<Response<Body>> {
        if let Some(accepted) = self.protobuf(request) {
            let (version, kind, form) = match accepted.shape {
                Shape::Partial => return Err(no_object(request)),
                Shape::PartialList => {
                    let version = Text::new_static(accepted.shape_version());
                    (version, "PartialObjectMetadataList".to_owned(), ProtobufForm::Metadata)
                }
                _ => (request.api_version(), request.resource.list_kind.to_string(), ProtobufForm::Whole),
            };
            let meta = match form {
                ProtobufForm::Metadata => list_meta(&list),
                _ => whole_meta(request, &list),
            };
            if ListEncoding::protobuf(&version, &kind, &meta, 0).is_some() {
                let bytes = list::protobuf_bytes((&version, &kind), form, request, list.items.clone()).await?;
                let encoding = ListEncoding::protobuf(&version, &kind, &meta, bytes);
                return self.listed(request, list, accepted, encoding).await;
            }
        }
        let accepted = self.text(request).ok_or_else(|| super::negotiate::not_acceptable(self.served))?;
        if accepted.shape == Shape::Partial {
            return Err(no_object(request));
        }
        let pretty = self.is_pretty(&accepted);
        let frame = frame_of(request, &list, &accepted, list::placeholder())?;
        let tree = list::tree_of(request, accepted)?;
        let encoding = match (accepted.media, accepted.shape) {
            _ if list.items.len() == 0 => None,
            (Media::Json, Shape::Whole) if !pretty => {
                ListEncoding::json(&frame, !request.resource.serving.unstructured)
            }
            (Media::Cbor, _) => ListEncoding::cbor(&frame, list.items.len(), tree),
            _ => ListEncoding::text(&frame, &accepted, pretty, tree),
        };
        self.listed(request, list, accepted, encoding).await
    }

    /// Responds with a list in an encoding; `None` for a list without items. A small list is sent at once, a larger one
    /// is encoded while it is sent.
    async fn listed(
        &self,
        request: &Arc<Request>,
        list: ListOutcome,
        accepted: Accepted,
        encoding: Option<ListEncoding>,
    ) -> Result<Response<Body>> {
        if self.audit_context.as_ref().is_some_and(|audit_context| audit_context.keeps_response()) {
            let all = all_of(request, list.items.clone()).await?;
            let trees = all.iter().map(list::tree_of(request, accepted)?).collect();
            let value = frame_of(request, &list, &accepted, Value::Array(trees))?;
            self.record(|| value);
        }
        let Some(encoding) = encoding else {
            let empty = frame_of(request, &list, &accepted, Value::Array(vec![]))?;
            return Ok(self.tree(StatusCode::OK, &empty, &accepted));
        };
        let media = accepted.media;
        let is_plain = (media, accepted.shape) == (Media::Json, Shape::Whole) && !self.is_pretty(&accepted);
        let sent_at_once_max = match list.items.bytes() {
            _ if self.gzip => limits::GZIP_BYTES_MIN,
            Some(bytes) if is_plain && bytes <= whole_bytes() => 2 * bytes + limits::UNSENT_BYTES_MAX,
            _ => limits::UNSENT_BYTES_MAX,
        };
        let mut body = ListBody::new(request.clone(), list.items, encoding);
        let is_complete = body.fill(sent_at_once_max + 1).await?;
        let is_small = is_complete && body.len() <= sent_at_once_max;
        if is_small && self.gzip {
            return Ok(self.bytes(StatusCode::OK, media.as_str(), body.into_bytes()));
        }
        let mut response = Response::new(if is_small {
            Body::parts(body.into_pieces())
        } else if self.gzip {
            Body::document(Box::new(body.compressed()))
        } else {
            Body::document(Box::new(body))
        });
        self.set_content(response.headers_mut(), media.as_str(), self.gzip);
        Ok(response)
    }

    fn set_content(&self, headers: &mut HeaderMap, content_type: &str, is_compressed: bool) {
        set(headers, CONTENT_TYPE.as_str(), content_type);
        if is_compressed {
            set(headers, "content-encoding", "gzip");
            set(headers, "vary", "Accept-Encoding");
        }
    }
}

/// Reads all items of a list.
async fn all_of(request: &Request, mut items: Items) -> Result<Vec<ResponseObject>> {
    let mut all = vec![];
    while items.len() > 0 {
        all.extend(items.next(request).await?);
    }
    Ok(all)
}

/// Wraps items in a list, a table or a PartialObjectMetadataList.
fn frame_of(request: &Request, list: &ListOutcome, accepted: &Accepted, items: Value) -> Result<Value> {
    Ok(match accepted.shape {
        Shape::Table => table::Table::new(request, accepted)?.around(list_meta(list), items),
        Shape::PartialList => partial_list(list, accepted, items),
        _ => list_frame(request, list, items),
    })
}

/// The error for a single object requested as PartialObjectMetadataList.
fn no_list(request: &Request) -> Status {
    let go_type = match (request.resource.go_type(), request.subresource) {
        (Some(_), Subresource::Scale) => "*autoscaling.Scale".to_owned(),
        (Some(go_type), _) => go_type,
        (None, Subresource::Scale) => "*v1.Scale".to_owned(),
        (None, _) => return Status::untyped(500, "content is not a list"),
    };
    let message =
        format!("you requested PartialObjectMetadataList, but the requested object is not a list ({go_type})");
    Status::new(Reason::NotAcceptable, message)
}

/// The error for a list requested as PartialObjectMetadata.
fn no_object(request: &Request) -> Status {
    let found = request.resource.go_list_type();
    let message = format!("you requested PartialObjectMetadata, but the requested object is a list ({found})");
    Status::new(Reason::NotAcceptable, message)
}

fn list_meta(list: &ListOutcome) -> Value {
    let mut meta = Value::object();
    // computed lists have no resourceVersion
    if list.revision > 0 {
        meta.set_at(&["resourceVersion"], Value::from(list.revision.to_string()));
    }
    meta.put_text(&["continue"], &list.continue_token);
    if let Some(remaining) = list.remaining {
        meta.set_at(&["remainingItemCount"], Value::from(remaining));
    }
    meta
}

/// The ListMeta of a list of whole objects. The shards are shown only by typed lists.
fn whole_meta(request: &Request, list: &ListOutcome) -> Value {
    let mut meta = list_meta(list);
    if request.resource.serving.unstructured {
        // present even if it is empty
        meta.set_at(&["continue"], Value::from(&list.continue_token));
    } else if let Some(shards) = &list.shards {
        meta.set_at(&["shardInfo", "selector"], Value::from(shards.to_string()));
    }
    meta
}

fn list_frame(request: &Request, list: &ListOutcome, items: Value) -> Value {
    let (version, kind) = (request.api_version(), request.resource.list_kind.as_str());
    json!({"apiVersion": version, "items": items, "kind": kind, "metadata": (whole_meta(request, list))})
}

fn partial_list(list: &ListOutcome, accepted: &Accepted, items: Value) -> Value {
    let is_empty = items.as_array().is_some_and(<[Value]>::is_empty);
    let (version, items) = (accepted.shape_version(), if is_empty { Value::Null } else { items });
    json!({
        "kind": "PartialObjectMetadataList", "apiVersion": version, "metadata": (list_meta(list)), "items": items
    })
}

fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = flate2::write::GzEncoder::new(Vec::with_capacity(bytes.len() / 4), flate2::Compression::fast());
    // writes to memory do not fail
    let _ = encoder.write_all(bytes);
    encoder.finish().unwrap_or_default()
}

/// Builds a response that has no headers yet.
pub fn response(code: StatusCode, body: Body) -> Response<Body> {
    let mut response = Response::new(body);
    *response.status_mut() = code;
    response
}

/// Reads a header: as with Go's `Header.Get`, the first one counts, and one that is missing or no text is empty.
pub fn header(headers: &HeaderMap, name: impl AsHeaderName) -> &str {
    headers.get(name).and_then(|value| value.to_str().ok()).unwrap_or_default()
}

/// Sets a header; an invalid name or value is ignored.
pub fn set(headers: &mut HeaderMap, name: &str, value: &str) {
    if let (Ok(name), Ok(value)) = (HeaderName::try_from(name), HeaderValue::from_bytes(value.as_bytes())) {
        headers.insert(name, value);
    }
}

/// A Status as JSON, for requests that no handler has seen.
pub fn status_response(status: &Status) -> Response<Body> {
    let mut response = text(status.code, &status.to_value().to_json());
    set(response.headers_mut(), CONTENT_TYPE.as_str(), "application/json");
    set(response.headers_mut(), "cache-control", "no-cache, private");
    if let Some(details) = status.details.as_ref().filter(|details| details.retry_after_seconds > 0) {
        set(response.headers_mut(), "retry-after", &details.retry_after_seconds.to_string());
    }
    response
}

pub fn text(code: u16, message: &str) -> Response<Body> {
    let code = StatusCode::from_u16(code).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    let mut response = response(code, Body::Full(Bytes::copy_from_slice(message.as_bytes())));
    set(response.headers_mut(), CONTENT_TYPE.as_str(), "text/plain; charset=utf-8");
    set(response.headers_mut(), "x-content-type-options", "nosniff");
    response
}
