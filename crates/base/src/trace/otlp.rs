//! Export of spans in batches: OTLP over gRPC, with the messages of `trace/v1/trace.proto`.

use tokio::sync::{mpsc, oneshot};
use tonic::transport::{Channel, Endpoint};

use super::Span;
use crate::{clock, limits, task};

const EXPORT: &str = "/opentelemetry.proto.collector.trace.v1.TraceService/Export";
/// Service name and instrumentation scope, as kube-apiserver sends them.
const SERVICE: &str = "apiserver";
const SCOPE: &str = "k8s.io/component-base/tracing";

machinery::messages! {
    ExportRequest { resource_spans: Vec<ResourceSpans> = 1 (message, repeated) }
    ExportResponse {}
    ResourceSpans {
        resource: Option<Resource> = 1 (message, optional),
        scope_spans: Vec<ScopeSpans> = 2 (message, repeated),
    }
    Resource { attributes: Vec<KeyValue> = 1 (message, repeated) }
    ScopeSpans { scope: Option<Scope> = 1 (message, optional), spans: Vec<Encoded> = 2 (message, repeated) }
    Scope { name: String = 1 (string) }
    /// A finished span.
    Encoded {
        trace_id: Vec<u8> = 1 (bytes = "vec"),
        span_id: Vec<u8> = 2 (bytes = "vec"),
        parent_span_id: Vec<u8> = 4 (bytes = "vec"),
        name: String = 5 (string),
        kind: i32 = 6 (int32),
        start_time_unix_nano: u64 = 7 (fixed64),
        end_time_unix_nano: u64 = 8 (fixed64),
        attributes: Vec<KeyValue> = 9 (message, repeated),
        links: Vec<Link> = 13 (message, repeated),
        status: Option<SpanStatus> = 15 (message, optional),
    }
    Link { trace_id: Vec<u8> = 1 (bytes = "vec"), span_id: Vec<u8> = 2 (bytes = "vec") }
    SpanStatus {
        /// 2 for an error.
        code: i32 = 3 (int32),
    }
    KeyValue { key: String = 1 (string), value: Option<AnyValue> = 2 (message, optional) }
}

#[derive(Clone, PartialEq, prost::Message)]
pub struct AnyValue {
    #[prost(oneof = "Any", tags = "1, 3")]
    pub value: Option<Any>,
}

#[derive(Clone, PartialEq, prost::Oneof)]
pub enum Any {
    #[prost(string, tag = "1")]
    Text(String),
    #[prost(int64, tag = "3")]
    Int(i64),
}

fn field(key: &str, value: Any) -> KeyValue {
    KeyValue { key: key.to_owned(), value: Some(AnyValue { value: Some(value) }) }
}

/// Finishes a span now; times are in nanoseconds since the Unix epoch.
pub fn encoded(span: &Span, end: i64) -> Encoded {
    let nanos = |time: i64| u64::try_from(time).unwrap_or_default();
    let texts = span.attributes.iter().map(|(key, text)| field(key, Any::Text(text.clone())));
    let status = (span.status > 0).then(|| field("http.response.status_code", Any::Int(span.status.into())));
    Encoded {
        trace_id: span.at.id.to_vec(),
        span_id: span.at.span.to_vec(),
        parent_span_id: span.parent.map(|parent| parent.to_vec()).unwrap_or_default(),
        name: span.name.clone(),
        kind: span.kind as i32,
        start_time_unix_nano: nanos(span.start),
        end_time_unix_nano: nanos(end.max(span.start)),
        attributes: texts.chain(status).collect(),
        links: span.link.map(|at| Link { trace_id: at.id.to_vec(), span_id: at.span.to_vec() }).into_iter().collect(),
        status: (span.status >= 500).then_some(SpanStatus { code: 2 }),
    }
}

enum Message {
    Span(Box<Encoded>),
    Flush(oneshot::Sender<()>),
}

/// Receives spans and exports them in batches, by number or after an interval.
pub struct Exporter {
    queue: mpsc::Sender<Message>,
}

impl Exporter {
    /// Fails with a one-line message.
    pub fn start(endpoint: &str) -> Result<Exporter, String> {
        let endpoint = Endpoint::from_shared(format!("http://{endpoint}")).map_err(|error| error.to_string())?;
        let channel = endpoint.timeout(limits::TRACE_TIMEOUT).connect_timeout(limits::TRACE_TIMEOUT).connect_lazy();
        let (queue, spans) = mpsc::channel(limits::TRACE_QUEUE_SPANS);
        task::spawn("traces", run(spans, channel));
        Ok(Exporter { queue })
    }

    pub fn take(&self, span: Encoded) {
        // dropped if the queue is full
        let _ = self.queue.try_send(Message::Span(Box::new(span)));
    }

    pub async fn flush(&self) {
        let (done, sent) = oneshot::channel();
        if self.queue.send(Message::Flush(done)).await.is_ok() {
            let _ = sent.await;
        }
    }
}

async fn run(mut spans: mpsc::Receiver<Message>, channel: Channel) {
    let instance = format!("apiserver-{}", clock::uuid());
    let mut batch = vec![];
    loop {
        let until = clock::instant() + limits::TRACE_PAUSE;
        let flushed = loop {
            match tokio::time::timeout_at(until, spans.recv()).await {
                Ok(Some(Message::Span(span))) => batch.push(*span),
                Ok(Some(Message::Flush(done))) => break Some(done),
                Ok(None) => return,
                Err(_) => break None,
            }
            if batch.len() >= limits::TRACE_BATCH_SPANS {
                break None;
            }
        };
        if !batch.is_empty()
            && let Err(status) = send(channel.clone(), &instance, std::mem::take(&mut batch)).await
        {
            tracing::warn!(why = status.message(), "traces are lost");
        }
        if let Some(done) = flushed {
            let _ = done.send(());
        }
    }
}

async fn send(channel: Channel, instance: &str, spans: Vec<Encoded>) -> Result<(), tonic::Status> {
    let text = |key: &str, text: &str| field(key, Any::Text(text.to_owned()));
    let resource = Resource { attributes: vec![text("service.name", SERVICE), text("service.instance.id", instance)] };
    let scope_spans = vec![ScopeSpans { scope: Some(Scope { name: SCOPE.to_owned() }), spans }];
    let request = ExportRequest { resource_spans: vec![ResourceSpans { resource: Some(resource), scope_spans }] };
    let mut grpc = tonic::client::Grpc::new(channel);
    grpc.ready().await.map_err(|error| tonic::Status::unavailable(error.to_string()))?;
    let codec = tonic_prost::ProstCodec::<ExportRequest, ExportResponse>::default();
    let path = http::uri::PathAndQuery::from_static(EXPORT);
    grpc.unary(tonic::Request::new(request), path, codec).await.map(drop)
}
