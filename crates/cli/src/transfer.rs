//! `pintle export` and `pintle import`, which move objects from one storage engine to another.

use std::fs::File;
use std::io::{BufWriter, Read as _, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use clap::Args;
use client::{Context as _, Result, fail};
use machinery::selector::LabelSelector;
use server::transfer::{self, Checked, Chosen, Conflict, Imported, ObjectSelection, Progress, TransferProgress};
use server::{Layout, Storage};
use store::BeforeImport;

use crate::count::{are, counted};
use crate::encryption::EncryptionFlags;
use crate::etcd_flags::Etcd;
use crate::place::Place;
use crate::progress::Meter;
use crate::runtime::single;
use crate::scratch::Scratch;
use crate::values::words;
use crate::{etcd, logs};

/// The file name that stands for stdin and stdout.
const STANDARD: &str = "-";

/// The file and the store of an export.
#[derive(Args)]
pub struct Export {
    /// The file to create; - for stdout.
    pub file: PathBuf,

    /// Export the objects of this workspace of a data directory, instead of those of the API at /.
    #[arg(long, value_name = "NAME", conflicts_with = "etcd_servers")]
    pub workspace: Option<String>,

    #[command(flatten)]
    pub target: StoreFlags,

    #[command(flatten)]
    pub selection: SelectionFlags,
}

/// The file and the store of an import.
#[derive(Args)]
pub struct Import {
    /// The file; - for stdin.
    pub file: PathBuf,

    /// What to do if the store has objects: fail, skip those that exist, or replace those that differ. To continue an
    /// interrupted import, run it again with skip.
    #[arg(long, value_parser = words(&CONFLICTS), default_value = "fail")]
    pub conflict: Conflict,

    #[command(flatten)]
    pub target: StoreFlags,

    #[command(flatten)]
    pub selection: SelectionFlags,
}

/// A data directory or etcd.
#[derive(Args)]
pub struct StoreFlags {
    #[command(flatten)]
    pub place: Place,

    #[command(flatten)]
    pub etcd: Etcd,

    #[command(flatten)]
    pub encryption: EncryptionFlags,
}

const CONFLICTS: [(&str, Conflict); 3] =
    [("fail", Conflict::Fail), ("skip", Conflict::Skip), ("replace", Conflict::Replace)];

/// Selection of objects, which must match all of the flags.
#[derive(Args)]
pub struct SelectionFlags {
    /// Only objects of these namespaces, and the Namespaces themselves, comma separated.
    #[arg(short, long, value_name = "NAME,...", value_delimiter = ',', value_parser = namespace)]
    namespace: Vec<String>,

    /// Only objects with these labels, such as app=web,tier!=test.
    #[arg(short = 'l', long, value_name = "SELECTOR", value_parser = LabelSelector::parse)]
    selector: Option<LabelSelector>,

    /// Only these resources, comma separated: configmaps, cm, crontabs.stable.example.com.
    #[arg(long, value_name = "RESOURCE,...", value_delimiter = ',', value_parser = resource)]
    resource: Vec<String>,
}

impl SelectionFlags {
    fn selection(&self) -> ObjectSelection {
        ObjectSelection {
            namespaces: self.namespace.clone(),
            resources: self.resource.clone(),
            labels: self.selector.clone().unwrap_or_default(),
        }
    }
}

fn namespace(text: &str) -> Result<String, &'static str> {
    match machinery::names::dns1123_label(text).is_empty() {
        true => Ok(text.to_owned()),
        false => Err("it is not the name of a namespace"),
    }
}

/// A plural, singular or short name, with or without a dot and the group.
fn resource(text: &str) -> Result<String, &'static str> {
    match machinery::names::dns1123_subdomain(text).is_empty() {
        true => Ok(text.to_owned()),
        false => Err(
            "wanted a resource or its short name in lower case, such as configmaps, cm or crontabs.stable.example.com",
        ),
    }
}

/// Writes the chosen objects to stdout, or to a file that appears only when it is complete.
pub fn write(file: &Path, chosen: &Chosen<'_>, layout: &Layout) -> Result<TransferProgress> {
    let mut meter = Meter::start("exported");
    let mut progress = |done| meter.show(done);
    if file == Path::new(STANDARD) {
        // not flushed here: `transfer::export` does it last, and reports its error
        let mut out = BufWriter::new(std::io::stdout().lock());
        return transfer::export(chosen, layout, &mut out, &mut progress).context("stdout");
    }
    let shown = file.display();
    let scratch = Scratch::beside(file);
    let mut out = BufWriter::new(scratch.create()?);
    let done = transfer::export(chosen, layout, &mut out, &mut progress).context(shown)?;
    let synced = out.into_inner().map_err(std::io::IntoInnerError::into_error).and_then(|file| file.sync_all());
    synced.cannot("write", file)?;
    scratch.publish(file)?;
    Ok(done)
}

/// Fails if the file exists. Commands check this first, since reading a store may take minutes.
pub fn refuse_existing(file: &Path) -> Result<()> {
    match file != Path::new(STANDARD) && file.exists() {
        true => fail(format!("{}: the file exists already; remove it or name another one", file.display())),
        false => Ok(()),
    }
}

/// Writes the file and prints a summary. Fails with a one-line message.
pub fn export(task: &Export) -> Result<()> {
    refuse_existing(&task.file)?;
    let StoreFlags { place, etcd, encryption } = &task.target;
    let (content, layout) = match etcd.etcd_servers.is_empty() {
        true => (store::content(&place.data_dir)?, Layout::own()),
        false => {
            let latest = single()?.block_on(etcd::latest(etcd))?;
            (latest.into(), etcd::storage(etcd, None)?.layout)
        }
    };
    let layout = encryption.to_layout(layout)?;
    let snapshot = match &task.workspace {
        None => content.snapshot,
        Some(name) => server::workspace_of(&content, &layout, name)?,
    };
    let chosen = transfer::choose(&snapshot, &layout, &task.selection.selection())?;
    let TransferProgress { objects, revision, .. } = write(&task.file, &chosen, &layout)?;
    let objects = counted(objects, "object");
    logs::print_error(&format!("{} holds {objects} at revision {revision}", task.file.display()));
    Ok(())
}

/// The error of an import that SIGINT ends.
const INTERRUPTED: &str =
    "the import is interrupted; objects that it has written stay: to continue, run it again with --conflict skip";

/// Imports the file and prints a summary. Fails with a one-line message.
pub fn import(task: &Import) -> Result<()> {
    let shown = task.file.display();
    let mut file = vec![];
    let read = match task.file == Path::new(STANDARD) {
        true => std::io::stdin().lock().read_to_end(&mut file),
        false => File::open(&task.file).and_then(|mut opened| opened.read_to_end(&mut file)),
    };
    read.cannot("read", &task.file)?;
    let StoreFlags { place, etcd, encryption } = &task.target;
    let to_etcd = !etcd.etcd_servers.is_empty();
    let layout = if to_etcd { etcd::storage(etcd, None)?.layout } else { Layout::own() };
    // the file and the flags are checked before a data directory is created
    let layout = encryption.to_layout(layout)?;
    let checked = checked(&file, &layout, &task.selection.selection()).context(shown)?;
    drop(file);
    let conflict = task.conflict;
    let mut meter = Meter::start("imported");
    let mut progress = |done| meter.show(done);
    let imported = single()?.block_on(async {
        match to_etcd {
            true => import_into_etcd(etcd, checked, layout, conflict, &mut progress).await,
            false => import_into(&place.data_dir, checked, layout, conflict, &mut progress).await,
        }
    })?;
    // removes the progress bar
    drop(meter);
    // the import has succeeded, even if stdout is closed
    let _ = writeln!(std::io::stdout(), "{}", describe(imported));
    Ok(())
}

/// Imports, until SIGINT.
async fn until_interrupted(
    checked: Checked,
    storage: &Storage,
    conflict: Conflict,
    progress: Progress<'_>,
) -> Result<Imported> {
    tokio::select! {
        imported = transfer::import(checked, storage, conflict, progress) => Ok(imported?),
        _ = tokio::signal::ctrl_c() => fail(INTERRUPTED),
    }
}

/// Imports into a data directory, which no server opens until all objects are there.
async fn import_into(
    directory: &Path,
    checked: Checked,
    layout: Layout,
    conflict: Conflict,
    progress: Progress<'_>,
) -> Result<Imported> {
    let holder = format!("pintle import with process id {}", std::process::id());
    let (store, before) = store::Embedded::open_for_import(directory, &holder, store::Options::default())?;
    let store: Arc<dyn store::Store> = Arc::new(store);
    let head = store.head().await;
    let imported = until_interrupted(checked, &Storage { store: store.clone(), layout }, conflict, progress).await;
    let is_unchanged = before == BeforeImport::Store && store.head().await == head;
    if imported.is_ok() || is_unchanged {
        store::finish_import(directory)?;
    }
    imported
}

/// Imports into etcd, from which no server starts until all objects are there.
async fn import_into_etcd(
    flags: &Etcd,
    checked: Checked,
    layout: Layout,
    conflict: Conflict,
    progress: Progress<'_>,
) -> Result<Imported> {
    let store = Arc::new(etcd::open(flags, None)?);
    let mark = store.begin_import().await?;
    // the revision does not show whether the import has written: others write to etcd, too
    let mut has_written = false;
    let mut progress = |done| {
        has_written = true;
        progress(done);
    };
    let storage = Storage { store: store.clone(), layout };
    let imported = until_interrupted(checked, &storage, conflict, &mut progress).await;
    if imported.is_ok() || mark.before == BeforeImport::Store && !has_written {
        store.finish_import(&mark).await?;
    }
    imported
}

/// Checks the whole file before anything is written.
fn checked(file: &[u8], layout: &Layout, selection: &ObjectSelection) -> Result<Checked> {
    let mut meter = Meter::start("checked");
    Ok(transfer::check(file, layout, selection, &mut |done| meter.show(done))?)
}

/// The summary of an import.
fn describe(Imported { written, same, skipped, revision }: Imported) -> String {
    let mut text = format!("{} {} imported and compared", counted(written, "object"), are(written));
    if written > 0 {
        text += &format!(", up to revision {revision}");
    }
    if same > 0 {
        text += &format!("; {same} {} there already", if same == 1 { "was" } else { "were" });
    }
    if skipped > 0 {
        let exist = if skipped == 1 { "exists" } else { "exist" };
        text += &format!("; {skipped} {exist} with another content and {} kept", are(skipped));
    }
    text
}
