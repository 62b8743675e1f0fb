//! The server as a child process: its start, its memory and processor time from /proc, and its end.

use std::io::{BufRead as _, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc;
use std::time::{Duration, Instant};

use client::{Access, Context as _, Result, fail};

/// Time limit for a server to become ready, and to stop.
const PATIENCE: Duration = Duration::from_secs(60);

/// The binary to start, and the directory of its data.
pub struct Launch {
    pub binary: PathBuf,
    pub directory: PathBuf,
    /// URL of the etcd that stores objects; without it they are in the data directory.
    pub etcd: Option<String>,
    /// Further flags of the server.
    pub flags: &'static [&'static str],
    /// More of them, which are not constant.
    pub further: Vec<String>,
    /// Descriptors that the process may have open, if they are limited.
    pub descriptors: Option<u32>,
}

/// A process that is killed when this is dropped.
pub struct Process(pub Child);

impl Process {
    pub fn has_ended(&mut self) -> bool {
        self.0.try_wait().is_ok_and(|ended| ended.is_some())
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// A running server.
pub struct Server {
    pub process: Process,
    /// The administrator's access.
    pub access: Access,
    /// The time from the start of the process to the moment when it is ready.
    pub took: Duration,
}

impl Launch {
    /// A server with an embedded store.
    pub fn new(binary: PathBuf, directory: PathBuf) -> Launch {
        Launch { binary, directory, etcd: None, flags: &[], further: vec![], descriptors: None }
    }

    /// The command that runs the binary.
    fn command(&self) -> Command {
        let Some(descriptors) = self.descriptors else { return Command::new(&self.binary) };
        let mut shell = Command::new("sh");
        shell.args(["-c", &format!("ulimit -n {descriptors}; exec \"$0\" \"$@\"")]).arg(&self.binary);
        shell
    }

    /// Starts the server on the data directory `name` and waits for its ready line.
    pub fn start(&self, name: &str) -> Result<Server> {
        let data = self.directory.join(name);
        let errors = std::fs::File::create(self.directory.join(format!("{name}.log")))
            .context("cannot write the server's log")?;
        let started = Instant::now();
        let child = self
            .command()
            .args(["serve", "--secure-port", "0", "--data-dir"])
            .arg(&data)
            .args(match &self.etcd {
                Some(url) => ["--etcd-servers", url],
                None => ["--storage", "embedded"],
            })
            .args(self.flags)
            .args(&self.further)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(errors)
            .spawn()
            .context(format_args!("cannot start {}", self.binary.display()))?;
        let mut process = Process(child);
        let line = ready_line(&mut process)?;
        let took = started.elapsed();
        let (_, kubeconfig) = line.split_once("kubeconfig: ").ok_or_else(|| self.failure(name, &line))?;
        Ok(Server { process, access: Access::read(Path::new(kubeconfig.trim()))?, took })
    }

    /// The error of a server that did not become ready, with its last output.
    fn failure(&self, name: &str, line: &str) -> String {
        let log = std::fs::read_to_string(self.directory.join(format!("{name}.log"))).unwrap_or_default();
        match [line.trim()].into_iter().chain(log.lines()).rfind(|text| !text.is_empty()) {
            Some(last) => format!("the server did not become ready: {last}"),
            None => format!("{} ended without a ready line", self.binary.display()),
        }
    }
}

/// The first line of the server; empty if it ended without one.
fn ready_line(process: &mut Process) -> Result<String> {
    let output = process.0.stdout.take().ok_or("the server has no output")?;
    let (sender, receiver) = mpsc::sync_channel(1);
    std::thread::spawn(move || {
        let mut output = BufReader::new(output);
        let mut line = String::new();
        let _ = output.read_line(&mut line);
        let _ = sender.send(line);
        // the rest of the output is read too, so that the server is never blocked
        let _ = std::io::copy(&mut output, &mut std::io::sink());
    });
    Ok(receiver.recv_timeout(PATIENCE).map_err(|_| format!("the server was not ready after {PATIENCE:?}"))?)
}

impl Server {
    pub fn id(&self) -> u32 {
        self.process.0.id()
    }

    /// Sends SIGTERM and waits until the server has ended.
    pub fn stop(mut self) -> Result<()> {
        let status = Command::new("kill").args(["-TERM", &self.id().to_string()]).status();
        status.context("cannot run kill")?;
        let deadline = Instant::now() + PATIENCE;
        loop {
            match self.process.0.try_wait() {
                Ok(Some(status)) if status.success() => return Ok(()),
                Ok(Some(status)) => return fail(format!("the server ended with {status}")),
                Ok(None) if Instant::now() < deadline => std::thread::sleep(Duration::from_millis(5)),
                _ => return fail(format!("the server did not stop within {PATIENCE:?}")),
            }
        }
    }
}

/// Resident memory of a process in bytes.
pub fn memory(id: u32) -> Option<u64> {
    of_status(id, "VmRSS:")
}

/// Peak resident memory of a process in bytes.
pub fn memory_peak(id: u32) -> Option<u64> {
    of_status(id, "VmHWM:")
}

fn of_status(id: u32, key: &str) -> Option<u64> {
    let status = std::fs::read_to_string(Path::new("/proc").join(id.to_string()).join("status")).ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix(key))?;
    line.split_whitespace().next()?.parse::<u64>().ok().map(|kilobytes| kilobytes * 1024)
}

/// Processor time of the running threads of a process, in nanoseconds if the kernel provides them, otherwise in ticks of
/// 10 ms. Threads that have ended are not included; those of the server do not end.
pub fn processor(id: u32) -> Option<Duration> {
    let process = Path::new("/proc").join(id.to_string());
    by_threads(&process).or_else(|| in_ticks(&process))
}

fn by_threads(process: &Path) -> Option<Duration> {
    let mut nanoseconds = 0;
    for thread in std::fs::read_dir(process.join("task")).ok()? {
        // a thread may have ended
        let Ok(stat) = std::fs::read_to_string(thread.ok()?.path().join("schedstat")) else { continue };
        nanoseconds += stat.split_whitespace().next()?.parse::<u64>().ok()?;
    }
    (nanoseconds > 0).then(|| Duration::from_nanos(nanoseconds))
}

fn in_ticks(process: &Path) -> Option<Duration> {
    const TICK_MILLIS: u64 = 10;
    let stat = std::fs::read_to_string(process.join("stat")).ok()?;
    let (_, fields) = stat.rsplit_once(')')?;
    let ticks: u64 = fields.split_whitespace().skip(11).take(2).filter_map(|field| field.parse::<u64>().ok()).sum();
    Some(Duration::from_millis(ticks * TICK_MILLIS))
}
