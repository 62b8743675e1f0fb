//! `pintle export` and `pintle import`: transfer all objects from one storage engine to another.

use std::io::{Read as _, Write};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;
use std::sync::Arc;

use server::transfer::{self, TransferProgress};
use server::{Layout, Storage};

use crate::flags::Transfer;
use crate::{etcd, logs};

const STANDARD: &str = "-";

/// Prints progress to stderr, since the export may go to stdout.
fn print_progress(carried: TransferProgress) {
    logs::print_error(&format!("{} of {} objects", carried.objects, carried.of));
}

/// Creates a file that only its owner can read, since it contains secrets.
fn create(path: &Path) -> std::io::Result<std::fs::File> {
    std::fs::OpenOptions::new().write(true).create_new(true).mode(0o600).open(path)
}

fn runtime() -> Result<tokio::runtime::Runtime, String> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    runtime.map_err(|error| format!("cannot start: {error}"))
}

/// Writes the file and prints a summary. The error is one line.
pub fn export(task: &Transfer) -> Result<(), String> {
    let with_name = |error: std::io::Error| format!("cannot write {}: {error}", task.file.display());
    let (snapshot, layout) = match task.etcd.etcd_servers.is_empty() {
        true => (store::snapshot(&task.place.data_dir).map_err(|error| error.to_string())?, Layout::own()),
        false => {
            let latest = runtime()?.block_on(etcd::latest(&task.etcd))?;
            (latest, etcd::storage(&task.etcd, None)?.layout)
        }
    };
    let layout = task.encryption.to_layout(layout)?;
    let carried = match task.file == Path::new(STANDARD) {
        true => transfer::export(&snapshot, &layout, &mut std::io::stdout().lock(), &mut print_progress)?,
        false => {
            let mut file = std::io::BufWriter::new(create(&task.file).map_err(with_name)?);
            let carried = transfer::export(&snapshot, &layout, &mut file, &mut print_progress)?;
            file.into_inner().map_err(|error| with_name(error.into_error()))?.sync_all().map_err(with_name)?;
            carried
        }
    };
    logs::print_error(&format!(
        "{} holds {} objects at revision {}",
        task.file.display(),
        carried.objects,
        carried.revision
    ));
    Ok(())
}

/// Imports the file and prints a summary. The error is one line.
pub fn import(task: &Transfer) -> Result<(), String> {
    let with_name = |error: std::io::Error| format!("cannot read {}: {error}", task.file.display());
    let mut file = vec![];
    match task.file == Path::new(STANDARD) {
        true => drop(std::io::stdin().lock().read_to_end(&mut file).map_err(with_name)?),
        false => file = std::fs::read(&task.file).map_err(with_name)?,
    }
    let runtime = runtime()?;
    let carried = match task.etcd.etcd_servers.is_empty() {
        true => {
            let holder = format!("pintle import with process id {}", std::process::id());
            let store = store::Embedded::open(&task.place.data_dir, &holder, store::Options::default());
            let storage = Storage::own(Arc::new(store.map_err(|error| error.to_string())?));
            let storage = task.encryption.apply(storage)?;
            runtime.block_on(transfer::import(&file, &storage, &mut print_progress))?
        }
        false => runtime.block_on(async {
            etcd::check(&task.etcd).await?;
            let storage = task.encryption.apply(etcd::storage(&task.etcd, None)?)?;
            transfer::import(&file, &storage, &mut print_progress).await
        })?,
    };
    let said = format!("{} objects are imported and compared, up to revision {}", carried.objects, carried.revision);
    let _ = writeln!(std::io::stdout(), "{said}");
    Ok(())
}
