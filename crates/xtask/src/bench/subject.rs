//! The measured server, and the definitions that have been created on it.

use std::collections::HashSet;
use std::sync::Arc;
use std::time::{Duration, Instant};

use super::fixtures::{self, DEFINITIONS, Kind};
use super::load::drive;
use super::{machine, process};
use client::{Access, Call, Client, Protocol, Result, fail};
use parking_lot::Mutex;

/// Bytes of a response that are kept in memory; the rest is read and discarded.
const KEPT_BYTES: usize = 64 * 1024;

/// Options of the benchmark's connections.
pub fn options(protocol: Protocol) -> client::Options {
    client::Options { protocol, user_agent: "bench/1", body_bytes_max: KEPT_BYTES }
}

/// Time limit until a new definition is served, or a deleted one is gone.
const PATIENCE: Duration = Duration::from_secs(30);
/// Number of clients that create objects before a measurement.
const PREPARING: usize = 32;

pub struct Subject {
    pub client: Arc<Client>,
    /// The process id, if the server was started by this program.
    id: Option<u32>,
    /// The API group of the definitions of this run.
    group: String,
    made: Mutex<HashSet<String>>,
}

impl Subject {
    pub fn new(access: Access, id: Option<u32>, protocol: Protocol) -> Result<Subject> {
        let client = Client::new(&access, options(protocol))?;
        let run = machine::seconds();
        Ok(Subject { client, id, group: format!("b{run}.bench.example.com"), made: Mutex::default() })
    }

    pub fn memory(&self) -> Option<u64> {
        self.id.and_then(process::memory)
    }

    pub fn processor(&self) -> Option<Duration> {
        self.id.and_then(process::processor)
    }

    /// A kind of this run by its plural.
    pub fn kind(&self, plural: &str) -> Kind {
        Kind { group: self.group.clone(), plural: plural.to_owned() }
    }

    /// Registers a definition, so that it is cleaned up. Returns false if it already was.
    pub fn remember(&self, kind: &Kind) -> bool {
        self.made.lock().insert(kind.definition_name())
    }

    /// Creates the definition of a typical kind and waits until it is served.
    pub async fn define(&self, plural: &str) -> Result<Kind> {
        let kind = self.kind(plural);
        if !self.remember(&kind) {
            return Ok(kind);
        }
        let mut connection = self.client.connect().await?;
        connection.send(Call::post(DEFINITIONS, fixtures::definition(&kind))).await?.ok("POST of a definition")?;
        let deadline = Instant::now() + PATIENCE;
        loop {
            let response = connection.send(Call::get(kind.collection())).await?;
            match response.status {
                200 => return Ok(kind),
                404 | 429 | 503 if Instant::now() < deadline => tokio::time::sleep(Duration::from_millis(10)).await,
                _ => return Ok(response.ok("the first list of a kind").map(|_| kind)?),
            }
        }
    }

    /// A kind with `count` objects, which the first call creates.
    pub async fn filled(&self, plural: &str, count: usize, size: usize) -> Result<Kind> {
        let known = self.made.lock().contains(&self.kind(plural).definition_name());
        let kind = self.define(plural).await?;
        if !known {
            let to_make = kind.clone();
            let make = move |i| Call::post(to_make.collection(), fixtures::object(&to_make, i, size));
            drive(&self.client, PREPARING, count, make).await?;
        }
        Ok(kind)
    }

    /// Deletes the definitions of this run with their objects, and waits until they are gone.
    pub async fn clean_up(&self) {
        let made: Vec<String> = self.made.lock().drain().collect();
        for name in made {
            if let Err(error) = self.delete_definition(&name).await {
                eprintln!("cannot delete the CustomResourceDefinition {name}: {error}");
            }
        }
    }

    async fn delete_definition(&self, name: &str) -> Result<()> {
        let path = format!("{DEFINITIONS}/{name}");
        let mut connection = self.client.connect().await?;
        connection.send(Call::delete(path.clone())).await?.ok("DELETE of a definition")?;
        let deadline = Instant::now() + PATIENCE;
        loop {
            let response = connection.send(Call::get(path.clone())).await?;
            match response.status {
                404 => return Ok(()),
                200 if Instant::now() < deadline => tokio::time::sleep(Duration::from_millis(10)).await,
                200 => return fail(format!("it still exists after {PATIENCE:?}")),
                _ => return Ok(response.ok("GET of a deleted definition").map(drop)?),
            }
        }
    }
}
