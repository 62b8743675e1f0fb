//! Events of audit.k8s.io/v1.

use std::net::IpAddr;
use std::time::Duration;

use base::request::{RequestInfo, User};
use machinery::{Map, Text, Value, json, time};

use crate::limits;

machinery::text_enum! {
    /// Detail of the events of a request.
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
    pub enum Level {
        #[default]
        None = "None",
        Metadata = "Metadata",
        Request = "Request",
        RequestResponse = "RequestResponse",
    }
}

machinery::text_enum! {
    /// The stage of a request at which an event is recorded.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub enum Stage {
        RequestReceived = "RequestReceived",
        ResponseStarted = "ResponseStarted",
        ResponseComplete = "ResponseComplete",
        Panic = "Panic",
    }
}

/// The request, its user and its source addresses.
#[derive(Clone, Copy)]
pub struct AuditedRequest<'a> {
    pub id: &'a str,
    /// Path and query, as received.
    pub uri: &'a str,
    pub info: &'a RequestInfo,
    pub user: &'a User,
    pub agent: &'a str,
    pub sources: &'a [IpAddr],
}

impl<'a> AuditedRequest<'a> {
    #[cfg(test)]
    pub fn test(user: &'a User, info: &'a RequestInfo) -> AuditedRequest<'a> {
        AuditedRequest { id: "id", uri: &info.path, info, user, agent: "", sources: &[] }
    }
}

/// The fields of a request's events, as far as they are known.
#[derive(Debug)]
pub struct Record {
    /// The fields that are the same in all events of the request, in order.
    common: Map,
    object: Map,
    received: String,
    /// The impersonated user, and the verb of constrained impersonation; empty for the verb `impersonate`.
    pub impersonated: Option<(Value, &'static str)>,
    annotations: Map,
    pub request: Option<Value>,
    pub response: Option<Value>,
    status: Option<Value>,
    /// Why authentication failed; empty if it did not.
    pub message: String,
    pub code: u16,
    /// Time of arrival, in microseconds since the Unix epoch.
    received_micros: i64,
    took: [Duration; Layer::ALL.len()],
}

machinery::text_enum! {
    /// A layer whose latency is recorded.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub enum Layer {
        Authentication = "authentication",
        Authorization = "authorization",
        Queue = "apf-queue-wait",
        MutatingWebhooks = "mutating-webhook",
        ValidatingWebhooks = "validating-webhook",
    }
}

fn truncated_agent(agent: &str) -> String {
    let end = agent.floor_char_boundary(limits::AUDIT_AGENT_BYTES_MAX);
    let mark = if end < agent.len() { "...TRUNCATED" } else { "" };
    format!("{}{mark}", &agent[..end])
}

/// The `objectRef`, as far as the path determines it; empty for a path that is not of a resource.
fn object_reference(info: &RequestInfo) -> Map {
    let mut object = Map::new();
    if !info.is_resource {
        return object;
    }
    for (key, text) in [
        ("resource", &info.resource),
        ("namespace", &info.namespace),
        ("name", &info.authorized_name()),
        ("apiGroup", &info.group),
        ("apiVersion", &info.version),
        ("subresource", &info.subresource),
    ] {
        if !text.is_empty() {
            object.insert(key, Value::from(text));
        }
    }
    object
}

impl Record {
    pub fn new(subject: &AuditedRequest<'_>, level: Level, received_micros: i64) -> Record {
        let info = subject.info;
        let verb =
            if info.is_resource { info.verb.as_str().to_owned() } else { info.method.as_str().to_ascii_lowercase() };
        let mut common = Map::new();
        for (key, value) in [
            ("kind", Value::from("Event")),
            ("apiVersion", Value::from("audit.k8s.io/v1")),
            ("level", Value::from(level.as_str())),
            ("auditID", Value::from(subject.id)),
            ("requestURI", Value::from(subject.uri)),
            ("verb", Value::from(verb)),
            ("user", subject.user.to_value("username")),
            ("sourceIPs", subject.sources.iter().map(|source| Value::from(source.to_string())).collect()),
            ("userAgent", Value::from(truncated_agent(subject.agent))),
        ] {
            // in Go, all but the verb are `omitempty`
            let is_omitted = key != "verb" && (value == Value::from("") || value == Value::Array(vec![]));
            if !is_omitted {
                common.insert(key, value);
            }
        }
        Record {
            common,
            object: object_reference(info),
            received: time::rfc3339_micro(received_micros),
            impersonated: None,
            annotations: Map::new(),
            request: None,
            response: None,
            status: None,
            message: String::new(),
            code: 0,
            received_micros,
            took: Default::default(),
        }
    }

    pub fn annotate(&mut self, key: Text, value: Text) {
        if self.annotations.get(&key).is_none() {
            self.annotations.insert(key, Value::String(value));
        }
    }

    /// Adds to the latency of a layer. Validating webhooks are called in parallel: only the slowest one counts.
    pub fn took(&mut self, layer: Layer, time: Duration) {
        let total = &mut self.took[layer as usize];
        *total = if layer == Layer::ValidatingWebhooks { time.max(*total) } else { *total + time };
    }

    /// Adds the latency annotations of a slow request.
    pub fn annotate_latency(&mut self, now_micros: i64) {
        let total = now_micros.saturating_sub(self.received_micros).saturating_mul(1000);
        if total <= limits::AUDIT_SLOW_NANOS {
            return;
        }
        let nanos = |time: Duration| i64::try_from(time.as_nanos()).unwrap_or(i64::MAX);
        let layers = Layer::ALL.map(|layer| (layer.as_str(), nanos(self.took[layer as usize])));
        for (name, nanoseconds) in layers.into_iter().chain([("total", total)]).filter(|(_, time)| *time > 0) {
            let key = format!("apiserver.latency.k8s.io/{name}");
            self.annotate(key.into(), machinery::time::duration(nanoseconds).into());
        }
    }

    /// Completes the object reference with fields of the object that the path does not have.
    pub fn complete_reference(&mut self, object: &Value) {
        for field in ["name", "namespace", "uid", "resourceVersion"] {
            let text = object.str_at(&["metadata", field]);
            if !self.object.is_empty() && !text.is_empty() && self.object.get(field).is_none() {
                self.object.insert(field, Value::from(text));
            }
        }
    }

    /// Sets the `responseStatus`. [`Record::code`] replaces its code.
    pub fn set_status(&mut self, status: &Value) {
        let mut response_status = status.clone();
        response_status.remove_at(&["kind"]);
        response_status.remove_at(&["apiVersion"]);
        response_status.set_at(&["metadata"], Value::object());
        self.status = Some(response_status);
    }

    pub fn panicked(&mut self) {
        self.code = 500;
        self.status = Some(json!({
            "metadata": {}, "status": "Failure", "message": "APIServer panic'd", "reason": "InternalError", "code": 500
        }));
    }

    pub fn event(&self, stage: Stage, now_micros: i64) -> Value {
        let mut out = self.common.clone();
        out.insert("stage", Value::from(stage.as_str()));
        if let Some((user, constraint)) = &self.impersonated {
            out.insert("impersonatedUser", user.clone());
            if !constraint.is_empty() {
                let metadata = [("impersonationConstraint", Value::from(*constraint))];
                out.insert("authenticationMetadata", Value::from(metadata));
            }
        }
        if !self.object.is_empty() {
            out.insert("objectRef", Value::Object(self.object.clone()));
        }
        if stage != Stage::RequestReceived {
            let mut status = self.status.clone().unwrap_or_else(|| [("metadata", Value::object())].into());
            status.put_text(&["message"], self.message.as_str());
            status.set_at(&["code"], Value::Int(i64::from(self.code)));
            out.insert("responseStatus", status);
            for (key, object) in [("requestObject", &self.request), ("responseObject", &self.response)] {
                if let Some(object) = object {
                    out.insert(key, object.clone());
                }
            }
        }
        out.insert("requestReceivedTimestamp", Value::from(self.received.as_str()));
        out.insert("stageTimestamp", Value::from(time::rfc3339_micro(now_micros)));
        if !self.annotations.is_empty() {
            out.insert("annotations", Value::Object(self.annotations.clone()));
        }
        Value::Object(out)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use machinery::{Status, json};

    #[test]
    fn slow_requests_are_annotated_with_latencies() {
        let (user, info) = (User::default(), RequestInfo::parse(&http::Method::GET, "/x", ""));
        let mut record = Record::new(&AuditedRequest::test(&user, &info), Level::Metadata, 1_000_000);
        record.took(Layer::MutatingWebhooks, Duration::from_millis(200));
        record.took(Layer::MutatingWebhooks, Duration::from_millis(250));
        record.took(Layer::ValidatingWebhooks, Duration::from_micros(1500));
        record.took(Layer::ValidatingWebhooks, Duration::from_micros(1000));
        record.annotate_latency(1_500_000);
        assert!(record.annotations.is_empty());
        record.annotate_latency(1_500_001);
        let wanted = json!({
            "apiserver.latency.k8s.io/mutating-webhook": "450ms",
            "apiserver.latency.k8s.io/total": "500.001ms",
            "apiserver.latency.k8s.io/validating-webhook": "1.5ms"
        });
        assert_eq!(Value::Object(record.annotations), wanted);
    }

    #[test]
    fn audit_event_contains_known_fields() {
        let user = User { name: "ann".into(), groups: vec!["g".into()], ..User::default() };
        let info = RequestInfo::parse(&http::Method::POST, "/apis/g.io/v1/namespaces/n/boats", "dryRun=All");
        let sources = ["10.0.0.1".parse().unwrap()];
        let subject =
            AuditedRequest { id: "i", uri: "/x?y", info: &info, user: &user, agent: "a/1", sources: &sources };
        let mut record = Record::new(&subject, Level::Request, 1_000_000);
        let object = json!({"metadata": {"name": "b", "namespace": "n"}});
        record.complete_reference(&object);
        record.request = Some(object);
        record.annotate("k".into(), "first".into());
        record.annotate("k".into(), "second".into());
        record.code = 404;
        record.set_status(&Status::not_found("g.io", "boats", "b").to_value());
        let event = record.event(Stage::ResponseComplete, 1_000_001);
        let wanted = json!({
            "kind": "Event", "apiVersion": "audit.k8s.io/v1", "level": "Request", "auditID": "i", "requestURI": "/x?y",
            "verb": "create", "user": {"username": "ann", "groups": ["g"]}, "sourceIPs": ["10.0.0.1"], "userAgent": "a/1",
            "stage": "ResponseComplete",
            "objectRef": {"resource": "boats", "namespace": "n", "apiGroup": "g.io", "apiVersion": "v1", "name": "b"},
            "responseStatus": {
                "metadata": {}, "status": "Failure", "message": "boats.g.io \"b\" not found", "reason": "NotFound",
                "details": {"name": "b", "group": "g.io", "kind": "boats"}, "code": 404
            },
            "requestObject": {"metadata": {"name": "b", "namespace": "n"}},
            "requestReceivedTimestamp": "1970-01-01T00:00:01.000000Z", "stageTimestamp": "1970-01-01T00:00:01.000001Z",
            "annotations": {"k": "first"}
        });
        assert_eq!(event, wanted, "{}", event.to_json());
        let early = record.event(Stage::RequestReceived, 1);
        assert!(early.get("responseStatus").is_none() && early.get("requestObject").is_none());
    }
}
