//! Metrics of manifests of admission.

use std::sync::atomic::AtomicU64;

use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;

const MICROS: f64 = 1e6;

labels! {
    /// The result of loading the manifests of a plugin.
    struct Load {
        status: &'static str,
        plugin: &'static str,
        apiserver_id_hash: String,
    }

    /// The hash of the manifests of a plugin.
    struct Loaded {
        plugin: &'static str,
        apiserver_id_hash: String,
        hash: String,
    }
}

metrics! {
    pub struct ManifestMetrics {
        automatic_reloads: Family<Load, Counter> =>
            "apiserver_manifest_admission_config_controller_automatic_reloads",
            "Loads of the manifests of an admission plugin";
        automatic_reload_last_timestamp_seconds: Family<Load, Gauge<f64, AtomicU64>> =>
            "apiserver_manifest_admission_config_controller_automatic_reload_last_timestamp_seconds",
            "Time of the last load of the manifests of an admission plugin";
        last_config_info: Family<Loaded, Gauge> =>
            "apiserver_manifest_admission_config_controller_last_config_info",
            "1, with the hash of the manifests of an admission plugin";
    } with {
        /// The labels that `last_config_info` has now.
        loaded: parking_lot::Mutex<Vec<Loaded>>,
    }
}

impl ManifestMetrics {
    /// Records that manifests have been loaded at a time, with their hash, or could not be (`None`).
    pub fn loaded(&self, plugin: &'static str, apiserver_id_hash: &str, hash: Option<&str>, now_micros: i64) {
        let status = if hash.is_some() { "success" } else { "failure" };
        let apiserver_id_hash = apiserver_id_hash.to_owned();
        let load = Load { status, plugin, apiserver_id_hash: apiserver_id_hash.clone() };
        self.automatic_reloads.get_or_create(&load).inc();
        self.automatic_reload_last_timestamp_seconds.get_or_create(&load).set(now_micros as f64 / MICROS);
        if let Some(hash) = hash {
            self.replace(Loaded { plugin, apiserver_id_hash, hash: hash.to_owned() });
        }
    }

    fn replace(&self, now: Loaded) {
        let mut loaded = self.loaded.lock();
        if let Some(at) = loaded.iter().position(|known| known.plugin == now.plugin) {
            self.last_config_info.remove(&loaded.swap_remove(at));
        }
        self.last_config_info.get_or_create(&now).set(1);
        loaded.push(now);
    }
}
