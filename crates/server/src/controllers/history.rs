//! Forgets history: events in memory by their age, and changes of the store by compactions.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use store::{Revision, Store};
use tokio::sync::watch;
use tokio::time::Instant;

use crate::limits;
use crate::verbs::Context;

/// The revisions of the last looks, by which the age of changes is known.
#[derive(Default)]
struct Ages(VecDeque<(Instant, Revision)>);

impl Ages {
    /// Notes the newest revision. Returns the newest one that is older than `kept`, if there is one.
    fn look(&mut self, now: Instant, revision: Revision, kept: Duration) -> Option<Revision> {
        if self.0.back().is_none_or(|(_, last)| *last < revision) {
            self.0.push_back((now, revision));
        }
        let old = self.0.partition_point(|(at, _)| now.duration_since(*at) >= kept);
        self.0.drain(..old).next_back().map(|(_, revision)| revision)
    }
}

/// The revisions of the last looks, with the bytes that had been written before them.
#[derive(Default)]
struct Amounts(VecDeque<(Revision, u64)>);

impl Amounts {
    /// Notes the newest revision. Returns the newest one after which at least `kept` bytes were written, if there is one.
    fn look(&mut self, revision: Revision, written: u64, kept: u64) -> Option<Revision> {
        if self.0.back().is_none_or(|(last, _)| *last < revision) {
            self.0.push_back((revision, written));
        }
        if self.0.len() > limits::HISTORY_LOOKS_MAX {
            self.0.pop_front();
        }
        let old = self.0.partition_point(|(_, before)| written - before >= kept);
        self.0.drain(..old).next_back().map(|(revision, _)| revision)
    }
}

/// Compactions of the store.
struct Compactions {
    /// Of a shared store, history of this interval is kept, as by kube-apiserver; with zero it is left to other servers.
    interval: Duration,
    last: Option<Instant>,
    /// The newest revision at the last compaction.
    revision: Revision,
    /// Size of the files at the last compaction.
    size: u64,
}

impl Compactions {
    fn is_due(&self, store: &dyn Store, now: Instant, revision: Revision) -> bool {
        let passed = |every| self.last.is_none_or(|last| now.duration_since(last) >= every);
        if store.is_shared() {
            return !self.interval.is_zero() && passed(self.interval);
        }
        // the history of an embedded store is also bounded by its length, so that the next start is fast, and by its bytes
        let is_long = revision - self.revision >= objects::limits::HISTORY_REVISIONS / 2;
        let is_large = store.size().is_some_and(|size| size > self.size + limits::COMPACTION_GROWTH_BYTES);
        is_long || is_large || passed(limits::COMPACTION)
    }

    /// Compacts a shared store, of which a quota stops all writes, before its interval has passed.
    async fn compact_early(&self, store: &dyn Store, before: Revision) {
        if store.is_shared()
            && !self.interval.is_zero()
            && let Err(error) = store.compact(before).await
        {
            tracing::warn!(%error, "the store cannot be compacted; will retry");
        }
    }

    /// Compacts the store. Changes up to `expired` are too old to be kept.
    async fn compact(&mut self, store: &dyn Store, now: Instant, revision: Revision, expired: Revision) {
        let before = match store.is_shared() {
            true => self.revision,
            false => revision.saturating_sub(objects::limits::HISTORY_REVISIONS).max(expired),
        };
        (self.last, self.revision) = (Some(now), revision);
        // an embedded store also maintains its log
        if (before > 0 || !store.is_shared())
            && let Err(error) = store.compact(before).await
        {
            tracing::warn!(%error, "the store cannot be compacted; will retry");
        }
        self.size = store.size().unwrap_or_default();
    }
}

/// Forgets history until `stop` becomes true. `interval` is that of compactions of a shared store.
pub async fn keep(context: Arc<Context>, interval: Duration, mut stop: watch::Receiver<bool>) {
    // the history since the start must have been loaded before it is compacted
    context.objects.reach_back(0).await;
    let (mut ages, mut amounts, mut expired) = (Ages::default(), Amounts::default(), 0);
    let mut compactions = Compactions { interval, last: None, revision: 0, size: 0 };
    let is_frequent = context.objects.store().is_shared() && !interval.is_zero();
    let look = if is_frequent { interval.min(limits::HISTORY_LOOK) } else { limits::HISTORY_LOOK };
    let mut tick = tokio::time::interval(look);
    loop {
        tokio::select! {
            _ = tick.tick() => {}
            () = super::stopped(&mut stop) => return,
        }
        let (objects, now) = (&context.objects, base::clock::instant());
        let revision = objects.revision();
        if let Some(old) = ages.look(now, revision, objects::history_duration()) {
            expired = old;
            objects.forget(old);
        }
        objects.keep_share();
        if let Some(before) = amounts.look(revision, objects::written_bytes(), objects::history_bytes()) {
            compactions.compact_early(&**objects.store(), before).await;
        }
        if compactions.is_due(&**objects.store(), now, revision) {
            compactions.compact(&**objects.store(), now, revision, expired).await;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn changes_expire_by_age() {
        const SECOND: Duration = Duration::from_secs(1);
        let (begin, mut ages) = (base::clock::instant(), Ages::default());
        let expired: Vec<_> = [(0, 5), (10, 5), (20, 7), (29, 9), (30, 9), (49, 9), (50, 9), (60, 9), (90, 9)]
            .into_iter()
            .filter_map(|(second, revision)| Some((second, ages.look(begin + SECOND * second, revision, SECOND * 30)?)))
            .collect();
        assert_eq!(expired, [(30, 5), (50, 7), (60, 9)]);
    }

    #[test]
    fn changes_expire_by_amount() {
        let mut amounts = Amounts::default();
        let expired: Vec<_> = [(5, 0), (5, 10), (7, 50), (8, 99), (9, 100), (9, 149), (9, 150), (9, 500), (9, 900)]
            .into_iter()
            .filter_map(|(revision, written)| Some((written, amounts.look(revision, written, 100)?)))
            .collect();
        assert_eq!(expired, [(100, 5), (150, 7), (500, 9)]);
        for revision in 0..10_000 {
            amounts.look(revision, 900, 100);
        }
        assert!(amounts.0.len() <= limits::HISTORY_LOOKS_MAX);
    }

    #[tokio::test(start_paused = true)]
    async fn an_embedded_store_is_compacted_by_time_and_length() {
        let store = store::Memory::default();
        let begin = base::clock::instant();
        let mut compactions = Compactions { interval: Duration::ZERO, last: None, revision: 0, size: 0 };
        assert!(compactions.is_due(&store, begin, 0));
        compactions.compact(&store, begin, 0, 0).await;
        let long = objects::limits::HISTORY_REVISIONS / 2;
        for (after, revision, is_due) in [
            (Duration::ZERO, 0, false),
            (limits::COMPACTION, 0, true),
            (Duration::ZERO, long - 1, false),
            (Duration::ZERO, long, true),
        ] {
            assert_eq!(compactions.is_due(&store, begin + after, revision), is_due, "{after:?} {revision}");
        }
    }
}
