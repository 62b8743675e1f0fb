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
pub fn run(flags: &Flags) -> Result<(), String> {
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
        .map_err(|error| format!("cannot start threads: {error}"))?;
    runtime.block_on(async {
        let failed = |error: std::io::Error| format!("cannot listen for signals: {error}");
        let mut terminate = signal(SignalKind::terminate()).map_err(failed)?;
        let mut interrupt = signal(SignalKind::interrupt()).map_err(failed)?;
        // after a signal too, the servers are stopped when their handles are dropped
        let measured = async {
            match (flags.hostile, flags.from) {
                (true, _) => attack_and_report(flags, &root, &binary).await,
                (_, true) => report_sources(flags, &root, binary).await,
                _ => measure_and_report(flags, &root, &binary).await,
            }
        };
        tokio::select! {
            result = measured => result,
            _ = terminate.recv() => Err("stopped by a signal".to_owned()),
            _ = interrupt.recv() => Err("interrupted".to_owned()),
        }
    })
}

/// Builds the release binary in the target directory of this program.
fn build(root: &Path) -> Result<PathBuf, String> {
    let own = std::env::current_exe().map_err(|error| format!("cannot find this program: {error}"))?;
    let target = own.parent().and_then(Path::parent).ok_or("this program is in no target directory")?;
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let status = Command::new(cargo)
        .current_dir(root)
        .args(["build", "--release", "--package", "pintle", "--target-dir"])
        .arg(target)
        .status()
        .map_err(|error| format!("cannot run cargo: {error}"))?;
    if !status.success() {
        return Err("the server cannot be built; to measure an existing binary, use --binary PATH".to_owned());
    }
    Ok(target.join("release").join("pintle"))
}

async fn measure_and_report(flags: &Flags, root: &Path, binary: &Path) -> Result<(), String> {
    let sizes = Sizes::new(flags);
    let mut measures = flags.measures();
    let rules = measures.iter().position(|measure| *measure == Measure::Cel).map(|at| measures.remove(at));
    let directory = tempfile::Builder::new().prefix("pintle-bench-").tempdir();
    let directory = directory.map_err(|error| format!("cannot make a temporary directory: {error}"))?;
    let launch = Launch::new(binary.to_owned(), directory.path().to_owned());
    let sync = machine::sync_time(directory.path())?;
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
    println!("{text}");
    let complete = !flags.quick && flags.only.is_empty();
    let place = flags.out.clone().or_else(|| complete.then(|| report::place(root)));
    if let Some(path) = place {
        report::write(&path, &report::document(root, &text, sync, flags))?;
        eprintln!("written to {}", path.display());
    }
    Ok(())
}

async fn attack_and_report(flags: &Flags, root: &Path, binary: &Path) -> Result<(), String> {
    let directory = tempfile::Builder::new().prefix("pintle-bench-").tempdir();
    let directory = directory.map_err(|error| format!("cannot make a temporary directory: {error}"))?;
    let sync = machine::sync_time(directory.path())?;
    let mut targets = vec![Target::Pintle { name: "this", binary: binary.to_owned() }];
    targets.extend(flags.beside.clone().map(|binary| Target::Pintle { name: "other", binary }));
    if let Some(etcd) = flags.etcd.clone() {
        if !flags.upstream {
            return Err("--hostile uses etcd for kube-apiserver alone: add --upstream".to_owned());
        }
        targets.push(Target::KubeApiserver { binary: upstream::build(root)?, etcd });
    }
    let text = hostile::run(directory.path(), &targets, &flags.scenario).await?;
    println!("{text}");
    if let Some(path) = &flags.out {
        report::write(path, &report::document(root, &text, sync, flags))?;
        eprintln!("written to {}", path.display());
    }
    Ok(())
}

async fn report_sources(flags: &Flags, root: &Path, binary: PathBuf) -> Result<(), String> {
    let directory = tempfile::Builder::new().prefix("pintle-bench-").tempdir();
    let directory = directory.map_err(|error| format!("cannot make a temporary directory: {error}"))?;
    let sync = machine::sync_time(directory.path())?;
    let text = sources::run(flags, Launch::new(binary, directory.path().to_owned())).await?;
    println!("{text}");
    let place = flags.out.clone().or_else(|| (!flags.quick).then(|| root.join("benches/results/sources.md")));
    if let Some(path) = place {
        report::write(&path, &report::document(root, &text, sync, flags))?;
        eprintln!("written to {}", path.display());
    }
    Ok(())
}

async fn measure_ours(flags: &Flags, launch: &Launch, measures: &[Measure], sizes: &Sizes) -> Result<Vec<Row>, String> {
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

async fn measure_loads(subject: &Subject, measures: &[Measure], sizes: &Sizes) -> Result<Vec<Row>, String> {
    let mut rows = vec![];
    for measure in measures {
        eprintln!("{} …", measure.name());
        rows.push(under_load(*measure, subject, sizes).await.map_err(|error| format!("{}: {error}", measure.name()))?);
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
) -> Result<OnEtcd, String> {
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
async fn measure_theirs(flags: &Flags, url: &str, measures: &[Measure], sizes: &Sizes) -> Result<Vec<Row>, String> {
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
