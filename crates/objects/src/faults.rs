//! Faults of the watch cache. Health checks report them, and one that lasts ends the process.

use std::time::Duration;

use base::clock;
use parking_lot::{Mutex, MutexGuard};
use tokio::time::Instant;

struct Fault {
    since: Instant,
    why: String,
    /// The fault lasts until the process is restarted.
    is_final: bool,
}

/// The current fault.
#[derive(Default)]
pub struct Faults(Mutex<Option<Fault>>);

impl Faults {
    fn lock(&self) -> MutexGuard<'_, Option<Fault>> {
        self.0.lock()
    }

    fn set(&self, why: String, is_final: bool) {
        let mut fault = self.lock();
        if fault.as_ref().is_some_and(|known| known.is_final) {
            return;
        }
        let since = fault.as_ref().map_or_else(clock::instant, |known| known.since);
        *fault = Some(Fault { since, why, is_final });
    }

    /// Reports a failure that is being retried.
    pub fn passing(&self, why: String) {
        self.set(why, false);
    }

    /// Reports a failure after which state derived from objects may be wrong until a restart.
    pub fn lasting(&self, why: String) {
        tracing::error!(why, "the server must be restarted");
        self.set(why, true);
    }

    /// Clears a fault whose retry has succeeded.
    pub fn passed(&self) {
        let mut fault = self.lock();
        if fault.as_ref().is_some_and(|fault| !fault.is_final) {
            *fault = None;
        }
    }

    /// Fails with the reason if there is a fault.
    pub fn now(&self) -> Result<(), String> {
        self.lock().as_ref().map_or(Ok(()), |fault| Err(fault.why.clone()))
    }

    /// The reason of a fault that has lasted for `limit`. Faults that are being retried count only if `passing` is true.
    pub fn lasted(&self, limit: Duration, passing: bool) -> Option<String> {
        let fault = self.lock();
        let counts = |fault: &&Fault| (fault.is_final || passing) && fault.since.elapsed() >= limit;
        fault.as_ref().filter(counts).map(|fault| fault.why.clone())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn transient_fault_passes_and_final_one_stays() {
        let faults = Faults::default();
        assert_eq!((faults.now(), faults.lasted(Duration::ZERO, true)), (Ok(()), None));
        faults.passing("no descriptor".to_owned());
        assert_eq!(faults.now(), Err("no descriptor".to_owned()));
        assert_eq!(faults.lasted(Duration::ZERO, false), None, "etcd may be away for as long as it likes");
        assert!(
            faults.lasted(Duration::ZERO, true).is_some() && faults.lasted(Duration::from_secs(60), true).is_none()
        );
        faults.passed();
        assert_eq!(faults.now(), Ok(()));
        faults.lasting("a panic".to_owned());
        faults.passed();
        faults.passing("no descriptor".to_owned());
        assert_eq!(faults.lasted(Duration::ZERO, false), Some("a panic".to_owned()));
    }
}
