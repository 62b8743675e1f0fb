//! From outcomes to bytes: shapes, encodings, pretty printing, compression.

use std::io::Write as _;
use std::sync::Arc;

use bytes::Bytes;
use http::header::{CONTENT_TYPE, HeaderName, HeaderValue};
use http::{HeaderMap, Response, StatusCode};
use machinery::status::Reason;
use machinery::{Status, Text, Value, cbor, yaml};

use super::body::Body;
use super::list::{self, Encoding, ListBody};
use super::negotiate::{Accepted, Media, Shape};
use super::table;
use crate::audit::AuditContext;
use crate::flow::Sorted;
use crate::limits;
use crate::resource::builtin::{DEFINITION_GROUP, DEFINITIONS};
use crate::task::Trace;
use crate::trace::Span;
use crate::verbs::{Items, ListOutcome, Outcome, Request, Shown, Subresource};

/// How this request wants its answer.
pub struct Reply {
    /// The media types of the server.
    pub served: &'static [Media],
    pub accepted: Vec<Accepted>,
    /// Whether a media type of the server is asked for, even if in a form that can't be had.
    pub named: bool,
    /// The same for what has no other shape: statuses, documents.
    pub plain: Vec<Accepted>,
    /// The form of aggregated discovery, if that comes first.
    pub aggregated: Option<Accepted>,
    pub pretty: bool,
    pub gzip: bool,
    /// What is to be said of how the request's sender showed who he is.
    pub warnings: Vec<&'static str>,
    /// What is recorded of the request, if anything.
    pub audit_context: Option<Arc<AuditContext>>,
    /// Where in a trace the work for the request stands, and its span if that is sampled.
    pub trace_context: Option<Trace>,
    pub span: Option<Span>,
    /// Whether the connection is closed after this response: HTTP/2 connections of clients without credentials are, as
    /// kube-apiserver's feature `UnauthenticatedHTTP2DOSMitigation` does.
    pub closes: bool,
    /// The priority level that the request came to.
    pub sorted: Option<Sorted>,
}

impl Reply {
    /// The best form for an object that can't be protobuf.
    fn text(&self, request: &Request) -> Option<Accepted> {
        self.forms(request).find(|a| a.media != Media::Protobuf)
    }

    /// The forms in which a resource can be had that are accepted, best first: nobody makes tables of reviews, nor of
    /// the status of a definition.
    pub fn forms(&self, request: &Request) -> impl Iterator<Item = Accepted> {
        let definition = request.resource.group == DEFINITION_GROUP && request.resource.plural == DEFINITIONS;
        let no_table = request.resource.is_review() || (definition && request.subresource == Subresource::Status);
        self.accepted.iter().copied().filter(move |accepted| !(no_table && accepted.shape == Shape::Table))
    }

    pub fn is_pretty(&self, accepted: &Accepted) -> bool {
        accepted.pretty.unwrap_or(self.pretty)
    }

    /// A Status; shapes don't apply to it. One that can't be had as it is accepted is not recorded.
    pub fn status(&self, status: &Status) -> Response<Body> {
        if let Some(audit_context) = self.audit_context.as_ref().filter(|_| !self.plain.is_empty()) {
            audit_context.status(&status.to_value());
        }
        self.status_in(status, self.plain.first().copied())
    }

    /// A Status for a client that accepts it in this form, or in none that can be had.
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
        if status.code == 403 {
            set(response.headers_mut(), "x-content-type-options", "nosniff");
        }
        response
    }

    /// A tree as it is.
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

    /// A document of a kind that has messages.
    pub fn built_in(&self, value: &Value, accepted: &Accepted) -> Response<Body> {
        self.record(|| value.clone());
        let message = if accepted.media == Media::Protobuf { self.envelope(StatusCode::OK, value) } else { None };
        message.unwrap_or_else(|| self.tree(StatusCode::OK, value, accepted))
    }

    pub fn bytes(&self, code: StatusCode, content_type: &str, bytes: impl Into<Bytes>) -> Response<Body> {
        let bytes = bytes.into();
        let compress = self.gzip && bytes.len() > limits::GZIP_BYTES_MIN;
        let body = if compress { Bytes::from(gzip(&bytes)) } else { bytes };
        let mut response = Response::new(Body::Full(body));
        *response.status_mut() = code;
        self.set_content(response.headers_mut(), content_type, compress);
        response
    }

    /// What a verb answered.
    pub fn outcome(&self, request: &Arc<Request>, outcome: Outcome) -> Result<Response<Body>, Status> {
        match outcome {
            Outcome::Success(value) => {
                if let Some(audit_context) = &self.audit_context {
                    audit_context.status(&value);
                }
                let accepted = self.text(request).unwrap_or(Accepted::JSON);
                Ok(self.tree(StatusCode::OK, &value, &Accepted { shape: Shape::Whole, ..accepted }))
            }
            Outcome::Object(code, shown) => {
                self.object(request, StatusCode::from_u16(code).unwrap_or(StatusCode::OK), &shown)
            }
            Outcome::List(list) => self.list(request, list),
        }
    }

    /// Records what is answered.
    pub(super) fn record(&self, object: impl FnOnce() -> Value) {
        if let Some(audit_context) = &self.audit_context {
            audit_context.response(object);
        }
    }

    /// A tree that is recorded.
    fn recorded(&self, code: StatusCode, value: &Value, accepted: &Accepted) -> Response<Body> {
        self.record(|| value.clone());
        self.tree(code, value, accepted)
    }

    /// Whether the best form is protobuf, and the answer can be had in it: built-in kinds, and metadata of anything.
    fn protobuf(&self, request: &Request) -> Option<Accepted> {
        let best = self.forms(request).next().filter(|a| a.media == Media::Protobuf)?;
        let whole = !request.resource.is_custom() || request.subresource == Subresource::Scale;
        (whole || best.shape != Shape::Whole).then_some(best)
    }

    fn envelope(&self, code: StatusCode, object: &Value) -> Option<Response<Body>> {
        let bytes = machinery::protobuf::encode(object)?;
        Some(self.bytes(code, Media::Protobuf.as_str(), bytes))
    }

    fn object(&self, request: &Request, code: StatusCode, shown: &Shown) -> Result<Response<Body>, Status> {
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
        let accepted = self.text(request).ok_or_else(|| super::negotiate::not_acceptable(self.served, false))?;
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

    fn list(&self, request: &Arc<Request>, list: ListOutcome) -> Result<Response<Body>, Status> {
        if let Some(accepted) = self.protobuf(request) {
            let (version, kind) = match accepted.shape {
                Shape::Partial => return Err(no_object(request)),
                Shape::PartialList => {
                    (Text::new_static(accepted.shape_version()), "PartialObjectMetadataList".to_owned())
                }
                _ => (request.api_version(), request.resource.list_kind.to_string()),
            };
            let meta = list_meta(&list, false);
            if Encoding::protobuf(&version, &kind, &meta, 0).is_some() {
                let bytes = list::protobuf_bytes(&version, &kind, request, list.items.clone())?;
                let encoding = Encoding::protobuf(&version, &kind, &meta, bytes);
                return self.listed(request, list, (Media::Protobuf, accepted), encoding);
            }
        }
        let accepted = self.text(request).ok_or_else(|| super::negotiate::not_acceptable(self.served, false))?;
        if accepted.shape == Shape::Partial {
            return Err(no_object(request));
        }
        let pretty = self.is_pretty(&accepted);
        let frame = frame_of(request, &list, &accepted, list::placeholder())?;
        let tree = list::tree_of(request, accepted)?;
        let encoding = match (accepted.media, accepted.shape) {
            _ if list.items.len() == 0 => None,
            (Media::Json, Shape::Whole) if !pretty => Encoding::json(&frame, !request.resource.is_custom()),
            (Media::Cbor, _) => Encoding::cbor(&frame, list.items.len(), tree),
            _ => Encoding::text(&frame, &accepted, pretty, tree),
        };
        self.listed(request, list, (accepted.media, accepted), encoding)
    }

    /// A list in an encoding; one without items needs none.
    fn listed(
        &self,
        request: &Arc<Request>,
        list: ListOutcome,
        (media, accepted): (Media, Accepted),
        encoding: Option<Encoding>,
    ) -> Result<Response<Body>, Status> {
        if self.audit_context.as_ref().is_some_and(|audit_context| audit_context.keeps_response()) {
            let tree = list::tree_of(request, accepted)?;
            let trees = all_of(request, list.items.clone())?.iter().map(tree).collect();
            let value = frame_of(request, &list, &accepted, Value::Array(trees))?;
            self.record(|| value);
        }
        let Some(encoding) = encoding else {
            let empty = frame_of(request, &list, &accepted, Value::Array(vec![]))?;
            return Ok(self.tree(StatusCode::OK, &empty, &accepted));
        };
        let mut body = ListBody::new(request.clone(), list.items, encoding);
        let least = if self.gzip { limits::GZIP_BYTES_MIN } else { limits::UNSENT_BYTES_MAX };
        let is_all = body.fill(least + 1)?;
        if is_all && body.len() <= least {
            return Ok(self.bytes(StatusCode::OK, media.as_str(), body.into_bytes()));
        }
        let body = if self.gzip { body.compressed() } else { body };
        let mut response = Response::new(Body::document(Box::new(body)));
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

/// Everything that a list holds.
fn all_of(request: &Request, mut items: Items) -> Result<Vec<Shown>, Status> {
    let mut all = vec![];
    while items.len() > 0 {
        all.extend(items.next(request)?);
    }
    Ok(all)
}

/// The list, table or list of metadata around items.
fn frame_of(request: &Request, list: &ListOutcome, accepted: &Accepted, items: Value) -> Result<Value, Status> {
    Ok(match accepted.shape {
        Shape::Table => table::Table::new(request, accepted)?.around(list_meta(list, false), items),
        Shape::PartialList => partial_list(list, accepted, items),
        _ => list_frame(request, list, items),
    })
}

/// An object was asked for as if it were a list.
fn no_list(request: &Request) -> Status {
    if request.resource.is_custom() && request.subresource != Subresource::Scale {
        return Status::untyped(500, "content is not a list");
    }
    let (package, kind) = match request.resource.built_in() {
        Some(built_in) => (built_in.go_package(), built_in.kind),
        None => ("v1", "Scale"),
    };
    let message =
        format!("you requested PartialObjectMetadataList, but the requested object is not a list (*{package}.{kind})");
    Status::new(Reason::NotAcceptable, message)
}

/// A list was asked for as if it were an object.
fn no_object(request: &Request) -> Status {
    let found = match request.resource.built_in() {
        Some(built_in) => format!("*{}.{}", built_in.go_package(), request.resource.list_kind),
        None => "*unstructured.UnstructuredList".to_owned(),
    };
    let message = format!("you requested PartialObjectMetadata, but the requested object is a list ({found})");
    Status::new(Reason::NotAcceptable, message)
}

/// ListMeta; lists of custom resources always carry `continue`.
fn list_meta(list: &ListOutcome, custom: bool) -> Value {
    let mut meta = Value::object();
    meta.set_at(&["resourceVersion"], Value::from(list.revision.to_string()));
    if custom || !list.continue_token.is_empty() {
        meta.set_at(&["continue"], Value::from(&list.continue_token));
    }
    if let Some(remaining) = list.remaining {
        meta.set_at(&["remainingItemCount"], Value::Int(i64::try_from(remaining).unwrap_or(i64::MAX)));
    }
    meta
}

fn list_frame(request: &Request, list: &ListOutcome, items: Value) -> Value {
    [
        ("apiVersion", Value::String(request.api_version())),
        ("items", items),
        ("kind", Value::from(request.resource.list_kind.as_str())),
        ("metadata", list_meta(list, request.resource.is_custom())),
    ]
    .into()
}

fn partial_list(list: &ListOutcome, accepted: &Accepted, items: Value) -> Value {
    let is_empty = items.as_array().is_some_and(<[Value]>::is_empty);
    [
        ("kind", Value::from("PartialObjectMetadataList")),
        ("apiVersion", Value::from(accepted.shape_version())),
        ("metadata", list_meta(list, false)),
        ("items", if is_empty { Value::Null } else { items }),
    ]
    .into()
}

fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = flate2::write::GzEncoder::new(Vec::with_capacity(bytes.len() / 4), flate2::Compression::fast());
    // writing to memory does not fail
    let _ = encoder.write_all(bytes);
    encoder.finish().unwrap_or_default()
}

pub fn set(headers: &mut HeaderMap, name: &str, value: &str) {
    if let (Ok(name), Ok(value)) = (HeaderName::try_from(name), HeaderValue::from_bytes(value.as_bytes())) {
        headers.insert(name, value);
    }
}

/// Two spaces, no line break at the end.
pub fn pretty(value: &Value) -> String {
    let mut out = String::new();
    indent(value, 0, &mut out);
    out
}

pub fn indent(value: &Value, depth: usize, out: &mut String) {
    let line = |out: &mut String, depth: usize| {
        out.push('\n');
        out.push_str(&"  ".repeat(depth));
    };
    match value {
        Value::Object(map) if !map.is_empty() => {
            out.push('{');
            for (i, (key, value)) in map.iter().enumerate() {
                if i > 0 {
                    out.push(',');
                }
                line(out, depth + 1);
                out.push_str(&Value::String(key.clone()).to_json());
                out.push_str(": ");
                indent(value, depth + 1, out);
            }
            line(out, depth);
            out.push('}');
        }
        Value::Array(items) if !items.is_empty() => {
            out.push('[');
            for (i, item) in items.iter().enumerate() {
                if i > 0 {
                    out.push(',');
                }
                line(out, depth + 1);
                indent(item, depth + 1, out);
            }
            line(out, depth);
            out.push(']');
        }
        other => out.push_str(&other.to_json()),
    }
}

/// A plain text answer.
pub fn text(code: u16, message: &str) -> Response<Body> {
    let mut response = Response::new(Body::Full(Bytes::copy_from_slice(message.as_bytes())));
    *response.status_mut() = StatusCode::from_u16(code).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    set(response.headers_mut(), CONTENT_TYPE.as_str(), "text/plain; charset=utf-8");
    set(response.headers_mut(), "x-content-type-options", "nosniff");
    response
}
