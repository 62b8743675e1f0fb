//! Faults of the watch cache. Health checks report them, and one that lasts ends the process.

use std::time::Duration;

use base::clock;
use parking_lot::Mutex;
use tokio::time::Instant;

struct Fault {
    since: Instant,
    why: String,
    kind: FaultKind,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum FaultKind {
    /// The failed call is being retried.
    Passing,
    /// The fault lasts until the process is restarted.
    Final,
}

/// The current fault.
#[derive(Default)]
pub struct Faults(Mutex<Option<Fault>>);

impl Faults {
    fn set(&self, why: String, kind: FaultKind) {
        let mut fault = self.0.lock();
        if fault.as_ref().is_some_and(|known| known.kind == FaultKind::Final) {
            return;
        }
        let since = fault.as_ref().map_or_else(clock::instant, |known| known.since);
        *fault = Some(Fault { since, why, kind });
    }

    /// Reports a failure that is being retried.
    pub fn passing(&self, why: String) {
        self.set(why, FaultKind::Passing);
    }

    /// Reports a failure after which state derived from objects may be wrong until a restart.
    pub fn lasting(&self, why: String) {
        tracing::error!(why, "the server must be restarted");
        self.set(why, FaultKind::Final);
    }

    /// Clears a fault whose retry has succeeded.
    pub fn passed(&self) {
        let mut fault = self.0.lock();
        if fault.as_ref().is_some_and(|fault| fault.kind == FaultKind::Passing) {
            *fault = None;
        }
    }

    /// Fails with the reason if there is a fault.
    pub fn now(&self) -> Result<(), String> {
        self.0.lock().as_ref().map_or(Ok(()), |fault| Err(fault.why.clone()))
    }

    /// The reason of a fault of this kind, or a graver one, that has lasted for `limit`.
    pub fn lasted(&self, limit: Duration, kind: FaultKind) -> Option<String> {
        let fault = self.0.lock();
        let counts = |fault: &&Fault| fault.kind >= kind && fault.since.elapsed() >= limit;
        fault.as_ref().filter(counts).map(|fault| fault.why.clone())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn transient_fault_passes_and_final_one_stays() {
        let faults = Faults::default();
        assert_eq!((faults.now(), faults.lasted(Duration::ZERO, FaultKind::Passing)), (Ok(()), None));
        faults.passing("no descriptor".to_owned());
        assert_eq!(faults.now(), Err("no descriptor".to_owned()));
        assert_eq!(faults.lasted(Duration::ZERO, FaultKind::Final), None, "etcd may be away for as long as it likes");
        assert!(
            faults.lasted(Duration::ZERO, FaultKind::Passing).is_some()
                && faults.lasted(Duration::from_secs(60), FaultKind::Passing).is_none()
        );
        faults.passed();
        assert_eq!(faults.now(), Ok(()));
        faults.lasting("a panic".to_owned());
        faults.passed();
        faults.passing("no descriptor".to_owned());
        assert_eq!(faults.lasted(Duration::ZERO, FaultKind::Final), Some("a panic".to_owned()));
    }
}
