//! Scenarios in which what a server holds grew with its use: descriptors of clients without credentials, and the history of objects
//! that are replaced again and again.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use client::{Access, Call, Client, Protocol, Result};

use super::super::load;
use super::super::subject::options;
use super::inputs::{Attack, Conditions, MAPS, Replacements, Scenario};

const TENANT: &str = "/clusters/tenant";
const CLIENTS: usize = 4;

/// One object, in a workspace that may hold eight of its size.
const OF_TENANT: Replacements = Replacements { root: TENANT, objects: 1, bytes: 1_000_000, total: 300 };
const OF_DEFAULT: Replacements = Replacements { root: "", objects: 20, bytes: 300_000, total: 3_000 };

impl Replacements {
    fn object(self, number: usize) -> String {
        let Replacements { objects, bytes, .. } = self;
        let name = number % objects;
        let text = format!("{number} ").repeat(bytes / (number.checked_ilog10().unwrap_or(0) as usize + 2));
        format!(
            r#"{{"apiVersion":"v1","kind":"ConfigMap","metadata":{{"name":"replaced-{name}"}},"data":{{"text":"{text}"}}}}"#
        )
    }

    fn created(self) -> impl Iterator<Item = Call> {
        (0..self.objects).map(move |number| Call::post(format!("{}{MAPS}", self.root), self.object(number)))
    }

    fn replaced(self, number: usize) -> Call {
        let path = format!("{}{MAPS}/replaced-{}", self.root, number % self.objects);
        Call { method: client::Method::PUT, ..Call::post(path, self.object(number)) }
    }
}

fn tenant() -> Vec<Call> {
    std::iter::once(Call::post(TENANT, r#"{"limits":{"bytes":8000000}}"#)).chain(OF_TENANT.created()).collect()
}

/// Replaces objects until all replacements are made, or shortly before `time`.
pub async fn replace(access: &Access, replacements: Replacements, time: Duration) -> Result<String> {
    let client = Client::new(access, options(Protocol::Http1))?;
    let sent = Arc::new(AtomicUsize::new(0));
    let counted = sent.clone();
    let make = move |number| {
        counted.fetch_add(1, Ordering::Relaxed);
        replacements.replaced(number)
    };
    let driven = load::drive(&client, CLIENTS, replacements.total, make);
    if let Ok(done) = tokio::time::timeout(time.saturating_sub(Duration::from_secs(1)), driven).await {
        done?;
    }
    Ok(format!("{} replacements of {} KB", sent.load(Ordering::Relaxed), replacements.bytes / 1_000))
}

/// The bytes of all files below a directory.
pub fn bytes_of(directory: &Path) -> u64 {
    let Ok(entries) = std::fs::read_dir(directory) else { return 0 };
    let of = |entry: std::fs::DirEntry| match entry.metadata() {
        Ok(metadata) if metadata.is_dir() => bytes_of(&entry.path()),
        // a file may have been removed meanwhile
        found => found.map_or(0, |metadata| metadata.len()),
    };
    entries.flatten().map(of).sum()
}

pub fn scenarios() -> Vec<Scenario> {
    let with_workspaces = Conditions { flags: &["--workspaces"], descriptors: None };
    vec![
        Scenario {
            conditions: Conditions { descriptors: Some(400), ..with_workspaces },
            ..Scenario::of("23 321 slow bodies, 400 descriptors", Attack::Slow(321))
        },
        Scenario {
            setup: tenant,
            conditions: with_workspaces,
            ..Scenario::of("24 replacements in a workspace of 8 MB", Attack::Replacements(OF_TENANT))
        },
        Scenario {
            setup: || OF_DEFAULT.created().collect(),
            ..Scenario::of("25 replacements of 20 ConfigMaps", Attack::Replacements(OF_DEFAULT))
        },
    ]
}
