//! The configuration of API priority and fairness (KEP-1040): restores bootstrap objects and writes the `Dangling` condition
//! of FlowSchemas. kube-apiserver does this itself, so `--controllers` does not apply.

use std::sync::Arc;
use std::time::Duration;

use base::clock;
use kinds::FLOW_GROUP;
use machinery::status::Reason;
use machinery::{Result, Value, json};
use objects::{Event, Key};
use resource::Resource;
use schema::definition::has_condition;
use tokio::sync::watch;
use tokio::time::Instant;

use super::reconciler::Reconciler;
use crate::limits;
use crate::verbs::{self, Context, Kept, PatchKind, Subresource};

const DANGLING: &str = "Dangling";
/// The field manager of the conditions.
const CONSUMER: &str = "api-priority-and-fairness-config-consumer-v1";

/// The controller; it runs after every change of a FlowSchema or a PriorityLevelConfiguration.
pub struct FlowController;

impl Reconciler for FlowController {
    const NAME: &'static str = "flow control";
    const RESUMES: bool = false;
    /// When bootstrap objects that were changed are restored.
    type Memory = Option<Instant>;

    fn observe(&self, key: &Key, _: &Event) -> bool {
        key.group == FLOW_GROUP
    }

    async fn reconcile(
        &self,
        context: &Arc<Context>,
        _: &watch::Receiver<bool>,
        due: &mut Option<Instant>,
    ) -> Option<Duration> {
        let now = clock::moment();
        let kept = async {
            let is_due = due.is_some_and(|due| due <= now);
            verbs::keep_flows(context, if is_due { Kept::All } else { Kept::MissingMandatory }).await?;
            report_dangling(context).await
        };
        let Err(status) = kept.await else {
            let is_changed = verbs::are_flows_changed(context);
            *due = is_changed.then(|| due.filter(|due| *due > now).unwrap_or(now + limits::FLOW_RESTORATION));
            return due.map(|due| due.saturating_duration_since(now));
        };
        tracing::warn!(error = %status, "mandatory objects or conditions of API priority and fairness cannot be written; will retry");
        Some(limits::CONTROLLER_RETRY)
    }
}

/// Writes the `Dangling` condition of every FlowSchema for which it has changed.
async fn report_dangling(context: &Context) -> Result<()> {
    let (schemas, levels) = ("flowschemas", "prioritylevelconfigurations");
    let (Some(schemas), Some(levels)) =
        (context.registry.get(FLOW_GROUP, schemas), context.registry.get(FLOW_GROUP, levels))
    else {
        return Ok(());
    };
    let (all, _) = schemas.collection.latest();
    for stored in all.values() {
        let schema = stored.body.to_managed_value(0);
        let level = schema.str_at(&["spec", "priorityLevelConfiguration", "name"]);
        let wanted = condition(level, levels.collection.get(level).is_some());
        if has_condition(&schema, &wanted) {
            continue;
        }
        report(context, &schemas, &stored.meta.name, wanted).await?;
    }
    Ok(())
}

/// Applies a condition to the status of a schema.
async fn report(context: &Context, schemas: &Arc<Resource>, name: &str, mut condition: Value) -> Result<()> {
    condition.set_at(&["lastTransitionTime"], Value::from(clock::now_rfc3339()));
    let applied = json!({
        "apiVersion": (schemas.api_version(schemas.storage_version())), "kind": (schemas.kind.clone()),
        "metadata": {"name": name}, "status": {"conditions": [condition]}
    });
    let own = context.as_server(schemas, "", name).through(Subresource::Status);
    let own = own.with_query(format!("fieldManager={CONSUMER}&force=true"));
    // server-side apply does not create an object through its status
    verbs::tolerating(&[Reason::NotFound], own.patch(PatchKind::Apply, &applied).await)
}

/// The `Dangling` condition of a FlowSchema that names this priority level, without its time.
fn condition(level: &str, found: bool) -> Value {
    let reference = format!("This FlowSchema references the PriorityLevelConfiguration object named {level:?}");
    if found {
        json!({
            "type": DANGLING, "status": "False", "reason": "Found", "message": (format!("{reference} and it exists"))
        })
    } else {
        json!({
            "type": DANGLING, "status": "True", "reason": "NotFound",
            "message": (format!("{reference} but there is no such object"))
        })
    }
}
