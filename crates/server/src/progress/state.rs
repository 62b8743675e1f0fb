//! State of the engine between evaluations: the plans, what their objects depend on, the queue, and what has gone wrong.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

use machinery::Text;
use objects::{Event, EventKind, Key, Stored};

use super::plan::{Plan, RelatedChoice, Relation};
use super::queue::{WorkKey, WorkQueue};
use crate::limits;

/// Group and plural of a kind that is served.
pub type Served = (Text, Text);

/// A plan whose kind is served.
pub struct Loaded {
    pub plan: Arc<Plan>,
    /// The kind of its objects, unless that is not served.
    pub target: Option<Served>,
    pub namespaced: bool,
    /// The kinds of its lists; those that are not served are `None`.
    pub related: Vec<Option<Served>>,
    /// The writes of each rule.
    pub writes: Vec<u64>,
}

impl Loaded {
    /// Whether all kinds that the plan names are served.
    pub fn is_complete(&self) -> bool {
        self.target.is_some() && self.related.iter().all(Option::is_some)
    }

    fn uses(&self, group: &str) -> bool {
        self.plan.target.group == group || self.plan.bindings.iter().any(|binding| binding.kind.group == group)
    }
}

/// A rule that is stopped, for one object.
pub struct Trouble {
    pub path: Text,
    pub message: String,
}

#[derive(Default)]
pub struct EngineState {
    pub plans: BTreeMap<Text, Loaded>,
    /// Plans that are to be loaded.
    pub changed: BTreeSet<Text>,
    is_loading: bool,
    pub queue: WorkQueue,
    /// The plans that have a part in a kind: for its objects, for lists of owned ones, and for lists of chosen ones.
    parts: HashMap<Served, Vec<(Text, PlanPart)>>,
    /// For kinds of owned objects: their paths by the uid of the owner.
    owned: HashMap<Served, HashMap<Text, BTreeSet<Text>>>,
    /// The choices of objects: by plan and list, namespace (empty for all), and path of the object.
    choices: HashMap<(Text, usize), HashMap<Text, HashMap<Text, RelatedChoice>>>,
    /// Writes by rules since the engine last had nothing to do.
    recent: HashMap<(WorkKey, usize), u32>,
    /// Rules that are stopped for an object because they feed themselves.
    stopped: BTreeSet<(WorkKey, usize)>,
    /// By plan and rule.
    pub troubles: BTreeMap<(Text, usize), Trouble>,
    /// Plans whose status has changed.
    pub reports: BTreeSet<Text>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum PlanPart {
    Target,
    Owned,
    Chosen(usize),
}

impl EngineState {
    pub fn is_busy(&self) -> bool {
        self.is_loading || !self.changed.is_empty() || !self.queue.is_idle()
    }

    /// The next plan to load, until [`EngineState::end_loading`].
    pub fn begin_loading(&mut self) -> Option<Text> {
        let name = self.changed.pop_first()?;
        self.is_loading = true;
        Some(name)
    }

    /// Returns whether there are plans.
    pub fn end_loading(&mut self) -> bool {
        self.is_loading = false;
        !self.plans.is_empty() || !self.changed.is_empty()
    }

    /// Adds a plan in place of the one that has its name.
    pub fn load(&mut self, loaded: Loaded) {
        let name = loaded.plan.name.clone();
        self.unload(&name);
        let mut part = |served: &Option<Served>, part| {
            if let Some(served) = served {
                self.parts.entry(served.clone()).or_default().push((name.clone(), part));
            }
        };
        part(&loaded.target, PlanPart::Target);
        for (index, (binding, served)) in loaded.plan.bindings.iter().zip(&loaded.related).enumerate() {
            let is_owned = matches!(binding.relation, Relation::Owned);
            part(served, if is_owned { PlanPart::Owned } else { PlanPart::Chosen(index) });
        }
        self.reports.insert(name.clone());
        self.plans.insert(name, loaded);
        self.queue.rank(self.ranks());
    }

    /// Ranks plans so that objects come after those that they own: a Deployment is evaluated once its ReplicaSet is done with, and not
    /// after each of its Pods.
    fn ranks(&self) -> HashMap<Text, usize> {
        let mut of_kinds: HashMap<&Served, usize> = HashMap::new();
        // more than the longest chain of kinds that people build; in a circle, ranks would rise for ever
        for _ in 0..limits::PROGRESS_RANKS {
            for loaded in self.plans.values() {
                let Some(target) = &loaded.target else { continue };
                let lists = loaded.plan.bindings.iter().zip(&loaded.related);
                let owned = lists
                    .filter(|(list, _)| matches!(list.relation, Relation::Owned))
                    .filter_map(|(_, kind)| kind.as_ref());
                let ranks = owned.filter(|kind| *kind != target).filter_map(|kind| of_kinds.get(kind));
                let rank = ranks.max().map_or(0, |rank| rank + 1);
                let known = of_kinds.entry(target).or_default();
                *known = rank.max(*known);
            }
        }
        let rank = |loaded: &Loaded| loaded.target.as_ref().and_then(|target| of_kinds.get(target)).copied();
        self.plans.iter().map(|(name, loaded)| (name.clone(), rank(loaded).unwrap_or_default())).collect()
    }

    pub fn unload(&mut self, name: &Text) {
        if self.plans.remove(name).is_none() {
            return;
        }
        self.queue.forget_plan(name);
        for parts in self.parts.values_mut() {
            parts.retain(|(of, _)| of != name);
        }
        self.parts.retain(|_, parts| !parts.is_empty());
        self.choices.retain(|(of, _), _| of != name);
        self.recent.retain(|(item, _), _| item.plan != *name);
        self.stopped.retain(|(item, _)| item.plan != *name);
        self.troubles.retain(|(of, _), _| of != name);
    }

    /// Whether the owners of a kind's objects have yet to be read.
    pub fn lacks_owners(&mut self, served: &Served) -> bool {
        if self.owned.contains_key(served) {
            return false;
        }
        self.owned.insert(served.clone(), HashMap::new());
        true
    }

    /// Notes the owners of an object.
    pub fn note_owners(&mut self, served: &Served, path: &Text, stored: &Stored) {
        let Some(by_owner) = self.owned.get_mut(served) else { return };
        for owner in &stored.meta.owners {
            by_owner.entry(owner.uid.clone()).or_default().insert(path.clone());
        }
    }

    pub fn owned_by(&self, served: &Served, uid: &str) -> Vec<Text> {
        self.owned.get(served).and_then(|owned| owned.get(uid)).into_iter().flatten().cloned().collect()
    }

    /// Notes what an object has chosen for a list.
    pub fn choose(&mut self, item: &WorkKey, list: usize, choice: RelatedChoice) {
        let by_namespace = self.choices.entry((item.plan.clone(), list)).or_default();
        let namespace = choice.namespace.clone().unwrap_or_default();
        if by_namespace.get(&namespace).and_then(|chosen| chosen.get(&item.path)) == Some(&choice) {
            return;
        }
        by_namespace.values_mut().for_each(|chosen| drop(chosen.remove(&item.path)));
        // most Pods look for no controller, and each change of a kind passes all choices
        if choice.is_empty() {
            return;
        }
        by_namespace.entry(namespace).or_default().insert(item.path.clone(), choice);
    }

    /// Forgets an object that is gone.
    pub fn forget(&mut self, item: &WorkKey) {
        self.queue.forget(item);
        let Some(loaded) = self.plans.get(&item.plan) else { return };
        let lists = loaded.plan.bindings.len();
        for rule in 0..loaded.plan.rules.len() {
            self.stopped.remove(&(item.clone(), rule));
            self.clear(item, rule);
        }
        for list in 0..lists {
            let by_namespace = self.choices.get_mut(&(item.plan.clone(), list));
            by_namespace.into_iter().flat_map(HashMap::values_mut).for_each(|chosen| drop(chosen.remove(&item.path)));
        }
    }

    /// Notes that a rule is stopped for an object.
    pub fn trouble(&mut self, item: &WorkKey, rule: usize, message: String) {
        let at = (item.plan.clone(), rule);
        let is_known = self.troubles.get(&at).is_some_and(|known| known.path == item.path && known.message == message);
        if !is_known {
            self.troubles.insert(at, Trouble { path: item.path.clone(), message });
            self.reports.insert(item.plan.clone());
        }
    }

    /// Notes that a rule is not stopped for an object.
    pub fn clear(&mut self, item: &WorkKey, rule: usize) {
        let at = (item.plan.clone(), rule);
        if self.troubles.get(&at).is_some_and(|known| known.path == item.path) {
            self.troubles.remove(&at);
            self.reports.insert(item.plan.clone());
        }
    }

    pub fn is_stopped(&self, item: &WorkKey, rule: usize) -> bool {
        !self.stopped.is_empty() && self.stopped.contains(&(item.clone(), rule))
    }

    /// Counts writes. A rule that writes again and again without the engine coming to rest is stopped for the object.
    pub fn wrote(&mut self, item: &WorkKey, rule: usize, writes: u64) {
        if let Some(count) = self.plans.get_mut(&item.plan).and_then(|loaded| loaded.writes.get_mut(rule)) {
            *count += writes;
        }
        self.reports.insert(item.plan.clone());
        let recent = self.recent.entry((item.clone(), rule)).or_default();
        *recent += 1;
        if *recent >= limits::PROGRESS_REPEATS_MAX {
            let message = format!("it has written {recent} times in a row, so it feeds itself");
            self.stopped.insert((item.clone(), rule));
            self.trouble(item, rule, message);
        }
    }

    /// Ends the evaluation of an item.
    pub fn finish(&mut self, item: &WorkKey) {
        self.queue.finish(item);
        if self.queue.is_idle() {
            self.recent.clear();
        }
    }

    /// Adds what an event concerns, and returns whether that is anything.
    pub fn observe(&mut self, key: &Key, event: &Event) -> bool {
        let served = (key.group.clone(), key.plural.clone());
        let Some(parts) = self.parts.get(&served) else { return false };
        let mut found = vec![];
        let states = [Some(&event.object), event.previous.as_ref()];
        let (namespace, name) = key.path.split_once('/').unwrap_or(("", &key.path));
        for (plan, part) in parts {
            match part {
                PlanPart::Target => found.push(WorkKey { plan: plan.clone(), path: key.path.clone() }),
                PlanPart::Owned => {
                    let Some(loaded) = self.plans.get(plan) else { continue };
                    let target = &loaded.plan.target;
                    for owner in states.iter().flatten().flat_map(|stored| &stored.meta.owners) {
                        let group = owner.api_version.split_once('/').map_or("", |(group, _)| group);
                        if owner.kind == target.kind && group == target.group {
                            let path = match loaded.namespaced {
                                true => Text::from([namespace, "/", &owner.name].concat()),
                                false => owner.name.clone(),
                            };
                            found.push(WorkKey { plan: plan.clone(), path });
                        }
                    }
                }
                PlanPart::Chosen(list) => {
                    let Some(by_namespace) = self.choices.get(&(plan.clone(), *list)) else { continue };
                    let places = if namespace.is_empty() { &[""][..] } else { &[namespace, ""] };
                    for (path, choice) in places.iter().filter_map(|place| by_namespace.get(*place)).flatten() {
                        if states.iter().flatten().any(|stored| choice.has(name, &stored.meta.labels)) {
                            found.push(WorkKey { plan: plan.clone(), path: path.clone() });
                        }
                    }
                }
            }
        }
        self.follow_owners(&served, key, event);
        let is_concerned = !found.is_empty();
        found.into_iter().for_each(|item| self.queue.add(item));
        is_concerned
    }

    fn follow_owners(&mut self, served: &Served, key: &Key, event: &Event) {
        let Some(by_owner) = self.owned.get_mut(served) else { return };
        let is_gone = event.kind == EventKind::Deleted;
        let now: &[_] = if is_gone { &[] } else { &event.object.meta.owners };
        let before = [Some(&event.object).filter(|_| is_gone), event.previous.as_ref()];
        for owner in before.iter().flatten().flat_map(|stored| &stored.meta.owners) {
            if now.iter().any(|kept| kept.uid == owner.uid) {
                continue;
            }
            if let Some(paths) = by_owner.get_mut(&owner.uid) {
                paths.remove(&key.path);
                if paths.is_empty() {
                    by_owner.remove(&owner.uid);
                }
            }
        }
        for owner in now {
            by_owner.entry(owner.uid.clone()).or_default().insert(key.path.clone());
        }
    }

    /// Marks the plans that a change of a definition may concern.
    pub fn redefined(&mut self, group: &str) -> bool {
        let concerned = self.plans.iter().filter(|(_, loaded)| loaded.uses(group) && !loaded.is_complete());
        let names: Vec<Text> = concerned.map(|(name, _)| name.clone()).collect();
        let is_concerned = !names.is_empty();
        self.changed.extend(names);
        is_concerned
    }
}
