//! Backups of the embedded store with the keys of its server: on command and on a schedule, plain or encrypted, in a
//! directory or in a bucket.

mod bucket;
mod name;
mod schedule;
mod sealed;
mod target;

use std::fs::File;
use std::io::{BufRead as _, BufReader, BufWriter, Write};
use std::path::{Path, PathBuf};

use clap::Args;
use machinery::{Value, json};
use store::{BackupFile, Restored, Snapshot};

pub use bucket::S3Flags;
pub use schedule::{BackupPlan, ScheduleFlags};
pub use target::Target;

use crate::certificates::Directory;
use crate::count::counted;
use crate::logs;
use crate::scratch::Scratch;
use crate::values::TextOrJson;

/// The path that stands for stdin or stdout.
const STANDARD: &str = "-";
/// The files of a data directory without which clients would lose their access: the certificate authority, what a rotation of
/// it has left, and the key of ServiceAccount tokens. Other certificates are issued anew.
const KEPT_FILES: [&str; 5] = ["ca.crt", "ca.key", "ca-cross.crt", "ca-next.key", "service-account.key"];

/// Encryption of backups.
#[derive(Args, Clone, Debug)]
pub struct PassphraseFlags {
    /// File with the passphrase that encrypts backups, in the format of age: its first line.
    #[arg(long, value_name = "FILE", env = "PINTLE_BACKUP_PASSPHRASE_FILE", help_heading = "Backups")]
    pub backup_passphrase_file: Option<PathBuf>,
}

impl PassphraseFlags {
    /// The passphrase. The error is one line that names the flag.
    pub fn read(&self) -> Result<Option<String>, String> {
        let Some(path) = &self.backup_passphrase_file else { return Ok(None) };
        let wrong = |why: String| format!("--backup-passphrase-file: {}: {why}", path.display());
        let text = std::fs::read_to_string(path).map_err(|error| wrong(error.to_string()))?;
        match text.lines().next().unwrap_or_default() {
            "" => Err(wrong("its first line is empty".to_owned())),
            passphrase => Ok(Some(passphrase.to_owned())),
        }
    }
}

/// The certificate authority and the key of a server.
pub fn kept_files(directory: &Directory) -> Result<Vec<BackupFile>, String> {
    let mut files = vec![];
    for name in KEPT_FILES {
        let path = directory.path.join(name);
        match std::fs::read(&path) {
            Ok(content) => files.push(BackupFile { name: name.to_owned(), content: content.into() }),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {}
            Err(error) => return Err(format!("cannot read {}: {error}", path.display())),
        }
    }
    Ok(files)
}

/// Writes a backup to a stream.
fn write<W: Write + Send>(
    snapshot: Snapshot,
    files: &[BackupFile],
    passphrase: Option<&str>,
    out: W,
) -> std::io::Result<W> {
    match passphrase {
        None => store::write_backup(snapshot, files, out),
        Some(passphrase) => store::write_backup(snapshot, files, sealed::Sealing::begin(out, passphrase)?)?.finish(),
    }
}

/// What a backup contains, for the report.
fn describe(snapshot: &Snapshot, files: &[BackupFile]) -> String {
    let objects = format!("{} at revision {}", counted(snapshot.entries.len(), "object"), snapshot.revision);
    let has = |name: &str| files.iter().any(|file| file.name == name);
    match (has("ca.key"), has("service-account.key")) {
        (true, true) => format!("{objects}, the certificate authority and the key of ServiceAccount tokens"),
        (true, false) => format!("{objects} and the certificate authority"),
        (false, true) => format!("{objects} and the key of ServiceAccount tokens"),
        (false, false) => format!("{objects}, without a certificate authority"),
    }
}

/// Runs `pintle store backup`: the store of a directory and its keys, to a new file, stdout, or an object of a bucket.
pub fn back_up(
    directory: &Path,
    keys: &Directory,
    file: &str,
    seal: &PassphraseFlags,
    s3: &S3Flags,
) -> Result<(), String> {
    let passphrase = seal.read()?;
    let target = file.strip_prefix("s3://").map(|place| object_of(place, s3)).transpose()?;
    let snapshot = store::snapshot(directory).map_err(|error| error.to_string())?;
    let files = kept_files(keys)?;
    let content = describe(&snapshot, &files);
    let passphrase = passphrase.as_deref();
    if file == STANDARD {
        let written = write(snapshot, &files, passphrase, std::io::stdout()).and_then(|mut out| out.flush());
        written.map_err(|error| format!("cannot write the backup to stdout: {error}"))?;
        logs::print_error(&format!("the backup holds {content}"));
        return Ok(());
    }
    match target {
        None => {
            let path = Path::new(file);
            if path.exists() {
                return Err(format!("{file}: the file exists already"));
            }
            let scratch = Scratch::beside(path);
            write_file(&scratch, snapshot, &files, passphrase)?;
            scratch.publish(path)?;
        }
        Some((bucket, name)) => {
            let scratch = Scratch::elsewhere();
            write_file(&scratch, snapshot, &files, passphrase)?;
            runtime()?.block_on(bucket.put(&scratch.0, &name))?;
        }
    }
    logs::print(format!("{file} holds {content}\n").as_bytes())
}

/// Runs `pintle store restore`: a new data directory from a backup.
pub fn restore(file: &str, directory: &Path, bump: u64, seal: &PassphraseFlags, s3: &S3Flags) -> Result<(), String> {
    let passphrase = seal.read()?;
    let downloaded = match file.strip_prefix("s3://") {
        None => None,
        Some(place) => {
            let (bucket, name) = object_of(place, s3)?;
            let scratch = Scratch::elsewhere();
            scratch.create()?;
            runtime()?.block_on(bucket.get(&name, &scratch.0))?;
            Some(scratch)
        }
    };
    let local = downloaded.as_ref().map_or(Path::new(file), |scratch| &scratch.0);
    let opened = unsealed(local, file, passphrase.as_deref())?;
    let plain = opened.as_ref().map_or(local, |scratch| &scratch.0);
    let failed = |error: store::OpenError| error.to_string().replace(&plain.display().to_string(), file);
    let Restored { summary, files } = store::restore(plain, directory, bump).map_err(failed)?;
    let (objects, revision) = (summary.objects, summary.revision);
    let keys = match files.is_empty() {
        true => "; it contains no keys, so that the server creates new ones".to_owned(),
        false => format!(", and {}", files.join(", ")),
    };
    logs::print(
        format!("{} holds {} at revision {revision}{keys}\n", directory.display(), counted(objects, "object"))
            .as_bytes(),
    )
}

/// The decrypted copy of a backup; `None` if it is not encrypted.
fn unsealed(local: &Path, name: &str, passphrase: Option<&str>) -> Result<Option<Scratch>, String> {
    let failed = |error: std::io::Error| format!("{name}: {error}");
    let mut file = BufReader::new(File::open(local).map_err(failed)?);
    if !file.fill_buf().map_err(failed)?.starts_with(sealed::FIRST_LINE.as_bytes()) {
        return Ok(None);
    }
    let passphrase =
        passphrase.ok_or_else(|| format!("{name} is encrypted: give its passphrase by --backup-passphrase-file"))?;
    let scratch = Scratch::elsewhere();
    let mut plain = BufWriter::new(scratch.create()?);
    sealed::unseal(&mut file, passphrase, &mut plain).map_err(failed)?;
    plain.flush().map_err(|error| format!("cannot write {}: {error}", scratch.0.display()))?;
    Ok(Some(scratch))
}

/// Writes a backup to a new file and syncs it.
fn write_file(
    scratch: &Scratch,
    snapshot: Snapshot,
    files: &[BackupFile],
    passphrase: Option<&str>,
) -> Result<(), String> {
    let written = write(snapshot, files, passphrase, BufWriter::new(scratch.create()?))
        .and_then(|out| out.into_inner().map_err(std::io::IntoInnerError::into_error))
        .and_then(|file| file.sync_all());
    written.map_err(|error| format!("cannot write {}: {error}", scratch.0.display()))
}

/// The bucket and the key of `BUCKET/KEY`.
fn object_of(place: &str, s3: &S3Flags) -> Result<(bucket::Bucket, String), String> {
    let parts = place.rsplit_once('/').filter(|(bucket, name)| !bucket.is_empty() && !name.is_empty());
    let (bucket, name) = parts.ok_or_else(|| format!("s3://{place}: wanted s3://BUCKET/NAME"))?;
    Ok((bucket::Bucket::of(bucket, s3)?, name.to_owned()))
}

fn runtime() -> Result<tokio::runtime::Runtime, String> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    runtime.map_err(|error| format!("cannot start: {error}"))
}

/// Runs `pintle store backups list`.
pub fn list(target: &str, s3: &S3Flags, form: TextOrJson) -> Result<(), String> {
    let files = runtime()?.block_on(Target::parse(target, s3)?.list())?;
    if form == TextOrJson::Json {
        let row = |file: &name::StoredFile| {
            let about = name::parse(&file.name)?;
            let number = |number: u64| i64::try_from(number).unwrap_or(i64::MAX);
            Some(json!({
                "name": (file.name.as_str()), "time": (about.time.as_str()), "revision": (number(about.revision)),
                "bytes": (number(file.bytes)), "encrypted": (about.encrypted)
            }))
        };
        return logs::print((files.iter().filter_map(row).collect::<Value>().to_json() + "\n").as_bytes());
    }
    let mut lines = format!("{:<20} {:>12} {:>12} {:<9} NAME\n", "TIME", "REVISION", "BYTES", "ENCRYPTED");
    for file in &files {
        if let Some(about) = name::parse(&file.name) {
            let encrypted = if about.encrypted { "yes" } else { "no" };
            lines +=
                &format!("{:<20} {:>12} {:>12} {encrypted:<9} {}\n", about.time, about.revision, file.bytes, file.name);
        }
    }
    logs::print(lines.as_bytes())
}

/// Runs `pintle store backups prune`: removes all but the newest backups.
pub fn prune(target: &str, keep: usize, s3: &S3Flags) -> Result<(), String> {
    let target = Target::parse(target, s3)?;
    let removed = runtime()?.block_on(remove_old(&target, keep))?;
    let lines: String = removed.iter().map(|name| format!("removed {name}\n")).collect();
    logs::print(lines.as_bytes())
}

/// Removes all backups but the newest ones; returns the names of those that are removed.
async fn remove_old(target: &Target, keep: usize) -> Result<Vec<String>, String> {
    let files = target.list().await?;
    let old = files.len().saturating_sub(keep);
    let mut removed = vec![];
    for file in files.into_iter().take(old) {
        target.remove(&file.name).await?;
        removed.push(file.name);
    }
    Ok(removed)
}
