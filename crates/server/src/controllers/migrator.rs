//! Carries out StorageVersionMigrations (`storage-version-migrator-controller` of kube-controller-manager, KEP-4192): writes
//! every object that existed at the start of a migration without changing it. This has an effect only if the object is
//! stored in another version or encrypted with another key.
//!
//! The progress of a migration is in its status, so another server can continue it at any step.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use base::clock;
use kinds::{MIGRATION_GROUP, MIGRATIONS, defined_by};
use machinery::priority::kube_aware;
use machinery::status::Reason;
use machinery::{Result, Status, Value, json};
use objects::{Event, Key, Stored};
use resource::{Resource, Version};
use schema::definition::{find_condition, is_condition_true};
use tokio::sync::watch;

use super::reconciler::Reconciler;
use crate::limits;
use crate::verbs::{self, Context, PatchKind, Subresource};

const USER: &str = "system:serviceaccount:kube-system:storage-version-migrator-controller";
const MANAGER: &str = "storage-version-migrator-controller";
/// The verbs that a resource must support, as in kube-apiserver's message.
const WANTED_VERBS: &str = "[update patch list]";

/// The controller; it runs after every change of a migration, a CRD or a ThirdPartyResource. Migrations are carried out one
/// resource after the other.
pub struct Migrator;

impl Reconciler for Migrator {
    const NAME: &'static str = "storage version migrator";
    type Memory = ();

    /// Events come after the registry has been updated.
    fn observe(&self, key: &Key, _: &Event) -> bool {
        (key.group == MIGRATION_GROUP && key.plural == MIGRATIONS) || defined_by(key).is_some()
    }

    async fn reconcile(&self, context: &Arc<Context>, stop: &watch::Receiver<bool>, _: &mut ()) -> Option<Duration> {
        let done = migrate_all(context, stop).await;
        (!done).then_some(limits::CONTROLLER_RETRY)
    }
}

/// Carries out the next step of every migration. Returns false if this is to be repeated even if nothing changes.
async fn migrate_all(context: &Arc<Context>, stop: &watch::Receiver<bool>) -> bool {
    let Some(resource) = context.registry.get(MIGRATION_GROUP, MIGRATIONS) else { return true };
    let mut done = true;
    for stored in resource.collection.latest().0.values() {
        let migration = stored.body.to_value(stored.revision);
        let step = next_step(&migration, target(context, &migration).as_ref(), clock::now_seconds());
        done &= step != Step::Wait;
        if let Err(status) = take(context, &resource, &migration, step, stop).await {
            let name = stored.meta.name.as_str();
            tracing::warn!(name, error = %status, "a step of a StorageVersionMigration failed; will retry");
            done = false;
        }
    }
    done
}

/// The resource of a migration, and the version in which its objects are written: the storage version if it is served, so
/// that objects are converted only once.
struct Target {
    resource: Arc<Resource>,
    version: Arc<Version>,
}

fn target(context: &Context, migration: &Value) -> Option<Target> {
    let part = |name: &str| migration.str_at(&["spec", "resource", name]);
    let resource = context.registry.get(part("group"), part("resource")).filter(|resource| resource.established)?;
    let best = resource.served_versions().min_by(|a, b| kube_aware(&a.name, &b.name));
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
    /// Its resource is not served yet.
    Wait,
    Fail(String),
    /// Record the resource version from which on objects need no migration.
    Begin,
    /// Set the condition `Running`.
    Announce,
    /// Write all objects up to this resource version.
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
    // a number that does not fit is later than every object
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
) -> Result<()> {
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
            // if the resource is no longer served, the next step handles that
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

/// The status in which the condition `kind` is true. If this ends the migration, `Running` becomes false.
fn with_condition(migration: &Value, kind: &str, message: &str, now: &str) -> Value {
    let mut conditions = migration.items_at(&["status", "conditions"]).to_vec();
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

/// Writes the status of a migration, unless the migration has changed: then the change starts another run.
async fn report(context: &Context, resource: &Arc<Resource>, migration: &Value, status: Value) -> Result<()> {
    let part = |key: &str| migration.str_at(&["metadata", key]);
    // a migration that fails before it begins has no resource version, which the status requires; kube-apiserver rejects
    // such a status and never reports the failure
    let mut status = status;
    if status.get("resourceVersion").is_none() && migration.str_at(&["status", "resourceVersion"]).is_empty() {
        status.set_at(&["resourceVersion"], Value::from(part("resourceVersion")));
    }
    let patch = json!({"metadata": {"resourceVersion": (part("resourceVersion"))}, "status": status});
    let own = context.as_user(USER, resource, "", part("name")).through(Subresource::Status);
    verbs::tolerating(&[Reason::NotFound, Reason::Conflict], own.patch(PatchKind::Merge, &patch).await)
}

/// Whether a failed request may succeed when it is repeated.
fn can_be_retried(status: &Status) -> bool {
    use Reason::{InternalError, ServerTimeout, ServiceUnavailable, Timeout, TooManyRequests};
    matches!(status.reason, ServerTimeout | TooManyRequests | ServiceUnavailable | InternalError | Timeout)
}

/// Writes all objects of a resource up to the revision `until`, in [`limits::MIGRATION_WRITERS`] concurrent tasks.
async fn rewrite_all(context: &Arc<Context>, target: Target, until: u64, stop: &watch::Receiver<bool>) -> Result<()> {
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

/// The state of one of several concurrent writers.
struct WriterShare {
    all: Arc<[Arc<Stored>]>,
    /// The first object that no writer has taken.
    next: Arc<AtomicUsize>,
    stop: watch::Receiver<bool>,
}

impl WriterShare {
    async fn rewrite(self, context: Arc<Context>, target: Arc<Target>) -> Result<()> {
        while !*self.stop.borrow()
            && let Some(stored) = self.all.get(self.next.fetch_add(1, Ordering::Relaxed))
        {
            if let Err(status) = rewrite(&context, &target, stored).await {
                // stops the other writers
                self.next.store(self.all.len(), Ordering::Relaxed);
                return Err(status);
            }
        }
        Ok(())
    }
}

/// Writes an object without a change. If it has been written since it was read, that write has migrated it.
async fn rewrite(context: &Context, target: &Target, stored: &Stored) -> Result<()> {
    let Target { resource, version } = target;
    let nothing = json!({
        "apiVersion": (resource.api_version(version)), "kind": (resource.kind.clone()),
        "metadata": {"uid": (stored.meta.uid.clone()), "resourceVersion": (stored.revision.to_string())}
    });
    let own = context.as_user(USER, resource, &stored.meta.namespace, &stored.meta.name).in_version(version);
    let own = own.with_query(format!("fieldManager={MANAGER}"));
    verbs::tolerating(&[Reason::Conflict], own.patch(PatchKind::Apply, &nothing).await)
}

#[cfg(test)]
mod tests {
    use super::*;
    use kinds::CATALOGUE;
    use objects::{Objects, Storage};

    fn of_kind(objects: &Objects, kind: &str) -> Target {
        let built_in = CATALOGUE.kinds().find(|built_in| built_in.kind == kind).unwrap();
        let resource = Arc::new(resource::from_row(built_in, &[], objects, &base::request::FeatureGates::default()));
        let version = resource.storage_version().clone();
        Target { resource, version }
    }

    #[tokio::test]
    async fn next_step_depends_on_status() {
        let store = Arc::new(store::Memory::default());
        let objects = Objects::open(Storage::own(store), Default::default(), Box::new(|_, _, _| {})).await.unwrap();
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
    fn condition_is_set_once() {
        let migration = json!({"status": {"resourceVersion": "7"}});
        let running = with_condition(&migration, "Running", "", "t0");
        let mut next = migration.clone();
        next.set_at(&["status"], running.clone());
        assert_eq!(with_condition(&next, "Running", "", "t1"), running, "the condition is unchanged");
        let ended = with_condition(&next, "Failed", "why", "t1");
        let want = json!({"conditions": [
            {"type": "Running", "status": "False", "lastTransitionTime": "t0", "reason": "StorageVersionMigrationInProgress", "message": ""},
            {"type": "Failed", "status": "True", "lastTransitionTime": "t1", "reason": "StorageVersionMigrationFailed", "message": "why"}
        ]});
        assert_eq!(ended, want);
    }
}
