//! The clock of one API, which tests may stop and advance.
//!
//! The clock is a task-local: set where an API is assembled and where its requests arrive, and inherited by spawned tasks (`task::spawn`),
//! so that no function has to pass it on. Code outside such tasks reads the machine's clock.

use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use parking_lot::Mutex;
use tokio::sync::watch;
use tokio::time::Instant;

use super::seeded::Sequences;
use super::{instant, machine_micros};

tokio::task_local! {
    static CLOCK: Arc<WorkspaceClock>;
}

/// Whether a clock has ever been made. Until then, no task-local needs to be looked up.
static IS_USED: AtomicBool = AtomicBool::new(false);

/// The time on a clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reading {
    /// In microseconds since the Unix epoch.
    pub shown: i64,
    /// The time on the machine's clock when this one showed `shown`, in microseconds since the Unix epoch. `None` if this one is stopped.
    pub since: Option<i64>,
}

impl Reading {
    /// The time on this clock when the machine's clock shows `machine`.
    pub fn at(&self, machine: i64) -> i64 {
        self.since.map_or(self.shown, |since| self.shown.saturating_add(machine.saturating_sub(since)))
    }
}

/// How often a clock has been changed, and by how much it has been put forward in all.
#[derive(Clone, Copy, Default)]
struct Changes {
    count: u64,
    forward: Duration,
}

/// The clock of one API. Without a reading, it shows the time of the machine.
pub struct WorkspaceClock {
    reading: Mutex<Option<Reading>>,
    sequences: Mutex<Option<Sequences>>,
    changes: watch::Sender<Changes>,
    /// For each [`Follower`], how many changes it has handled.
    followers: Mutex<Vec<std::sync::Weak<AtomicU64>>>,
}

impl Default for WorkspaceClock {
    fn default() -> WorkspaceClock {
        IS_USED.store(true, Ordering::Relaxed);
        let (reading, sequences, followers) = Default::default();
        WorkspaceClock { reading, sequences, changes: watch::Sender::new(Changes::default()), followers }
    }
}

impl WorkspaceClock {
    pub fn reading(&self) -> Option<Reading> {
        *self.reading.lock()
    }

    /// Changes what the clock shows. Tasks that wait for a time are woken.
    pub fn set(&self, reading: Option<Reading>) {
        let machine = machine_micros();
        let shown = |reading: Option<Reading>| reading.map_or(machine, |reading| reading.at(machine));
        let forward = {
            let mut known = self.reading.lock();
            let forward = shown(reading).saturating_sub(shown(*known));
            *known = reading;
            Duration::from_micros(u64::try_from(forward).unwrap_or_default())
        };
        self.changes.send_modify(|changes| {
            changes.count += 1;
            changes.forward = changes.forward.saturating_add(forward);
        });
    }

    /// Replaces randomness by what a seed gives. `begin` distinguishes it from earlier runs with the same seed and the same objects.
    pub fn seed(&self, seed: Option<i64>, begin: u64) {
        let mut sequences = self.sequences.lock();
        if sequences.as_ref().map(Sequences::seed) != seed {
            *sequences = seed.map(|seed| Sequences::new(seed, begin));
        }
    }

    pub(super) fn seeded(&self, purpose: &str, of: impl FnOnce() -> String) -> Option<[u8; 32]> {
        self.sequences.lock().as_mut().map(|sequences| sequences.next(purpose, &of()))
    }

    fn moment(&self) -> Instant {
        let forward = self.changes.borrow().forward;
        let now = instant();
        now.checked_add(forward).unwrap_or(now)
    }

    /// The number of tasks that may still have something to do because of the last change.
    pub fn lagging(&self) -> usize {
        let count = self.changes.borrow().count;
        let mut followers = self.followers.lock();
        followers.retain(|seen| seen.strong_count() > 0);
        let seen = followers.iter().filter_map(std::sync::Weak::upgrade);
        seen.filter(|seen| seen.load(Ordering::Acquire) < count).count()
    }
}

/// The clock of the running task, if it has one.
pub fn current() -> Option<Arc<WorkspaceClock>> {
    if IS_USED.load(Ordering::Relaxed) { CLOCK.try_with(Arc::clone).ok() } else { None }
}

/// Reads a clock, or else that of the machine: microseconds since the Unix epoch.
pub fn micros_of(clock: Option<&WorkspaceClock>) -> i64 {
    let machine = machine_micros();
    clock.and_then(WorkspaceClock::reading).map_or(machine, |reading| reading.at(machine))
}

/// Runs a future with a clock, or with the one of its task.
pub async fn within<F: Future>(clock: Option<Arc<WorkspaceClock>>, work: F) -> F::Output {
    let work = pin!(work);
    match clock {
        Some(clock) => CLOCK.scope(clock, work).await,
        None => work.await,
    }
}

/// Calls a function with a clock, or with the one of its task.
pub fn scoped<T>(clock: Option<&Arc<WorkspaceClock>>, work: impl FnOnce() -> T) -> T {
    match clock {
        Some(clock) => CLOCK.sync_scope(clock.clone(), work),
        None => work(),
    }
}

/// The time by which controllers wait: an [`instant`], plus all that the clock has been put forward by. It goes on while the clock is
/// stopped, since controllers wait for what takes real time, such as requests in flight, and otherwise could delete nothing.
pub fn moment() -> Instant {
    current().map_or_else(instant, |clock| clock.moment())
}

/// Waits until a [`moment`].
pub async fn sleep_until(at: Instant) {
    let Some(clock) = current() else { return tokio::time::sleep_until(at).await };
    let mut changes = clock.changes.subscribe();
    loop {
        let left = at.saturating_duration_since(clock.moment());
        if left.is_zero() {
            return;
        }
        tokio::select! {
            () = tokio::time::sleep(left) => {}
            _ = changes.changed() => {}
        }
    }
}

/// A task that acts at times of its clock.
#[derive(Default)]
pub struct Follower(Option<Following>);

struct Following {
    changes: watch::Receiver<Changes>,
    /// The number of changes when the task began what it is doing.
    noted: u64,
    /// The number of changes that the task has handled completely.
    seen: Arc<AtomicU64>,
}

impl Follower {
    /// For the running task.
    pub fn new() -> Follower {
        Follower(current().map(|clock| {
            let seen = Arc::new(AtomicU64::new(0));
            clock.followers.lock().push(Arc::downgrade(&seen));
            let changes = clock.changes.subscribe();
            let noted = changes.borrow().count;
            Following { changes, noted, seen }
        }))
    }

    /// Waits until the clock is changed. The caller must have done all that is due: until it calls this again, it counts as lagging.
    pub async fn changed(&mut self) {
        let Some(following) = &mut self.0 else { return std::future::pending().await };
        following.seen.store(following.noted, Ordering::Release);
        if following.changes.changed().await.is_err() {
            return std::future::pending().await;
        }
        following.noted = following.changes.borrow_and_update().count;
    }
}

#[cfg(test)]
mod tests {
    use super::super::now_micros;
    use super::*;

    const SECOND: i64 = 1_000_000;

    #[test]
    fn a_reading_runs_or_stands() {
        assert_eq!(Reading { shown: 5, since: None }.at(100), 5);
        assert_eq!(Reading { shown: 5, since: Some(90) }.at(100), 15);
    }

    #[tokio::test]
    async fn tasks_have_the_clock_of_those_that_spawn_them() {
        let clock = Arc::new(WorkspaceClock::default());
        clock.set(Some(Reading { shown: 7 * SECOND, since: None }));
        let finished = crate::task::finish("test", async { now_micros() });
        let both = within(Some(clock.clone()), async { (now_micros(), finished.await) });
        assert_eq!(both.await, (7 * SECOND, 7 * SECOND));
        let spawned = scoped(Some(&clock), || crate::task::spawn("test", async { now_micros() }));
        assert_eq!(spawned.await.unwrap(), 7 * SECOND);
        assert_eq!(scoped(Some(&clock), now_micros), 7 * SECOND);
        assert!(now_micros() > 1_000_000 * SECOND, "others have that of the machine");
        clock.set(None);
        assert!(scoped(Some(&clock), now_micros) > 1_000_000 * SECOND);
    }

    #[tokio::test(start_paused = true)]
    async fn waits_end_when_the_clock_is_put_forward() {
        let clock = Arc::new(WorkspaceClock::default());
        let begun = instant();
        let waiting = scoped(Some(&clock), || {
            crate::task::spawn("waiting", async {
                let mut follower = Follower::new();
                let due = moment() + Duration::from_secs(3600);
                tokio::select! {
                    biased;
                    () = sleep_until(due) => {}
                    () = async { loop { follower.changed().await } } => {}
                }
            })
        });
        tokio::time::sleep(Duration::from_secs(1)).await;
        assert_eq!(clock.lagging(), 0);
        let now = machine_micros();
        clock.set(Some(Reading { shown: now + 1000 * SECOND, since: None }));
        assert_eq!(clock.lagging(), 1, "it has not looked yet");
        tokio::time::sleep(Duration::from_secs(1)).await;
        assert!(!waiting.is_finished() && clock.lagging() == 0);
        clock.set(Some(Reading { shown: now + 3700 * SECOND, since: None }));
        waiting.await.unwrap();
        assert!(begun.elapsed() < Duration::from_secs(10), "{:?}", begun.elapsed());
        assert_eq!(clock.lagging(), 0, "it has ended");
    }
}
