//! Backups that a running server makes on a schedule.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use base::metrics::METRICS;
use clap::Args;
use client::{Context as _, Result};
use machinery::cron::Schedule;
use store::{Content, Store};

use super::{directory, kept_files, name, write_file};
use crate::certificates::Directory;
use crate::limits;
use crate::scratch::Scratch;

#[derive(Args)]
#[command(next_help_heading = "Backups")]
pub struct ScheduleFlags {
    /// Make backups of the embedded store at these times: a cron expression in UTC, such as "0 3 * * *" or @hourly, or
    /// "@every 6h", which counts from the last backup at the target. Requires --backup-target.
    #[arg(long, value_name = "CRON", value_parser = Schedule::parse, requires = "backup_target")]
    backup_schedule: Option<Schedule>,

    /// The directory in which backups are kept.
    #[arg(long, value_name = "DIR", requires = "backup_schedule")]
    backup_target: Option<PathBuf>,

    /// Number of backups to keep at the target, those with the highest revisions; others are removed after each backup.
    #[arg(long, value_name = "N", default_value_t = 5, value_parser = clap::value_parser!(u64).range(1..))]
    backup_retention: u64,
}

/// The backups that a server is to make.
pub struct BackupPlan {
    schedule: Schedule,
    directory: PathBuf,
    keep: usize,
    keys: Directory,
    store: Arc<dyn Store>,
}

impl ScheduleFlags {
    /// The plan for a store whose server has its keys in this directory; `None` without a schedule. Creates a target
    /// directory, so that a path that cannot hold backups is found before the first of them. Fails with a one-line message.
    pub fn plan(&self, keys: &Directory, store: &Arc<dyn Store>) -> Result<Option<BackupPlan>> {
        let (Some(schedule), Some(target)) = (&self.backup_schedule, &self.backup_target) else { return Ok(None) };
        directory::create(target).context("--backup-target")?;
        let keep = usize::try_from(self.backup_retention).unwrap_or(usize::MAX);
        let (schedule, directory, keys, store) = (schedule.clone(), target.clone(), keys.clone(), store.clone());
        Ok(Some(BackupPlan { schedule, directory, keep, keys, store }))
    }
}

impl BackupPlan {
    /// Starts to make the backups, until the server ends. A backup that fails is logged and tried again after
    /// [`limits::BACKUP_RETRY`].
    pub fn start(self) {
        base::task::spawn("backups", self.run());
    }

    async fn run(self) {
        let mut last = self.newest();
        if let Some(seconds) = last {
            METRICS.operation.backed_up(seconds);
        }
        loop {
            let Some(wait) = time_until_next(&self.schedule, last, base::clock::now_seconds()) else {
                return tracing::error!("--backup-schedule has no time within five years");
            };
            tokio::time::sleep(wait).await;
            while let Err(why) = self.make().await {
                METRICS.operation.backup_failures.inc();
                tracing::error!(why = why.to_string(), "a backup failed");
                // the next one by the schedule may be sooner
                let next = time_until_next(&self.schedule, None, base::clock::now_seconds());
                tokio::time::sleep(next.unwrap_or(limits::BACKUP_RETRY).min(limits::BACKUP_RETRY)).await;
            }
            last = Some(base::clock::now_seconds());
        }
    }

    /// The time of the newest backup at the target, which an earlier process has made.
    fn newest(&self) -> Option<i64> {
        let files = directory::list(&self.directory).unwrap_or_default();
        files.last().and_then(|file| machinery::time::parse_rfc3339(&file.time)).map(|(seconds, _)| seconds)
    }

    /// Makes a backup and removes old ones.
    async fn make(&self) -> Result<()> {
        let content = match self.store.clone().branching() {
            Some(log) => log.content().await,
            None => self.store.snapshot().await.map(Content::from),
        };
        let content = content?;
        let name = name::of(&base::clock::now_rfc3339(), content.snapshot.revision);
        base::task::blocking(|| self.write(content, &name))?;
        METRICS.operation.backed_up(base::clock::now_seconds());
        tracing::info!(name, "made a backup");
        Ok(())
    }

    /// Writes a backup beside its final name and moves it there, so that a file with the name of a backup is always
    /// complete.
    fn write(&self, content: Content, name: &str) -> Result<()> {
        directory::create(&self.directory)?;
        let scratch = Scratch(self.directory.join(base::clock::scratch_name()));
        write_file(&scratch, content, &kept_files(&self.keys)?)?;
        directory::publish(&self.directory, &scratch.0, name)?;
        for removed in directory::remove_old(&self.directory, self.keep, Some(name))? {
            tracing::info!(name = removed, "removed an old backup");
        }
        Ok(())
    }
}

/// The time until the next backup. `@every` counts from the last one, so that a server that restarts more often than that makes
/// backups too; a last one in the future, of a clock that was wrong, does not count. `None` if there is no such time.
fn time_until_next(schedule: &Schedule, last: Option<i64>, now: i64) -> Option<Duration> {
    let from = match schedule {
        Schedule::Every(_) => last.filter(|last| *last <= now).unwrap_or(now),
        Schedule::At(_) => now,
    };
    let next = schedule.next(from)?;
    Some(Duration::from_secs(u64::try_from(next - now).unwrap_or_default()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_counts_from_the_last_backup() {
        const HOUR: i64 = 3600;
        let now = 1_000_000 * HOUR;
        for (schedule, last, hours) in [
            ("@every 24h", None, 24),
            ("@every 24h", Some(now - 23 * HOUR), 1),
            ("@every 24h", Some(now - 24 * HOUR), 0),
            ("@every 24h", Some(now - 900 * HOUR), 0),
            // the clock was wrong
            ("@every 24h", Some(now + 900 * HOUR), 24),
            ("@hourly", Some(now - 900 * HOUR), 1),
        ] {
            let schedule = Schedule::parse(schedule).unwrap();
            assert_eq!(
                time_until_next(&schedule, last, now),
                Some(Duration::from_secs(hours * 3600)),
                "{schedule:?} {last:?}"
            );
        }
        assert_eq!(time_until_next(&Schedule::parse("0 0 30 2 *").unwrap(), None, now), None);
    }
}
