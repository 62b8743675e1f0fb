//! Why etcd does not serve at present, and the lines of the log about it.

use parking_lot::{Mutex, MutexGuard};
use tokio::time::Instant;

use crate::limits;

#[derive(Default)]
pub struct Trouble(Mutex<State>);

#[derive(Default)]
struct State {
    why: Option<String>,
    /// When the log last named a reason.
    logged: Option<Instant>,
    /// Whether the log has named a reason since etcd last responded.
    is_logged: bool,
}

impl Trouble {
    /// Records that a call failed. Members without a quorum fail in turn, each for a reason of its own, so there is a
    /// pause between two logged reasons.
    #[allow(clippy::disallowed_methods, reason = "only the log depends on the time")]
    pub fn begin(&self, why: &str) {
        let now = Instant::now();
        let mut state = self.lock();
        let is_new = state.why.replace(why.to_owned()).as_deref() != Some(why);
        if is_new && state.logged.is_none_or(|logged| now - logged >= limits::TROUBLE_PAUSE) {
            (state.logged, state.is_logged) = (Some(now), true);
            tracing::warn!(why, "waiting for etcd");
        }
    }

    /// Records that a call succeeded.
    pub fn end(&self) {
        let mut state = self.lock();
        if state.why.take().is_some() && std::mem::take(&mut state.is_logged) {
            tracing::warn!("etcd responds again");
        }
    }

    /// Why the last call failed, if it did.
    pub fn why(&self) -> Option<String> {
        self.lock().why.clone()
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.0.lock()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn reasons_are_logged_with_a_pause() {
        let trouble = Trouble::default();
        let mut logged = vec![];
        for second in 0..25 {
            let before = trouble.lock().logged;
            trouble.begin(if second % 2 == 0 { "etcd at a: no leader" } else { "etcd at b: refused" });
            logged.extend((trouble.lock().logged != before).then_some(second));
            tokio::time::advance(std::time::Duration::from_secs(1)).await;
        }
        assert_eq!(logged, [0, 10, 20]);
        assert_eq!(trouble.why().as_deref(), Some("etcd at a: no leader"));
        trouble.end();
        assert_eq!(trouble.why(), None);
    }
}
