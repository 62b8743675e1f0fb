//! A description of the machine.

use std::fs;
use std::io::Write as _;
use std::path::Path;
use std::time::{Duration, Instant};

use client::{Context as _, Result};

/// Seconds since the Unix epoch.
pub fn seconds() -> i64 {
    let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap_or_default();
    i64::try_from(since.as_secs()).unwrap_or(i64::MAX)
}

use super::load::Samples;

fn field(file: &str, key: &str) -> Option<String> {
    let text = fs::read_to_string(file).ok()?;
    let line = text.lines().find(|line| line.starts_with(key))?;
    line.split_once(':').map(|(_, value)| value.trim().to_owned())
}

/// Cores, memory, kernel; no names.
pub fn describe() -> String {
    let cores = std::thread::available_parallelism().map_or(0, std::num::NonZero::get);
    let model = field("/proc/cpuinfo", "model name").unwrap_or_else(|| std::env::consts::ARCH.to_owned());
    let kilobytes = field("/proc/meminfo", "MemTotal").and_then(|text| text.split(' ').next()?.parse::<u64>().ok());
    let memory = kilobytes.unwrap_or_default() / (1 << 20);
    let kernel = fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
    format!("{cores} cores ({model}), {memory} GiB memory, Linux {}", kernel.trim())
}

/// The median duration of an append of 4 KB with fdatasync in `directory`.
pub fn sync_time(directory: &Path) -> Result<Duration> {
    let path = directory.join("sync");
    let mut file = fs::File::create(&path).cannot("write to", directory)?;
    let mut times = vec![];
    for _ in 0..50 {
        let started = Instant::now();
        file.write_all(&[0; 4096]).and_then(|()| file.sync_data()).cannot("write to", directory)?;
        times.push(started.elapsed());
    }
    fs::remove_file(&path).cannot("write to", directory)?;
    Ok(Samples::new(times, Duration::ZERO).quantile(0.5))
}

/// The load average of the last minute, which shows whether the machine was busy otherwise.
pub fn load() -> String {
    let text = fs::read_to_string("/proc/loadavg").unwrap_or_default();
    text.split(' ').next().unwrap_or_default().to_owned()
}
