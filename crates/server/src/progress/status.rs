//! Writes the status of Progress objects.

use std::sync::Arc;

use base::clock;
use machinery::{Text, Value, json};

use super::definition::{GROUP, PROGRESSES};
use super::effects::USER;
use super::engine::Engine;
use super::state::{EngineState, Loaded};
use crate::verbs::{Context, Subresource};

impl Engine {
    /// Writes the statuses that have changed.
    pub(super) async fn report(&self, context: &Arc<Context>) {
        let Some(resource) = context.registry.get(GROUP, PROGRESSES) else { return };
        let changed: Vec<(Text, Value)> = {
            let mut state = self.state.lock();
            let names = std::mem::take(&mut state.reports);
            let status =
                |name: Text| state.plans.get(&name).map(|loaded| state.status(loaded)).map(|status| (name, status));
            names.into_iter().filter_map(status).collect()
        };
        for (name, status) in changed {
            let update = |object: &mut Value| {
                let mut status = status.clone();
                keep_transition(&mut status, object);
                object.set_at(&["status"], status);
            };
            let done = context
                .as_server(&resource, "", &name)
                .through(Subresource::Status)
                .managed_by(USER)
                .change(update)
                .await;
            if let Err(error) = done {
                tracing::warn!(%error, %name, "the status of a Progress cannot be written");
            }
        }
    }
}

/// Keeps the time of the last transition of a condition that is as before.
fn keep_transition(status: &mut Value, object: &Value) {
    let conditions = status.get_mut("conditions").and_then(Value::as_array_mut);
    for condition in conditions.into_iter().flatten() {
        let mut known = object.items_at(&["status", "conditions"]).iter();
        let same = known
            .find(|known| known.get("type") == condition.get("type") && known.get("status") == condition.get("status"));
        if let Some(time) = same.and_then(|known| known.get("lastTransitionTime")) {
            condition.set_at(&["lastTransitionTime"], time.clone());
        }
    }
}

impl EngineState {
    fn status(&self, loaded: &Loaded) -> Value {
        let plan = &loaded.plan;
        let mut stopped = vec![];
        let mut rules = vec![];
        for (index, (name, rule)) in plan.rules.iter().enumerate() {
            let trouble = self.troubles.get(&(plan.name.clone(), index));
            let message = match rule {
                Err(why) => Some(why.clone()),
                Ok(_) => trouble.map(|trouble| format!("{}: {}", trouble.path, trouble.message)),
            };
            let mut shown =
                json!({"name": (name.as_str()), "writes": (loaded.writes.get(index).copied().unwrap_or(0))});
            if let Some(message) = message {
                stopped.push(name.as_str());
                shown.set_at(&["message"], Value::from(message));
            }
            rules.push(shown);
        }
        let (reason, message) = if let Some(problem) = &plan.problem {
            ("Invalid", problem.clone())
        } else if let Some(missing) = missing(loaded) {
            ("KindNotServed", missing)
        } else if stopped.is_empty() {
            ("Working", String::new())
        } else {
            ("RulesStopped", format!("stopped: {}", stopped.join(", ")))
        };
        let is_ready = if reason == "Working" { "True" } else { "False" };
        json!({
            "observedGeneration": (plan.generation),
            "writes": (loaded.writes.iter().sum::<u64>()),
            "conditions": [{
                "type": "Ready", "status": is_ready, "reason": reason, "message": message,
                "observedGeneration": (plan.generation), "lastTransitionTime": (clock::now_rfc3339())
            }],
            "rules": (Value::Array(rules)),
        })
    }
}

/// The kinds that are not served.
fn missing(loaded: &Loaded) -> Option<String> {
    let of =
        loaded.plan.bindings.iter().zip(&loaded.related).map(|(binding, served)| (&binding.kind, served.is_some()));
    let all = std::iter::once((&loaded.plan.target, loaded.target.is_some())).chain(of);
    let missing: Vec<String> = all.filter(|(_, is_served)| !is_served).map(|(kind, _)| kind.to_string()).collect();
    (!missing.is_empty()).then(|| format!("not served: {}", missing.join(", ")))
}
