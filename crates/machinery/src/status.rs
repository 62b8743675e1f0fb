//! `Status`: the error that clients receive.

use std::collections::HashSet;

use crate::field::FieldError;
use crate::value::{Map, Text, Value, quote};

crate::names::text_enum! {
    /// Why a request failed, as clients test it.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub enum Reason {
        /// No reason, as in errors of kube-apiserver that are not API errors.
        Unknown = "",
        /// 401: the request is not authenticated.
        Unauthorized = "Unauthorized",
        /// 403: the user may not do this, or the object must not be changed like this.
        Forbidden = "Forbidden",
        /// 404: the resource or the object does not exist.
        NotFound = "NotFound",
        /// 409: an object with this name exists.
        AlreadyExists = "AlreadyExists",
        /// 409: the object has changed, or the request contradicts its state.
        Conflict = "Conflict",
        /// 410: the requested item is gone.
        Gone = "Gone",
        /// 410: the resourceVersion or continue token is too old.
        Expired = "Expired",
        /// 422: the object is invalid.
        Invalid = "Invalid",
        /// 400: the request is malformed.
        BadRequest = "BadRequest",
        /// 405: the resource does not support the verb.
        MethodNotAllowed = "MethodNotAllowed",
        /// 406: no acceptable media type is available.
        NotAcceptable = "NotAcceptable",
        /// 415: the body has a media type that is not supported.
        UnsupportedMediaType = "UnsupportedMediaType",
        /// 413: the body or the object is too large.
        RequestEntityTooLarge = "RequestEntityTooLarge",
        /// 429: the client should retry later.
        TooManyRequests = "TooManyRequests",
        /// 500: the server failed.
        InternalError = "InternalError",
        /// 500: the server could not complete the request in time; the client can retry.
        ServerTimeout = "ServerTimeout",
        /// 504: the request timed out.
        Timeout = "Timeout",
        /// 503: the server or a server behind it is not available.
        ServiceUnavailable = "ServiceUnavailable",
        /// 500: a stored object cannot be read.
        StoreReadError = "StorageReadError",
    }
}

impl Reason {
    /// The HTTP status code.
    pub fn code(self) -> u16 {
        match self {
            Self::BadRequest => 400,
            Self::Unauthorized => 401,
            Self::Forbidden => 403,
            Self::NotFound => 404,
            Self::MethodNotAllowed => 405,
            Self::NotAcceptable => 406,
            Self::AlreadyExists | Self::Conflict => 409,
            Self::Gone | Self::Expired => 410,
            Self::RequestEntityTooLarge => 413,
            Self::UnsupportedMediaType => 415,
            Self::Invalid => 422,
            Self::TooManyRequests => 429,
            Self::Unknown | Self::InternalError | Self::ServerTimeout | Self::StoreReadError => 500,
            Self::ServiceUnavailable => 503,
            Self::Timeout => 504,
        }
    }
}

/// Several errors as one text, without repetitions, as upstream's `utilerrors.Aggregate` prints them.
pub fn aggregate(errors: &[impl ToString]) -> String {
    let mut seen = HashSet::new();
    let mut distinct: Vec<String> = errors.iter().map(ToString::to_string).collect();
    distinct.retain(|error| seen.insert(error.clone()));
    if distinct.len() == 1 { distinct.remove(0) } else { format!("[{}]", distinct.join(", ")) }
}

/// One entry of `details.causes`. Empty parts are not sent.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Cause {
    /// The machine-readable reason, such as `FieldValueInvalid`.
    pub reason: Text,
    /// The human-readable description.
    pub message: String,
    /// The path of the field; empty if the cause is not about a field.
    pub field: String,
}

/// `details` of a status. Empty parts are not sent.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Details {
    /// The name of the object.
    pub name: String,
    /// The API group of the resource or kind.
    pub group: String,
    /// The resource or the kind.
    pub kind: String,
    /// The UID of the object.
    pub uid: String,
    /// The individual errors of an invalid object.
    pub causes: Vec<Cause>,
    /// Seconds after which the client should retry; 0 for none.
    pub retry_after_seconds: u32,
}

/// The result of a request, or of a part of its handling.
pub type Result<T, E = Status> = std::result::Result<T, E>;

/// The response to a failed request. It takes one word, so that results stay small.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Status(Box<Inner>);

/// The parts of a [`Status`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Inner {
    /// The HTTP status code.
    pub code: u16,
    /// The machine-readable reason.
    pub reason: Reason,
    /// The human-readable message.
    pub message: String,
    /// Details for programs.
    pub details: Option<Details>,
    /// `metadata.continue` of the status, for expired lists.
    pub continue_token: String,
    /// A reason that Kubernetes does not define, in place of `reason`. Webhooks may return any.
    pub own_reason: Text,
    /// The internal cause, such as a path or an error of the operating system. It is logged, and never sent to clients.
    pub cause: String,
}

impl std::ops::Deref for Status {
    type Target = Inner;
    fn deref(&self) -> &Inner {
        &self.0
    }
}

impl std::ops::DerefMut for Status {
    fn deref_mut(&mut self) -> &mut Inner {
        &mut self.0
    }
}

/// Prints the message and the internal cause, for logs.
impl std::fmt::Display for Status {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.message)?;
        if self.cause.is_empty() { Ok(()) } else { write!(f, " ({})", self.cause) }
    }
}

impl std::error::Error for Status {}

/// A group and a resource, printed as `plural.group` or `plural`.
fn group_resource(group: &str, resource: &str) -> String {
    if group.is_empty() { resource.to_owned() } else { format!("{resource}.{group}") }
}

/// An object of those texts that are not empty.
fn given<const N: usize>(texts: [(&str, &str); N]) -> Map {
    texts.into_iter().filter(|(_, text)| !text.is_empty()).map(|(key, text)| (key.into(), text.into())).collect()
}

impl Status {
    /// A failure with the status code of its reason.
    pub fn new(reason: Reason, message: impl Into<String>) -> Status {
        let code = reason.code();
        Status(Box::new(Inner {
            code,
            reason,
            message: message.into(),
            details: None,
            continue_token: String::new(),
            own_reason: Text::default(),
            cause: String::new(),
        }))
    }

    /// The same status with an internal cause.
    #[must_use]
    pub fn caused_by(mut self, cause: impl ToString) -> Status {
        self.cause = cause.to_string();
        self
    }

    /// Decodes a Status that another server has sent: its code, reason, message and details.
    pub fn from_value(value: &Value) -> Status {
        let code = value.get("code").and_then(Value::as_int).and_then(|code| u16::try_from(code).ok());
        let mut status = Status::untyped(code.unwrap_or_default(), value.str_at(&["message"]));
        status.own_reason = value.str_at(&["reason"]).into();
        status.details = value.get("details").filter(|details| !details.is_null()).map(Details::from_value);
        status
    }

    /// The reason as it is sent.
    pub fn reason_text(&self) -> &str {
        if self.own_reason.is_empty() { self.reason.as_str() } else { &self.own_reason }
    }

    /// A failure without a reason, which is how kube-apiserver reports errors that are not API errors.
    pub fn untyped(code: u16, message: impl Into<String>) -> Status {
        let mut status = Self::new(Reason::Unknown, message);
        status.code = code;
        status
    }

    /// The same status with details.
    #[must_use]
    pub fn with_details(mut self, details: Details) -> Status {
        self.details = Some(details);
        self
    }

    fn about(reason: Reason, message: String, group: &str, kind: &str, name: &str) -> Status {
        Self::new(reason, message).with_details(Details {
            name: name.to_owned(),
            group: group.to_owned(),
            kind: kind.to_owned(),
            ..Details::default()
        })
    }

    /// A 400 BadRequest.
    pub fn bad_request(message: impl Into<String>) -> Status {
        Self::new(Reason::BadRequest, message)
    }

    /// A 404 NotFound for a named object.
    pub fn not_found(group: &str, resource: &str, name: &str) -> Status {
        let message = format!("{} {} not found", group_resource(group, resource), quote(name));
        Self::about(Reason::NotFound, message, group, resource, name)
    }

    /// A 404 NotFound for a path that is not served.
    pub fn no_such_resource() -> Status {
        Self::new(Reason::NotFound, "the server could not find the requested resource").with_details(Details::default())
    }

    /// A 409 AlreadyExists for a named object.
    pub fn already_exists(group: &str, resource: &str, name: &str) -> Status {
        let message = format!("{} {} already exists", group_resource(group, resource), quote(name));
        Self::about(Reason::AlreadyExists, message, group, resource, name)
    }

    /// A 409 Conflict for a named object.
    pub fn conflict(group: &str, resource: &str, name: &str, why: &str) -> Status {
        let message =
            format!("Operation cannot be fulfilled on {} {}: {why}", group_resource(group, resource), quote(name));
        Self::about(Reason::Conflict, message, group, resource, name)
    }

    /// A 403 Forbidden for a named object.
    pub fn forbidden(group: &str, resource: &str, name: &str, why: &str) -> Status {
        let message = match (resource, name) {
            ("", _) if group.is_empty() => format!("forbidden: {why}"),
            (_, "") => format!("{} is forbidden: {why}", group_resource(group, resource)),
            _ => format!("{} {} is forbidden: {why}", group_resource(group, resource), quote(name)),
        };
        Self::about(Reason::Forbidden, message, group, resource, name)
    }

    /// A 422 Invalid for a named object, with a cause for each error. `kind` is the kind, not the resource.
    pub fn invalid(group: &str, kind: &str, name: &str, errors: &[FieldError]) -> Status {
        let list = if errors.is_empty() { "<nil>".to_owned() } else { aggregate(errors) };
        let message = format!("{} {} is invalid: {list}", group_resource(group, kind), quote(name));
        let mut status = Self::about(Reason::Invalid, message, group, kind, name);
        if let Some(details) = &mut status.details {
            details.causes = errors
                .iter()
                .map(|e| Cause { reason: e.kind.as_str().into(), message: e.message(), field: e.field.clone() })
                .collect();
        }
        status
    }

    /// A 422 Invalid that does not show its cause, such as a JSON Patch that does not apply.
    pub fn generic_invalid() -> Status {
        Self::new(Reason::Invalid, "the server rejected our request due to an error in our request")
            .with_details(Details::default())
    }

    /// A 405 MethodNotAllowed for a resource.
    pub fn method_not_supported(group: &str, resource: &str, verb: &str) -> Status {
        let message = format!("{verb} is not supported on resources of kind \"{}\"", group_resource(group, resource));
        Self::about(Reason::MethodNotAllowed, message, group, resource, "")
    }

    /// A 500 InternalError.
    pub fn internal(why: impl Into<String>) -> Status {
        let why = why.into();
        let cause = Cause { message: why.clone(), ..Cause::default() };
        Self::new(Reason::InternalError, format!("Internal error occurred: {why}"))
            .with_details(Details { causes: vec![cause], ..Details::default() })
    }

    /// A 410 Expired.
    pub fn expired(message: impl Into<String>) -> Status {
        Self::new(Reason::Expired, message)
    }

    /// A 429 TooManyRequests.
    pub fn too_many_requests(message: impl Into<String>, retry_after_seconds: u32) -> Status {
        Self::new(Reason::TooManyRequests, message).with_details(Details { retry_after_seconds, ..Details::default() })
    }

    /// Seconds for the `Retry-After` header; 0 for none.
    pub fn retry_after_seconds(&self) -> u32 {
        self.details.as_ref().map_or(0, |d| d.retry_after_seconds)
    }

    /// The JSON object that is sent.
    pub fn to_value(&self) -> Value {
        let mut map = given([
            ("kind", "Status"),
            ("apiVersion", "v1"),
            ("status", "Failure"),
            ("message", &self.message),
            ("reason", self.reason_text()),
        ]);
        map.insert("metadata", Value::Object(given([("continue", &self.continue_token)])));
        if let Some(details) = &self.details {
            map.insert("details", details.to_value());
        }
        map.insert("code", Value::Int(self.code.into()));
        Value::Object(map)
    }
}

impl Details {
    fn from_value(value: &Value) -> Details {
        let text = |key: &str| value.str_at(&[key]).to_owned();
        let cause = |cause: &Value| Cause {
            reason: cause.str_at(&["reason"]).into(),
            message: cause.str_at(&["message"]).to_owned(),
            field: cause.str_at(&["field"]).to_owned(),
        };
        let seconds = value.get("retryAfterSeconds").and_then(Value::as_int);
        Details {
            name: text("name"),
            group: text("group"),
            kind: text("kind"),
            uid: text("uid"),
            causes: value.items_at(&["causes"]).iter().map(cause).collect(),
            retry_after_seconds: seconds.and_then(|seconds| u32::try_from(seconds).ok()).unwrap_or_default(),
        }
    }

    /// The object of kind `Status` that clients receive.
    pub fn to_value(&self) -> Value {
        let mut map = given([("name", &self.name), ("group", &self.group), ("kind", &self.kind), ("uid", &self.uid)]);
        if !self.causes.is_empty() {
            map.insert("causes", self.causes.iter().map(Cause::to_value).collect());
        }
        if self.retry_after_seconds > 0 {
            map.insert("retryAfterSeconds", Value::from(self.retry_after_seconds));
        }
        Value::Object(map)
    }
}

impl Cause {
    fn to_value(&self) -> Value {
        Value::Object(given([("reason", &*self.reason), ("message", &self.message), ("field", &self.field)]))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::field::FieldPath;

    #[test]
    fn status_messages_match_upstream() {
        let path = FieldPath::new("spec.a");
        let errors =
            [FieldError::required(&path, ""), FieldError::invalid(&path.index(1), &Value::from("x"), "must be y")];
        let cases = [
            (Status::not_found("example.com", "foos", "a"), "foos.example.com \"a\" not found"),
            (Status::forbidden("", "pods", "", "no"), "pods is forbidden: no"),
            (
                Status::invalid("example.com", "Foo", "a", &errors),
                "Foo.example.com \"a\" is invalid: [spec.a: Required value, spec.a[1]: Invalid value: \"x\": must be y]",
            ),
            (Status::internal("boom"), "Internal error occurred: boom"),
        ];
        for (status, want) in cases {
            assert_eq!(status.message, want);
        }
        assert_eq!(
            Status::not_found("g", "foos", "a").to_value().to_json(),
            r#"{"apiVersion":"v1","code":404,"details":{"group":"g","kind":"foos","name":"a"},"kind":"Status","message":"foos.g \"a\" not found","metadata":{},"reason":"NotFound","status":"Failure"}"#
        );
    }
}
