//! Conversion by webhook: ConversionReview requests, and the checks of their responses.

use std::sync::Arc;
use std::time::Duration;

use base::clock;
use base::webhook::{Client, Endpoint};
use machinery::field::FieldPath;
use machinery::patch::gotext::type_of;
use machinery::status::aggregate;
use machinery::{Release, Result, Status, Value, json};
use schema::at::errors_at;
use schema::metadata::validate_texts;
use schema::shape;

use super::body::type_meta_error;
use super::scheme::unknown_kind;
use crate::limits;

/// `spec.conversion` of a CRD: how objects of one version become objects of another.
#[derive(Clone, Debug)]
pub enum Conversion {
    /// Only `apiVersion` is changed.
    None,
    Webhook(Arc<Webhook>),
}

#[derive(Debug)]
pub struct Webhook {
    endpoint: Arc<Endpoint>,
    /// The first of `conversionReviewVersions` that this server supports.
    review: Option<&'static str>,
    client: Arc<Client>,
}

const REVIEWS: [(&str, &str); 2] = [("v1", "apiextensions.k8s.io/v1"), ("v1beta1", "apiextensions.k8s.io/v1beta1")];

impl Conversion {
    pub fn parse(conversion: &Value, client: &Arc<Client>) -> Conversion {
        let webhook = conversion.get("webhook").filter(|_| conversion.str_at(&["strategy"]) == "Webhook");
        let Some(webhook) = webhook else { return Conversion::None };
        let versions = webhook.items_at(&["conversionReviewVersions"]);
        let known = |version: &Value| REVIEWS.iter().find(|(name, _)| version.as_str() == Some(*name));
        Conversion::Webhook(Arc::new(Webhook {
            endpoint: client.endpoint(webhook.get("clientConfig").unwrap_or(&Value::Null)),
            review: versions.iter().find_map(known).map(|(_, api_version)| *api_version),
            client: client.clone(),
        }))
    }
}

impl Webhook {
    /// Converts objects, which all have the same version, to the `apiVersion` in `desired`. If one object is invalid,
    /// the whole call fails.
    pub async fn convert(&self, objects: Vec<Value>, desired: &str) -> Result<Vec<Value>> {
        let Some(first) = objects.first() else { return Ok(vec![]) };
        let (api_version, kind) = (first.str_at(&["apiVersion"]), first.str_at(&["kind"]));
        let prefix = format!("conversion webhook for {api_version}, Kind={kind}");
        let failed = |why: String| Status::untyped(500, format!("{prefix}{why}"));
        let converted = self.call(desired, &objects).await.map_err(|why| failed(format!(" failed: {why}")))?;
        if converted.len() != objects.len() {
            return Err(failed(format!(" returned {} objects, expected {}", converted.len(), objects.len())));
        }
        let checked = objects.iter().zip(converted).map(|(old, new)| {
            checked(old, new, desired).map_err(|wrong| match wrong {
                ConvertedObjectError::Unreadable(why) => Status::untyped(500, why),
                wrong => failed(wrong.text()),
            })
        });
        checked.collect()
    }

    async fn call(&self, desired: &str, objects: &[Value]) -> Result<Vec<Value>, String> {
        let api_version = self.review.ok_or("no supported conversion review versions")?;
        let uid = clock::uuid();
        let objects = Value::Array(objects.to_vec());
        let request = json!({"uid": (uid.as_str()), "desiredAPIVersion": desired, "objects": objects});
        let review = json!({"kind": "ConversionReview", "apiVersion": api_version, "request": request});
        let timeout = Duration::from_secs(limits::CONVERSION_SECONDS);
        let reply = self.client.post(&self.endpoint, timeout, review.to_json().into()).await;
        let reply = reply.map_err(|error| error.to_string())?;
        converted_objects(reply, api_version, &uid)
    }
}

/// The converted objects in a successful response, or the message of a failed one.
fn converted_objects(mut reply: Value, api_version: &str, uid: &str) -> Result<Vec<Value>, String> {
    let is_list = reply.at(&["response", "convertedObjects"]).is_some_and(|objects| objects.as_array().is_some());
    // the objects may be large, and have any fields
    let objects = if is_list { reply.remove_at(&["response", "convertedObjects"]) } else { None };
    let version = api_version.rsplit('/').next().unwrap_or_default();
    CONVERSION.check(&reply, version)?;
    let (given_version, kind) = (reply.str_at(&["apiVersion"]), reply.str_at(&["kind"]));
    if version == "v1" && (given_version.is_empty() || kind.is_empty()) {
        let given = if given_version.is_empty() { "/" } else { given_version };
        return Err(format!(
            "expected webhook response of {api_version}, Kind=ConversionReview, got {given}, Kind={kind}"
        ));
    }
    let response = reply.get("response").filter(|response| !response.is_null());
    let response = response.ok_or("no response provided")?;
    let given = response.str_at(&["uid"]);
    if version == "v1" && given != uid {
        return Err(format!("expected response.uid={uid:?}, got {given:?}"));
    }
    match (response.str_at(&["result", "status"]), response.str_at(&["result", "message"])) {
        ("Success", _) => {}
        (status, "") => return Err(format!("response.result.status was '{status}', not 'Success'")),
        (_, message) => return Err(message.to_owned()),
    }
    match objects {
        Some(Value::Array(objects)) => Ok(objects),
        _ => Ok(vec![]),
    }
}

/// A review that a webhook returns: its group and kind, whose Go types of `v1` and `v1beta1` have the same fields.
pub struct ReviewType {
    pub group: &'static str,
    pub kind: &'static str,
    pub go: &'static str,
}

const CONVERSION: ReviewType =
    ReviewType { group: "apiextensions.k8s.io", kind: "ConversionReview", go: "apiextensions.v1.ConversionReview" };

impl ReviewType {
    /// Fails as Go's client does if a reply cannot be decoded as this type in the version `sent`. The type that the reply
    /// states decides; where it states none, it is the one that was sent.
    pub fn check(&self, reply: &Value, sent: &str) -> Result<(), String> {
        reply.as_object().and_then(type_meta_error).map_or(Ok(()), Err)?;
        let or = |stated: &str, default: &str| if stated.is_empty() { default.to_owned() } else { stated.to_owned() };
        let api_version = or(reply.str_at(&["apiVersion"]), &format!("{}/{sent}", self.group));
        let (kind, version) =
            (or(reply.str_at(&["kind"]), self.kind), api_version.rsplit('/').next().unwrap_or_default());
        let unconverted =
            |kind: &str| Err(format!("converting ({version}.{kind}) to ({sent}.{}): unknown conversion", self.kind));
        if (api_version.as_str(), kind.as_str()) == ("v1", "Status") {
            return unconverted("Status");
        }
        let is_known = ["v1", "v1beta1"].contains(&version)
            && api_version.strip_suffix(version) == Some(&format!("{}/", self.group));
        if !is_known || kind != self.kind {
            return Err(unknown_kind(&kind, &api_version));
        }
        if let Some(why) = shape::read(reply, shape::named(self.go)).error {
            let in_version =
                |why: String, name: &str| why.replace(&format!(" v1.{name}"), &format!(" {version}.{name}"));
            return Err(["Admission", "Conversion", "Operation", "PatchType"].into_iter().fold(why, in_version));
        }
        if version == sent { Ok(()) } else { unconverted(self.kind) }
    }
}

/// Why one object in a conversion response is rejected.
enum ConvertedObjectError {
    /// The converted value is not an object. The error has no prefix.
    Unreadable(String),
    Version(String),
    Object(String),
    Metadata(String),
}

impl ConvertedObjectError {
    /// The error as kube-apiserver reports it for a single object. It converts the items of a list one by one, so the
    /// index is always 0.
    fn text(&self) -> String {
        match self {
            ConvertedObjectError::Unreadable(why) => why.clone(),
            ConvertedObjectError::Version(why) => format!(" returned invalid object at index 0: {why}"),
            ConvertedObjectError::Object(why) => format!(" returned invalid object: {why}"),
            ConvertedObjectError::Metadata(why) => format!(" returned invalid metadata: {why}"),
        }
    }
}

/// Checks a converted object and restores its metadata, except for labels and annotations.
fn checked(old: &Value, mut new: Value, desired: &str) -> Result<Value, ConvertedObjectError> {
    if new.is_null() {
        return Err(ConvertedObjectError::Unreadable("unexpected end of JSON input".to_owned()));
    }
    if new.as_object().is_none() {
        let given = new.json_type();
        let why = format!("json: cannot unmarshal {given} into Go value of type map[string]interface {{}}");
        return Err(ConvertedObjectError::Unreadable(why));
    }
    let found = new.str_at(&["apiVersion"]);
    if new.str_at(&["kind"]).is_empty() || found.matches('/').count() > 1 {
        return Err(ConvertedObjectError::Unreadable(format!("Object 'Kind' is missing in '{}'", new.to_json())));
    }
    if found != desired {
        return Err(ConvertedObjectError::Version(format!(
            "invalid groupVersion (expected {desired}, received {found})"
        )));
    }
    let (kind, found) = (old.str_at(&["kind"]), new.str_at(&["kind"]));
    if found != kind {
        return Err(ConvertedObjectError::Version(format!("invalid kind (expected {kind}, received {found})")));
    }
    for (field, name) in [("name", "name"), ("namespace", "namespace"), ("uid", "UID")] {
        let (before, after) = (old.str_at(&["metadata", field]), new.str_at(&["metadata", field]));
        if before != after {
            return Err(ConvertedObjectError::Object(format!("must have the same {name}: {before} != {after}")));
        }
    }
    let metadata = restored(old.get("metadata"), new.get("metadata")).map_err(ConvertedObjectError::Metadata)?;
    new.set_at(&["metadata"], metadata);
    Ok(new)
}

/// The metadata of `before` with the labels and annotations of `after`.
fn restored(before: Option<&Value>, after: Option<&Value>) -> Result<Value, String> {
    let after = after.filter(|metadata| !metadata.is_null()).ok_or("missing metadata in converted object")?;
    if after.as_object().is_none() {
        let of = type_of(after);
        return Err(format!("invalid metadata of type {of} in converted object"));
    }
    let mut metadata = before.cloned().unwrap_or_default();
    let mut changed = Value::object();
    for field in ["labels", "annotations"] {
        let given = after.get(field).filter(|map| !map.is_null());
        let Some(given) = given else {
            metadata.remove_at(&[field]);
            continue;
        };
        if metadata.get(field) != Some(given) {
            check_texts(field, given)?;
            changed.set_at(&[field], given.clone());
            metadata.set_at(&[field], given.clone());
        }
    }
    let errors = errors_at(&FieldPath::new("metadata"), &changed, None, Release::default(), validate_texts);
    // upstream writes the singular in these errors
    let restated = |error: String| error.replacen("metadata.annotations", "metadata.annotation", 1);
    let errors: Vec<String> = errors.iter().map(|error| restated(error.to_string())).collect();
    if errors.is_empty() { Ok(metadata) } else { Err(aggregate(&errors)) }
}

/// Checks that the values of labels or annotations are strings.
fn check_texts(field: &str, given: &Value) -> Result<(), String> {
    let Some(map) = given.as_object() else {
        return Err(format!("invalid metadata.{field} of type {} in converted object", type_of(given)));
    };
    match map.iter().find(|(_, value)| value.as_str().is_none()) {
        Some((key, value)) => {
            let of = type_of(value);
            Err(format!("metadata.{field}[{key}] must be a string, but is {of} in converted object"))
        }
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use machinery::json;

    fn object(metadata: Value) -> Value {
        json!({"apiVersion": "g.io/v1", "kind": "Foo", "metadata": (metadata)})
    }

    #[test]
    fn reports_forbidden_changes_of_webhooks() {
        let old = object(json!({"name": "a", "namespace": "n", "uid": "u", "labels": {"a": "b"}}));
        let new = |change: &[(&str, Value)]| {
            let mut object = json!({"apiVersion": "g.io/v2", "kind": "Foo",
                "metadata": {"name": "a", "namespace": "n", "uid": "u"}});
            change.iter().for_each(|(path, value)| object.set_at(&path.split('.').collect::<Vec<_>>(), value.clone()));
            object
        };
        let cases = [
            (new(&[]), Ok(json!({"name": "a", "namespace": "n", "uid": "u"}))),
            (
                new(&[("metadata.labels", json!({"c": "d"})), ("metadata.generation", json!(7))]),
                Ok(json!({"name": "a", "namespace": "n", "uid": "u", "labels": {"c": "d"}})),
            ),
            (
                new(&[("apiVersion", json!("g.io/v1"))]),
                Err(" returned invalid object at index 0: invalid groupVersion (expected g.io/v2, received g.io/v1)"),
            ),
            (
                new(&[("kind", json!("Bar"))]),
                Err(" returned invalid object at index 0: invalid kind (expected Foo, received Bar)"),
            ),
            (json!("x"), Err("json: cannot unmarshal string into Go value of type map[string]interface {}")),
            (Value::Null, Err("unexpected end of JSON input")),
            (json!({}), Err("Object 'Kind' is missing in '{}'")),
            (
                json!({"apiVersion": "a/b/c", "kind": "Foo"}),
                Err(r#"Object 'Kind' is missing in '{"apiVersion":"a/b/c","kind":"Foo"}'"#),
            ),
            (new(&[("metadata.name", json!("b"))]), Err(" returned invalid object: must have the same name: a != b")),
            (new(&[("metadata.uid", json!("v"))]), Err(" returned invalid object: must have the same UID: u != v")),
            (
                new(&[("metadata.labels", json!(1))]),
                Err(" returned invalid metadata: invalid metadata.labels of type int64 in converted object"),
            ),
            (
                new(&[("metadata.labels", json!({"k": 1}))]),
                Err(
                    " returned invalid metadata: metadata.labels[k] must be a string, but is int64 in converted object",
                ),
            ),
        ];
        for (new, want) in cases {
            let shown = new.to_json();
            let found = checked(&old, new, "g.io/v2").map(|object| object.get("metadata").cloned().unwrap_or_default());
            let found = found.map_err(|wrong| wrong.text());
            assert_eq!(found, want.map_err(str::to_owned), "{shown}");
        }
    }

    #[test]
    fn reports_unsuccessful_replies() {
        let reply = |response: Value| json!({"apiVersion": "apiextensions.k8s.io/v1", "kind": "ConversionReview", "response": (response)});
        let cases = [
            (json!({}), "expected webhook response of apiextensions.k8s.io/v1, Kind=ConversionReview, got /, Kind="),
            (
                json!({"kind": "x"}),
                "no kind \"x\" is registered for version \"apiextensions.k8s.io/v1\" in scheme \"pkg/runtime/scheme.go:111\"",
            ),
            (json!({"apiVersion": "a/b/c"}), "unexpected GroupVersion string: a/b/c"),
            (
                json!({"kind": 1}),
                "couldn't get version/kind; json parse error: json: cannot unmarshal number into Go struct field .kind of type string",
            ),
            (
                json!({"apiVersion": "apiextensions.k8s.io/v1beta1"}),
                "converting (v1beta1.ConversionReview) to (v1.ConversionReview): unknown conversion",
            ),
            (
                json!({"apiVersion": "apiextensions.k8s.io/v1beta1", "request": 1}),
                "json: cannot unmarshal number into Go struct field ConversionReview.request of type v1beta1.ConversionRequest",
            ),
            (
                json!({"kind": "ConversionReview", "apiVersion": "x.io/v1"}),
                "no kind \"ConversionReview\" is registered for version \"x.io/v1\" in scheme \"pkg/runtime/scheme.go:111\"",
            ),
            (
                json!({"kind": "Status", "apiVersion": "v1"}),
                "converting (v1.Status) to (v1.ConversionReview): unknown conversion",
            ),
            (reply(Value::Null), "no response provided"),
            (reply(json!({"uid": "v"})), "expected response.uid=\"u\", got \"v\""),
            (reply(json!({"uid": "u"})), "response.result.status was '', not 'Success'"),
            (
                reply(json!({"result": "x"})),
                "json: cannot unmarshal string into Go struct field ConversionResponse.response.result of type v1.Status",
            ),
            (
                reply(json!({"result": {"status": 5}})),
                "json: cannot unmarshal number into Go struct field Status.response.result.status of type string",
            ),
            (reply(json!({"uid": "u", "result": {"status": "Failure", "message": "no"}})), "no"),
        ];
        for (reply, want) in cases {
            assert_eq!(converted_objects(reply, "apiextensions.k8s.io/v1", "u").unwrap_err(), want);
        }
        let beta = json!({"response": {"result": {"status": "Success"}, "convertedObjects": [{}]}});
        let odd = reply(json!({"uid": "u", "convertedObjects": "x"}));
        let why = converted_objects(odd, "apiextensions.k8s.io/v1", "u").unwrap_err();
        assert!(why.ends_with("ConversionResponse.response.convertedObjects of type []runtime.RawExtension"), "{why}");
        assert_eq!(converted_objects(beta, "apiextensions.k8s.io/v1beta1", "u").unwrap().len(), 1);
    }
}
