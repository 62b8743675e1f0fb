//! Metrics of what an operator looks after: backups, certificates, the disk of the data directory. They are Pintle's own.

use std::path::PathBuf;
use std::sync::OnceLock;

use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::{Family, MetricConstructor as _};
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::Histogram;

use super::Buckets;
use super::labels::CertificateName;

/// Those of etcd's `etcd_disk_wal_fsync_duration_seconds`, with two more at each end: a memory of flash syncs within a fraction of a
/// millisecond, and a disk that hangs for a while takes longer than eight seconds.
const DISK_SECONDS: Buckets = Buckets(&[
    0.000_25, 0.000_5, 0.001, 0.002, 0.004, 0.008, 0.016, 0.032, 0.064, 0.128, 0.256, 0.512, 1.024, 2.048, 4.096,
    8.192, 15.0, 60.0,
]);

metrics! {
    pub struct OperationMetrics {
        backup_last_success: Gauge =>
            "pintle_backup_last_success_timestamp_seconds",
            "Time of the newest scheduled backup, in seconds since 1970; 0 if there is none";
        pub backup_failures: Counter => "pintle_backup_failures", "Scheduled backups that failed";
        certificate_expiration: Family<CertificateName, Gauge> =>
            "pintle_certificate_expiration_timestamp_seconds",
            "End of the validity of the server's certificates, in seconds since 1970";
        data_directory_free_bytes: Gauge =>
            "pintle_data_directory_free_bytes",
            "Bytes that the server can still write to the file system of its data directory";
        data_directory_size_bytes: Gauge =>
            "pintle_data_directory_size_bytes", "Size of the file system of the data directory in bytes";
        pub store_damaged_frames: Gauge =>
            "pintle_store_damaged_frames", "Damaged places that the last scrub of the embedded store has found on the disk";
        pub store_commit_duration_seconds: Histogram = DISK_SECONDS.new_metric() =>
            "pintle_store_commit_duration_seconds",
            "Duration of commits of the embedded store with their syncs, in seconds";
        pub store_sync_duration_seconds: Histogram = DISK_SECONDS.new_metric() =>
            "pintle_store_sync_duration_seconds", "Duration of syncs of the log of the embedded store, in seconds";
    } with {
        data_directory: OnceLock<PathBuf>,
    }
}

impl OperationMetrics {
    /// Records a backup that was made at this time, in seconds since 1970.
    pub fn backed_up(&self, time: i64) {
        self.backup_last_success.set(time);
    }

    /// Records the end of the validity of a certificate of the server.
    pub fn certificate(&self, name: &'static str, not_after: i64) {
        self.certificate_expiration.get_or_create(&CertificateName { name }).set(not_after);
    }

    /// Sets the directory whose file system is observed.
    pub fn observe_directory(&self, directory: PathBuf) {
        let _ = self.data_directory.set(directory);
    }

    /// Updates the sizes of the file system. A size that cannot be read stays as it is.
    pub fn update(&self) {
        let found = self.data_directory.get().and_then(|directory| rustix::fs::statvfs(directory).ok());
        if let Some(found) = found {
            let bytes = |blocks: u64| i64::try_from(blocks.saturating_mul(found.f_frsize)).unwrap_or(i64::MAX);
            self.data_directory_free_bytes.set(bytes(found.f_bavail));
            self.data_directory_size_bytes.set(bytes(found.f_blocks));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn disk_is_observed() {
        let metrics = OperationMetrics::default();
        metrics.update();
        assert_eq!(metrics.data_directory_size_bytes.get(), 0);
        metrics.observe_directory("/".into());
        metrics.update();
        let (free, size) = (metrics.data_directory_free_bytes.get(), metrics.data_directory_size_bytes.get());
        assert!(0 < free && free < size, "{free} of {size}");
    }
}
