//! Directories of manifests are applied at the start, and again when a file changes.

use std::sync::{Arc, Weak};

use base::digest::sha256_hex;
use base::metrics::METRICS;
use base::request::FeatureGates;
use base::{clock, task};

use super::{ManifestFile, ManifestPlugin, Manifests, hash};
use crate::admission::Admission;
use crate::limits;

/// Reads the files of a directory, in order of their names. Fails with a one-line message.
type Reading = Box<dyn Fn() -> Result<Vec<ManifestFile>, String> + Send + Sync>;

pub struct ManifestDirectory {
    pub path: String,
    pub gates: FeatureGates,
    /// Its objects at the start.
    pub manifests: Manifests,
    pub read: Reading,
}

/// A directory and its state.
struct Follower {
    plugin: ManifestPlugin,
    path: String,
    gates: FeatureGates,
    /// The identity of the server in metrics.
    server: String,
    /// The hash of the files in force.
    hash: String,
    /// The hash of the files of the last attempt, or the error of reading them.
    seen: Result<String, String>,
}

impl ManifestDirectory {
    /// Reads the directory. The error is that of kube-apiserver.
    pub fn open(
        plugin: ManifestPlugin,
        path: String,
        gates: &FeatureGates,
        read: Reading,
    ) -> Result<ManifestDirectory, String> {
        let manifests = read().and_then(|files| Manifests::parse(plugin, &files, gates)).map_err(|why| {
            let what = if plugin.has_policies() { "policy" } else { "webhook" };
            format!("failed to load static {what} manifests from {}: {why}", machinery::value::quote(&path))
        })?;
        Ok(ManifestDirectory { path, gates: gates.clone(), manifests, read })
    }

    /// Applies the objects, and every valid change of them from now on. `server` is the identity of the server.
    pub fn follow(self, admission: &Arc<Admission>, server: &str) {
        let ManifestDirectory { path, gates, manifests, read } = self;
        let (plugin, hash) = (manifests.plugin, manifests.hash.clone());
        let server = format!("sha256:{}", sha256_hex(server.as_bytes()));
        let mut follower = Follower { plugin, path, gates, server, seen: Ok(hash.clone()), hash };
        admission.apply(&manifests);
        follower.report(&Ok(()));
        let admission = Arc::downgrade(admission);
        task::follow(limits::MANIFESTS_LOOK, move || follower.look(&read, &admission));
    }
}

impl Follower {
    /// Applies the directory if it has changed. Returns whether the server still runs.
    fn look(&mut self, read: &Reading, admission: &Weak<Admission>) -> bool {
        let Some(admission) = admission.upgrade() else { return false };
        let files = read();
        let seen = files.as_ref().map(|files| hash(files)).map_err(Clone::clone);
        if seen == self.seen {
            return true;
        }
        self.seen = seen;
        // after an error, the files may be the ones in force again
        if self.seen.as_ref() == Ok(&self.hash) {
            return true;
        }
        let parsed = files.and_then(|files| Manifests::parse(self.plugin, &files, &self.gates));
        let result = parsed.map(|manifests| {
            admission.apply(&manifests);
            self.hash = manifests.hash;
        });
        self.report(&result);
        true
    }

    /// Logs and counts the result of an attempt.
    fn report(&self, result: &Result<(), String>) {
        let (plugin, directory) = (self.plugin.as_str(), &self.path);
        let hash = result.as_ref().ok().map(|()| self.hash.as_str());
        METRICS.manifests.loaded(plugin, &self.server, hash, clock::machine_micros());
        match result {
            Ok(()) => tracing::info!(plugin, directory, "the manifests have been loaded"),
            Err(why) => {
                tracing::error!(
                    plugin,
                    directory,
                    why,
                    "the manifests cannot be loaded; the previous ones stay in use"
                );
            }
        }
    }
}
