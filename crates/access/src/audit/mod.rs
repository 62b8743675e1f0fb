//! The audit log and webhook (audit.k8s.io/v1; Kubernetes documentation, "Auditing").
//!
//! Invariant: a request has one [`AuditContext`], created after authentication. Data that its level does not record is not
//! evaluated. The last stage is recorded when the context is dropped, so that no exit from a request is missed.

mod event;
mod log;
mod policy;
mod webhook;

use std::net::IpAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use base::clock;
use base::metrics::{AuditLevel, METRICS};
use base::request::User;
use base::webhook::Remote;
use machinery::{Text, Value};
use parking_lot::Mutex;

pub use event::{AuditedRequest, Layer, Level};
use event::{Record, Stage};
pub use log::{LogMode, LogOptions, OpenLogError};
pub use policy::{AuditDecision, AuditPolicy};
pub use webhook::BatchOptions;

/// A backend that receives events.
enum Sink {
    Log(log::Log),
    Webhook(webhook::Webhook),
}

/// The policy and the backends. Nothing is recorded without both.
#[derive(Default)]
pub struct Audit {
    policy: AuditPolicy,
    sinks: Vec<Sink>,
}

impl Audit {
    pub fn new(policy: AuditPolicy) -> Audit {
        Audit { policy, sinks: vec![] }
    }

    /// Opens the files of logs again, which another program may have renamed.
    pub fn reopen(&self) {
        for sink in &self.sinks {
            if let Sink::Log(log) = sink {
                log.reopen();
            }
        }
    }

    /// Adds the log backend.
    pub fn log(&mut self, options: LogOptions) -> Result<(), OpenLogError> {
        self.sinks.push(Sink::Log(log::Log::open(options)?));
        Ok(())
    }

    /// Adds the webhook backend.
    pub fn webhook(&mut self, remote: Remote, options: BatchOptions) {
        self.sinks.push(Sink::Webhook(webhook::Webhook::new(remote, options)));
    }

    /// Starts the background tasks of the backends.
    pub fn start(&self) {
        for sink in &self.sinks {
            match sink {
                Sink::Log(log) => log.start(),
                Sink::Webhook(webhook) => webhook.start(),
            }
        }
    }

    /// Whether the policy and a backend are configured.
    pub fn is_on(&self) -> bool {
        !self.sinks.is_empty()
    }

    /// Creates the audit context of a request; `None` if the policy does not record it.
    pub fn begin(self: &Arc<Audit>, subject: AuditedRequest<'_>, received_micros: i64) -> Option<Arc<AuditContext>> {
        let AuditDecision { level, omitted, omits_managed_fields } = self.policy.decide(&subject);
        METRICS.audit_level.get_or_create(&AuditLevel { level: level.as_str() }).inc();
        if level == Level::None {
            return None;
        }
        let record = Mutex::new(Record::new(&subject, level, received_micros));
        let context = AuditContext {
            audit: self.clone(),
            level,
            omitted,
            omits_managed_fields,
            is_long_running: subject.info.is_long_running(),
            is_unauthenticated: AtomicBool::new(false),
            record,
        };
        context.record(Stage::RequestReceived);
        Some(Arc::new(context))
    }

    fn write(&self, event: &Value) {
        METRICS.audit_event.inc();
        let mut line = event.to_json().into_bytes();
        line.push(b'\n');
        for sink in &self.sinks {
            match sink {
                Sink::Log(log) => log.write(&line),
                Sink::Webhook(webhook) => webhook.send(event.clone()),
            }
        }
    }

    /// Waits until the events recorded so far have been written or dropped.
    pub async fn flush(&self) {
        for sink in &self.sinks {
            match sink {
                Sink::Log(log) => log.flush().await,
                Sink::Webhook(webhook) => webhook.flush().await,
            }
        }
    }
}

/// The audit record of one request while it is being served.
pub struct AuditContext {
    audit: Arc<Audit>,
    level: Level,
    omitted: policy::Stages,
    omits_managed_fields: bool,
    is_long_running: bool,
    is_unauthenticated: AtomicBool,
    record: Mutex<Record>,
}

impl std::fmt::Debug for AuditContext {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "audit context at level {}", self.level.as_str())
    }
}

impl AuditContext {
    fn change(&self, change: impl FnOnce(&mut Record)) {
        change(&mut self.record.lock());
    }

    fn record(&self, stage: Stage) {
        if self.omitted.has(stage) {
            return;
        }
        let event = self.record.lock().event(stage, clock::machine_micros());
        self.audit.write(&event);
    }

    /// Records the impersonated user, and the verb of the impersonation mode, if there is one.
    pub fn impersonated(&self, user: &User, constraint: &'static str) {
        self.change(|record| record.impersonated = Some((user.to_value("username"), constraint)));
    }

    /// Adds an annotation; the first value of a key is kept.
    pub fn annotate(&self, key: impl Into<Text>, value: impl Into<Text>) {
        self.change(|record| record.annotate(key.into(), value.into()));
    }

    /// Adds an annotation if the level records request bodies.
    pub fn annotate_request(&self, key: impl Into<Text>, value: impl FnOnce() -> String) {
        if self.level >= Level::Request {
            self.annotate(key, value());
        }
    }

    /// Records the decoded object of the request. Its name is used if the path has none.
    pub fn object(&self, object: &Value) {
        self.change(|record| record.complete_reference(object));
        self.request(|| Some(self.recorded(object.clone())));
    }

    /// Records a request body that is not an object: a patch, as received, or the options of a deletion.
    pub fn request(&self, body: impl FnOnce() -> Option<Value>) {
        if self.level >= Level::Request {
            let body = body();
            self.change(|record| record.request = body);
        }
    }

    /// Whether the level records response objects.
    pub fn keeps_response(&self) -> bool {
        self.level >= Level::RequestResponse
    }

    pub fn response(&self, object: impl FnOnce() -> Value) {
        if self.keeps_response() {
            let object = self.recorded(object());
            self.change(|record| record.response = Some(object));
        }
    }

    /// Records the response Status, of success or failure.
    pub fn status(&self, status: &Value) {
        self.change(|record| record.set_status(status));
        self.response(|| status.clone());
    }

    /// Records that authentication failed, and what was attempted.
    pub fn unauthenticated(&self, message: &str) {
        self.change(|record| record.message = message.to_owned());
        self.is_unauthenticated.store(true, Ordering::Relaxed);
    }

    /// Records the response code and, of a long-running request, that the response has started.
    pub fn responded(&self, code: u16) {
        self.change(|record| record.code = code);
        if self.is_long_running && !self.is_unauthenticated.load(Ordering::Relaxed) {
            self.record(Stage::ResponseStarted);
        }
    }

    /// Adds to the latency of a layer.
    pub fn took(&self, layer: Layer, time: Duration) {
        self.change(|record| record.took(layer, time));
    }

    /// The object without the fields that are not recorded.
    fn recorded(&self, mut object: Value) -> Value {
        if !self.omits_managed_fields {
            return object;
        }
        object.remove_at(&["metadata", "managedFields"]);
        let lists = [("items", &["metadata", "managedFields"][..]), ("rows", &["object", "metadata", "managedFields"])];
        for (list, path) in lists {
            for item in object.get_mut(list).and_then(Value::as_array_mut).into_iter().flatten() {
                item.remove_at(path);
            }
        }
        object
    }
}

impl Drop for AuditContext {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.change(|record| record.panicked());
            self.record(Stage::Panic);
        } else {
            self.change(|record| record.annotate_latency(clock::machine_micros()));
            // kube-apiserver records a refused authentication once, at this stage
            let refused = self.is_unauthenticated.load(Ordering::Relaxed);
            self.record(if refused { Stage::ResponseStarted } else { Stage::ResponseComplete });
        }
    }
}

/// The source addresses of a request: first those that proxy headers name, then that of the connection.
pub fn source_addresses(headers: &http::HeaderMap, remote: IpAddr) -> Vec<IpAddr> {
    let text = |name: &str| headers.get(name).and_then(|value| value.to_str().ok()).unwrap_or_default();
    let named = text("x-forwarded-for").split(',').chain([text("x-real-ip")]);
    let mut out: Vec<IpAddr> = vec![];
    for address in named.filter_map(|address| address.trim().parse().ok()).chain([remote]) {
        if out.last() != Some(&address) {
            out.push(address);
        }
    }
    out
}
