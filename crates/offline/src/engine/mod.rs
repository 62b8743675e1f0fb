//! The engine: the API server itself, in this process, on a store in memory.
//!
//! Requests pass the handler chain that serves connections, as a user who may do everything unless another one is
//! named. Only what was defined exists: plugins that would look for objects of a running cluster, such as the
//! ServiceAccount of a Pod, are off, and a namespace exists as soon as a request names it.

mod carry;
mod refusal;
mod request;
mod verdict;

use std::collections::HashMap;
use std::sync::Arc;

use base::clock::{self, WorkspaceClock};
use http::Method;
use machinery::{Release, Status, Value};
use parking_lot::RwLock;
use server::{
    ApiConfig, AuthorizationMode, EnabledPlugins, FeatureGates, InProcess, InProcessConfig, PluginFlags,
    PluginSettings, Plugins, RuntimeConfig, StandIn,
};
use store::Memory;
use tokio::sync::OnceCell;

use crate::error::Error;

pub use refusal::{Refusal, is_unfinished};
pub use request::{Content, FieldValidation, Patch, RequestOptions, Target};
pub use server::{Caller, Mapping, PolicyExpression, Provenance, User};
pub use verdict::{Verdict, warning_text};

/// Plugins that are off unless the cluster is a bare one: they decide by objects of a running cluster, such as ServiceAccounts,
/// classes and quotas, which manifests seldom contain.
const OF_CLUSTER: [&str; 4] = ["ServiceAccount", "Priority", "RuntimeClass", "ResourceQuota"];

/// Plugins that are always off: a check calls no webhook, since a configuration among the manifests may name any URL.
const CALLING: [&str; 2] = ["MutatingAdmissionWebhook", "ValidatingAdmissionWebhook"];

/// The cluster that an engine emulates.
#[derive(Clone, Debug, Default)]
pub struct Options {
    pub release: Release,
    /// The values of `--feature-gates`, such as `MutatingAdmissionPolicy=true`.
    pub feature_gates: Vec<String>,
    /// The values of `--runtime-config`, such as `api/all=true`.
    pub runtime_config: Vec<String>,
    /// Whether the cluster is a bare one, as a test environment starts it: with the objects that every cluster has, all plugins,
    /// and only the namespaces that were created.
    pub is_bare: bool,
}

/// A server in this process. It can be shared between tasks.
pub struct Engine {
    server: InProcess,
    admin: Caller,
    release: Release,
    /// The namespaces that are created because a request names them; `None` if they have to be created by requests.
    namespaces: Option<Namespaces>,
}

/// Namespaces by name, each set once it has been created. Requests in an existing namespace do not wait for each
/// other: a lock that tasks take in turn would be handed from one to the next at every request, which leaves work
/// for only one core.
type Namespaces = RwLock<HashMap<String, Arc<OnceCell<()>>>>;

/// Makes the runtime of engines, with a thread for each core. Fails with a one-line message.
pub fn runtime() -> Result<tokio::runtime::Runtime, Error> {
    let mut builder = tokio::runtime::Builder::new_multi_thread();
    let builder = builder.thread_stack_size(server::WORKER_STACK_BYTES).enable_all();
    builder.build().map_err(Error::NotStarted)
}

/// Awaits verdicts whose generated names, uids and addresses are the same in every run, since messages may show them.
pub async fn reproducibly<T>(verdict: impl Future<Output = T>) -> T {
    let clock = WorkspaceClock::default();
    clock.seed(Some(0), 0);
    clock::within(Some(Arc::new(clock)), verdict).await
}

impl Engine {
    /// Starts a server on an empty store, within a runtime. Fails with a one-line message.
    pub async fn start(options: &Options) -> Result<Engine, Error> {
        let gates = FeatureGates::parse(&options.feature_gates, options.release)?;
        let runtime = RuntimeConfig::parse(&options.runtime_config, &gates)?;
        let of_cluster = if options.is_bare { &[][..] } else { &OF_CLUSTER };
        let disable = CALLING.iter().chain(of_cluster).map(|name| (*name).to_owned()).collect();
        let selection = EnabledPlugins::parse(&PluginFlags { disable, ..PluginFlags::default() })?;
        let settings = PluginSettings { release: options.release, ..PluginSettings::default() };
        let config = InProcessConfig {
            api: ApiConfig {
                gates,
                runtime,
                plugins: Arc::new(Plugins { selection, settings }),
                modes: server::authorization_modes(vec![AuthorizationMode::AlwaysAllow]),
                ..ApiConfig::default()
            },
            has_default_objects: options.is_bare,
        };
        let server = InProcess::start(server::Storage::own(Arc::new(Memory::default())), config).await?;
        Ok(Engine {
            server,
            admin: Caller::admin(),
            release: options.release,
            namespaces: (!options.is_bare).then(Namespaces::default),
        })
    }

    /// The release that is emulated.
    pub fn release(&self) -> Release {
        self.release
    }

    /// How the objects of a kind are addressed, if it is served: built in, or defined by a CRD that was created.
    pub fn mapping(&self, api_version: &str, kind: &str) -> Option<Mapping> {
        self.server.mapping(api_version, kind)
    }

    /// The mapping of a name that users give: a plural, a singular, a short name or a kind.
    pub fn find(&self, name: &str) -> Option<Mapping> {
        self.server.find(name)
    }

    /// The expressions of all policies, with what they have resulted in.
    pub fn policy_expressions(&self) -> Vec<PolicyExpression> {
        self.server.policy_expressions()
    }

    /// The target of requests for an object, if its kind is served. An object of a namespaced kind without a namespace is in
    /// `default`.
    pub fn target(&self, object: &Value) -> Option<Target> {
        let mapping = self.mapping(object.str_at(&["apiVersion"]), object.str_at(&["kind"]))?;
        let namespace = object.str_at(&["metadata", "namespace"]);
        Some(Target::new(mapping, namespace, object.str_at(&["metadata", "name"])))
    }

    /// Creates an object.
    pub async fn create(&self, target: &Target, content: impl Into<Content>, options: &RequestOptions) -> Verdict {
        self.ensure_namespace(target).await;
        self.call(Method::POST, &target.collection(), content.into(), options).await
    }

    /// Replaces an object that exists, or a subresource of it, such as `status`; empty for the object itself.
    pub async fn update(
        &self,
        target: &Target,
        part: &str,
        content: impl Into<Content>,
        options: &RequestOptions,
    ) -> Verdict {
        self.call(Method::PUT, &target.path(part), content.into(), options).await
    }

    /// Patches an object that exists, or applies a configuration, which may create it.
    pub async fn patch(
        &self,
        target: &Target,
        part: &str,
        patch: Patch,
        content: &Value,
        options: &RequestOptions,
    ) -> Verdict {
        self.ensure_namespace(target).await;
        self.call(Method::PATCH, &target.path(part), Content::patch(patch, content), options).await
    }

    /// Reads an object.
    pub async fn get(&self, target: &Target) -> Verdict {
        self.call(Method::GET, &target.path(""), Content::default(), &RequestOptions::default()).await
    }

    /// Deletes an object.
    pub async fn delete(&self, target: &Target) -> Verdict {
        self.call(Method::DELETE, &target.path(""), Content::default(), &RequestOptions::default()).await
    }

    /// Creates an object that later requests depend on, such as a CRD, a policy or a namespace, or replaces an
    /// existing one. When this returns, a CRD is established and a policy is in force.
    pub async fn define(&self, target: &Target, object: &Value) -> Verdict {
        self.define_as(target, Content::from(object), object).await
    }

    /// As [`Engine::define`], with the body of the request that creates it.
    pub async fn define_as(&self, target: &Target, content: Content, object: &Value) -> Verdict {
        let options = RequestOptions { verdict_only: true, ..RequestOptions::strict() };
        let created = self.create(target, content, &options).await;
        let exists = matches!(&created.outcome, Err(status) if status.code == 409);
        if !exists || target.name().is_empty() {
            return created;
        }
        let Ok(found) = self.get(target).await.object() else { return created };
        let mut object = object.clone();
        object.set_at(&["metadata", "resourceVersion"], Value::from(found.str_at(&["metadata", "resourceVersion"])));
        self.update(target, "", &object, &options).await
    }

    /// The verdict on replacing `old` by `new`. `old` is not validated, since the rules may be newer. If it comes from a
    /// file, it first gets what the server adds at its creation, which `new` keeps as with kubectl. Nothing is stored.
    pub async fn update_of(
        &self,
        target: &Target,
        (old, origin): (&Value, Provenance),
        new: &Value,
        options: &RequestOptions,
    ) -> Verdict {
        let stand_in = match self.stand_in(target, old, origin).await {
            Ok(stand_in) => stand_in,
            Err(status) => return Verdict::refused(status),
        };
        let mut new = new.clone();
        if let Some(addition) = &stand_in.addition
            && old.str_at(&["apiVersion"]) == new.str_at(&["apiVersion"])
        {
            carry::carry(addition, &mut new);
        }
        new.set_at(&["metadata", "resourceVersion"], Value::from(stand_in.revision().to_string()));
        self.update(target, "", &new, &RequestOptions { dry_run: true, ..options.clone() }.over(stand_in)).await
    }

    /// As [`Engine::update_of`] for an object of a server, with server-side apply: fields that the configuration lacks stay
    /// as they are, since the server or other clients have set them.
    pub async fn apply_to(&self, target: &Target, old: &Value, new: &Value, options: &RequestOptions) -> Verdict {
        let stand_in = match self.stand_in(target, old, Provenance::Server).await {
            Ok(stand_in) => stand_in,
            Err(status) => return Verdict::refused(status),
        };
        let field_manager = "kubectl".to_owned();
        let options = RequestOptions { dry_run: true, force: true, field_manager, ..options.clone() };
        self.patch(target, "", Patch::Apply, new, &options.over(stand_in)).await
    }

    /// `old` in place of the stored object, in the version of its `apiVersion`.
    async fn stand_in(&self, target: &Target, old: &Value, origin: Provenance) -> Result<StandIn, Status> {
        self.ensure_namespace(target).await;
        let of_old = self.target(old);
        let mapping = of_old.as_ref().map_or(target.mapping(), Target::mapping);
        self.server.stand_in(mapping, target.namespace(), old, origin).await
    }

    /// Stores an object without validation and admission, in place of an object with the same name.
    pub async fn deposit(&self, target: &Target, object: &Value) -> Verdict {
        self.ensure_namespace(target).await;
        match self.server.deposit(target.mapping(), target.namespace(), object).await {
            Ok(_) => self.get(target).await,
            Err(status) => Verdict::refused(status),
        }
    }

    /// Sends any request, with a path and a query.
    pub async fn call(&self, method: Method, path: &str, content: Content, options: &RequestOptions) -> Verdict {
        let caller = options.caller.as_ref().unwrap_or(&self.admin);
        match request::build(method, path, content, options) {
            Ok(request) => Verdict::read(request::send(&self.server, caller, request).await).await,
            Err(error) => Verdict::refused(Status::bad_request(error.to_string())),
        }
    }

    /// Creates the namespace of a target unless it exists.
    async fn ensure_namespace(&self, target: &Target) {
        let Some(namespaces) = self.namespaces.as_ref().filter(|_| !target.namespace().is_empty()) else { return };
        let known = namespaces.read().get(target.namespace()).cloned();
        let namespace =
            known.unwrap_or_else(|| namespaces.write().entry(target.namespace().to_owned()).or_default().clone());
        let create = async || {
            let object = machinery::json!({"metadata": {"name": (target.namespace())}});
            // a namespace whose name is invalid stays missing, which is the verdict on the objects in it
            let content = Content::from(&object);
            self.call(Method::POST, "/api/v1/namespaces", content, &RequestOptions::default()).await;
        };
        namespace.get_or_init(create).await;
    }
}

#[cfg(test)]
mod tests {
    use machinery::json;

    use super::*;

    pub fn definition(schema: Value) -> Value {
        let names = json!({"plural": "boats", "singular": "boat", "kind": "Boat", "listKind": "BoatList"});
        let version = json!({
            "name": "v1", "served": true, "storage": true, "schema": {"openAPIV3Schema": schema}
        });
        json!({
            "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
            "metadata": {"name": "boats.example.com"},
            "spec": {"group": "example.com", "scope": "Namespaced", "names": names, "versions": [version]}
        })
    }

    fn boat(name: &str, length: i64) -> Value {
        json!({
            "apiVersion": "example.com/v1", "kind": "Boat", "metadata": {"name": name, "namespace": "n"},
            "spec": {"length": length}
        })
    }

    fn schema(maximum: i64) -> Value {
        json!({"type": "object", "properties": {"spec": {"type": "object", "properties": {
            "length": {"type": "integer", "maximum": maximum}, "sail": {"type": "string", "default": "red"}
        }}}})
    }

    async fn engine(maximum: i64) -> Engine {
        let engine = Engine::start(&Options::default()).await.unwrap();
        let crd = definition(schema(maximum));
        let target = engine.target(&crd).unwrap();
        assert_eq!(engine.define(&target, &crd).await.error(), None);
        engine
    }

    #[tokio::test]
    async fn custom_resource_is_served_as_soon_as_it_is_defined() {
        let engine = engine(10).await;
        let target = engine.target(&boat("a", 9)).unwrap();
        let verdict = engine.create(&target, &boat("a", 9), &RequestOptions::dry()).await;
        assert_eq!(verdict.object().unwrap().str_at(&["spec", "sail"]), "red");
        assert_eq!(engine.get(&target).await.error().map(|(code, _)| code), Some(404), "a dry run keeps nothing");
        let message = "Boat.example.com \"a\" is invalid: spec.length: Invalid value: 11: spec.length in body should be less \
                       than or equal to 10";
        let verdict = engine.create(&target, &boat("a", 11), &RequestOptions::dry()).await;
        assert_eq!(verdict.error(), Some((422, message)));
        let crd = definition(schema(11));
        let target_of_crd = engine.target(&crd).unwrap();
        assert_eq!(engine.define(&target_of_crd, &crd).await.error(), None, "a CRD can be replaced");
        assert!(engine.create(&target, &boat("a", 11), &RequestOptions::dry()).await.is_good());
    }

    #[tokio::test]
    async fn updates_are_compared_with_objects_that_are_older_than_the_rules() {
        let engine = engine(10).await;
        let target = engine.target(&boat("a", 12)).unwrap();
        let dry = RequestOptions::dry();
        for (new, is_good) in [(12, true), (13, false), (9, true)] {
            let mut new = boat("a", new);
            new.set_at(&["spec", "sail"], Value::from("blue"));
            let verdict = engine.update_of(&target, (&boat("a", 12), Provenance::File), &new, &dry).await;
            assert_eq!(verdict.is_good(), is_good, "{new:?}: {:?}", verdict.error());
        }
        assert_eq!(engine.get(&target).await.error().map(|(code, _)| code), Some(404), "an update keeps nothing");
    }

    #[tokio::test]
    async fn policies_are_in_force_as_soon_as_they_are_defined() {
        let engine = engine(10).await;
        let rule = json!({
            "apiGroups": ["example.com"], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["boats"]
        });
        let policy = json!({
            "apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingAdmissionPolicy",
            "metadata": {"name": "short"}, "spec": {
                "matchConstraints": {"resourceRules": [rule]},
                "validations": [{"expression": "object.spec.length < 5 || request.userInfo.username == 'ann'"}]
            }
        });
        let binding = json!({
            "apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingAdmissionPolicyBinding",
            "metadata": {"name": "short"}, "spec": {"policyName": "short", "validationActions": ["Deny"]}
        });
        for object in [&policy, &binding] {
            let target = engine.target(object).unwrap();
            assert_eq!(engine.define(&target, object).await.error(), None);
        }
        let target = engine.target(&boat("a", 5)).unwrap();
        let verdict = engine.create(&target, &boat("a", 5), &RequestOptions::dry()).await;
        let (code, message) = verdict.error().unwrap();
        assert!(code == 422 && message.contains("ValidatingAdmissionPolicy 'short'"), "{code} {message}");
        let user = User { name: "ann".into(), ..User::default() };
        let options = RequestOptions { caller: Some(Caller::new(user)), ..RequestOptions::dry() };
        assert_eq!(engine.create(&target, &boat("a", 5), &options).await.error(), None);
    }

    #[tokio::test]
    async fn releases_differ() {
        for (release, is_served) in [(Release::V1_35, false), (Release::V1_37, true)] {
            let engine = Engine::start(&Options { release, ..Options::default() }).await.unwrap();
            let mapping = engine.mapping("admissionregistration.k8s.io/v1", "MutatingAdmissionPolicy");
            assert_eq!(mapping.is_some(), is_served, "{release}");
        }
    }
}
