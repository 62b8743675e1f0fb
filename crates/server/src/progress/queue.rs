//! The objects whose rules are to be evaluated: now, or at a time of the workspace's clock.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet, VecDeque};

use machinery::Text;

/// An object, as seen by one Progress.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct WorkKey {
    pub plan: Text,
    /// `namespace/name`, or `name`.
    pub path: Text,
}

/// The wait of a rule for an object.
struct Waiting {
    /// When the rule was first seen to apply, unless it says itself since when it waits.
    since: Option<i64>,
    due: i64,
}

/// Holds items by rank and in the order in which they came, each at most once, and those that wait for a time.
#[derive(Default)]
pub struct WorkQueue {
    ready: BTreeMap<usize, VecDeque<WorkKey>>,
    /// The ranks of plans, where the lowest comes first.
    ranks: HashMap<Text, usize>,
    queued: HashSet<WorkKey>,
    active: HashSet<WorkKey>,
    /// Items that have changed while they are active.
    again: HashSet<WorkKey>,
    waits: HashMap<WorkKey, HashMap<usize, Waiting>>,
    by_time: BTreeSet<(i64, WorkKey, usize)>,
}

impl WorkQueue {
    /// Adds an item, unless it is there.
    pub fn add(&mut self, item: WorkKey) {
        if self.active.contains(&item) {
            self.again.insert(item);
        } else if self.queued.insert(item.clone()) {
            let rank = self.ranks.get(&item.plan).copied().unwrap_or_default();
            self.ready.entry(rank).or_default().push_back(item);
        }
    }

    /// Sets the ranks of plans, for items that come from now on.
    pub fn rank(&mut self, ranks: HashMap<Text, usize>) {
        self.ranks = ranks;
    }

    /// The next item, which is active until [`WorkQueue::finish`].
    pub fn take(&mut self) -> Option<WorkKey> {
        let mut lowest = self.ready.first_entry()?;
        let item = lowest.get_mut().pop_front();
        if lowest.get().is_empty() {
            lowest.remove();
        }
        let item = item?;
        self.queued.remove(&item);
        self.active.insert(item.clone());
        Some(item)
    }

    pub fn finish(&mut self, item: &WorkKey) {
        self.active.remove(item);
        if self.again.remove(item) {
            self.add(item.clone());
        }
    }

    /// Whether nothing is to be done now.
    pub fn is_idle(&self) -> bool {
        self.ready.is_empty() && self.active.is_empty()
    }

    /// Whether an item can be taken.
    pub fn has_ready(&self) -> bool {
        !self.ready.is_empty()
    }

    /// Whether a rule waits for a time.
    pub fn has_waits(&self) -> bool {
        !self.by_time.is_empty()
    }

    /// When a waiting rule was first seen to apply.
    pub fn seen(&self, item: &WorkKey, rule: usize) -> Option<i64> {
        self.waits.get(item)?.get(&rule)?.since
    }

    /// Lets a rule wait for a time, in microseconds since 1970.
    pub fn wait(&mut self, item: &WorkKey, rule: usize, since: Option<i64>, due: i64) {
        self.rest(item, rule);
        self.waits.entry(item.clone()).or_default().insert(rule, Waiting { since, due });
        self.by_time.insert((due, item.clone(), rule));
    }

    /// Ends the wait of a rule.
    pub fn rest(&mut self, item: &WorkKey, rule: usize) {
        let Some(rules) = self.waits.get_mut(item) else { return };
        if let Some(waiting) = rules.remove(&rule) {
            self.by_time.remove(&(waiting.due, item.clone(), rule));
        }
        if rules.is_empty() {
            self.waits.remove(item);
        }
    }

    /// Ends the waits of an item.
    pub fn forget(&mut self, item: &WorkKey) {
        for (rule, waiting) in self.waits.remove(item).into_iter().flatten() {
            self.by_time.remove(&(waiting.due, item.clone(), rule));
        }
    }

    /// Removes all items of a plan.
    pub fn forget_plan(&mut self, plan: &str) {
        self.ready.values_mut().for_each(|items| items.retain(|item| item.plan != plan));
        self.ready.retain(|_, items| !items.is_empty());
        self.queued.retain(|item| item.plan != plan);
        self.again.retain(|item| item.plan != plan);
        self.waits.retain(|item, _| item.plan != plan);
        self.by_time.retain(|(_, item, _)| item.plan != plan);
    }

    /// Adds what is due, and returns when the next wait ends.
    pub fn wake(&mut self, now: i64) -> Option<i64> {
        while let Some((due, item, rule)) = self.by_time.first().cloned() {
            if due > now {
                return Some(due);
            }
            // the rule finds in its evaluation that its time has come, for which it needs to remember since when it waits
            self.by_time.remove(&(due, item.clone(), rule));
            self.add(item);
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn item(path: &str) -> WorkKey {
        WorkKey { plan: "p".into(), path: path.into() }
    }

    #[test]
    fn items_are_there_once_and_come_again_when_they_change_meanwhile() {
        let mut queue = WorkQueue::default();
        ["a", "b", "a"].into_iter().for_each(|path| queue.add(item(path)));
        let first = queue.take().unwrap();
        assert_eq!(first, item("a"));
        queue.add(item("a"));
        assert_eq!(queue.take(), Some(item("b")));
        assert_eq!(queue.take(), None, "a is active");
        queue.finish(&item("b"));
        queue.finish(&first);
        assert!(!queue.is_idle());
        assert_eq!(queue.take(), Some(item("a")));
        queue.finish(&first);
        assert!(queue.is_idle());
    }

    #[test]
    fn items_of_lower_ranks_come_first() {
        let mut queue = WorkQueue::default();
        queue.rank([("above".into(), 2), ("p".into(), 1)].into());
        let above = WorkKey { plan: "above".into(), path: "x".into() };
        for item in [above.clone(), item("a"), item("b")] {
            queue.add(item);
        }
        assert_eq!([queue.take(), queue.take(), queue.take()], [Some(item("a")), Some(item("b")), Some(above.clone())]);
        queue.finish(&above);
        queue.add(above.clone());
        queue.forget_plan("above");
        assert!(!queue.has_ready());
    }

    #[test]
    fn waits_end_at_their_time() {
        let mut queue = WorkQueue::default();
        queue.wait(&item("a"), 0, Some(1), 10);
        queue.wait(&item("b"), 0, None, 20);
        queue.wait(&item("c"), 0, None, 5);
        queue.rest(&item("c"), 0);
        assert_eq!(queue.wake(9), Some(10));
        assert!(queue.is_idle());
        assert_eq!(queue.wake(10), Some(20));
        assert_eq!((queue.take(), queue.seen(&item("a"), 0)), (Some(item("a")), Some(1)));
        queue.forget(&item("b"));
        assert_eq!(queue.wake(30), None);
    }
}
