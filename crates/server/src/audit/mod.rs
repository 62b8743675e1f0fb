//! What is recorded of requests (layer 2; audit.k8s.io/v1, api-machinery 19).
//!
//! Invariant: a request has one [`Trail`], made when it is known who asks. What its level does not ask for is not even
//! looked at. The last stage is recorded when the trail is dropped, so that no way out of a request is missed.

mod event;
mod log;
mod policy;
mod webhook;

use std::net::IpAddr;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use machinery::{Text, Value};

pub use event::{Layer, Subject};
use event::{Record, Stage};
pub use log::{LogOptions, Mode};
pub use policy::{Level, Policy};
pub use webhook::BatchOptions;

use crate::clock;
use crate::metrics::{AuditLevel, METRICS};
use crate::request::User;
use crate::webhook::Remote;

/// Where events go.
enum Sink {
    Log(log::Log),
    Webhook(webhook::Webhook),
}

/// The policy, and where events go. Nothing is recorded without both.
#[derive(Default)]
pub struct Audit {
    policy: Policy,
    sinks: Vec<Sink>,
}

impl Audit {
    pub fn new(policy: Policy) -> Audit {
        Audit { policy, sinks: vec![] }
    }

    /// Also writes to a file. The error is one line.
    pub fn log(&mut self, options: LogOptions) -> Result<(), String> {
        self.sinks.push(Sink::Log(log::Log::open(options)?));
        Ok(())
    }

    /// Also sends to a webhook.
    pub fn webhook(&mut self, remote: Remote, options: BatchOptions) {
        self.sinks.push(Sink::Webhook(webhook::Webhook::new(remote, options)));
    }

    /// Starts whatever sends in the background.
    pub fn start(&self) {
        for sink in &self.sinks {
            match sink {
                Sink::Log(log) => log.start(),
                Sink::Webhook(webhook) => webhook.start(),
            }
        }
    }

    /// Whether anything may be recorded.
    pub fn is_on(&self) -> bool {
        !self.sinks.is_empty()
    }

    /// Begins to record a request; `None` if the policy asks for nothing.
    pub fn begin(self: &Arc<Audit>, subject: Subject<'_>, received_micros: i64) -> Option<Arc<Trail>> {
        let (level, rule) = self.policy.of(&subject);
        METRICS.audit_level.get_or_create(&AuditLevel { level: level.as_str() }).inc();
        if level == Level::None {
            return None;
        }
        let omitted = self.policy.omitted(rule);
        let record = Mutex::new(Record::new(&subject, level, received_micros));
        let managed_fields = !self.policy.omits_managed_fields(rule);
        let trail = Trail { audit: self.clone(), level, omitted, managed_fields, record };
        trail.tell(Stage::RequestReceived);
        Some(Arc::new(trail))
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

    /// Everything recorded so far is where it belongs, or could not get there.
    pub async fn flush(&self) {
        for sink in &self.sinks {
            match sink {
                Sink::Log(log) => log.flush().await,
                Sink::Webhook(webhook) => webhook.flush().await,
            }
        }
    }
}

/// The record of one request while it is at work.
pub struct Trail {
    audit: Arc<Audit>,
    level: Level,
    omitted: policy::Stages,
    managed_fields: bool,
    record: Mutex<Record>,
}

impl std::fmt::Debug for Trail {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "trail at level {}", self.level.as_str())
    }
}

impl Trail {
    fn change(&self, change: impl FnOnce(&mut Record)) {
        change(&mut self.record.lock().unwrap_or_else(PoisonError::into_inner));
    }

    fn tell(&self, stage: Stage) {
        if self.omitted.has(stage) {
            return;
        }
        let event = self.record.lock().unwrap_or_else(PoisonError::into_inner).event(stage, clock::now_micros());
        self.audit.write(&event);
    }

    /// The user that is acted as, and the verb of the mode that allowed it, if one did.
    pub fn impersonated(&self, user: &User, constraint: &'static str) {
        self.change(|record| record.impersonated = Some((user.to_value("username"), constraint)));
    }

    /// An annotation; the first of a key stays.
    pub fn annotate(&self, key: impl Into<Text>, value: impl Into<Text>) {
        self.change(|record| record.annotate(key.into(), value.into()));
    }

    /// An annotation that is wanted only where bodies of requests are.
    pub fn annotate_request(&self, key: impl Into<Text>, value: impl FnOnce() -> String) {
        if self.level >= Level::Request {
            self.annotate(key, value());
        }
    }

    /// The object of the request as it was decoded. It is named where the path names none.
    pub fn object(&self, object: &Value) {
        self.change(|record| record.refer(object));
        self.request(|| Some(self.shown(object.clone())));
    }

    /// What the request says of itself, and is no object: a patch as it was sent, options of a deletion.
    pub fn request(&self, body: impl FnOnce() -> Option<Value>) {
        if self.level >= Level::Request {
            let body = body();
            self.change(|record| record.request = body);
        }
    }

    /// Whether the object that is answered is recorded.
    pub fn keeps_response(&self) -> bool {
        self.level >= Level::RequestResponse
    }

    /// The object that is answered.
    pub fn response(&self, object: impl FnOnce() -> Value) {
        if self.keeps_response() {
            let object = self.shown(object());
            self.change(|record| record.response = Some(object));
        }
    }

    /// The Status that is answered, of a failure or not.
    pub fn status(&self, status: &Value) {
        self.change(|record| record.status(status));
        self.response(|| status.clone());
    }

    /// Why a request was refused before it was known who asks.
    pub fn message(&self, message: &str) {
        self.change(|record| record.message = message.to_owned());
    }

    /// The code that is answered.
    pub fn code(&self, code: u16) {
        self.change(|record| record.code = code);
    }

    /// How long a layer took.
    pub fn took(&self, layer: Layer, time: Duration) {
        self.change(|record| record.took(layer, time));
    }

    /// The answer has begun, and goes on for long.
    pub fn started(&self) {
        self.tell(Stage::ResponseStarted);
    }

    /// An object without what is not to be recorded.
    fn shown(&self, mut object: Value) -> Value {
        if !self.managed_fields {
            object.remove_at(&["metadata", "managedFields"]);
            for (list, path) in
                [("items", &["metadata", "managedFields"][..]), ("rows", &["object", "metadata", "managedFields"])]
            {
                for item in object.get_mut(list).and_then(Value::as_array_mut).into_iter().flatten() {
                    item.remove_at(path);
                }
            }
        }
        object
    }
}

impl Drop for Trail {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.change(|record| record.panicked());
            self.tell(Stage::Panic);
        } else {
            self.change(|record| record.tell_latency(clock::now_micros()));
            self.tell(Stage::ResponseComplete);
        }
    }
}

/// The addresses of whoever asks: those that proxies name, then that of the connection.
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
