//! A command that runs in a fork, in a process group of its own.

use std::collections::VecDeque;
use std::ffi::OsString;
use std::fmt;
use std::io::{PipeReader, Read as _};
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::{Child, Stdio};
use std::sync::Arc;

use parking_lot::Mutex;
use rustix::process::{Pid, Signal, WaitId, WaitIdOptions, kill_process_group, waitid};
use tokio::sync::watch;

use super::error::Error;
use crate::limits;

/// A program with its arguments.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Command {
    pub program: OsString,
    pub arguments: Vec<OsString>,
    /// Variables of its environment, besides those of this process and `KUBECONFIG`.
    pub environment: Vec<(OsString, OsString)>,
}

impl Command {
    /// A command as given on a command line; `None` if it is empty.
    pub fn new(words: &[OsString]) -> Option<Command> {
        let (program, arguments) = words.split_first()?;
        Some(Command { program: program.clone(), arguments: arguments.to_vec(), environment: vec![] })
    }

    /// A line for a shell, which gives its process to the command if there is only one.
    pub fn shell(line: &str) -> Command {
        let arguments = ["-c", line].map(OsString::from).to_vec();
        Command { program: "/bin/sh".into(), arguments, environment: vec![] }
    }
}

impl fmt::Display for Command {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let shown: &[OsString] = match self.arguments.as_slice() {
            [flag, line] if flag == "-c" => return write!(out, "{}", line.to_string_lossy()),
            arguments => arguments,
        };
        out.write_str(&self.program.to_string_lossy())?;
        shown.iter().try_for_each(|argument| write!(out, " {}", argument.to_string_lossy()))
    }
}

/// How a command has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ending {
    Exited(i32),
    Signalled(i32),
}

impl Ending {
    pub fn is_success(self) -> bool {
        self == Ending::Exited(0)
    }
}

impl fmt::Display for Ending {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Ending::Exited(code) => write!(out, "exit status {code}"),
            Ending::Signalled(signal) => write!(out, "signal {signal}"),
        }
    }
}

/// The end of a command's output.
type Output = Arc<Mutex<VecDeque<u8>>>;

/// A shell that waits for the end of its input, which nothing is written to, and then kills a process group.
const GUARD: &str = "read -r line; kill -KILL -$1";

/// A command that has been started. It is killed, with its children, when this is dropped.
pub struct RunningCommand {
    shown: String,
    child: Child,
    /// Kills the command if this process ends without doing so, since its pipe is closed then.
    guard: Child,
    output: Output,
    ending: watch::Receiver<Option<Ending>>,
}

impl RunningCommand {
    /// Starts a command for the API of a kubeconfig.
    pub fn start(command: &Command, kubeconfig: &Path) -> Result<RunningCommand, Error> {
        let shown = command.to_string();
        let failed = |error: std::io::Error| Error::NotStarted { command: shown.clone(), why: error.to_string() };
        let (reader, writer) = std::io::pipe().map_err(failed)?;
        let mut process = std::process::Command::new(&command.program);
        process.args(&command.arguments).env("KUBECONFIG", kubeconfig);
        process.envs(command.environment.iter().map(|(name, value)| (name, value)));
        // clients would prefer the API of the cluster that this process may run in
        process.env_remove("KUBERNETES_SERVICE_HOST").env_remove("KUBERNETES_SERVICE_PORT");
        process.process_group(0).stdin(Stdio::null());
        process.stdout(writer.try_clone().map_err(failed)?).stderr(writer);
        let child = process.spawn().map_err(failed)?;
        // this process would keep the pipe open
        drop(process);
        let id = Pid::from_child(&child);
        let mut guard = std::process::Command::new("/bin/sh");
        guard.args(["-c", GUARD, "guard", &id.to_string()]).process_group(0).stdin(Stdio::piped());
        let guard = guard.stdout(Stdio::null()).stderr(Stdio::null()).spawn().map_err(|error| {
            let _ = kill_process_group(id, Signal::KILL);
            failed(error)
        })?;
        let output = Output::default();
        let kept = output.clone();
        let threads = std::thread::Builder::new().name("output of a command".to_owned());
        let (reading, read) = std::sync::mpsc::sync_channel::<()>(0);
        let read_all = move || {
            keep(reader, &kept);
            drop(reading);
        };
        threads.spawn(read_all).map_err(failed)?;
        let (sender, ending) = watch::channel(None);
        let threads = std::thread::Builder::new().name("end of a command".to_owned());
        let report = move || {
            let ending = end_of(id);
            // its last words come first; a child that goes on may keep the pipe open
            let _ = read.recv_timeout(limits::OUTPUT_WAIT);
            sender.send_replace(Some(ending))
        };
        threads.spawn(report).map_err(failed)?;
        Ok(RunningCommand { shown, child, guard, output, ending })
    }

    /// How the command has ended; `None` while it runs.
    pub fn ending(&self) -> Option<Ending> {
        *self.ending.borrow()
    }

    /// Waits until the command has ended.
    pub async fn ended(&self) -> Ending {
        let mut ending = self.ending.clone();
        let ended = ending.wait_for(Option::is_some).await;
        ended.ok().and_then(|ending| *ending).unwrap_or(Ending::Signalled(0))
    }

    /// Waits until the command has failed; forever if it succeeds.
    pub async fn failed(&self) -> Error {
        let ending = self.ended().await;
        match ending.is_success() {
            true => std::future::pending().await,
            false => self.failure(ending),
        }
    }

    pub fn failure(&self, ending: Ending) -> Error {
        Error::Failed { command: self.shown.clone(), status: ending.to_string(), output: self.output() }
    }

    /// The end of what it has printed, to stdout and stderr.
    pub fn output(&self) -> String {
        String::from_utf8_lossy(self.output.lock().make_contiguous()).into_owned()
    }

    /// Asks the command and its children to end, waits for it, and kills what is left.
    pub async fn stop(self) {
        let _ = kill_process_group(self.group(), Signal::TERM);
        let _ = tokio::time::timeout(limits::STOP_GRACE, self.ended()).await;
    }

    /// Stops the command and its children where they are.
    pub fn pause(&self) {
        let _ = kill_process_group(self.group(), Signal::STOP);
    }

    /// Lets a paused command go on.
    pub fn resume(&self) {
        let _ = kill_process_group(self.group(), Signal::CONT);
    }

    fn group(&self) -> Pid {
        Pid::from_child(&self.child)
    }
}

impl fmt::Display for RunningCommand {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(&self.shown)
    }
}

impl Drop for RunningCommand {
    fn drop(&mut self) {
        // the process has not been waited for, so no other group can have its id
        let _ = kill_process_group(self.group(), Signal::KILL);
        let _ = self.guard.kill().and_then(|()| self.guard.wait());
        let _ = self.child.wait();
    }
}

/// Waits until a process has ended, and leaves its id in use.
fn end_of(id: Pid) -> Ending {
    loop {
        match waitid(WaitId::Pid(id), WaitIdOptions::EXITED | WaitIdOptions::NOWAIT) {
            Ok(Some(status)) => {
                let signal = || Ending::Signalled(status.terminating_signal().unwrap_or_default());
                return status.exit_status().map_or_else(signal, Ending::Exited);
            }
            Ok(None) | Err(rustix::io::Errno::INTR) => {}
            Err(_) => return Ending::Signalled(0),
        }
    }
}

/// Keeps the end of an output.
fn keep(mut reader: PipeReader, output: &Output) {
    let mut buffer = [0; 4096];
    while let Ok(length @ 1..) = reader.read(&mut buffer) {
        let mut kept = output.lock();
        kept.extend(&buffer[..length]);
        let excess = kept.len().saturating_sub(limits::OUTPUT_BYTES);
        kept.drain(..excess);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn commands_end_with_what_they_print() {
        for (line, ending, output) in [
            ("echo one; echo two >&2", Ending::Exited(0), "one\ntwo\n"),
            ("echo $KUBECONFIG; exit 3", Ending::Exited(3), "/k\n"),
            ("kill -9 $$", Ending::Signalled(9), ""),
            ("yes | head -c 100000", Ending::Exited(0), &"y\n".repeat(limits::OUTPUT_BYTES / 2)),
        ] {
            let running = RunningCommand::start(&Command::shell(line), Path::new("/k")).unwrap();
            assert_eq!(running.ended().await, ending, "{line}");
            // the thread that reads may be behind
            while running.output() != output {
                tokio::task::yield_now().await;
            }
        }
        let missing = Command::new(&["/no/such/program".into()]).unwrap();
        let why = RunningCommand::start(&missing, Path::new("/k")).err().unwrap().to_string();
        assert!(why.starts_with("cannot run /no/such/program: "), "{why}");
    }

    #[tokio::test]
    async fn stopped_commands_take_their_children_along() {
        for line in ["sleep 1000 & wait", "trap '' TERM; sleep 1000 & echo; wait; wait"] {
            let running = RunningCommand::start(&Command::shell(line), Path::new("/k")).unwrap();
            let group = running.group();
            match line.starts_with("trap") {
                true => drop(running),
                false => running.stop().await,
            }
            while rustix::process::test_kill_process_group(group).is_ok() {
                tokio::task::yield_now().await;
            }
        }
    }
}
