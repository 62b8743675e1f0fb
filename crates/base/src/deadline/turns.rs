//! Turns of computations that take long: they leave a core to short requests, and users do not wait for each other.

use std::collections::VecDeque;
use std::future::{Future, poll_fn};
use std::pin::pin;
use std::sync::{Arc, LazyLock};
use std::task::Poll;

use parking_lot::Mutex;
use tokio::sync::oneshot;
use tokio::time::Instant;

use crate::{clock, limits, task};

/// The turns of all requests.
static TURNS: LazyLock<Arc<Turns>> = LazyLock::new(|| {
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    Arc::new(Turns::new((cores - 1).max(1), limits::OWN_TURNS_MAX))
});

/// Runs a future that computes for more than a few milliseconds between its awaits. Each poll leaves the async worker, and
/// takes a turn of its user, so that any number of such futures leaves a core to other requests.
pub async fn beside_others<F: Future>(user: &str, work: F) -> F::Output {
    let turns = &*TURNS;
    let mut work = pin!(work);
    loop {
        let turn = turns.take(user, super::current()).await;
        let polled = poll_fn(|context| Poll::Ready(task::blocking(|| work.as_mut().poll(context)))).await;
        drop(turn);
        match polled {
            Poll::Ready(output) => return output,
            // the waker of `work` is that of this task
            Poll::Pending => pending_once().await,
        }
    }
}

/// Waits until the task is woken.
async fn pending_once() {
    let mut is_woken = false;
    poll_fn(|_| if std::mem::replace(&mut is_woken, true) { Poll::Ready(()) } else { Poll::Pending }).await;
}

/// Turns. All users share some of them, and a user who has none gets one of their own.
struct Turns {
    shared: usize,
    own: usize,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    next: u64,
    running: Vec<Running>,
    /// The users who wait, in the order in which they get turns.
    waiting: VecDeque<Waiting>,
}

/// A turn that is taken. It counts only until the deadline of its request, although the computation may run longer.
struct Running {
    id: u64,
    user: String,
    deadline: Option<Instant>,
}

struct Waiting {
    user: String,
    requests: VecDeque<WaitingRequest>,
}

struct WaitingRequest {
    deadline: Option<Instant>,
    turn: oneshot::Sender<Turn>,
}

/// A turn, until it is dropped.
struct Turn {
    id: u64,
    turns: Arc<Turns>,
}

impl Drop for Turn {
    fn drop(&mut self) {
        self.turns.leave(|running| running.id == self.id);
    }
}

impl Turns {
    fn new(shared: usize, own: usize) -> Turns {
        Turns { shared, own, state: Mutex::default() }
    }

    /// Waits for a turn. The request leaves the queue when the future is dropped.
    async fn take(self: &Arc<Turns>, user: &str, deadline: Option<Instant>) -> Turn {
        let (sender, mut receiver) = oneshot::channel();
        self.state.lock().enqueue(user, WaitingRequest { deadline, turn: sender });
        self.grant();
        loop {
            let next_deadline = self.state.lock().running.iter().filter_map(|running| running.deadline).min();
            let expired = async {
                match next_deadline {
                    Some(deadline) => tokio::time::sleep_until(deadline).await,
                    None => std::future::pending().await,
                }
            };
            tokio::select! {
                Ok(turn) = &mut receiver => return turn,
                () = expired => self.leave_expired(),
            }
        }
    }

    fn leave_expired(self: &Arc<Turns>) {
        let now = clock::instant();
        self.leave(|running| running.deadline.is_some_and(|deadline| deadline <= now));
    }

    fn leave(self: &Arc<Turns>, is_over: impl Fn(&Running) -> bool) {
        self.state.lock().running.retain(|running| !is_over(running));
        self.grant();
    }

    /// Gives free turns to requests that wait.
    fn grant(self: &Arc<Turns>) {
        loop {
            let Some((id, request)) = self.state.lock().next(self.shared, self.own) else { return };
            // a turn whose request has been dropped is free again
            drop(request.turn.send(Turn { id, turns: self.clone() }));
        }
    }
}

impl State {
    fn enqueue(&mut self, user: &str, request: WaitingRequest) {
        match self.waiting.iter_mut().find(|waiting| waiting.user == user) {
            Some(waiting) => waiting.requests.push_back(request),
            None => self.waiting.push_back(Waiting { user: user.to_owned(), requests: [request].into() }),
        }
    }

    /// Takes a turn for the first user who may have one; their next request then waits behind the requests of all other
    /// users.
    fn next(&mut self, shared: usize, own: usize) -> Option<(u64, WaitingRequest)> {
        let has_turn = |user: &str| self.running.iter().any(|running| running.user == user);
        let limit = |user: &str| if has_turn(user) { shared } else { shared + own };
        let first = self.waiting.iter().position(|waiting| self.running.len() < limit(&waiting.user))?;
        let mut waiting = self.waiting.remove(first)?;
        let request = waiting.requests.pop_front()?;
        self.next += 1;
        self.running.push(Running { id: self.next, user: waiting.user.clone(), deadline: request.deadline });
        if !waiting.requests.is_empty() {
            self.waiting.push_back(waiting);
        }
        Some((self.next, request))
    }
}

#[cfg(test)]
mod tests {
    use std::pin::Pin;
    use std::task::{Context, Waker};
    use std::time::Duration;

    use super::*;

    fn now<F: Future>(future: Pin<&mut F>) -> Option<F::Output> {
        match future.poll(&mut Context::from_waker(Waker::noop())) {
            Poll::Ready(output) => Some(output),
            Poll::Pending => None,
        }
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 1)]
    async fn other_tasks_progress_beside_long_polls() {
        let (sender, receiver) = std::sync::mpsc::sync_channel(1);
        let long = async move {
            // this is the only worker: the other task runs only if this poll has left it
            task::spawn("other", async move { sender.send(()) });
            receiver.recv().unwrap();
            tokio::task::yield_now().await;
            7
        };
        assert_eq!(task::spawn("long", beside_others("ann", long)).await.unwrap(), 7);
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 1)]
    async fn waiting_requests_hold_no_turn() {
        let (sender, receiver) = oneshot::channel();
        let waiting = task::spawn("waiting", beside_others("ann", receiver));
        for _ in 0..64 {
            beside_others("ann", tokio::task::yield_now()).await;
        }
        sender.send(5).unwrap();
        assert_eq!(waiting.await.unwrap(), Ok(5));
    }

    /// Takes a turn if one is free.
    fn taken(turns: &Arc<Turns>, user: &str, deadline: Option<Instant>) -> Option<Turn> {
        now(pin!(turns.take(user, deadline)))
    }

    #[tokio::test]
    async fn users_do_not_wait_for_each_other() {
        let turns = Arc::new(Turns::new(2, 1));
        let held = [taken(&turns, "ann", None).unwrap(), taken(&turns, "ann", None).unwrap()];
        assert!(taken(&turns, "ann", None).is_none(), "all shared turns are taken");
        let own = taken(&turns, "bob", None).unwrap();
        assert!(taken(&turns, "bob", None).is_none() && taken(&turns, "cat", None).is_none());
        drop(own);
        drop(taken(&turns, "cat", None).unwrap());
        drop(held);
        assert!(taken(&turns, "ann", None).is_some());
        let state = turns.state.lock();
        assert!(state.running.is_empty() && state.waiting.is_empty(), "dropped requests leave the queue");
    }

    #[tokio::test]
    async fn users_take_turns() {
        let turns = Arc::new(Turns::new(1, 0));
        let mut held = taken(&turns, "ann", None);
        let mut waiting = ["ann", "ann", "bob", "ann", "bob"].map(|user| Box::pin(turns.take(user, None)));
        let mut order = vec![];
        assert!(waiting.iter_mut().all(|turn| now(turn.as_mut()).is_none()));
        while order.len() < waiting.len() {
            drop(held.take());
            let ready = |index: &usize| !order.contains(index);
            let left: Vec<usize> = (0..waiting.len()).filter(ready).collect();
            let granted = left.into_iter().find_map(|index| Some((index, now(waiting[index].as_mut())?)));
            let (index, turn) = granted.unwrap();
            order.push(index);
            held = Some(turn);
        }
        assert_eq!(order, [0, 2, 1, 4, 3], "by user");
    }

    #[tokio::test]
    async fn turns_end_at_the_deadline_of_their_request() {
        let turns = Arc::new(Turns::new(1, 0));
        let soon = clock::instant() + Duration::from_millis(1);
        let held = taken(&turns, "ann", Some(soon)).unwrap();
        // the computation of the first request still runs
        let next = turns.take("ann", None).await;
        drop(held);
        assert!(taken(&turns, "ann", None).is_none(), "the turn of the first request is not given back twice");
        drop(next);
        assert!(taken(&turns, "ann", None).is_some());
    }
}
