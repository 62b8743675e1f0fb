//! StorageVersionMigrations are carried out (`storage-version-migrator-controller` of kube-controller-manager, KEP-4192):
//! every object that existed when the migration was first seen is rewritten without a change, which has an effect only if it
//! is stored in another version, or encrypted with another key.
//!
//! A migration goes by its status, one write after the other, so that another server can go on with it at any point.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use base::clock;
use machinery::status::Reason;
use machinery::{Status, Value, json};
use objects::{Key, Stored};
use resource::builtin::{MIGRATION_GROUP, MIGRATIONS};
use resource::{Resource, Version, defined_by, kube_aware};
use schema::definition::{find_condition, is_condition_true};
use tokio::sync::{Notify, watch};

use crate::limits;
use crate::verbs::{self, Context, Document, Format, PatchKind, Subresource};

const USER: &str = "system:serviceaccount:kube-system:storage-version-migrator-controller";
const MANAGER: &str = "storage-version-migrator-controller";
/// The operations on a resource whose objects can be rewritten.
const WANTED_VERBS: &str = "[update patch list]";

/// Wakes with every change of a migration, and of what defines resources.
#[derive(Default)]
pub struct Migrator {
    changed: Notify,
}

impl Migrator {
    /// Hears of every change of an object, after the registry has.
    pub fn observe(&self, key: &Key) {
        if (key.group == MIGRATION_GROUP && key.plural == MIGRATIONS) || defined_by(key).is_some() {
            self.changed.notify_one();
        }
    }

    /// Migrates until `stop` becomes true, one resource after the other.
    pub async fn run(self: Arc<Self>, context: Arc<Context>, mut stop: watch::Receiver<bool>) {
        let retry = limits::CONTROLLER_RETRY;
        loop {
            let done = migrate_all(&context, &stop).await;
            let change = async {
                tokio::select! {
                    () = self.changed.notified() => {}
                    () = tokio::time::sleep(retry), if !done => {}
                }
            };
            tokio::select! {
                biased;
                () = super::stopped(&mut stop) => return,
                () = change => {}
            }
        }
    }
}

/// Takes every migration a step further. False if one is to be looked at again though nothing changes.
async fn migrate_all(context: &Arc<Context>, stop: &watch::Receiver<bool>) -> bool {
    let Some(resource) = context.registry.get(MIGRATION_GROUP, MIGRATIONS) else { return true };
    let mut done = true;
    for stored in resource.collection.latest().0.values() {
        let migration = stored.body.to_value(stored.revision);
        let step = next_step(&migration, target(context, &migration).as_ref(), clock::now_seconds());
        done &= step != Step::Wait;
        if let Err(status) = take(context, &resource, &migration, step, stop).await {
            let name = stored.meta.name.as_str();
            tracing::warn!(name, error = %status, "a storage version migration cannot go on yet");
            done = false;
        }
    }
    done
}

/// The resource that a migration is about, and the version in which its objects are written: that of the storage if it is
/// served, so that nothing is converted twice.
struct Target {
    resource: Arc<Resource>,
    version: Arc<Version>,
}

fn target(context: &Context, migration: &Value) -> Option<Target> {
    let part = |name: &str| migration.str_at(&["spec", "resource", name]);
    let resource = context.registry.get(part("group"), part("resource")).filter(|resource| resource.established)?;
    let served = resource.versions.iter().filter(|version| version.served);
    let best = served.min_by(|a, b| kube_aware(&a.name, &b.name));
    let storage = Some(resource.storage_version()).filter(|version| version.served);
    let version = storage.or(best)?.clone();
    Some(Target { resource, version })
}

impl Target {
    fn can_be_migrated(&self) -> bool {
        !self.resource.is_review() && !self.resource.terminating
    }
}

/// The next step of a migration.
#[derive(Debug, PartialEq, Eq)]
enum Step {
    Nothing,
    /// Its resource may still come.
    Wait,
    Fail(String),
    /// Note from when on objects count as migrated.
    Begin,
    /// Say that it runs.
    Announce,
    /// Write the objects that are not newer than this.
    Rewrite(u64),
}

fn next_step(migration: &Value, target: Option<&Target>, now_seconds: i64) -> Step {
    if is_condition_true(migration, "Succeeded") || is_condition_true(migration, "Failed") {
        return Step::Nothing;
    }
    let version = migration.str_at(&["status", "resourceVersion"]);
    let Some(target) = target else {
        let created = machinery::time::parse_rfc3339(migration.str_at(&["metadata", "creationTimestamp"]));
        if created.is_some_and(|(seconds, _)| seconds + limits::MIGRATION_PATIENCE_SECONDS > now_seconds) {
            return Step::Wait;
        }
        return Step::Fail(match version {
            "" => "resource does not exist in discovery".to_owned(),
            _ => unhandled("unable to obtain GVR from discovery"),
        });
    };
    if version.is_empty() {
        return if target.can_be_migrated() { Step::Begin } else { Step::Fail(unsupported(target)) };
    }
    if find_condition(migration, "Running").is_none() {
        return Step::Announce;
    }
    // longer than any number here is later than any object
    Step::Rewrite(version.parse().unwrap_or(u64::MAX))
}

fn unhandled(why: &str) -> String {
    format!("migration encountered unhandled error: {why}")
}

fn unsupported(Target { resource, version }: &Target) -> String {
    let name = format!("{}/{}, Resource={}", resource.group, version.name, resource.plural);
    format!("resource {} does not support discovery operations: {WANTED_VERBS}", machinery::value::quote(&name))
}

async fn take(
    context: &Arc<Context>,
    resource: &Arc<Resource>,
    migration: &Value,
    step: Step,
    stop: &watch::Receiver<bool>,
) -> Result<(), Status> {
    let now = clock::now_rfc3339();
    let status = match step {
        Step::Nothing | Step::Wait => return Ok(()),
        Step::Fail(why) => with_condition(migration, "Failed", &why, &now),
        Step::Announce => with_condition(migration, "Running", "", &now),
        Step::Begin => {
            verbs::catch_up(context).await?;
            json!({"resourceVersion": (context.objects.revision().to_string())})
        }
        Step::Rewrite(until) => {
            // the resource is still what it was for this step, or the next look finds another
            let Some(target) = target(context, migration) else { return Ok(()) };
            let outcome = rewrite_all(context, target, until, stop).await;
            match outcome {
                // the next leader continues
                _ if *stop.borrow() => return Ok(()),
                Ok(()) => with_condition(migration, "Succeeded", "", &now),
                Err(status) if can_be_retried(&status) => return Err(status),
                Err(status) => with_condition(migration, "Failed", &unhandled(&status.message), &now),
            }
        }
    };
    report(context, resource, migration, status).await
}

/// The status with a condition that becomes true; with the last one, it no longer runs.
fn with_condition(migration: &Value, kind: &str, message: &str, now: &str) -> Value {
    let mut conditions = migration.at(&["status", "conditions"]).and_then(Value::as_array).unwrap_or_default().to_vec();
    if conditions.iter().all(|condition| condition.str_at(&["type"]) != kind) {
        if kind != "Running" {
            let running = conditions.iter_mut().filter(|condition| condition.str_at(&["type"]) == "Running");
            running.for_each(|condition| condition.set_at(&["status"], Value::from("False")));
        }
        let reason = match kind {
            "Running" => "StorageVersionMigrationInProgress",
            "Succeeded" => "StorageVersionMigrationSucceeded",
            _ => "StorageVersionMigrationFailed",
        };
        conditions.push(json!({
            "type": kind, "status": "True", "lastTransitionTime": now, "reason": reason, "message": message
        }));
    }
    json!({"conditions": (Value::Array(conditions))})
}

/// Writes the status of a migration if that is still as it was; else the change wakes us again.
async fn report(context: &Context, resource: &Arc<Resource>, migration: &Value, status: Value) -> Result<(), Status> {
    let part = |key: &str| migration.str_at(&["metadata", key]);
    // what fails before it begins has no version yet, without which no status is valid: upstream never reports it
    let mut status = status;
    if status.get("resourceVersion").is_none() && migration.str_at(&["status", "resourceVersion"]).is_empty() {
        status.set_at(&["resourceVersion"], Value::from(part("resourceVersion")));
    }
    let patch = json!({"metadata": {"resourceVersion": (part("resourceVersion"))}, "status": status});
    let path = format!("{}/status", verbs::path_of(resource, "", part("name")));
    let request = verbs::controller_request(USER, resource, &http::Method::PATCH, &path);
    let request = request.through(Subresource::Status);
    let document = Document::json(&patch);
    match verbs::patch(context, &request, PatchKind::Merge, &document).await {
        Err(status) if matches!(status.code, 404 | 409) => Ok(()),
        result => result.map(drop),
    }
}

/// Whether the same may go well a moment later.
fn can_be_retried(status: &Status) -> bool {
    use Reason::{InternalError, ServerTimeout, ServiceUnavailable, Timeout, TooManyRequests};
    matches!(status.reason, ServerTimeout | TooManyRequests | ServiceUnavailable | InternalError | Timeout)
}

/// Writes objects in tasks of their own, so that they are written by all cores.
async fn rewrite_all(
    context: &Arc<Context>,
    target: Target,
    until: u64,
    stop: &watch::Receiver<bool>,
) -> Result<(), Status> {
    verbs::catch_up(context).await?;
    let (root, _) = target.resource.collection.latest();
    let all: Vec<Arc<Stored>> = root.values().filter(|stored| stored.revision <= until).cloned().collect();
    let (target, next) = (Arc::new(target), Arc::new(AtomicUsize::new(0)));
    let all: Arc<[Arc<Stored>]> = all.into();
    let writer = |_| {
        let share = WriterShare { all: all.clone(), next: next.clone(), stop: stop.clone() };
        base::task::spawn("storage version writer", share.rewrite(context.clone(), target.clone()))
    };
    let writers: Vec<_> = (0..limits::MIGRATION_WRITERS).map(writer).collect();
    let mut outcome = Ok(());
    for writer in writers {
        let done = writer.await.unwrap_or_else(|error| Err(Status::internal(error.to_string())));
        outcome = outcome.and(done);
    }
    outcome
}

/// The share of one of several writers.
struct WriterShare {
    all: Arc<[Arc<Stored>]>,
    /// The first object that no writer has taken.
    next: Arc<AtomicUsize>,
    stop: watch::Receiver<bool>,
}

impl WriterShare {
    async fn rewrite(self, context: Arc<Context>, target: Arc<Target>) -> Result<(), Status> {
        while !*self.stop.borrow()
            && let Some(stored) = self.all.get(self.next.fetch_add(1, Ordering::Relaxed))
        {
            if let Err(status) = rewrite(&context, &target, stored).await {
                // the others need not go on
                self.next.store(self.all.len(), Ordering::Relaxed);
                return Err(status);
            }
        }
        Ok(())
    }
}

/// Applies nothing to an object, as it was seen: who has changed it since has migrated it too.
async fn rewrite(context: &Context, target: &Target, stored: &Stored) -> Result<(), Status> {
    let Target { resource, version } = target;
    let nothing = json!({
        "apiVersion": (resource.api_version(version)), "kind": (resource.kind.clone()),
        "metadata": {"uid": (stored.meta.uid.clone()), "resourceVersion": (stored.revision.to_string())}
    });
    let path = verbs::path_in(resource, version, &stored.meta.namespace, &stored.meta.name);
    let path = format!("{path}?fieldManager={MANAGER}");
    let request = verbs::controller_request(USER, resource, &http::Method::PATCH, &path);
    let request = request.in_version(version.clone());
    let document = Document { bytes: nothing.to_json().into(), format: Format::Yaml };
    match verbs::patch(context, &request, PatchKind::Apply, &document).await {
        Err(status) if status.reason == Reason::Conflict => Ok(()),
        result => result.map(drop),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use objects::{Objects, Storage};
    use resource::builtin::KINDS;

    fn of_kind(objects: &Objects, kind: &str) -> Target {
        let built_in = KINDS.iter().find(|built_in| built_in.kind == kind).unwrap();
        let resource = Arc::new(resource::from_row(built_in, &[], objects, &base::request::FeatureGates::default()));
        let version = resource.storage_version().clone();
        Target { resource, version }
    }

    #[tokio::test]
    async fn migration_progress_follows_its_status() {
        let store = Arc::new(store::Embedded::in_memory());
        let objects = Objects::open(Storage::own(store), Box::new(|_, _, _| {})).await.unwrap();
        let (maps, reviews) = (of_kind(&objects, "ConfigMap"), of_kind(&objects, "SelfSubjectReview"));
        let created = "2020-01-01T00:00:00Z";
        let (start, _) = machinery::time::parse_rfc3339(created).unwrap();
        let migration = |version: &str, conditions: &[(&str, &str)]| {
            let condition = |(kind, status): &(&str, &str)| json!({"type": (*kind), "status": (*status)});
            let conditions: Value = conditions.iter().map(condition).collect();
            json!({
                "metadata": {"creationTimestamp": created}, "status": {"resourceVersion": version, "conditions": conditions}
            })
        };
        let fail = |why: &str| Step::Fail(why.to_owned());
        let verbs = "resource \"authentication.k8s.io/v1, Resource=selfsubjectreviews\" does not support discovery operations: [update patch list]";
        let gone = "migration encountered unhandled error: unable to obtain GVR from discovery";
        let cases = [
            (migration("", &[]), Some(&maps), 0, Step::Begin),
            (migration("7", &[]), Some(&maps), 0, Step::Announce),
            (migration("7", &[("Running", "True")]), Some(&maps), 0, Step::Rewrite(7)),
            (migration("7", &[("Running", "False"), ("Succeeded", "True")]), Some(&maps), 0, Step::Nothing),
            (migration("", &[("Failed", "True")]), Some(&maps), 0, Step::Nothing),
            (migration("", &[]), Some(&reviews), 0, fail(verbs)),
            (migration("", &[]), None, 59, Step::Wait),
            (migration("", &[]), None, 60, fail("resource does not exist in discovery")),
            (migration("7", &[]), None, 59, Step::Wait),
            (migration("7", &[]), None, 60, fail(gone)),
        ];
        for (migration, target, age, want) in cases {
            assert_eq!(next_step(&migration, target, start + age), want, "{migration} after {age} s");
        }
    }

    #[test]
    fn expired_deadline_runs_nothing() {
        let migration = json!({"status": {"resourceVersion": "7"}});
        let running = with_condition(&migration, "Running", "", "t0");
        let mut next = migration.clone();
        next.set_at(&["status"], running.clone());
        assert_eq!(with_condition(&next, "Running", "", "t1"), running, "it is said once");
        let ended = with_condition(&next, "Failed", "why", "t1");
        let want = json!({"conditions": [
            {"type": "Running", "status": "False", "lastTransitionTime": "t0", "reason": "StorageVersionMigrationInProgress", "message": ""},
            {"type": "Failed", "status": "True", "lastTransitionTime": "t1", "reason": "StorageVersionMigrationFailed", "message": "why"}
        ]});
        assert_eq!(ended, want);
    }
}
