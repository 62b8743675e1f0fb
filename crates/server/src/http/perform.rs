//! The execution of an authorized request for a resource: it reads the body, runs the verb and encodes the response.

use std::sync::Arc;

use base::deadline;
use base::request::Verb;
use bytes::Bytes;
use futures_util::future::BoxFuture;
use http::header::{CONTENT_LENGTH, CONTENT_TYPE, USER_AGENT};
use http::{HeaderMap, Response, StatusCode};
use http_body_util::{BodyExt as _, Limited};
use machinery::status::Reason;
use machinery::{Release, Result, Status};
use resource::builtin::{Connect, OwnEndpoint};

use super::body::Body;
use super::captured_log::{CapturedLogs, Lines, LogOf, LogRun, Times, select};
use super::chain::{Edge, HttpResponse};
use super::measure::RunningWatch;
use super::negotiate::{self, Accepted, Media};
use super::request_body::RequestBody;
use super::respond::{Reply, header, response, set};
use super::route::{check_accept, check_accept_of_log, check_shape_of_log, verb_of};
use super::watch::Stream;
use crate::limits;
use crate::verbs::{self, Document, Format, Outcome, PatchKind, Request, ResponseObject};

impl Edge {
    /// The log of a container from a capture. It does not grow, so that following it ends at its end.
    async fn captured_log(
        &self,
        logs: Arc<dyn CapturedLogs>,
        request: &Request,
        reply: &Reply,
    ) -> Result<HttpResponse> {
        let (container, lines) = verbs::container_log(request)?;
        check_shape_of_log(reply)?;
        let (namespace, pod) = (request.namespace().to_string(), request.name().to_string());
        let is_set = |name: &str| request.query().get(name).is_some_and(|value| !matches!(value, "false" | "0"));
        let run = if is_set("previous") { LogRun::Previous } else { LogRun::Current };
        let lines = Lines {
            last: lines.tail.map(|tail| usize::try_from(tail).unwrap_or(usize::MAX)),
            since: lines.since,
            bytes_max: lines.bytes.map(|bytes| usize::try_from(bytes).unwrap_or(usize::MAX)),
            times: if is_set("timestamps") { Times::Shown } else { Times::Hidden },
        };
        let what = match run {
            LogRun::Previous => format!("previous terminated container {container:?} in pod {pod:?} not found"),
            LogRun::Current => format!("the log of container {container:?} in pod {pod:?} was not captured"),
        };
        let read = move || {
            let log = LogOf { namespace: &namespace, pod: &pod, container: &container, run };
            logs.read(log).map(|read| read.map(|text| select(&text, lines)))
        };
        let text = match base::task::blocking(read) {
            Some(Ok(text)) => text,
            Some(Err(why)) => return Err(Status::internal("the captured log cannot be read").caused_by(why)),
            None => return Err(Status::bad_request(what)),
        };
        let mut response = Response::new(Body::Full(text.into()));
        set(response.headers_mut(), "content-type", "text/plain");
        Ok(response)
    }

    /// Runs the verb of a request. The body is read only after the verb, the patch type and Accept have been checked.
    pub(super) async fn perform(
        self: Arc<Self>,
        request: Arc<Request>,
        headers: &HeaderMap,
        body: RequestBody,
        reply: &Reply,
    ) -> Result<HttpResponse> {
        let verb = verb_of(&request)?;
        if let Some(OwnEndpoint::Connect(connect)) = request.endpoint() {
            return self.connect(&request, connect, headers, reply).await;
        }
        let patch = match verb {
            Verb::Patch => Some(patch_kind(self.served, &request, headers)?),
            _ => None,
        };
        if matches!(verb, Verb::Update | Verb::Patch) && request.name().is_empty() {
            return Err(Status::bad_request("name must be provided"));
        }
        if let Err(refusal) = check_accept(&request, verb, reply) {
            // resources with routes, and all resources since 1.36, have Accept checked before the options
            let options_first = !request.resource.serving.routes && request.resource.release < Release::V1_36;
            if options_first && matches!(verb, Verb::List | Verb::Watch) {
                verbs::check_options(&request)?;
            }
            return Err(refusal);
        }
        let context = &*self.context;
        let outcome = match verb {
            Verb::Get => verbs::get(context, &request).await?,
            Verb::List => verbs::list(context, &request).await?,
            Verb::Watch => return Box::pin(self.watch(request, headers, reply)).await,
            Verb::Create => self.create(&request, headers, body).await?,
            Verb::Update => {
                if request.resource.release >= Release::V1_37 {
                    verbs::check_update_options(&request)?;
                }
                let format = body_format(self.served, headers)?;
                let document = read(headers, body, format).await?;
                written(&request, &document, boxed(verbs::update(context, &request, &document))).await?
            }
            Verb::Patch => {
                let (kind, format) = patch.ok_or_else(|| negotiate::unsupported_media_type(self.served))?;
                let document = read(headers, body, format).await?;
                written(&request, &document, boxed(verbs::patch(context, &request, kind, &document))).await?
            }
            Verb::Delete | Verb::DeleteCollection => {
                if verb == Verb::DeleteCollection {
                    verbs::check_selection(&request)?;
                }
                let document = delete_document(self.served, headers, body).await?;
                if verb == Verb::Delete {
                    boxed(verbs::delete(context, &request, document.as_ref())).await?
                } else {
                    boxed(verbs::delete_collection(context, &request, document.as_ref())).await?
                }
            }
            Verb::Proxy | Verb::None => return Err(request.resource.verb_not_supported(verb.as_str())),
        };
        reply.outcome(&request, outcome).await
    }

    /// Connects to a Pod, a Node or a Service. A captured log is read; nothing else is there to be connected to.
    async fn connect(
        &self,
        request: &Arc<Request>,
        connect: Connect,
        headers: &HeaderMap,
        reply: &Reply,
    ) -> Result<HttpResponse> {
        if connect == Connect::Log {
            check_accept_of_log(headers, reply)?;
        }
        if let (Connect::Log, Some(logs)) = (connect, &self.logs) {
            return self.captured_log(logs.clone(), request, reply).await;
        }
        verbs::connect(&self.context, request, connect).await?;
        if connect == Connect::Log {
            check_shape_of_log(reply)?;
        }
        Ok(response(StatusCode::NO_CONTENT, Body::Full(Bytes::new())))
    }

    async fn create(&self, request: &Arc<Request>, headers: &HeaderMap, body: RequestBody) -> Result<Outcome> {
        let format = body_format(self.served, headers)?;
        let document = read(headers, body, format).await?;
        let created = written(request, &document, boxed(verbs::create(&self.context, request, &document))).await?;
        match (self.reviewer(request), created) {
            (Some(reviewer), Outcome::Object(effect, object)) => {
                let reviewed = reviewer.review(object.into_value()).await?;
                Ok(Outcome::Object(effect, ResponseObject::Tree(reviewed)))
            }
            (_, created) => Ok(created),
        }
    }

    async fn watch(&self, request: Arc<Request>, headers: &HeaderMap, reply: &Reply) -> Result<HttpResponse> {
        let accepted = reply.accepted.first().copied().ok_or_else(|| negotiate::not_acceptable(self.served))?;
        let running = RunningWatch::begin(&self.context, &request);
        let mut watch = verbs::watch(self.context.clone(), request.clone(), self.stop.clone()).await?;
        if accepted.media == Media::Yaml {
            return Err(negotiate::stream_not_acceptable(self.served));
        }
        if accepted.shape == negotiate::Shape::Table {
            super::table::Table::new(&request, &accepted)?;
        }
        let protobuf = request.resource.serving.protobuf;
        let encodable = |a: &&Accepted| match a.media {
            Media::Json | Media::Cbor => true,
            Media::Protobuf => protobuf || a.shape == negotiate::Shape::Partial,
            Media::Yaml => false,
        };
        let accepted = reply
            .accepted
            .iter()
            .find(encodable)
            .copied()
            .ok_or_else(|| negotiate::stream_not_acceptable(self.served))?;
        if accepted.shape == negotiate::Shape::PartialList {
            return Ok(reply.bytes(StatusCode::OK, Media::Json.as_str(), vec![]));
        }
        let agent = header(headers, USER_AGENT);
        self.intercept_watch(&watch.request.clone(), agent, &mut watch);
        let stream = Box::new(Stream::new(watch, accepted, running)?);
        let mut response = Response::new(Body::stream(stream));
        let content_type = match accepted.media {
            Media::Protobuf => "application/vnd.kubernetes.protobuf;stream=watch",
            Media::Cbor => negotiate::CBOR_SEQUENCE,
            _ => Media::Json.as_str(),
        };
        set(response.headers_mut(), CONTENT_TYPE.as_str(), content_type);
        Ok(response)
    }
}

/// Runs the write of a document, off the async worker if the document or the stored object is large.
async fn written<T>(request: &Request, document: &Document, write: BoxFuture<'_, T>) -> T {
    let limit = limits::INLINE_BYTES_MAX;
    if document.is_longer_than(limit) || request.stored_exceeds(limit) {
        deadline::beside_others(&request.authorized.user.name, write).await
    } else {
        write.await
    }
}

/// Boxes the future of a write, whose size would otherwise be part of the future of every request.
fn boxed<'a, T>(write: impl Future<Output = T> + Send + 'a) -> BoxFuture<'a, T> {
    Box::pin(write)
}

fn body_format(served: &[Media], headers: &HeaderMap) -> Result<Format> {
    match Media::of_content_type(served, header(headers, CONTENT_TYPE)) {
        Some(Media::Json) => Ok(Format::Json),
        Some(Media::Yaml) => Ok(Format::Yaml),
        Some(Media::Protobuf) => Ok(Format::Protobuf),
        Some(Media::Cbor) => Ok(Format::Cbor),
        None => Err(negotiate::unsupported_media_type(served)),
    }
}

/// Whether a request has a route: a verb of its resource and, for a patch, a type of patches.
pub(super) fn is_served(served: &[Media], request: &Request, headers: &HeaderMap) -> bool {
    match verb_of(request) {
        Ok(Verb::Patch) => patch_kind(served, request, headers).is_ok(),
        verb => verb.is_ok(),
    }
}

fn patch_kind(served: &[Media], request: &Request, headers: &HeaderMap) -> Result<(PatchKind, Format)> {
    let cbor = served.contains(&Media::Cbor);
    let kind = PatchKind::of(header(headers, CONTENT_TYPE)).filter(|(_, format)| cbor || *format != Format::Cbor);
    if !request.resource.serving.strategic_merge {
        return kind.filter(|(kind, _)| *kind != PatchKind::Strategic).ok_or_else(|| {
            let list = "application/json-patch+json, application/merge-patch+json, application/apply-patch+yaml";
            let more = if cbor { ", application/apply-patch+cbor" } else { "" };
            Status::new(
                Reason::UnsupportedMediaType,
                format!(
                    "the body of the request was in an unknown format - accepted media types include: {list}{more}"
                ),
            )
        });
    }
    kind.ok_or_else(negotiate::unsupported_body)
}

/// Reads the body of a request, up to [`limits::BODY_BYTES_MAX`] bytes.
pub(super) async fn read(headers: &HeaderMap, body: RequestBody, format: Format) -> Result<Document> {
    if let Some(document) = body.decoded().filter(|document| document.format == format) {
        return Ok(document);
    }
    let too_large = || {
        let message = format!("Request entity too large: limit is {}", limits::BODY_BYTES_MAX);
        Status::new(Reason::RequestEntityTooLarge, message)
    };
    let declared = header(headers, CONTENT_LENGTH).parse::<usize>().ok();
    if declared.is_some_and(|length| length > limits::BODY_BYTES_MAX) {
        return Err(too_large());
    }
    let bytes: Bytes = match Limited::new(body, limits::BODY_BYTES_MAX).collect().await {
        Ok(collected) => collected.to_bytes(),
        Err(error) if error.is::<http_body_util::LengthLimitError>() => {
            return Err(too_large());
        }
        Err(error) => {
            let refused = error.downcast::<Status>().map(|status| *status);
            return Err(refused.unwrap_or_else(|error| Status::bad_request(error.to_string())));
        }
    };
    Ok(Document::new(bytes, format))
}

/// The DeleteOptions in the body of a DELETE; `None` if it is empty.
async fn delete_document(served: &[Media], headers: &HeaderMap, body: RequestBody) -> Result<Option<Document>> {
    let document = read(headers, body, Format::Json).await?;
    if document.bytes().is_empty() {
        return Ok(None);
    }
    let format = body_format(served, headers)?;
    Ok(Some(Document::new(document.bytes().clone(), format)))
}
