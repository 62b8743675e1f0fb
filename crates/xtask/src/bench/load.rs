//! Concurrent clients, and the durations of their requests.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use tokio::task::JoinSet;

use client::{Call, Client, Connection, Result};

/// The durations of requests, and their total duration.
#[derive(Clone, Debug, Default)]
pub struct Samples {
    times: Vec<Duration>,
    pub wall: Duration,
}

impl Samples {
    pub fn new(mut times: Vec<Duration>, wall: Duration) -> Samples {
        times.sort_unstable();
        Samples { times, wall }
    }

    pub fn into_times(self) -> Vec<Duration> {
        self.times
    }

    pub fn len(&self) -> usize {
        self.times.len()
    }

    /// The duration that `share` of all requests do not exceed.
    pub fn quantile(&self, share: f64) -> Duration {
        let rank = (share * self.times.len() as f64).ceil() as usize;
        self.times.get(rank.saturating_sub(1)).copied().unwrap_or_default()
    }

    pub fn rate(&self) -> f64 {
        self.times.len() as f64 / self.wall.as_secs_f64().max(f64::MIN_POSITIVE)
    }
}

/// Sends the requests `make(0)` to `make(total - 1)` over `clients` connections; each connection sends its next request when
/// the response has arrived. Fails if a request does.
pub async fn drive(
    client: &Arc<Client>,
    clients: usize,
    total: usize,
    make: impl Fn(usize) -> Call + Send + Sync + 'static,
) -> Result<Samples> {
    let (make, next) = (Arc::new(make), Arc::new(AtomicUsize::new(0)));
    let connections = client.connections(clients.min(total).max(1)).await?;
    let started = Instant::now();
    let mut running = JoinSet::new();
    for connection in connections {
        let (make, next) = (make.clone(), next.clone());
        running.spawn(async move { work(connection, total, &next, &*make).await });
    }
    let mut times = Vec::with_capacity(total);
    while let Some(done) = running.join_next().await {
        times.extend(done??);
    }
    Ok(Samples::new(times, started.elapsed()))
}

async fn work(
    mut connection: Connection,
    total: usize,
    next: &AtomicUsize,
    make: &(impl Fn(usize) -> Call + Sync),
) -> Result<Vec<Duration>> {
    let mut times = vec![];
    loop {
        let i = next.fetch_add(1, Ordering::Relaxed);
        if i >= total {
            return Ok(times);
        }
        let call = make(i);
        let what = format!("{} {}", call.method, call.path);
        let started = Instant::now();
        let response = connection.send(call).await?;
        times.push(started.elapsed());
        response.ok(&what)?;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_are_of_the_sorted_times() {
        let times = (1..=100).rev().map(Duration::from_millis).collect();
        let samples = Samples::new(times, Duration::from_secs(2));
        let millis = |share| samples.quantile(share).as_millis();
        assert_eq!((millis(0.5), millis(0.99), millis(1.0), millis(0.0)), (50, 99, 100, 1));
        assert_eq!(samples.rate(), 50.0);
        assert_eq!(Samples::default().quantile(0.5), Duration::ZERO);
    }
}
