//! Recording of the requests and responses of a workspace.
//!
//! Only a few headers are kept, none of them with credentials. Secret values are replaced unless the recording asks
//! for them.

mod redact;
mod steps;
#[cfg(test)]
mod tests;
mod transcode;

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use base::request::{RequestInfo, Verb};
use bytes::Bytes;
use http::header::{ACCEPT, CONTENT_TYPE, USER_AGENT};
use http::{request, response};
use machinery::{Result, Status, Value, json};
use parking_lot::Mutex;

use redact::Redacted;
pub use steps::COMPARED_HEADERS;

use super::Testing;
use super::definition::GROUP;
use crate::http::{Tap, header};
use crate::limits;

/// Whether the recorded steps contain secret values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Secrets {
    Kept,
    Replaced,
}

/// A request and its response, as far as they have been received and sent.
pub struct Recorded {
    pub info: RequestInfo,
    pub method: String,
    /// Path and query.
    pub target: String,
    pub accept: String,
    pub content_type: String,
    /// The User-Agent, which is the field manager of writes that name none.
    pub agent: String,
    pub body: Vec<u8>,
    /// The code of the response; 0 if there is none yet.
    pub code: u16,
    /// The headers that replays compare.
    pub headers: Vec<(String, String)>,
    pub response: Vec<u8>,
}

/// A recording in progress.
#[derive(Default)]
pub struct RunningRecording {
    all: Mutex<Vec<Arc<Mutex<Recorded>>>>,
    bytes: AtomicUsize,
}

/// Records one request.
struct RecordingTap {
    recorder: Arc<RunningRecording>,
    recorded: Arc<Mutex<Recorded>>,
}

impl RunningRecording {
    fn is_full(&self) -> bool {
        self.bytes.load(Ordering::Relaxed) >= limits::RECORDED_BYTES
            || self.all.lock().len() >= limits::RECORDED_REQUESTS
    }

    /// Begins to record a request; `None` if it is not to be recorded.
    pub fn begin(self: &Arc<Self>, info: &RequestInfo, path: &str, head: &request::Parts) -> Option<Arc<dyn Tap>> {
        if !info.is_resource || info.group == GROUP || self.is_full() {
            return None;
        }
        let query = head.uri.query().map(|query| format!("?{query}")).unwrap_or_default();
        let recorded = Arc::new(Mutex::new(Recorded {
            info: info.clone(),
            method: head.method.to_string(),
            target: format!("{path}{query}"),
            accept: header(&head.headers, ACCEPT).to_owned(),
            content_type: header(&head.headers, CONTENT_TYPE).to_owned(),
            agent: header(&head.headers, USER_AGENT).to_owned(),
            body: vec![],
            code: 0,
            headers: vec![],
            response: vec![],
        }));
        self.all.lock().push(recorded.clone());
        Some(Arc::new(RecordingTap { recorder: self.clone(), recorded }))
    }

    fn status(&self, secrets: Secrets) -> Value {
        let all = self.all.lock();
        let mut redacted = Redacted::new(secrets);
        let steps = all.iter().enumerate().filter_map(|(index, one)| steps::step(index, &one.lock(), &mut redacted));
        let steps: Value = steps.collect();
        drop(all);
        json!({"steps": steps, "truncated": (self.is_full())})
    }
}

impl RecordingTap {
    /// Keeps bytes as long as the recording has room.
    fn keep(&self, bytes: &Bytes, of: impl FnOnce(&mut Recorded) -> &mut Vec<u8>) {
        if self.recorder.bytes.fetch_add(bytes.len(), Ordering::Relaxed) < limits::RECORDED_BYTES {
            of(&mut self.recorded.lock()).extend_from_slice(bytes);
        }
    }
}

impl Tap for RecordingTap {
    fn sent(&self, bytes: &Bytes) {
        self.keep(bytes, |recorded| &mut recorded.body);
    }

    fn responded(&self, head: &response::Parts) {
        let mut recorded = self.recorded.lock();
        recorded.code = head.status.as_u16();
        let compared = COMPARED_HEADERS.iter().flat_map(|name| {
            let values = head.headers.get_all(*name).iter().filter_map(|value| value.to_str().ok());
            values.map(|value| ((*name).to_owned(), value.to_owned()))
        });
        recorded.headers = compared.collect();
    }

    fn received(&self, bytes: &Bytes) {
        self.keep(bytes, |recorded| &mut recorded.response);
    }
}

impl Recorded {
    pub fn is_watch(&self) -> bool {
        self.info.verb == Verb::Watch && self.code == 200
    }
}

impl Testing {
    /// Completes a Recording.
    pub fn record(&self, mut object: Value) -> Result<Value> {
        let is_set = |field: &str| object.at(&["spec", field]) == Some(&Value::Bool(true));
        let (ends, secrets) = (is_set("end"), if is_set("secrets") { Secrets::Kept } else { Secrets::Replaced });
        let begun = if ends { None } else { Some(Arc::<RunningRecording>::default()) };
        self.records.store(begun.is_some(), Ordering::Release);
        let before = std::mem::replace(&mut *self.recorder.lock(), begun);
        if ends {
            let before = before.ok_or_else(|| Status::bad_request("no recording has begun"))?;
            object.set_at(&["status"], base::task::blocking(|| before.status(secrets)));
        }
        Ok(object)
    }
}
