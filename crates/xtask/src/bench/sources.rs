//! Sources of objects: a large archive, a file, a directory that is edited, and a running cluster.

use std::path::Path;
use std::time::{Duration, Instant};

use client::{Call, Client, Context as _, Options, Result};
use flate2::Compression;
use flate2::write::GzEncoder;
use http_body_util::BodyExt as _;
use hyper::body::Incoming;

use super::load::Samples;
use super::process::{Launch, Server, memory_peak};
use super::row::{Goal, Row};
use super::{Flags, report};

/// Namespaces of a source.
const NAMESPACES: usize = 20;
const MIB: u64 = 1 << 20;

/// The measurements, and how often each is made.
struct Counts {
    kinds: usize,
    of_kind: usize,
    in_cluster: usize,
    starts: usize,
    edits: usize,
}

/// Measures servers that begin with sources. Returns the table.
pub async fn run(flags: &Flags, launch: Launch) -> Result<String> {
    let counts = match flags.quick {
        true => Counts { kinds: 20, of_kind: 40, in_cluster: 200, starts: 1, edits: 5 },
        false => Counts { kinds: 200, of_kind: 240, in_cluster: 10_000, starts: 5, edits: 100 },
    };
    let mut rows = archive(&launch, &counts)?;
    rows.push(file(&launch, &counts)?);
    rows.push(edits(&launch, &counts).await?);
    rows.push(cluster(&launch, &counts)?);
    Ok(report::render(&rows, &[], None))
}

/// The act that has failed if a file of a source cannot be written.
const WRITE: &str = "cannot write a source";

/// Starts the server with further flags some times. The last server is left running.
fn starts(launch: &Launch, name: &str, count: usize, further: &[&str]) -> Result<(Samples, Server)> {
    let launch = Launch {
        further: further.iter().map(|flag| (*flag).to_owned()).collect(),
        ..Launch::new(launch.binary.clone(), launch.directory.clone())
    };
    let mut times = vec![];
    for number in 1..count {
        let server = launch.start(&format!("{name}-{number}"))?;
        times.push(server.took);
        server.stop()?;
    }
    let last = launch.start(name)?;
    times.push(last.took);
    let wall = times.iter().sum();
    Ok((Samples::new(times, wall), last))
}

/// An object of 1.6 KB, as clusters have them: a third of it are managed fields.
fn object(group: &str, kind: &str, number: usize) -> String {
    let environment: Vec<String> =
        (0..12).map(|n| format!("{{\"name\":\"E{n}\",\"value\":\"value-{n}-{number}\"}}")).collect();
    let fields: Vec<String> = (0..16).map(|n| format!("\"f:field{n}\":{{\"f:nested\":{{}}}}")).collect();
    format!(
        "{{\"apiVersion\":\"{group}\",\"kind\":\"{kind}\",\"metadata\":{{\"name\":\"o{number}\",\"namespace\":\"n{}\",\
         \"uid\":\"{kind}-{number}\",\"resourceVersion\":\"{}\",\"creationTimestamp\":\"2024-05-01T10:00:00Z\",\
         \"managedFields\":[{{\"manager\":\"c\",\"operation\":\"Update\",\"apiVersion\":\"{group}\",\"time\":\
         \"2024-05-01T10:00:00Z\",\"fieldsType\":\"FieldsV1\",\"fieldsV1\":{{\"f:spec\":{{{}}}}}}}]}},\"spec\":{{\"replicas\":\
         {number},\"containers\":[{{\"name\":\"c\",\"image\":\"registry.example.com/app:{number}\",\"env\":[{}]}}]}},\
         \"status\":{{\"ready\":true,\"message\":\"all is well\"}}}}",
        number % NAMESPACES,
        number + 1,
        fields.join(","),
        environment.join(","),
    )
}

/// A list of objects of one namespace.
fn list(group: &str, kind: &str, numbers: impl Iterator<Item = usize>) -> String {
    let items: Vec<String> = numbers.map(|number| object(group, kind, number)).collect();
    format!("{{\"apiVersion\":\"{group}\",\"kind\":\"{kind}List\",\"items\":[{}]}}", items.join(","))
}

/// From a compressed archive to the ready line, and the peak of memory.
fn archive(launch: &Launch, counts: &Counts) -> Result<Vec<Row>> {
    let path = launch.directory.join("bundle.tar.gz");
    let encoder = GzEncoder::new(std::fs::File::create(&path).context(WRITE)?, Compression::fast());
    let mut archive = tar::Builder::new(encoder);
    for kind in 0..counts.kinds {
        for namespace in 0..NAMESPACES {
            let numbers = (namespace..counts.of_kind).step_by(NAMESPACES);
            let text = list(&format!("g{kind}.example.com/v1"), &format!("Kind{kind}"), numbers);
            let mut header = tar::Header::new_gnu();
            header.set_size(text.len() as u64);
            header.set_mode(0o600);
            let name = format!("bundle/namespaces/n{namespace}/g{kind}.example.com/kind{kind}s.yaml");
            archive.append_data(&mut header, name, text.as_bytes()).context(WRITE)?;
        }
    }
    archive.into_inner().and_then(GzEncoder::finish).context(WRITE)?;
    let (samples, server) = starts(launch, "archive", counts.starts, &["--from", &path.to_string_lossy()])?;
    let peak = memory_peak(server.id());
    server.stop()?;
    let what = format!("{} objects of {} kinds from tar.gz to ready", counts.kinds * counts.of_kind, counts.kinds);
    let time = Row::new(what, samples, Goal::Median(Duration::from_secs(2)));
    let mut memory = Row::new("its memory at the peak", Samples::default(), Goal::Memory(150 * MIB));
    memory.memory = peak;
    Ok(vec![time, memory])
}

fn config(number: usize) -> String {
    format!("apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: a, namespace: default}}\ndata: {{k: n{number}.}}\n")
}

/// From a source of one file to the ready line.
fn file(launch: &Launch, counts: &Counts) -> Result<Row> {
    let path = launch.directory.join("one.yaml");
    std::fs::write(&path, config(0)).context(WRITE)?;
    let (samples, server) = starts(launch, "file", counts.starts * 4, &["-f", &path.to_string_lossy()])?;
    server.stop()?;
    Ok(Row::new("a file of -f to ready", samples, Goal::Median(Duration::from_millis(50))))
}

/// From the write of a file to the event of a watch.
async fn edits(launch: &Launch, counts: &Counts) -> Result<Row> {
    let directory = launch.directory.join("manifests");
    std::fs::create_dir(&directory).context(WRITE)?;
    let path = directory.join("a.yaml");
    std::fs::write(&path, config(0)).context(WRITE)?;
    let (_, server) = starts(launch, "edits", 1, &["-f", &directory.to_string_lossy()])?;
    let mut connection = Client::new(&server.access, Options::default())?.connect().await?;
    let watch = Call::get("/api/v1/namespaces/default/configmaps?watch=true");
    let mut events = connection.open(watch).await?.into_body();
    let mut times = vec![];
    for number in 1..=counts.edits {
        let written = Instant::now();
        std::fs::write(&path, config(number)).context(WRITE)?;
        until(&mut events, &format!("\"k\":\"n{number}.\"")).await?;
        times.push(written.elapsed());
        // the next edit is one of its own
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    server.stop()?;
    let wall = times.iter().sum();
    Ok(Row::new(
        "edit of a file to the event of a watch",
        Samples::new(times, wall),
        Goal::Median(Duration::from_millis(20)),
    ))
}

/// Reads a watch until an event has a text.
async fn until(events: &mut Incoming, wanted: &str) -> Result<()> {
    let mut text = vec![];
    while memchr::memmem::find(&text, wanted.as_bytes()).is_none() {
        let frame = events.frame().await.ok_or("the watch has ended")??;
        text.extend_from_slice(frame.data_ref().map(|data| &data[..]).unwrap_or_default());
    }
    Ok(())
}

/// From a running cluster to the ready line.
fn cluster(launch: &Launch, counts: &Counts) -> Result<Row> {
    let path = launch.directory.join("cluster.json");
    std::fs::write(&path, list("example.com/v1", "Thing", 0..counts.in_cluster)).context(WRITE)?;
    let (_, source) = starts(launch, "source", 1, &["--from", &path.to_string_lossy()])?;
    let kubeconfig = format!("kubeconfig:{}", admin(&launch.directory.join("source")));
    let (samples, server) = starts(launch, "cluster", counts.starts, &["--from", &kubeconfig])?;
    server.stop()?;
    source.stop()?;
    let what = format!("a running cluster of {} objects to ready", counts.in_cluster);
    Ok(Row::new(what, samples, Goal::Median(Duration::from_secs(5))))
}

fn admin(data: &Path) -> String {
    data.join("admin.kubeconfig").to_string_lossy().into_owned()
}
