//! Metrics of the process, from `/proc`, on Linux.

use std::sync::atomic::AtomicU64;

use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::gauge::Gauge;

/// Clock ticks per second, as `/proc` counts them on every Linux.
const TICKS: f64 = 100.0;

type Float = Gauge<f64, AtomicU64>;

metrics! {
    pub struct Process {
        cpu_seconds: Counter<f64, AtomicU64> => "process_cpu_seconds", "User and system CPU time, in seconds";
        resident_memory_bytes: Gauge => "process_resident_memory_bytes", "Resident memory in bytes";
        virtual_memory_bytes: Gauge => "process_virtual_memory_bytes", "Virtual memory in bytes";
        open_fds: Gauge => "process_open_fds", "Open file descriptors";
        max_fds: Gauge => "process_max_fds", "Limit of open file descriptors";
        start_time_seconds: Float => "process_start_time_seconds", "Start time, in seconds since 1970";
    }
}

impl Process {
    /// Updates the metrics at `now`, in seconds since 1970. Values that cannot be read stay as they are.
    pub fn update(&self, now: i64) {
        let read = |name: &str| std::fs::read_to_string(format!("/proc/self/{name}")).unwrap_or_default();
        let uptime = std::fs::read_to_string("/proc/uptime").unwrap_or_default();
        self.take_stat(now, &read("stat"), &uptime);
        let limits = read("limits");
        let files = limits.lines().find_map(|line| line.strip_prefix("Max open files"));
        if let Some(limit) = files.and_then(|rest| rest.split_whitespace().next()?.parse().ok()) {
            self.max_fds.set(limit);
        }
        if let Ok(open) = std::fs::read_dir("/proc/self/fd") {
            self.open_fds.set(i64::try_from(open.count()).unwrap_or(i64::MAX));
        }
        let kilobytes = |status: &str, name: &str| -> Option<i64> {
            let line = status.lines().find_map(|line| line.strip_prefix(name))?;
            line.trim_start_matches(':').split_whitespace().next()?.parse().ok()
        };
        let status = read("status");
        for (name, gauge) in [("VmRSS", &self.resident_memory_bytes), ("VmSize", &self.virtual_memory_bytes)] {
            if let Some(size) = kilobytes(&status, name) {
                gauge.set(size * 1024);
            }
        }
    }

    /// Sets CPU time and start time from `/proc/self/stat` and `/proc/uptime`.
    fn take_stat(&self, now: i64, stat: &str, uptime: &str) {
        // the name in parentheses may contain spaces and parentheses
        let fields: Vec<&str> = stat.rsplit_once(')').map_or("", |(_, rest)| rest).split_whitespace().collect();
        let ticks = |at: usize| fields.get(at).and_then(|text| text.parse::<f64>().ok());
        if let (Some(user), Some(system)) = (ticks(11), ticks(12)) {
            let now = (user + system) / TICKS;
            self.cpu_seconds.inc_by((now - self.cpu_seconds.get()).max(0.0));
        }
        let up = uptime.split_whitespace().next().and_then(|text| text.parse::<f64>().ok());
        if let (Some(started), Some(up), true) = (ticks(19), up, self.start_time_seconds.get() == 0.0) {
            self.start_time_seconds.set(now as f64 - up + started / TICKS);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn process_reports_its_own_metrics() {
        let process = Process::default();
        process.take_stat(1_000, "7 (a) b) S 1 1 1 0 -1 0 0 0 0 0 250 50 0 0 20 0 1 0 1000 0 0", "100.00 1.00");
        assert_eq!(process.cpu_seconds.get(), 3.0);
        assert_eq!(process.start_time_seconds.get(), 910.0);
        process.update(1_000);
        if cfg!(target_os = "linux") {
            assert!(
                process.open_fds.get() > 2
                    && process.max_fds.get() > 0
                    && process.resident_memory_bytes.get() > 1 << 20
            );
        }
    }
}
