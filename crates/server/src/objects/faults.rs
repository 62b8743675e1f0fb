//! What keeps the server from following its store: shown by the health checks, and the end of the process if it lasts.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::time::Instant;

use crate::clock;

struct Fault {
    since: Instant,
    why: String,
    /// It does not pass without a restart.
    is_final: bool,
}

/// The fault that there is, if any.
#[derive(Default)]
pub struct Faults(Mutex<Option<Fault>>);

impl Faults {
    fn lock(&self) -> MutexGuard<'_, Option<Fault>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn set(&self, why: String, is_final: bool) {
        let mut fault = self.lock();
        if fault.as_ref().is_some_and(|known| known.is_final) {
            return;
        }
        let since = fault.as_ref().map_or_else(clock::instant, |known| known.since);
        *fault = Some(Fault { since, why, is_final });
    }

    /// Something failed that is tried again.
    pub fn passing(&self, why: String) {
        self.set(why, false);
    }

    /// What is derived from objects may be wrong until the next start.
    pub fn lasting(&self, why: String) {
        tracing::error!(why, "the server has to be started again");
        self.set(why, true);
    }

    /// What was tried again has worked.
    pub fn passed(&self) {
        let mut fault = self.lock();
        if fault.as_ref().is_some_and(|fault| !fault.is_final) {
            *fault = None;
        }
    }

    /// Why the server does not follow its store, if it does not.
    pub fn now(&self) -> Result<(), String> {
        self.lock().as_ref().map_or(Ok(()), |fault| Err(fault.why.clone()))
    }

    /// The fault that has lasted for `limit`. One that may pass counts only if `passing` says so.
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
    fn a_fault_passes_unless_it_is_final() {
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
