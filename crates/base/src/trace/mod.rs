//! Traces of sampled requests, in OpenTelemetry's terms.
//!
//! Invariant: without a configuration, and for requests that are not sampled, a span adds nothing to its future. A span
//! that cannot be sent is dropped; requests do not wait for the export.

mod configuration;
mod otlp;

use std::pin::pin;
use std::sync::OnceLock;

use http::HeaderMap;

use crate::task::{self, Trace};
use crate::{clock, limits};

pub use configuration::Configuration;
use otlp::Exporter;

static TRACER: OnceLock<Tracer> = OnceLock::new();

struct Tracer {
    per_million: u32,
    exporter: Exporter,
}

/// Attributes of a span, without empty values.
pub type Attributes = Vec<(&'static str, String)>;

/// The kind of a span: server, client or internal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    Internal = 1,
    Server = 2,
    Client = 3,
}

/// A span in progress; it ends when this is dropped, whether its work was completed or cancelled.
#[derive(Debug)]
pub struct Span {
    at: Trace,
    parent: Option<[u8; 8]>,
    /// The trace of an untrusted caller, which is linked.
    link: Option<Trace>,
    name: String,
    kind: Kind,
    start: i64,
    attributes: Attributes,
    status: u16,
}

/// Starts the export of spans, once in a process. Fails with a one-line message.
pub fn start(configuration: &Configuration) -> Result<(), String> {
    let exporter = Exporter::start(&configuration.endpoint)?;
    let _ = TRACER.set(Tracer { per_million: configuration.per_million, exporter });
    Ok(())
}

/// Exports the queued spans.
pub async fn flush() {
    if let Some(tracer) = TRACER.get() {
        tracer.exporter.flush().await;
    }
}

/// The span of a request, and the context for its children. The trace in the headers is continued if the headers are
/// trusted, and linked otherwise.
pub fn of_request(
    headers: &HeaderMap,
    trusted: bool,
    received: i64,
    name: impl FnOnce() -> (String, Attributes),
) -> (Option<Span>, Option<Trace>) {
    let Some(tracer) = TRACER.get() else { return (None, None) };
    let given = headers.get(task::TRACE_HEADER).and_then(|value| parse(value.to_str().ok()?));
    let (parent, link) = if trusted { (given, None) } else { (None, given) };
    let at = match parent {
        Some(parent) => Trace { span: clock::random_bytes(), ..parent },
        None => {
            let id = clock::random_bytes();
            Trace { id, span: clock::random_bytes(), sampled: is_sampled(id, tracer.per_million) }
        }
    };
    if !at.sampled {
        return (None, Some(at));
    }
    let (name, attributes) = name();
    let (parent, start) = (parent.map(|parent| parent.span), received.saturating_mul(1000));
    let span = Span { at, parent, link, name, kind: Kind::Server, start, attributes, status: 0 };
    (Some(span), Some(at))
}

/// Runs a future within a span of its own, if the request is sampled.
pub async fn span<F: Future>(
    name: &'static str,
    kind: Kind,
    attributes: impl FnOnce() -> Attributes,
    work: F,
) -> F::Output {
    // pinned first, since otherwise the state of this function would hold it twice, for each of the two places that await it
    let work = pin!(work);
    let Some(outer) = task::trace().filter(|trace| trace.sampled) else { return work.await };
    let at = Trace { span: clock::random_bytes(), ..outer };
    let start = clock::machine_micros().saturating_mul(1000);
    let (parent, attributes) = (Some(outer.span), attributes());
    let span = Span { at, parent, link: None, name: name.to_owned(), kind, start, attributes, status: 0 };
    let done = task::traced(at, work).await;
    drop(span);
    done
}

/// Runs a future within a span, if there is one.
pub async fn at<F: Future>(place: Option<Trace>, work: F) -> F::Output {
    let work = pin!(work);
    match place {
        Some(place) => task::traced(place, work).await,
        None => work.await,
    }
}

impl Span {
    pub fn set_status(&mut self, status: u16) {
        self.status = status;
    }
}

impl Drop for Span {
    fn drop(&mut self) {
        let Some(tracer) = TRACER.get() else { return };
        let end = clock::machine_micros().saturating_mul(1000);
        tracer.exporter.take(otlp::encoded(self, end));
    }
}

/// Whether a trace is sampled: by its id, so that all servers decide alike.
fn is_sampled(id: [u8; 16], per_million: u32) -> bool {
    let low = u64::from_be_bytes(std::array::from_fn(|i| id[8 + i])) >> 1;
    let bound = (u128::from(per_million) << 63) / 1_000_000;
    u128::from(low) < bound
}

/// Parses a `traceparent`: `<version>-<trace>-<span>-<flags>`. Versions after 00 may have more parts.
fn parse(text: &str) -> Option<Trace> {
    let mut parts = text.trim().split('-');
    let (version, id, span, flags) = (parts.next()?, parts.next()?, parts.next()?, parts.next()?);
    if version.len() != 2 || version == "ff" || (version == "00" && parts.next().is_some()) {
        return None;
    }
    let (id, span, [flags]) = (bytes::<16>(id)?, bytes::<8>(span)?, bytes::<1>(flags)?);
    let valid = id != [0; 16] && span != [0; 8] && bytes::<1>(version).is_some();
    valid.then_some(Trace { id, span, sampled: flags & 1 == 1 })
}

/// Bytes written as lower case hexadecimal digits.
fn bytes<const N: usize>(text: &str) -> Option<[u8; N]> {
    let digit = |c: u8| match c {
        b'0'..=b'9' => Some(c - b'0'),
        b'a'..=b'f' => Some(c - b'a' + 10),
        _ => None,
    };
    let digits = text.as_bytes();
    if digits.len() != 2 * N {
        return None;
    }
    let mut out = [0; N];
    for (byte, pair) in out.iter_mut().zip(digits.chunks(2)) {
        *byte = digit(pair[0])? << 4 | digit(pair[1])?;
    }
    Some(out)
}

/// The attributes of a span, without empty ones.
pub fn attributes<const N: usize>(all: [(&'static str, &str); N]) -> Attributes {
    let cut = |text: &str| text.chars().take(limits::TRACE_TEXT_RUNES_MAX).collect();
    all.into_iter().filter(|(_, text)| !text.is_empty()).map(|(key, text)| (key, cut(text))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headers_round_trip() {
        let text = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";
        assert_eq!(parse(text).unwrap().header(), text);
        assert!(!parse(&text.replace("-01", "-00")).unwrap().sampled);
        assert!(parse(&text.replace("00-0af", "01-0af")).is_some(), "later versions begin alike");
        for wrong in [
            "",
            "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331",
            "00-0AF7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
            "00-00000000000000000000000000000000-b7ad6b7169203331-01",
            "00-0af7651916cd43dd8448eb211c80319c-0000000000000000-01",
            "ff-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
            "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01-x",
        ] {
            assert_eq!(parse(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn samples_configured_share_of_traces() {
        let of = |byte: u8, per_million| is_sampled([byte; 16], per_million);
        assert!(!of(0, 0) && of(0, 1) && of(0xff, 1_000_000));
        assert!(of(0x7f, 500_000) && !of(0x80, 500_000));
    }

    #[tokio::test]
    async fn tracing_is_off_by_default() {
        let work = async { task::trace().is_some() };
        assert!(!span("x", Kind::Internal, || unreachable!("tracing is off"), work).await);
    }
}
