//! The benchmark: measures a server over TLS connections and compares the results with targets.
//!
//! `process` starts the server, `load` drives concurrent clients, `measures` has the measurements and `report` prints the
//! table. Start reading at [`run`].

mod cel;
mod etcd;
mod fixtures;
mod flags;
mod hostile;
mod load;
mod machine;
mod measures;
mod process;
mod report;
mod row;
mod sizes;
mod sources;
mod subject;
mod upstream;

use std::path::{Path, PathBuf};
use std::process::Command;

use client::{Context as _, Result, fail};
use tokio::signal::unix::{SignalKind, signal};

pub use flags::Flags;
use flags::Measure;
use hostile::Target;
use measures::{start, under_load};
use process::Launch;
use row::Row;
use sizes::Sizes;
use subject::Subject;

use crate::workspace;

/// Runs the measurements, prints the results and writes them to a file. Fails with a one-line message.
pub fn run(flags: &Flags) -> Result<()> {
    let root = workspace::root()?;
    if flags.measures() == [Measure::Cel] {
        println!("{}", cel::run(&root)?);
        return Ok(());
    }
    let binary = match &flags.binary {
        Some(path) => path.clone(),
        None => build(&root)?,
    };
    let workers = std::thread::available_parallelism().map_or(1, |cores| (cores.get() / 2).max(1));
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(workers)
        .enable_all()
        .build()
        .context("cannot start threads")?;
    runtime.block_on(async {
        let mut terminate = signal(SignalKind::terminate()).context("cannot listen for signals")?;
        let mut interrupt = signal(SignalKind::interrupt()).context("cannot listen for signals")?;
        // after a signal too, the servers are stopped when their handles are dropped
        tokio::select! {
            result = report(flags, &root, binary) => result,
            _ = terminate.recv() => fail("stopped by a signal"),
            _ = interrupt.recv() => fail("interrupted"),
        }
    })
}

/// Builds the release binary in the target directory of this program.
fn build(root: &Path) -> Result<PathBuf> {
    let own = std::env::current_exe().context("cannot find this program")?;
    let target = own.parent().and_then(Path::parent).ok_or("this program is in no target directory")?;
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let mut cargo = Command::new(cargo);
    cargo.current_dir(root).args(["build", "--release", "--package", "pintle", "--target-dir"]).arg(target);
    workspace::run(&mut cargo)
        .context("the server cannot be built; to measure an existing binary, use --binary PATH")?;
    Ok(target.join("release").join("pintle"))
}

/// Measures, prints the results, and writes them to the file of the flags, or of a complete run.
async fn report(flags: &Flags, root: &Path, binary: PathBuf) -> Result<()> {
    let directory = tempfile::Builder::new().prefix("pintle-bench-").tempdir();
    let directory = directory.context("cannot make a temporary directory")?;
    let sync = machine::sync_time(directory.path())?;
    let (text, place) = match (flags.hostile, flags.from) {
        (true, _) => (attack(flags, root, binary, directory.path()).await?, None),
        (_, true) => {
            let text = sources::run(flags, Launch::new(binary, directory.path().to_owned())).await?;
            (text, (!flags.quick).then_some("benches/results/sources.md"))
        }
        _ => {
            let text = measure(flags, root, Launch::new(binary, directory.path().to_owned())).await?;
            (text, (!flags.quick && flags.only.is_empty()).then_some("benches/results/load.md"))
        }
    };
    println!("{text}");
    if let Some(path) = flags.out.clone().or_else(|| place.map(|place| root.join(place))) {
        report::write(&path, &report::document(root, &text, sync, flags))?;
        eprintln!("written to {}", path.display());
    }
    Ok(())
}

async fn measure(flags: &Flags, root: &Path, launch: Launch) -> Result<String> {
    let sizes = Sizes::new(flags);
    let mut measures = flags.measures();
    let rules = measures.iter().position(|measure| *measure == Measure::Cel).map(|at| measures.remove(at));
    let ours = measure_ours(flags, &launch, &measures, &sizes).await?;
    let mut text = match (&flags.against, &flags.etcd) {
        (Some(url), _) => {
            report::render(&ours, &measure_theirs(flags, url, &measures, &sizes).await?, Some(url.as_str()))
        }
        (None, Some(binary)) => {
            let upstream = if flags.upstream { Some(upstream::build(root)?) } else { None };
            let OnEtcd { pintle, theirs } =
                measure_on_etcd(flags, binary, upstream.as_deref(), launch, &measures, &sizes).await?;
            let mut text = report::render(&ours, &pintle, Some("pintle on etcd"));
            if let Some(theirs) = theirs {
                let named = Some("kube-apiserver on the same etcd");
                text = format!("{text}\n\nOn etcd:\n\n{}", report::render(&pintle, &theirs, named));
            }
            text
        }
        (None, None) => report::render(&ours, &[], None),
    };
    if rules.is_some() && !flags.quick {
        text = format!("{text}\n\n{}", cel::run(root)?);
    }
    Ok(text)
}

async fn attack(flags: &Flags, root: &Path, binary: PathBuf, directory: &Path) -> Result<String> {
    let mut targets = vec![Target::Pintle { name: "this", binary }];
    targets.extend(flags.beside.clone().map(|binary| Target::Pintle { name: "other", binary }));
    if let Some(etcd) = flags.etcd.clone() {
        if !flags.upstream {
            return fail("--hostile uses etcd for kube-apiserver alone: add --upstream");
        }
        targets.push(Target::KubeApiserver { binary: upstream::build(root)?, etcd });
    }
    hostile::run(directory, &targets, &flags.scenario).await
}

async fn measure_ours(flags: &Flags, launch: &Launch, measures: &[Measure], sizes: &Sizes) -> Result<Vec<Row>> {
    let mut rows = vec![];
    let (starts, loads): (Vec<Measure>, Vec<Measure>) = measures.iter().partition(|measure| measure.is_of_start());
    for measure in starts {
        eprintln!("{} …", measure.name());
        rows.push(start(measure, launch, flags.protocol(), sizes).await?);
    }
    if loads.is_empty() {
        return Ok(rows);
    }
    let server = launch.start("load")?;
    let subject = Subject::new(server.access.clone(), Some(server.id()), flags.protocol())?;
    rows.extend(measure_loads(&subject, &loads, sizes).await?);
    server.stop()?;
    Ok(rows)
}

async fn measure_loads(subject: &Subject, measures: &[Measure], sizes: &Sizes) -> Result<Vec<Row>> {
    let mut rows = vec![];
    for measure in measures {
        eprintln!("{} …", measure.name());
        rows.push(under_load(*measure, subject, sizes).await.context(measure.name())?);
    }
    Ok(rows)
}

/// The results over etcd, of pintle and of kube-apiserver.
struct OnEtcd {
    pintle: Vec<Row>,
    theirs: Option<Vec<Row>>,
}

/// Measures pintle, then kube-apiserver (`upstream`), over one etcd member. `binary` is that of etcd.
async fn measure_on_etcd(
    flags: &Flags,
    binary: &Path,
    upstream: Option<&Path>,
    launch: Launch,
    measures: &[Measure],
    sizes: &Sizes,
) -> Result<OnEtcd> {
    let etcd = etcd::Etcd::start(binary, &launch.directory).await?;
    let launch = Launch { etcd: Some(etcd.url.clone()), ..launch };
    let loads: Vec<Measure> = measures.iter().copied().filter(|measure| !measure.is_of_start()).collect();
    eprintln!("on etcd");
    let server = launch.start("on-etcd")?;
    let subject = Subject::new(server.access.clone(), Some(server.id()), flags.protocol())?;
    let pintle = measure_loads(&subject, &loads, sizes).await?;
    server.stop()?;
    let Some(binary) = upstream else { return Ok(OnEtcd { pintle, theirs: None }) };
    eprintln!("kube-apiserver on the same etcd");
    let server = upstream::start(binary, &etcd.url, &launch.directory).await?;
    let subject = Subject::new(server.access.clone(), Some(server.id()), flags.protocol())?;
    let theirs = Some(measure_loads(&subject, &loads, sizes).await?);
    Ok(OnEtcd { pintle, theirs })
}

/// Runs the measurements on another server, and cleans up afterwards.
async fn measure_theirs(flags: &Flags, url: &str, measures: &[Measure], sizes: &Sizes) -> Result<Vec<Row>> {
    let path = flags.kubeconfig.as_deref().ok_or("--against needs --kubeconfig")?;
    let mut access = client::Access::read(path)?;
    access.server = url.to_owned();
    let subject = Subject::new(access, None, flags.protocol())?;
    let loads: Vec<Measure> = measures.iter().copied().filter(|measure| !measure.is_of_start()).collect();
    eprintln!("against {url}");
    let rows = measure_loads(&subject, &loads, sizes).await;
    subject.clean_up().await;
    rows
}
