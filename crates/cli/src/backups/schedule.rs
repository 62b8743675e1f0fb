//! Backups that a running server makes on a schedule.

use std::sync::Arc;
use std::time::Duration;

use base::metrics::METRICS;
use clap::Args;
use machinery::cron::Schedule;
use store::{Snapshot, Store};

use super::{PassphraseFlags, S3Flags, Target, kept_files, name, remove_old, write_file};
use crate::certificates::Directory;
use crate::limits;
use crate::scratch::Scratch;

#[derive(Args)]
pub struct ScheduleFlags {
    /// Make backups of the embedded store at these times: a cron expression in UTC, such as "0 3 * * *" or @hourly, or
    /// "@every 6h". Requires --backup-target.
    #[arg(long, value_name = "CRON", value_parser = Schedule::parse, requires = "backup_target", help_heading = "Backups")]
    backup_schedule: Option<Schedule>,

    /// Where backups are kept: a directory, or s3://BUCKET[/PREFIX].
    #[arg(long, value_name = "TARGET", requires = "backup_schedule", help_heading = "Backups")]
    backup_target: Option<String>,

    /// Number of backups to keep at the target; older ones are removed after each backup.
    #[arg(long, value_name = "N", default_value_t = 5, value_parser = clap::value_parser!(u64).range(1..), help_heading = "Backups")]
    backup_retention: u64,

    #[command(flatten)]
    seal: PassphraseFlags,

    #[command(flatten)]
    s3: S3Flags,
}

/// The backups that a server is to make.
pub struct BackupPlan {
    schedule: Schedule,
    target: Target,
    keep: usize,
    passphrase: Option<String>,
    keys: Directory,
    store: Arc<dyn Store>,
}

impl ScheduleFlags {
    /// The plan for a store whose server has its keys in this directory; `None` without a schedule. Creates a target
    /// directory, so that a path that cannot hold backups is found before the first of them. The error is one line.
    pub fn plan(&self, keys: &Directory, store: &Arc<dyn Store>) -> Result<Option<BackupPlan>, String> {
        let (Some(schedule), Some(target)) = (&self.backup_schedule, &self.backup_target) else { return Ok(None) };
        let target = Target::parse(target, &self.s3).and_then(|target| target.create().map(|()| target));
        let target = target.map_err(|why| format!("--backup-target: {why}"))?;
        let keep = usize::try_from(self.backup_retention).unwrap_or(usize::MAX);
        let passphrase = self.seal.read()?;
        let (schedule, keys, store) = (schedule.clone(), keys.clone(), store.clone());
        Ok(Some(BackupPlan { schedule, target, keep, passphrase, keys, store }))
    }
}

impl BackupPlan {
    /// Starts to make the backups, until the server ends. A backup that fails is reported in the log and made again after
    /// [`limits::BACKUP_RETRY`].
    pub fn start(self) {
        base::task::spawn("backups", self.run());
    }

    async fn run(self) {
        self.remember_newest().await;
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
    async fn remember_newest(&self) {
        let files = self.target.list().await.unwrap_or_default();
        let newest = files.last().and_then(|file| name::parse(&file.name));
        if let Some((seconds, _)) = newest.and_then(|about| machinery::time::parse_rfc3339(&about.time)) {
            METRICS.operation.backed_up(seconds);
        }
    }

    /// Makes a backup and removes old ones; returns its name.
    async fn make(&self) -> Result<String, String> {
        let snapshot = self.store.snapshot().await.map_err(|error| error.to_string())?;
        let name = name::of(&base::clock::now_rfc3339(), snapshot.revision, self.passphrase.is_some());
        let scratch = base::task::blocking(|| self.write_local(snapshot))?;
        self.target.put(&scratch.0, &name).await?;
        for removed in remove_old(&self.target, self.keep).await? {
            tracing::info!(name = removed, "removed an old backup");
        }
        Ok(name)
    }

    /// Writes a backup to a local file.
    fn write_local(&self, snapshot: Snapshot) -> Result<Scratch, String> {
        let scratch = Scratch(self.target.local_path(&self.keys.path)?);
        let files = kept_files(&self.keys)?;
        write_file(&scratch, snapshot, &files, self.passphrase.as_deref())?;
        Ok(scratch)
    }
}
