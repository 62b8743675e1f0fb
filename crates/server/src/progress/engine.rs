//! The engine: evaluates the rules of objects that have changed, and does what they say.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use base::clock::{self, Follower};
use base::task;
use futures_util::future::BoxFuture;
use machinery::Value;
use objects::{Event, EventKind, Key, Stored};
use parking_lot::Mutex;
use resource::{Resource, Version};
use tokio::sync::{Notify, watch};
use tokio::time::Instant;

use super::definition::{GROUP, PROGRESSES};
use super::effects::{RuleSubject, served};
use super::outcome::Effects;
use super::plan::{Binding, Evaluation, Plan, RelatedChoice, Relation, RuleVerdict, Snapshot, now};
use super::queue::WorkKey;
use super::state::{EngineState, Loaded, Served};
use crate::controllers::{Controller, after, stopped, until};
use crate::limits;
use crate::verbs::Context;

/// Moves the objects of one API on.
#[derive(Default)]
pub struct Engine {
    pub(super) state: Mutex<EngineState>,
    /// Whether there is any Progress.
    has_plans: AtomicBool,
    /// Notified when the queue has an item.
    work: Notify,
    /// Notified when a Progress is to be loaded, or a wait has begun.
    wake: Notify,
}

impl Controller for Engine {
    fn name(&self) -> &'static str {
        "progress"
    }

    fn observe(&self, key: &Key, event: &Event) -> bool {
        if key.group == GROUP && key.plural == PROGRESSES {
            return self.observe_plan(key, event);
        }
        if !self.has_plans.load(Ordering::Acquire) {
            return false;
        }
        let mut state = self.state.lock();
        if let Some((group, _)) = kinds::defined_by(key)
            && state.redefined(&group)
        {
            self.wake.notify_one();
            return true;
        }
        let is_concerned = state.observe(key, event);
        if is_concerned {
            self.work.notify_one();
        }
        is_concerned
    }

    fn is_busy(&self) -> bool {
        self.state.lock().is_busy()
    }

    fn run(self: Arc<Self>, context: Arc<Context>, stop: watch::Receiver<bool>) -> BoxFuture<'static, ()> {
        Box::pin(async move {
            for _ in 0..limits::PROGRESS_WORKERS {
                task::spawn("progress worker", self.clone().serve(context.clone(), stop.clone()));
            }
            self.keep(&context, stop).await;
        })
    }

    fn work<'a>(&'a self, context: &'a Arc<Context>) -> BoxFuture<'a, ()> {
        Box::pin(async move {
            self.load_changed(context).await;
            self.state.lock().queue.wake(clock::now_micros());
            while self.one(context).await {}
        })
    }
}

impl Engine {
    fn observe_plan(&self, key: &Key, event: &Event) -> bool {
        let mut state = self.state.lock();
        let is_written_here = event.kind != EventKind::Deleted
            && state.plans.get(&key.path).is_some_and(|known| {
                let object = event.object.body.to_value(event.revision);
                let generation = object.at(&["metadata", "generation"]).and_then(Value::as_int);
                known.plan.uid == event.object.meta.uid && generation == Some(known.plan.generation)
            });
        if !is_written_here {
            state.changed.insert(key.path.clone());
            self.has_plans.store(true, Ordering::Release);
            self.wake.notify_one();
        }
        !is_written_here
    }

    /// Evaluates what the queue has, until `stop` becomes true.
    async fn serve(self: Arc<Self>, context: Arc<Context>, mut stop: watch::Receiver<bool>) {
        loop {
            while self.one(&context).await {
                if *stop.borrow() {
                    return;
                }
                // writes to a store in memory await nothing, so other tasks would starve without this
                tokio::task::yield_now().await;
            }
            tokio::select! {
                biased;
                () = stopped(&mut stop) => return,
                () = self.work.notified() => {}
            }
        }
    }

    /// Loads plans, wakes what is due and reports, until `stop` becomes true.
    async fn keep(&self, context: &Arc<Context>, mut stop: watch::Receiver<bool>) {
        let (mut follower, mut report_at) = (Follower::new(), None::<Instant>);
        loop {
            self.load_changed(context).await;
            let next = self.wake_due();
            if report_at.is_none() && !self.state.lock().reports.is_empty() {
                report_at = Some(clock::instant() + limits::PROGRESS_STATUS);
            }
            tokio::select! {
                biased;
                () = stopped(&mut stop) => return,
                () = self.wake.notified() => {}
                () = after(next) => {}
                () = until(report_at) => {
                    report_at = None;
                    self.report(context).await;
                }
                // the loop has done what is due
                () = follower.changed() => {}
            }
        }
    }

    /// Adds what is due to the queue. Returns the time until the next wait ends, unless the clock stands.
    fn wake_due(&self) -> Option<Duration> {
        let now = clock::now_micros();
        let mut state = self.state.lock();
        let next = state.queue.wake(now);
        if state.queue.has_ready() {
            self.work.notify_one();
        }
        drop(state);
        let stands = clock::current().and_then(|clock| clock.reading()).is_some_and(|reading| reading.since.is_none());
        let left = next.filter(|_| !stands)?.saturating_sub(now);
        Some(Duration::from_micros(u64::try_from(left).unwrap_or_default()))
    }

    /// Loads the plans that have changed, and adds their objects to the queue.
    async fn load_changed(&self, context: &Arc<Context>) {
        loop {
            // in a statement of its own, which ends the lock
            let next = self.state.lock().begin_loading();
            let Some(name) = next else { return };
            let stored = context.registry.get(GROUP, PROGRESSES).and_then(|it| it.collection.get(&name));
            match stored {
                Some(stored) => {
                    let object = stored.body.to_value(stored.revision);
                    self.load(context, task::blocking(|| Plan::compile(&object)));
                }
                None => self.state.lock().unload(&name),
            }
            let has_plans = self.state.lock().end_loading();
            self.has_plans.store(has_plans, Ordering::Release);
        }
    }

    fn load(&self, context: &Context, plan: Plan) {
        let target = served(context, &plan.target).map(|(resource, _)| resource);
        let place = |resource: &Arc<Resource>| -> Served { (resource.storage_group(), resource.plural.clone()) };
        let related: Vec<Option<Served>> = plan
            .bindings
            .iter()
            .map(|binding| served(context, &binding.kind).map(|(resource, _)| place(&resource)))
            .collect();
        let plan = Arc::new(plan);
        let mut state = self.state.lock();
        state.load(Loaded {
            plan: plan.clone(),
            target: target.as_ref().map(place),
            namespaced: target.as_ref().is_some_and(|target| target.namespaced),
            related: related.clone(),
            writes: vec![0; plan.rules.len()],
        });
        // from here on events are followed, so what is read now is not missed later
        for (binding, place) in plan.bindings.iter().zip(&related) {
            let Some(place) = place.as_ref().filter(|_| matches!(binding.relation, Relation::Owned)) else { continue };
            if state.lacks_owners(place) {
                let objects = context.objects.collection(&place.0, &place.1).latest().0;
                objects.iter().for_each(|(path, stored)| state.note_owners(place, path, stored));
            }
        }
        if let Some(target) = target.filter(|_| plan.problem.is_none()) {
            for path in target.collection.latest().0.keys() {
                state.queue.add(WorkKey { plan: plan.name.clone(), path: path.clone() });
            }
            self.work.notify_one();
        }
    }

    /// Evaluates the next item of the queue, if there is one.
    async fn one(&self, context: &Arc<Context>) -> bool {
        let (item, more) = {
            let mut state = self.state.lock();
            let Some(item) = state.queue.take() else { return false };
            (item, state.queue.has_ready())
        };
        if more {
            // another worker helps
            self.work.notify_one();
        }
        self.pass(context, &item).await;
        let mut state = self.state.lock();
        state.finish(&item);
        // the main loop has a status to write, or a wait to begin
        if !state.reports.is_empty() || state.queue.has_waits() {
            self.wake.notify_one();
        }
        true
    }

    /// Evaluates the rules of an object until none of them writes.
    async fn pass(&self, context: &Arc<Context>, item: &WorkKey) {
        let Some(plan) = self.state.lock().plans.get(&item.plan).map(|loaded| loaded.plan.clone()) else { return };
        let Some((resource, version)) = served(context, &plan.target).filter(|_| plan.problem.is_none()) else {
            return;
        };
        let mut rule = 0;
        while rule < plan.rules.len() {
            let stored = resource.collection.get(&item.path).filter(|stored| plan.selects(&stored.meta));
            let Some(stored) = stored else { return self.state.lock().forget(item) };
            let snapshot = match self.snapshot(context, &plan, (&resource, &version), &stored, item).await {
                Ok(snapshot) => snapshot,
                Err(why) => return self.state.lock().trouble(item, rule, why),
            };
            let next = plan.evaluated(|| self.next(&plan, &snapshot, item, rule));
            let Some((index, effects)) = next else { return };
            if let Some(Ok(acting)) = plan.rules.get(index).map(|(_, rule)| rule) {
                let object = &snapshot.object;
                let subject = RuleSubject { context, resource: &resource, version: &version, object };
                let written = subject.write(acting, effects).await;
                let mut state = self.state.lock();
                match written.problem {
                    Some(why) => {
                        state.trouble(item, index, why);
                        // what another client has to put right may cause no event of the object
                        let due = clock::now_micros().saturating_add(limits::PROGRESS_RETRY_MICROS);
                        state.queue.wait(item, index, None, due);
                    }
                    None => state.clear(item, index),
                }
                if written.writes > 0 {
                    state.wrote(item, index, written.writes);
                }
                if written.has_others {
                    // those come first, so that the rules that follow, which count them, write once and not twice
                    return state.queue.add(item.clone());
                }
            }
            rule = index + 1;
        }
    }

    /// The next rule that writes something, from a rule on.
    fn next(&self, plan: &Plan, snapshot: &Snapshot, item: &WorkKey, from: usize) -> Option<(usize, Effects)> {
        let (now, now_micros) = (now(), clock::now_micros());
        let mut evaluation = Evaluation::new(plan, snapshot, &now, now_micros);
        for index in from..plan.rules.len() {
            let Some(rule) = evaluation.rule(index) else { continue };
            let seen = {
                let state = self.state.lock();
                if state.is_stopped(item, index) {
                    continue;
                }
                state.queue.seen(item, index)
            };
            let verdict = evaluation.judge(rule, seen);
            let mut state = self.state.lock();
            match verdict {
                Ok(RuleVerdict::Rest) => {
                    state.queue.rest(item, index);
                    state.clear(item, index);
                }
                Ok(RuleVerdict::Later { since, due }) => {
                    state.queue.wait(item, index, since, due);
                    state.clear(item, index);
                }
                Ok(RuleVerdict::Act(effects)) => {
                    state.queue.rest(item, index);
                    if effects.change(&snapshot.object, &rule.finalizers) {
                        return Some((index, *effects));
                    }
                    state.clear(item, index);
                }
                Err(why) => state.trouble(item, index, why),
            }
        }
        None
    }

    async fn snapshot(
        &self,
        context: &Context,
        plan: &Plan,
        (resource, version): (&Arc<Resource>, &Arc<Version>),
        stored: &Arc<Stored>,
        item: &WorkKey,
    ) -> Result<Snapshot, String> {
        let read = resource.read_converted(stored, version).await;
        let object = read.map_err(|status| status.message.clone())?;
        let mut related = HashMap::new();
        for (list, binding) in plan.bindings.iter().enumerate() {
            let found = match served(context, &binding.kind) {
                Some(served) => self.related(served, plan, (list, binding), &object, item).await?,
                None => vec![],
            };
            related.insert(binding.name.clone(), Value::Array(found));
        }
        Ok(Snapshot { object, related })
    }

    /// The related objects of a list.
    async fn related(
        &self,
        (resource, version): (Arc<Resource>, Arc<Version>),
        plan: &Plan,
        (list, binding): (usize, &Binding),
        object: &Value,
        item: &WorkKey,
    ) -> Result<Vec<Value>, String> {
        let collection = &resource.collection;
        let found: Vec<Arc<Stored>> = match plan.choose(binding, object)? {
            None => {
                let uid = object.str_at(&["metadata", "uid"]);
                let paths = self.state.lock().owned_by(&(resource.storage_group(), resource.plural.clone()), uid);
                paths.iter().filter_map(|path| collection.get(path)).collect()
            }
            Some(choice) => {
                let namespace = choice.namespace.clone().filter(|_| resource.namespaced);
                let choice = RelatedChoice { namespace: namespace.clone(), ..choice };
                self.state.lock().choose(item, list, choice.clone());
                match (&choice.name, namespace) {
                    (Some(name), namespace) => {
                        let path = resource.key(&namespace.unwrap_or_default(), name).path;
                        collection.get(&path).into_iter().collect()
                    }
                    (None, Some(namespace)) => collection.in_namespace(&namespace),
                    (None, None) => collection.latest().0.values().cloned().collect(),
                }
                .into_iter()
                .filter(|stored: &Arc<Stored>| choice.has(&stored.meta.name, &stored.meta.labels))
                .collect()
            }
        };
        let mut objects = vec![];
        for stored in found {
            objects.push(resource.read_converted(&stored, &version).await.map_err(|status| status.message.clone())?);
        }
        Ok(objects)
    }
}
