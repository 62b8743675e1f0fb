//! `cargo xtask bench --hostile`: inputs whose cost was once out of proportion to their size. Each is sent to its own server,
//! and the effect on other clients is measured.

mod inputs;
mod products;
mod storage;
mod streams;
mod target;
mod webhook;

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use client::{Call, Client, Context as _, Failure, Protocol, Result, fail};
use tokio::task::JoinSet;

use super::load::Samples;
use super::process::{Server, memory, memory_peak};
use super::subject::options;
use inputs::{Attack, Scenario};

pub use target::Target;

/// Time for which hostile clients run, unless they get their responses before.
const ATTACK: Duration = Duration::from_secs(20);
/// Time for which ordinary requests are sent before they are measured.
const WARM: Duration = Duration::from_millis(200);
/// Time for which ordinary requests are measured alone.
const QUIET: Duration = Duration::from_secs(3);
/// Pause between two ordinary requests.
const PAUSE: Duration = Duration::from_millis(5);
/// Time limit of an ordinary request, and its value if exceeded.
const PATIENCE: Duration = Duration::from_secs(10);
/// Memory at which the server is stopped.
const MEMORY_MAX: u64 = 6 << 30;

/// The measurements of one scenario.
struct Seen {
    memory_before: u64,
    memory_peak: u64,
    quiet: Samples,
    beside: Samples,
    outcome: String,
}

/// Runs every scenario whose name contains `filter` against every target, and returns a table.
pub async fn run(directory: &Path, targets: &[Target], filter: &str) -> Result<String> {
    let mut out = String::from(
        "| scenario | server | memory before | memory at most | p99 alone | p99 beside it | slowest | hostile requests |\n| --- | --- | --- | --- | --- | --- | --- | --- |\n",
    );
    let scenarios = inputs::scenarios().into_iter().chain(products::scenarios()).chain(storage::scenarios());
    for scenario in scenarios.filter(|scenario| scenario.name.contains(filter)) {
        for target in targets.iter().filter(|target| target.allows(scenario.conditions)) {
            let name = target.name();
            eprintln!("{} ({name}) …", scenario.name);
            let place = tempfile::Builder::new().tempdir_in(directory)?;
            let (server, _etcd) = target.start(place.path(), scenario.conditions).await?;
            let seen = one(&server, place.path(), &scenario).await.context(scenario.name)?;
            let mebibytes = |bytes: u64| format!("{} MiB", bytes >> 20);
            let cells = [
                scenario.name.to_owned(),
                name.to_owned(),
                mebibytes(seen.memory_before),
                mebibytes(seen.memory_peak),
                millis(seen.quiet.quantile(0.99)),
                millis(seen.beside.quantile(0.99)),
                millis(seen.beside.quantile(1.0)),
                seen.outcome,
            ];
            out.push_str(&format!("| {} |\n", cells.join(" | ")));
        }
    }
    Ok(out)
}

fn millis(time: Duration) -> String {
    format!("{:.1} ms", time.as_secs_f64() * 1000.0)
}

async fn one(server: &Server, directory: &Path, scenario: &Scenario) -> Result<Seen> {
    let client = Client::new(&server.access, options(Protocol::Http1))?;
    if let Err(why) = set_up(&client, scenario).await {
        // if the server rejects the definition, the scenario ends
        return if scenario.setup_may_fail { refused(server, &client, &why.to_string()).await } else { Err(why) };
    }
    inputs::fill(&client, scenario.objects).await?;
    let mut ordinary = Ordinary { client, connection: None };
    ordinary.measure(WARM, || false).await;
    let quiet = ordinary.measure(QUIET, || false).await;
    let before = memory(server.id()).unwrap_or_default();
    let disk_before = storage::bytes_of(directory);
    let mut hostile = Some(Hostile::ready(scenario.attack.clone(), server.access.clone())?);
    let began = Instant::now();
    let mut outcome = None;
    let mut peak = before;
    let (mut opening, mut times) = (vec![], vec![]);
    while began.elapsed() < ATTACK && outcome.is_none() && peak < MEMORY_MAX {
        let exceeded = || memory(server.id()).is_none_or(|m| m > MEMORY_MAX);
        let some = ordinary.measure(Duration::from_millis(200), exceeded).await;
        let is_opening = hostile.as_ref().is_some_and(Hostile::is_opening);
        if is_opening { &mut opening } else { &mut times }.extend(some.into_times());
        peak = peak.max(memory_peak(server.id()).unwrap_or_default());
        outcome = Hostile::outcome(&mut hostile);
    }
    let unfinished = || match peak >= MEMORY_MAX {
        true => format!("the server was stopped at {} MiB", peak >> 20),
        false => format!("no response in {} s", ATTACK.as_secs()),
    };
    let mut outcome = outcome.unwrap_or_else(unfinished);
    if !opening.is_empty() {
        let p99 = millis(Samples::new(opening, ATTACK).quantile(0.99));
        outcome.push_str(&format!("; p99 while they were being opened: {p99}"));
    }
    if matches!(scenario.attack, Attack::Replacements(_)) {
        let (disk, memory) = (storage::bytes_of(directory), memory(server.id()).unwrap_or_default());
        let [disk_before, disk, memory] = [disk_before, disk, memory].map(|bytes| bytes >> 20);
        outcome
            .push_str(&format!("; on disk {disk_before} MiB before and {disk} MiB after; memory after {memory} MiB"));
    }
    Ok(Seen { memory_before: before, memory_peak: peak, quiet, beside: Samples::new(times, ATTACK), outcome })
}

/// Sends the requests of the setup, one after the other. kube-apiserver serves a definition some time after its creation.
async fn set_up(client: &Arc<Client>, scenario: &Scenario) -> Result<()> {
    let mut connection = client.connect().await?;
    for call in (scenario.setup)() {
        let what = format!("{} {}", call.method, call.path);
        let defines = products::defines(&call);
        connection.send(call).await?.ok(&what)?;
        let deadline = Instant::now() + PATIENCE;
        while defines && !connection.send(Call::get(inputs::THINGS)).await?.is_success() {
            if Instant::now() > deadline {
                return fail(format!("{} is not served", inputs::THINGS));
            }
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
    }
    Ok(())
}

/// The hostile clients, in a separate thread so that they do not delay the ordinary client.
struct Hostile {
    thread: std::thread::JoinHandle<String>,
    /// Set once all streams or connections are open; requests have no such phase.
    opened: Arc<AtomicBool>,
}

impl Hostile {
    /// Prepares the requests, then starts the clients.
    fn ready(attack: Attack, access: client::Access) -> Result<Hostile> {
        let (sender, made) = std::sync::mpsc::channel();
        let opened = Arc::new(AtomicBool::new(matches!(attack, Attack::Requests(_) | Attack::Replacements(_))));
        let set_by_clients = opened.clone();
        let run = move || {
            let calls = if let Attack::Requests(make) = attack { make() } else { vec![] };
            let _ = sender.send(());
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
            let attack = attack_with(attack, calls, access, &set_by_clients);
            runtime.map_or_else(|error| error.to_string(), |runtime| runtime.block_on(attack))
        };
        let thread = std::thread::Builder::new().name("hostile".to_owned()).spawn(run);
        let thread = thread?;
        made.recv()?;
        Ok(Hostile { thread, opened })
    }

    fn is_opening(&self) -> bool {
        !self.opened.load(Ordering::Relaxed)
    }

    /// The outcome of the clients, if they have ended.
    fn outcome(running: &mut Option<Hostile>) -> Option<String> {
        let ended = running.take_if(|hostile| hostile.thread.is_finished())?;
        Some(ended.thread.join().unwrap_or_else(|_| "the hostile clients panicked".to_owned()))
    }
}

async fn refused(server: &Server, client: &Arc<Client>, why: &str) -> Result<Seen> {
    let mut ordinary = Ordinary { client: client.clone(), connection: None };
    ordinary.measure(WARM, || false).await;
    let quiet = ordinary.measure(QUIET, || false).await;
    let peak = memory_peak(server.id()).unwrap_or_default();
    let beside = ordinary.measure(QUIET, || false).await;
    let outcome = format!("refused: {}", why.chars().take(80).collect::<String>().replace('|', "/"));
    Ok(Seen { memory_before: peak, memory_peak: peak, quiet, beside, outcome })
}

/// A client that sends small requests sequentially. It keeps its connection while requests succeed, so that times do not
/// include a TLS handshake.
struct Ordinary {
    client: Arc<Client>,
    connection: Option<client::Connection>,
}

impl Ordinary {
    /// Sends requests for `time`, or until `end` returns true, and returns the duration of each.
    async fn measure(&mut self, time: Duration, end: impl Fn() -> bool) -> Samples {
        let began = Instant::now();
        let mut times = vec![];
        while began.elapsed() < time && !end() {
            let started = Instant::now();
            match tokio::time::timeout(PATIENCE, self.request()).await {
                Ok(Ok(())) => times.push(started.elapsed()),
                _ => times.push(PATIENCE),
            }
            tokio::time::sleep(PAUSE).await;
        }
        Samples::new(times, began.elapsed())
    }

    async fn request(&mut self) -> Result<()> {
        let mut open = match self.connection.take() {
            Some(open) => open,
            None => self.client.connect().await?,
        };
        open.send(Call::get("/api/v1/namespaces/default")).await?;
        self.connection = Some(open);
        Ok(())
    }
}

async fn attack_with(attack: Attack, calls: Vec<Call>, access: client::Access, opened: &AtomicBool) -> String {
    let result = match attack {
        Attack::Requests(_) => requests(calls, &access).await,
        Attack::Streams { connections, path, .. } => {
            streams::never_read(&access, connections, path, ATTACK, opened).await
        }
        Attack::Silent(count) => streams::silent(&access, count, ATTACK, opened).await,
        Attack::WebSockets(count) => streams::websockets(&access, count, ATTACK, opened).await,
        Attack::Slow(count) => streams::slow(&access, count, ATTACK, opened).await,
        Attack::Replacements(replacements) => storage::replace(&access, replacements, ATTACK).await,
    };
    result.unwrap_or_else(|failure| failure.to_string())
}

/// Sends all requests concurrently, each on its own connection; returns their status codes and the total duration.
async fn requests(calls: Vec<Call>, access: &client::Access) -> Result<String> {
    let client = Client::new(access, options(Protocol::Http1))?;
    let began = Instant::now();
    let mut running = JoinSet::new();
    for call in calls {
        let client = client.clone();
        running.spawn(async move { Ok::<_, Failure>(client.connect().await?.send(call).await?.status) });
    }
    let mut codes = vec![];
    while let Some(finished) = running.join_next().await {
        codes.push(finished?.map_or_else(|failure| failure.to_string(), |code| code.to_string()));
    }
    codes.sort();
    codes.dedup();
    Ok(format!("{} after {}", codes.join(", "), millis(began.elapsed())))
}
