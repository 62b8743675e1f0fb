//! Backups that a running server makes on a schedule.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use base::metrics::METRICS;
use clap::Args;
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
    /// "@every 6h". Requires --backup-target.
    #[arg(long, value_name = "CRON", value_parser = Schedule::parse, requires = "backup_target")]
    backup_schedule: Option<Schedule>,

    /// The directory in which backups are kept.
    #[arg(long, value_name = "DIR", requires = "backup_schedule")]
    backup_target: Option<PathBuf>,

    /// Number of backups to keep at the target; older ones are removed after each backup.
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
    /// directory, so that a path that cannot hold backups is found before the first of them. The error is one line.
    pub fn plan(&self, keys: &Directory, store: &Arc<dyn Store>) -> Result<Option<BackupPlan>, String> {
        let (Some(schedule), Some(target)) = (&self.backup_schedule, &self.backup_target) else { return Ok(None) };
        directory::create(target).map_err(|why| format!("--backup-target: {why}"))?;
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
        self.remember_newest();
        let mut retry = false;
        loop {
            let now = base::clock::now_seconds();
            let Some(next) = self.schedule.next(now) else {
                return tracing::error!("--backup-schedule has no time within five years");
            };
            let mut wait = Duration::from_secs(u64::try_from(next - now).unwrap_or_default());
            if retry {
                wait = wait.min(limits::BACKUP_RETRY);
            }
            tokio::time::sleep(wait).await;
            let made = self.make().await;
            retry = made.is_err();
            match made {
                Ok(name) => {
                    METRICS.operation.backed_up(base::clock::now_seconds());
                    tracing::info!(name, "made a backup");
                }
                Err(why) => {
                    METRICS.operation.backup_failures.inc();
                    tracing::error!(why, "a backup failed");
                }
            }
        }
    }

    /// Records the time of the newest backup at the target, which an earlier process has made.
    fn remember_newest(&self) {
        let files = directory::list(&self.directory).unwrap_or_default();
        if let Some((seconds, _)) = files.last().and_then(|file| machinery::time::parse_rfc3339(&file.time)) {
            METRICS.operation.backed_up(seconds);
        }
    }

    /// Makes a backup and removes old ones; returns its name.
    async fn make(&self) -> Result<String, String> {
        let content = match self.store.branching() {
            Some(log) => log.content().await,
            None => self.store.snapshot().await.map(Content::from),
        };
        let content = content.map_err(|error| error.to_string())?;
        let name = name::of(&base::clock::now_rfc3339(), content.snapshot.revision);
        base::task::blocking(|| self.write(content, &name))?;
        Ok(name)
    }

    /// Writes a backup beside its final name and moves it there, so that a file with the name of a backup is always
    /// complete.
    fn write(&self, content: Content, name: &str) -> Result<(), String> {
        directory::create(&self.directory)?;
        let scratch = Scratch(self.directory.join(base::clock::scratch_name()));
        write_file(&scratch, content, &kept_files(&self.keys)?)?;
        directory::publish(&self.directory, &scratch.0, name)?;
        for removed in directory::remove_old(&self.directory, self.keep)? {
            tracing::info!(name = removed, "removed an old backup");
        }
        Ok(())
    }
}
