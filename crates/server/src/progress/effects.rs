//! Writes what rules say, through the verbs.

use std::sync::Arc;

use base::clock;
use machinery::patch::merge_patch;
use machinery::status::Reason;
use machinery::{Result, Status, Text, Value, json};
use resource::{Resource, Subresource, Version};

use super::outcome::Effects;
use super::plan::{KindName, ProgressRule};
use crate::verbs::{Context, OwnObject, PatchKind};

/// The user that writes.
pub const USER: &str = "system:pintle:progress";
/// The field manager of what is written.
const MANAGER: &str = "pintle-progress";

/// How much a rule has written. Why the rest could not be written, in one line.
#[derive(Default)]
pub struct Written {
    pub writes: u64,
    /// Whether other objects than the rule's own were written.
    pub has_others: bool,
    pub problem: Option<String>,
}

/// The object that a rule is for.
pub struct RuleSubject<'a> {
    pub context: &'a Context,
    pub resource: &'a Arc<Resource>,
    pub version: &'a Arc<Version>,
    pub object: &'a Value,
}

impl RuleSubject<'_> {
    fn namespace(&self) -> &str {
        self.object.str_at(&["metadata", "namespace"])
    }

    /// Writes what a rule asks for. What is there already is not written again.
    pub async fn write(&self, rule: &ProgressRule, effects: Effects) -> Written {
        let mut written = Written::default();
        for object in effects.create {
            written.note(self.create(object, rule.owned).await);
        }
        for object in effects.apply {
            written.note(self.apply(object, rule.owned).await);
        }
        for object in effects.patch {
            written.note(self.patch_other(object).await);
        }
        written.has_others = written.writes > 0;
        if let Some(patch) = effects.merge {
            written.note(self.merge(self.object, patch, Subresource::None).await);
        }
        if let Some(patch) = effects.status {
            let patch = [("status", patch)].into();
            let through = if self.version.status { Subresource::Status } else { Subresource::None };
            written.note(self.merge(self.object, patch, through).await);
        }
        if !rule.finalizers.is_empty() {
            written.note(self.remove_finalizers(&rule.finalizers).await);
        }
        for object in effects.delete {
            written.note(self.delete(object, rule.grace_seconds).await);
        }
        if let Some((kind, reason, message)) = effects.event.filter(|_| written.writes > 0) {
            written.note(self.report(&kind, &reason, &message).await);
        }
        written
    }

    /// The resource of an object that a rule names.
    fn resource_of(&self, object: &Value) -> Result<(Arc<Resource>, Arc<Version>)> {
        let kind = KindName::of(object);
        let unknown = || Status::bad_request(format!("{kind} is not served"));
        served(self.context, &kind).ok_or_else(unknown)
    }

    fn own<'a>(&'a self, of: &'a (Arc<Resource>, Arc<Version>), place: &'a str, name: &'a str) -> OwnObject<'a> {
        self.context.as_user(USER, &of.0, place, name).in_version(&of.1).managed_by(MANAGER)
    }

    fn completed(&self, mut object: Value, resource: &Resource, owned: bool) -> Value {
        if resource.namespaced && object.str_at(&["metadata", "namespace"]).is_empty() {
            object.set_at(&["metadata", "namespace"], Value::from(self.namespace()));
        }
        let in_reach = self.namespace().is_empty() || object.str_at(&["metadata", "namespace"]) == self.namespace();
        if owned && in_reach && object.items_at(&["metadata", "ownerReferences"]).is_empty() {
            let text = |path: &[&str]| Value::from(self.object.str_at(path));
            let owner = json!({
                "apiVersion": (text(&["apiVersion"])), "kind": (text(&["kind"])),
                "name": (text(&["metadata", "name"])), "uid": (text(&["metadata", "uid"])),
                "controller": true, "blockOwnerDeletion": true
            });
            object.set_at(&["metadata", "ownerReferences"], Value::Array(vec![owner]));
        }
        object
    }

    async fn create(&self, object: Value, owned: bool) -> Result<u64> {
        let of = self.resource_of(&object)?;
        let object = self.completed(object, &of.0, owned);
        let (namespace, name) = (object.str_at(&["metadata", "namespace"]), object.str_at(&["metadata", "name"]));
        if !name.is_empty() && of.0.collection.get(&of.0.key(namespace, name).path).is_some() {
            return Ok(0);
        }
        match self.own(&of, namespace, "").create(&object).await {
            Err(status) if status.reason == Reason::AlreadyExists => Ok(0),
            result => result.map(|()| 1),
        }
    }

    async fn apply(&self, object: Value, owned: bool) -> Result<u64> {
        let of = self.resource_of(&object)?;
        let object = self.completed(object, &of.0, owned);
        let (namespace, name) = (object.str_at(&["metadata", "namespace"]), object.str_at(&["metadata", "name"]));
        let path = of.0.key(namespace, name).path;
        let revision = || of.0.collection.get(&path).map(|stored| stored.revision);
        let before = revision();
        let own = self.own(&of, namespace, name).with_query(format!("fieldManager={MANAGER}&force=true"));
        own.patch(PatchKind::Apply, &object).await?;
        Ok(u64::from(revision() != before))
    }

    async fn patch_other(&self, mut patch: Value) -> Result<u64> {
        let of = self.resource_of(&patch)?;
        let mut namespace = Text::from(patch.str_at(&["metadata", "namespace"]));
        if namespace.is_empty() && of.0.namespaced {
            namespace = self.namespace().into();
        }
        let name = Text::from(patch.str_at(&["metadata", "name"]));
        let Some(stored) = of.0.collection.get(&of.0.key(&namespace, &name).path) else { return Ok(0) };
        let object = of.0.read_converted(&stored, &of.1).await?;
        for field in ["apiVersion", "kind"] {
            patch.remove_at(&[field]);
        }
        let other = RuleSubject { context: self.context, resource: &of.0, version: &of.1, object: &object };
        other.merge(&object, patch, Subresource::None).await
    }

    /// Merges a patch into an object of the subject's kind, unless that would change nothing.
    async fn merge(&self, object: &Value, patch: Value, through: Subresource) -> Result<u64> {
        if !merge_patch::changes(object, &patch) {
            return Ok(0);
        }
        let name = object.str_at(&["metadata", "name"]);
        let of = (self.resource.clone(), self.version.clone());
        let path = of.0.key(self.namespace(), name).path;
        let revision = || of.0.collection.get(&path).map(|stored| stored.revision);
        let before = revision();
        self.own(&of, self.namespace(), name).through(through).patch(PatchKind::Merge, &patch).await?;
        Ok(u64::from(revision() != before))
    }

    async fn remove_finalizers(&self, names: &[Text]) -> Result<u64> {
        let all = self.object.text_list_at(&["metadata", "finalizers"]);
        let kept: Vec<Value> =
            all.iter().filter(|name| !names.contains(name)).map(|name| Value::from(name.as_str())).collect();
        if kept.len() == all.len() {
            return Ok(0);
        }
        // fails if the object has changed since it was read, since another client may have added a finalizer
        let version = self.object.at(&["metadata", "resourceVersion"]).cloned().unwrap_or_default();
        let patch = json!({"metadata": {"finalizers": (Value::Array(kept)), "resourceVersion": version}});
        self.merge(self.object, patch, Subresource::None).await
    }

    async fn delete(&self, object: Value, grace: Option<i64>) -> Result<u64> {
        let of = self.resource_of(&object)?;
        let object = self.completed(object, &of.0, false);
        let (namespace, name) = (object.str_at(&["metadata", "namespace"]), object.str_at(&["metadata", "name"]));
        // the default for Jobs, which keeps their Pods, is for old clients
        let mut options = json!({"propagationPolicy": "Background"});
        let uid = object.str_at(&["metadata", "uid"]);
        options.put_text(&["preconditions", "uid"], uid);
        if let Some(grace) = grace {
            options.set_at(&["gracePeriodSeconds"], Value::Int(grace));
        }
        if of
            .0
            .collection
            .get(&of.0.key(namespace, name).path)
            .is_none_or(|found| found.meta.deleting && grace.is_none())
        {
            return Ok(0);
        }
        self.own(&of, namespace, name).delete(&options).await.map(|()| 1)
    }

    /// Creates an Event about the object.
    async fn report(&self, kind: &str, reason: &str, message: &str) -> Result<u64> {
        let Some(events) = self.context.registry.get("", "events") else { return Ok(0) };
        let (now, text) = (clock::now_rfc3339(), |path: &[&str]| Value::from(self.object.str_at(path)));
        let name = self.object.str_at(&["metadata", "name"]);
        let mut event = json!({
            "metadata": {"generateName": (format!("{name}."))},
            "type": kind, "reason": reason, "message": message,
            "source": {"component": MANAGER}, "reportingComponent": MANAGER,
            "count": 1, "firstTimestamp": (now.clone()), "lastTimestamp": now,
            "involvedObject": {
                "apiVersion": (text(&["apiVersion"])), "kind": (text(&["kind"])), "name": name,
                "uid": (text(&["metadata", "uid"])), "resourceVersion": (text(&["metadata", "resourceVersion"]))
            }
        });
        event.put_text(&["involvedObject", "namespace"], self.namespace());
        let place = if self.namespace().is_empty() { "default" } else { self.namespace() };
        let of = (events.clone(), events.storage_version().clone());
        self.own(&of, place, "").create(&event).await.map(|()| 1)
    }
}

impl Written {
    fn note(&mut self, result: Result<u64>) {
        match result {
            Ok(writes) => self.writes += writes,
            // the object has changed or gone, which is an event that starts another pass
            Err(status) if matches!(status.code, 404 | 409) => {}
            Err(status) => self.problem = Some(status.message.clone()),
        }
    }
}

pub fn served(context: &Context, kind: &KindName) -> Option<(Arc<Resource>, Arc<Version>)> {
    let resource = context.registry.of_kind(&kind.group, &kind.version, &kind.kind)?;
    let version = resource.served(&kind.version)?.clone();
    Some((resource, version)).filter(|(resource, _)| resource.is_stored() && !resource.is_review())
}
