//! Backups of the embedded store with the keys of its server: on command, and on a schedule in a directory.

mod directory;
mod name;
mod schedule;

use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};

use client::{Access, Context as _, Failure, Method, Request, Result, fail};
use machinery::{Value, json};
use store::{BackupFile, Content, Restored};

pub use schedule::{BackupPlan, ScheduleFlags};

use crate::certificates::Directory;
use crate::count::counted;
use crate::files::read_existing;
use crate::logs;
use crate::scratch::Scratch;
use crate::values::TextOrJson;

/// The path that stands for stdin or stdout.
const STANDARD: &str = "-";
/// The files of a data directory without which clients would lose their access: the certificate authority, the files of
/// its rotation, and the key of ServiceAccount tokens. Other certificates are issued anew.
pub const KEPT_FILES: [&str; 5] = ["ca.crt", "ca.key", "ca-cross.crt", "ca-next.key", "service-account.key"];

/// The certificate authority and the key of a server.
pub fn kept_files(directory: &Directory) -> Result<Vec<BackupFile>> {
    let mut files = vec![];
    for name in KEPT_FILES {
        if let Some(content) = read_existing(&directory.path.join(name))? {
            files.push(BackupFile { name: name.to_owned(), content: content.into() });
        }
    }
    Ok(files)
}

fn describe(content: &Content, files: &[BackupFile]) -> String {
    let snapshot = &content.snapshot;
    let branches = with_branches(content.branches());
    let objects = format!("{}{branches} at revision {}", counted(snapshot.entries.len(), "object"), snapshot.revision);
    let has = |name: &str| files.iter().any(|file| file.name == name);
    match (has("ca.key"), has("service-account.key")) {
        (true, true) => format!("{objects}, the certificate authority and the key of ServiceAccount tokens"),
        (true, false) => format!("{objects} and the certificate authority"),
        (false, true) => format!("{objects} and the key of ServiceAccount tokens"),
        (false, false) => format!("{objects}, without a certificate authority"),
    }
}

/// The branches of a store besides its own objects: its workspaces, and the empty APIs that they begin from.
pub fn with_branches(branches: usize) -> String {
    match branches {
        0 => String::new(),
        1 => " and 1 branch".to_owned(),
        more => format!(" and {more} branches"),
    }
}

/// Runs `pintle store backup`: the store of a directory and its keys, to a new file or to stdout.
pub fn back_up(directory: &Path, keys: &Directory, file: &Path) -> Result<()> {
    let found = store::content(directory)?;
    let files = kept_files(keys)?;
    let content = describe(&found, &files);
    if file == Path::new(STANDARD) {
        let written = store::write_backup(found, &files, logs::Stdout).and_then(|mut out| out.flush());
        written.context("cannot write the backup to stdout")?;
        logs::print_error(&format!("the backup holds {content}"));
        return Ok(());
    }
    if file.exists() {
        return fail(format!("{}: the file exists already", file.display()));
    }
    let scratch = Scratch::beside(file);
    write_file(&scratch, found, &files)?;
    scratch.publish(file)?;
    logs::print(format!("{} holds {content}\n", file.display()).as_bytes())
}

/// Runs `pintle store backup --from-server`: what a running server holds, to a new file or to stdout.
pub fn fetch(kubeconfigs: &[PathBuf], file: &Path) -> Result<()> {
    let access = Access::read_all(kubeconfigs)?.outside_workspaces();
    let runtime = crate::runtime::single()?;
    if file == Path::new(STANDARD) {
        return runtime.block_on(receive(&access, &mut logs::Stdout));
    }
    if file.exists() {
        return fail(format!("{}: the file exists already", file.display()));
    }
    let scratch = Scratch::beside(file);
    let mut written = scratch.create()?;
    runtime.block_on(receive(&access, &mut written))?;
    written.sync_all().cannot("write", file)?;
    let summary = store::check_backup(&scratch.0)?;
    scratch.publish(file)?;
    let (objects, branches) = (counted(summary.objects, "object"), with_branches(summary.branches));
    let revision = summary.revision;
    logs::print(
        format!("{} holds {objects}{branches} at revision {revision}, without keys\n", file.display()).as_bytes(),
    )
}

/// Has a server make a backup, and writes it to `out`.
async fn receive(access: &Access, out: &mut impl Write) -> Result<()> {
    let request =
        Request { method: Method::POST, path: "/storage/backup".to_owned(), headers: vec![], body: Default::default() };
    let mut response = client::connect(access).await?.exchange(request).await?;
    if response.code() != 200 {
        let body = response.rest().await?;
        let status = machinery::value::decode(&body).unwrap_or_default();
        return fail(format!(
            "the server refuses to make a backup: {}: {}",
            response.code(),
            status.str_at(&["message"])
        ));
    }
    while let Some(bytes) = response.next().await? {
        out.write_all(&bytes).context("cannot write the backup")?;
    }
    out.flush().context("cannot write the backup")
}

/// Runs `pintle store restore`: a new data directory from a backup in a file or on stdin.
pub fn restore(file: &Path, directory: &Path, bump: u64) -> Result<()> {
    let received = (file == Path::new(STANDARD)).then(received).transpose()?;
    let (path, shown) = match &received {
        Some(scratch) => (scratch.0.as_path(), "stdin"),
        None => (file, ""),
    };
    let failed = |error: store::OpenError| match shown {
        "" => Failure::from(error),
        shown => error.to_string().replace(&path.display().to_string(), shown).into(),
    };
    let Restored { summary, files } = store::restore(path, directory, bump).map_err(failed)?;
    let (objects, revision) = (counted(summary.objects, "object"), summary.revision);
    let branches = with_branches(summary.branches);
    let keys = match files.is_empty() {
        true => "; it contains no keys, so that the server creates new ones".to_owned(),
        false => format!(", and {}", files.join(", ")),
    };
    logs::print(format!("{} holds {objects}{branches} at revision {revision}{keys}\n", directory.display()).as_bytes())
}

/// A copy of stdin: a backup is verified as a whole before anything of it is restored.
fn received() -> Result<Scratch> {
    let scratch = Scratch::elsewhere();
    let mut file = scratch.create()?;
    std::io::copy(&mut std::io::stdin().lock(), &mut file).context("cannot copy stdin")?;
    Ok(scratch)
}

/// Writes a backup to a new file and syncs it.
fn write_file(scratch: &Scratch, content: Content, files: &[BackupFile]) -> Result<()> {
    let written = store::write_backup(content, files, BufWriter::new(scratch.create()?))
        .and_then(|out| out.into_inner().map_err(std::io::IntoInnerError::into_error))
        .and_then(|file| file.sync_all());
    written.cannot("write", &scratch.0)
}

/// Runs `pintle store backups list`.
pub fn list(directory: &Path, form: TextOrJson) -> Result<()> {
    let files = directory::list(directory)?;
    if form == TextOrJson::Json {
        let row = |file: &name::StoredFile| {
            json!({
                "name": (file.name.as_str()), "time": (file.time.as_str()), "revision": (file.revision),
                "bytes": (file.bytes)
            })
        };
        return logs::print((files.iter().map(row).collect::<Value>().to_json() + "\n").as_bytes());
    }
    let mut lines = format!("{:<20} {:>12} {:>12} NAME\n", "TIME", "REVISION", "BYTES");
    for file in &files {
        lines += &format!("{:<20} {:>12} {:>12} {}\n", file.time, file.revision, file.bytes, file.name);
    }
    logs::print(lines.as_bytes())
}

/// Runs `pintle store backups prune`: removes all backups but those with the highest revisions.
pub fn prune(directory: &Path, keep: usize) -> Result<()> {
    let removed = directory::remove_old(directory, keep, None)?;
    let lines: String = removed.iter().map(|name| format!("removed {name}\n")).collect();
    logs::print(lines.as_bytes())
}
