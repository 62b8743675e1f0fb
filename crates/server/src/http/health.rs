//! Health checks and `/version`.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock, Weak};

use base::request::Query;
use http::Response;
use machinery::{Release, Value, json};
use objects::{Faults, Objects};

use super::body::Body;
use super::respond::text;

/// The result of a check; the error is the reason of the failure. Unlike kube-apiserver, clients see why the storage
/// has failed.
type Check = Result<(), String>;

pub struct Health {
    /// Shutdown has begun, so the server is not ready anymore.
    draining: AtomicBool,
    /// All stored objects have been loaded.
    loaded: AtomicBool,
    store: Arc<dyn store::Store>,
    faults: OnceLock<Arc<Faults>>,
    /// The objects. Their layout may depend on external services, whose health is checked too.
    objects: OnceLock<Weak<Objects>>,
    /// Whether objects may make requests fail. The checks show it, for users who wonder why.
    testing: AtomicBool,
    /// Whether the last check of the store has failed.
    is_failing: AtomicBool,
}

impl Health {
    pub fn new(store: Arc<dyn store::Store>) -> Health {
        Health {
            draining: AtomicBool::new(false),
            loaded: AtomicBool::new(false),
            store,
            faults: OnceLock::new(),
            objects: OnceLock::new(),
            testing: AtomicBool::new(false),
            is_failing: AtomicBool::new(false),
        }
    }

    /// Makes the checks show that the server is for tests.
    pub fn for_testing(&self) {
        self.testing.store(true, Ordering::Relaxed);
    }

    /// Sets the objects; from then on checks fail while a watch cache does not follow the store, or while a service that the
    /// layout depends on is not healthy.
    pub fn watch(&self, objects: &Arc<Objects>) {
        let _ = self.faults.set(objects.faults.clone());
        let _ = self.objects.set(Arc::downgrade(objects));
    }

    /// Fails if the store has ended for good, or has to be opened again before it takes writes, or a watch cache is stale.
    fn fault(&self) -> Check {
        self.store.ended().or_else(|| self.store.wants_reopening()).map_or(Ok(()), Err)?;
        self.faults.get().map_or(Ok(()), |faults| faults.now())
    }

    /// Marks all stored objects as loaded.
    pub fn loaded(&self) {
        self.loaded.store(true, Ordering::Relaxed);
    }

    /// Marks the beginning of the shutdown.
    pub fn drain(&self) {
        self.draining.store(true, Ordering::Relaxed);
    }

    /// Whether the store takes writes. A change is a line of the log, since probes repeat.
    fn storage(&self) -> Check {
        let health = self.store.health();
        let was_failing = self.is_failing.swap(health.is_err(), Ordering::Relaxed);
        match &health {
            Err(error) if !was_failing => tracing::warn!(%error, "storage health check failed"),
            Ok(()) if was_failing => tracing::info!("the storage health check succeeds again"),
            _ => {}
        }
        health.map_err(|error| error.to_string())
    }

    /// The checks of an endpoint. A store that cannot write at present makes the server not ready but leaves it live, since it
    /// still serves reads and may recover.
    fn checks(&self, endpoint: &str) -> Vec<(&'static str, Check)> {
        let storage = self.storage();
        let storage = if endpoint == "/livez" { Ok(()) } else { storage };
        let storage = storage.and_then(|()| self.fault());
        let mut checks = vec![("ping", Ok(())), ("log", Ok(())), ("storage", storage)];
        let objects = self.objects.get().and_then(Weak::upgrade);
        if let Some(services) = objects.and_then(|objects| objects.layout_health()) {
            // with the keys that are known, objects can still be read and written, so the server stays live
            let services = if endpoint == "/livez" { Ok(()) } else { services };
            checks.push(("kms-providers", services));
        }
        if endpoint == "/readyz" {
            if self.testing.load(Ordering::Relaxed) {
                checks.push(("testing", Ok(())));
            }
            let check = |good: bool| if good { Ok(()) } else { Err("reason withheld".to_owned()) };
            checks.push(("informer-sync", check(self.loaded.load(Ordering::Relaxed))));
            checks.push(("shutdown", check(!self.draining.load(Ordering::Relaxed))));
        }
        checks
    }

    pub fn names(&self, endpoint: &str) -> impl Iterator<Item = &'static str> {
        self.checks(endpoint).into_iter().map(|(name, _)| name)
    }

    /// Responds to `/healthz`, `/livez` and `/readyz`.
    pub fn respond(&self, endpoint: &str, query: &Query) -> Response<Body> {
        let name = endpoint.trim_start_matches('/');
        let excluded: Vec<&str> = query.all("exclude").map(own_name).collect();
        let mut lines = String::new();
        let mut healthy = true;
        let checks = self.checks(endpoint);
        for (check, result) in &checks {
            match result {
                _ if excluded.contains(check) => lines.push_str(&format!("[+]{check} excluded: ok\n")),
                Ok(()) => lines.push_str(&format!("[+]{check} ok\n")),
                Err(why) => {
                    healthy = false;
                    lines.push_str(&format!("[-]{check} failed: {why}\n"));
                }
            }
        }
        let unknown: Vec<String> = excluded
            .iter()
            .filter(|excluded_check| !checks.iter().any(|(name, _)| name == *excluded_check))
            .map(|excluded_check| machinery::value::quote(excluded_check))
            .collect();
        if !unknown.is_empty() {
            let list = unknown.join(", ");
            lines.push_str(&format!("warn: some health checks cannot be excluded: no matches for {list}\n"));
        }
        if !healthy {
            return text(500, &format!("{lines}{name} check failed\n"));
        }
        if query.has("verbose") { text(200, &format!("{lines}{name} check passed\n")) } else { text(200, "ok") }
    }

    /// Responds to a request for a single check, such as `/readyz/ping`.
    pub fn check(&self, name: &str) -> Response<Body> {
        match self.checks("/readyz").iter().find(|(check, _)| *check == own_name(name)) {
            Some((_, Ok(()))) => text(200, "ok"),
            Some((_, Err(why))) => text(500, &format!("internal server error: {why}\n")),
            None => text(404, "404 page not found\n"),
        }
    }
}

/// Converts kube-apiserver's name of a check to the name here: its `etcd` is `storage`.
fn own_name(name: &str) -> &str {
    if name == "etcd" { "storage" } else { name }
}

/// The platform of this binary, with Go's name for the architecture.
const PLATFORM: &str = if cfg!(target_arch = "aarch64") { "linux/arm64" } else { "linux/amd64" };

/// The newest release of Kubernetes whose behavior can be served.
pub const KUBERNETES_VERSION: (&str, &str, &str) = ("1", "37", "2");

/// The document of `/version`; `compatible_minor` is the minor version of the oldest release to be compatible with.
pub fn version(release: Release, compatible_minor: u32) -> Value {
    let (major, minor, patch) = KUBERNETES_VERSION;
    let pintle = env!("CARGO_PKG_VERSION");
    json!({
        "major": major, "minor": minor,
        "emulationMajor": major, "emulationMinor": (release.minor().to_string()),
        "minCompatibilityMajor": major, "minCompatibilityMinor": (compatible_minor.to_string()),
        "gitVersion": (format!("v{major}.{minor}.{patch}+pintle.{pintle}")),
        "gitCommit": "0000000000000000000000000000000000000000", "gitTreeState": "clean",
        "buildDate": "2026-11-21T00:00:00Z", "goVersion": "none", "compiler": "rustc", "platform": PLATFORM
    })
}

#[cfg(test)]
mod tests {
    use store::contract::BoxFuture;
    use store::{Changes, Memory, Refused, Revision, Snapshot, Store, StoreError, Write};

    use super::*;

    /// A store that has no space left for writes.
    struct Full(Memory);

    impl Store for Full {
        fn commit(&self, write: Write) -> BoxFuture<'_, Result<Revision, Refused>> {
            self.0.commit(write)
        }

        fn snapshot(&self) -> BoxFuture<'_, Result<Snapshot, StoreError>> {
            self.0.snapshot()
        }

        fn history(&self, revisions: u64) -> BoxFuture<'_, Result<Snapshot, StoreError>> {
            self.0.history(revisions)
        }

        fn follow(&self, after: Revision) -> BoxFuture<'_, Result<Box<dyn Changes>, StoreError>> {
            self.0.follow(after)
        }

        fn head(&self) -> BoxFuture<'_, Result<Revision, StoreError>> {
            self.0.head()
        }

        fn compact(&self, before: Revision) -> BoxFuture<'_, Result<(), StoreError>> {
            self.0.compact(before)
        }

        fn health(&self) -> Result<(), StoreError> {
            Err(StoreError::Unavailable("no room".to_owned()))
        }
    }

    #[test]
    fn read_only_store_is_live_but_not_ready() {
        let status = |health: &Health, endpoint| health.respond(endpoint, &Query::parse("")).status().as_u16();
        let healthy = Health::new(Arc::new(Memory::default()));
        assert_eq!(["/livez", "/readyz"].map(|endpoint| status(&healthy, endpoint)), [200, 500]);
        let full = Health::new(Arc::new(Full(Memory::default())));
        healthy.loaded();
        full.loaded();
        assert_eq!(["/livez", "/readyz"].map(|endpoint| status(&healthy, endpoint)), [200, 200]);
        assert_eq!(["/livez", "/readyz"].map(|endpoint| status(&full, endpoint)), [200, 500]);
        assert_eq!(full.check("storage").status().as_u16(), 500);
    }
}
