//! Mutating and validating webhooks.
//!
//! Mutating webhooks are called one after the other: first those from manifests, then those from the API, each in the
//! order of their configurations' names. Validating webhooks are called in parallel.

mod measure;
mod review;

use std::sync::{Arc, OnceLock};
use std::time::Duration;

use base::clock;
use base::notice::Notices;
use base::trace::{self, Kind};
use base::webhook::{CallError, Client, Endpoint};
use base::wording::patch::lenient_json_patch_error;
use cel::VariableNames;
use futures_util::future::join_all;
use imbl::OrdMap;
use kinds::Scope;
use machinery::patch::PatchError;
use machinery::{Status, Text, Value};
use objects::{Event, EventKind, Key};
use resource::Version;

use super::Attributes;
use super::attributes::in_order;
use super::expressions::{Expression, VersionedObjects, WriteVariables, all_hold, compile};
use super::manifests::{ManifestPlugin, Manifests};
use super::matching::{FailurePolicy, Matching};
use super::patched::{self, Unknown};
use super::sources::{EffectiveSources, SourceScope, Sources};
use crate::audit::Layer;
use crate::authentication::ReviewVersion;
use review::InvalidResponse;

/// Compiled match conditions.
struct Conditions {
    variables: VariableNames,
    expressions: Vec<Expression>,
}

/// One webhook of a configuration.
pub struct Hook {
    name: Text,
    configuration: Text,
    kind: HookKind,
    matching: Matching,
    conditions: Vec<Value>,
    compiled: OnceLock<Conditions>,
    on_failure: FailurePolicy,
    endpoint: Arc<Endpoint>,
    timeout: Duration,
    version: Option<ReviewVersion>,
    /// Whether it may be called for dry runs: `sideEffects` is `None` or `NoneOnDryRun`.
    dry_run: bool,
    /// `reinvocationPolicy: IfNeeded`: it is called again if the object has been changed after its call.
    pub again: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HookKind {
    Mutating,
    Validating,
}

impl HookKind {
    /// The label `type` in metrics.
    fn in_metrics(self) -> &'static str {
        match self {
            HookKind::Mutating => "admit",
            HookKind::Validating => "validating",
        }
    }

    fn in_annotations(self) -> &'static str {
        match self {
            HookKind::Mutating => "mutation.webhook",
            HookKind::Validating => "validating.webhook",
        }
    }

    /// The layer under which audit events record the time of its calls.
    fn layer(self) -> Layer {
        match self {
            HookKind::Mutating => Layer::MutatingWebhooks,
            HookKind::Validating => Layer::ValidatingWebhooks,
        }
    }

    /// The name of its calls in traces.
    fn span_name(self) -> &'static str {
        match self {
            HookKind::Mutating => "Call mutating webhook",
            HookKind::Validating => "Call validating webhook",
        }
    }
}

pub type Configurations = OrdMap<Text, Arc<[Hook]>>;

/// All webhooks: those configured in the API, which events keep up to date, and those configured in manifests.
#[derive(Default)]
pub struct Webhooks {
    mutating: Sources<Configurations>,
    validating: Sources<Configurations>,
    client: Arc<Client>,
}

pub struct MutatingWebhooks<'a> {
    in_force: EffectiveSources<Configurations>,
    client: &'a Client,
}

/// Why a call does not admit a write.
enum Failure {
    /// `failurePolicy` decides.
    Calling(CallingError),
    Refused(Status),
    /// The webhook does not support dry runs, or its patch cannot be applied: the write is rejected whatever `failurePolicy` is.
    Unconditional(Status),
}

/// Why a call has no valid response.
#[derive(Debug, thiserror::Error)]
enum CallingError {
    #[error("could not create admission objects: webhook does not accept known AdmissionReview versions (v1, v1beta1)")]
    NoVersion,
    #[error("failed to call webhook: {0}")]
    Call(#[from] CallError),
    /// The response is not an AdmissionReview.
    #[error("failed to call webhook: {0}")]
    NoReview(String),
    #[error("received invalid webhook response: {0}")]
    Invalid(#[from] InvalidResponse),
    #[error("received undecodable patch in webhook response: {}", lenient_json_patch_error(.0))]
    Patch(#[from] PatchError),
}

impl CallingError {
    /// The code for metrics.
    fn code(&self) -> u16 {
        match self {
            CallingError::NoVersion => 400,
            CallingError::Call(error) => error.code(),
            _ => 503,
        }
    }
}

impl<E: Into<CallingError>> From<E> for Failure {
    fn from(error: E) -> Failure {
        Failure::Calling(error.into())
    }
}

impl Hook {
    fn parse(hook: &Value, configuration: &Text, kind: HookKind, client: &Client) -> Hook {
        let mut versions = hook.texts_at(&["admissionReviewVersions"]);
        let seconds = hook.get("timeoutSeconds").and_then(Value::as_int).and_then(|s| u64::try_from(s).ok());
        Hook {
            name: hook.str_at(&["name"]).into(),
            configuration: configuration.clone(),
            kind,
            matching: Matching::of_webhook(hook),
            conditions: hook.items_at(&["matchConditions"]).to_vec(),
            compiled: OnceLock::new(),
            on_failure: FailurePolicy::of(hook),
            endpoint: client.endpoint(hook.get("clientConfig").unwrap_or(&Value::Null)),
            timeout: Duration::from_secs(seconds.unwrap_or(10)),
            version: versions.find_map(|version| ReviewVersion::parse(version).ok()),
            dry_run: matches!(hook.str_at(&["sideEffects"]), "None" | "NoneOnDryRun"),
            again: hook.str_at(&["reinvocationPolicy"]) == "IfNeeded",
        }
    }

    fn conditions(&self) -> &Conditions {
        self.compiled.get_or_init(|| {
            let env = Scope::WEBHOOK.environment();
            let compiled = |condition: &Value| compile(condition.str_at(&["expression"]), &env).0;
            Conditions { variables: env.variable_names(), expressions: self.conditions.iter().map(compiled).collect() }
        })
    }

    /// The version in which the webhook receives a write, and the objects in that version; `None` if the webhook is not
    /// called.
    async fn wants<'a>(
        &self,
        attributes: &Attributes<'a>,
    ) -> Result<Option<(&'a Version, VersionedObjects<'a>)>, Status> {
        let Some(version) = self.matching.version(attributes) else { return Ok(None) };
        let objects = VersionedObjects::new(attributes, version).await?;
        if self.conditions.is_empty() {
            return Ok(Some((version, objects)));
        }
        let conditions_hold = {
            let subject = WriteVariables::new(attributes, version, &objects);
            let Conditions { variables, expressions } = self.conditions();
            subject.evaluate(|| all_hold(expressions, &mut subject.condition_activation(variables))).await
        };
        match conditions_hold {
            Ok(true) => Ok(Some((version, objects))),
            Ok(false) => Ok(None),
            Err(why) if self.on_failure == FailurePolicy::Fail => {
                Err(Status::forbidden(attributes.group(), attributes.plural(), attributes.name, &why))
            }
            Err(_) => Ok(None),
        }
    }

    /// Calls the webhook and measures the call. Returns the patched object if the webhook changes it.
    async fn call(
        &self,
        client: &Client,
        attributes: &Attributes<'_>,
        version: &Version,
        objects: &VersionedObjects<'_>,
        place: Place,
    ) -> Result<Option<Value>, Failure> {
        let started = clock::instant();
        let result = self.send(client, attributes, version, objects, place).await;
        let elapsed = started.elapsed();
        measure::called(self, attributes, elapsed, result.as_ref().err());
        if let Some(audit_context) = attributes.audit_context {
            audit_context.took(self.kind.layer(), elapsed);
        }
        result
    }

    async fn send(
        &self,
        client: &Client,
        attributes: &Attributes<'_>,
        version: &Version,
        objects: &VersionedObjects<'_>,
        place: Place,
    ) -> Result<Option<Value>, Failure> {
        if attributes.dry_run && !self.dry_run {
            let why = format!("admission webhook \"{}\" does not support dry run", self.name);
            return Err(Failure::Unconditional(Status::bad_request(why)));
        }
        let Some(review_version) = self.version else {
            return Err(CallingError::NoVersion.into());
        };
        let (uid, body) = review::request(review_version, attributes, version, objects);
        let name = self.kind.span_name();
        let span_attributes = || {
            trace::attributes([
                ("configuration", &self.configuration),
                ("webhook", &self.name),
                ("resource", attributes.plural()),
                ("subresource", attributes.subresource),
                ("operation", attributes.operation.as_str()),
                ("UID", &uid),
            ])
        };
        let call = client.post(&self.endpoint, self.timeout, body.to_json().into());
        let review = trace::span(name, Kind::Client, span_attributes, call).await?;
        review::ADMISSION.check(&review, review_version.name()).map_err(CallingError::NoReview)?;
        let response = review::verified(&review, review_version, &uid, self.kind)?;
        response.warnings().for_each(|warning| (attributes.warn)(warning));
        response.annotations().for_each(|(key, text)| attributes.annotate(&format!("{}/{key}", self.name), || text));
        if let Some(refusal) = response.refusal(&self.name) {
            return Err(Failure::Refused(refusal));
        }
        let Some(after) = response.patched(&self.name, &objects.object)? else { return Ok(None) };
        let decoded = patched::decoded(attributes, version, &objects.object, after, Unknown::Dropped);
        let decoded = decoded.map_err(|why| Failure::Unconditional(Status::internal(why)))?;
        attributes.annotate_request(&annotation("patch.webhook", place), || {
            let patch = response.patch();
            self.annotated([("patch", patch), ("patchType", Value::from("JSONPatch"))])
        });
        Ok(Some(decoded))
    }

    /// The value of the audit annotation of a call.
    fn annotated<const N: usize>(&self, fields: [(&str, Value); N]) -> String {
        let webhook = [("configuration", self.configuration.clone().into()), ("webhook", self.name.clone().into())];
        in_order(webhook.into_iter().chain(fields))
    }

    /// Applies `failurePolicy` to a failure. `place` identifies the call in audit annotations.
    fn apply_failure_policy(&self, failure: Failure, attributes: &Attributes<'_>, place: Place) -> Result<(), Status> {
        static FAILURES: Notices = Notices::new();
        let why = match failure {
            Failure::Refused(status) | Failure::Unconditional(status) => return Err(status),
            Failure::Calling(error) => error,
        };
        if let Some(more) = FAILURES.due(&self.name) {
            let effect = match self.on_failure {
                FailurePolicy::Fail => "failing closed",
                FailurePolicy::Ignore => "failing open",
            };
            tracing::warn!(webhook = %self.name, %why, more, "failed calling webhook, {effect}");
        }
        if self.on_failure == FailurePolicy::Fail {
            return Err(Status::internal(format!("failed calling webhook \"{}\": {why}", self.name)));
        }
        let kind = self.kind.in_annotations();
        attributes.annotate(&annotation(&format!("failed-open.{kind}"), place), || self.name.to_string());
        Ok(())
    }
}

/// Identifies a call in the audit annotations of a write: the round (0, or 1 for reinvocations), and the webhook's
/// index in it.
#[derive(Clone, Copy)]
pub struct Place {
    pub round: usize,
    pub index: usize,
}

/// The key of the audit annotation of a call.
fn annotation(kind: &str, Place { round, index }: Place) -> String {
    format!("{kind}.admission.k8s.io/round_{round}_index_{index}")
}

impl Webhooks {
    pub fn new(client: Arc<Client>) -> Webhooks {
        Webhooks { mutating: Sources::default(), validating: Sources::default(), client }
    }

    pub fn client(&self) -> &Arc<Client> {
        &self.client
    }

    pub fn observe(&self, key: &Key, event: &Event) {
        let (configurations, kind) = match key.plural.as_str() {
            "mutatingwebhookconfigurations" => (&self.mutating.api, HookKind::Mutating),
            "validatingwebhookconfigurations" => (&self.validating.api, HookKind::Validating),
            _ => return,
        };
        let mut next = Configurations::clone(&configurations.load());
        if event.kind == EventKind::Deleted {
            next.remove(&key.path);
        } else {
            let object = event.object.body.to_value(0);
            next.insert(key.path.clone(), self.parse(&object, &key.path, kind));
        }
        configurations.store(Arc::new(next));
    }

    fn parse(&self, object: &Value, name: &Text, kind: HookKind) -> Arc<[Hook]> {
        object.items_at(&["webhooks"]).iter().map(|hook| Hook::parse(hook, name, kind, &self.client)).collect()
    }

    /// Replaces the configurations that come from manifests.
    pub fn apply(&self, manifests: &Manifests) {
        let (sources, kind) = match manifests.plugin {
            ManifestPlugin::MutatingWebhooks => (&self.mutating, HookKind::Mutating),
            _ => (&self.validating, HookKind::Validating),
        };
        let configuration = |object: &Value| {
            let name = Text::from(object.str_at(&["metadata", "name"]));
            (name.clone(), self.parse(object, &name, kind))
        };
        sources.manifests.store(Arc::new(manifests.objects.iter().map(configuration).collect()));
    }

    pub fn none_validate(&self) -> bool {
        self.validating.all(OrdMap::is_empty)
    }

    pub fn none_mutate(&self) -> bool {
        self.mutating.all(OrdMap::is_empty)
    }

    pub fn mutating(&self, scope: SourceScope) -> MutatingWebhooks<'_> {
        MutatingWebhooks { in_force: self.mutating.in_force(scope), client: &self.client }
    }

    /// Calls the validating webhooks in parallel. If matching fails for one of them, none is called. If several
    /// reject the write, the error of the first one in order is returned.
    pub async fn validate(&self, attributes: &Attributes<'_>, scope: SourceScope) -> Result<(), Status> {
        let in_force = self.validating.in_force(scope);
        let mut calls = vec![];
        for (index, hook) in in_force.hooks().enumerate() {
            if let Some((version, objects)) = hook.wants(attributes).await? {
                let place = Place { round: 0, index };
                calls.push(async move {
                    let called = hook.call(&self.client, attributes, version, &objects, place).await;
                    called.map_or_else(|failure| hook.apply_failure_policy(failure, attributes, place), |_| Ok(()))
                });
            }
        }
        join_all(calls).await.into_iter().collect()
    }
}

impl EffectiveSources<Configurations> {
    fn hooks(&self) -> impl Iterator<Item = &Hook> {
        self.in_order().flat_map(|configurations| configurations.values().flat_map(|hooks| hooks.iter()))
    }
}

impl MutatingWebhooks<'_> {
    pub fn hooks(&self) -> impl Iterator<Item = &Hook> {
        self.in_force.hooks()
    }

    /// Calls a webhook if it wants the write, and returns the patched object in the version of the request.
    pub async fn call(&self, hook: &Hook, attributes: &Attributes<'_>, place: Place) -> Result<Option<Value>, Status> {
        let Some((version, objects)) = hook.wants(attributes).await? else { return Ok(None) };
        let patched = hook.call(self.client, attributes, version, &objects, place).await;
        let changed = patched.map(|patched| patched.filter(|object| *object != *objects.object));
        attributes.annotate(&annotation("mutation.webhook", place), || {
            hook.annotated([("mutated", matches!(changed, Ok(Some(_))).into())])
        });
        let Some(object) =
            changed.or_else(|failure| hook.apply_failure_policy(failure, attributes, place).map(|()| None))?
        else {
            return Ok(None);
        };
        // in the version of the request, the next webhook sees the object as this one has left it
        if attributes.resource.is_same_form(version, attributes.version) {
            return Ok(Some(object));
        }
        Ok(Some(patched::in_request_version(attributes, object, version).await?))
    }
}
