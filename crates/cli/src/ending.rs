//! Signals and other events that end a running server or make it reload its files: also the end of its parent process and of stdin.

use std::io::{IsTerminal as _, Read};
use std::os::unix::process::parent_id;

use client::Result;
use tokio::signal::unix::SignalKind;
use tokio::sync::mpsc;

use crate::limits;
use crate::runtime::listen;

/// The signal for a write beyond the limit of file sizes; its number is the same on Linux and macOS.
const SIGXFSZ: i32 = 25;

/// A request to a running server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Signal {
    /// Shut down, for this reason.
    End(&'static str),
    /// Read the files that flags name once more.
    Reload,
}

/// Everything that can end a server or make it reload.
pub struct Signals {
    terminate: tokio::signal::unix::Signal,
    interrupt: tokio::signal::unix::Signal,
    hangup: tokio::signal::unix::Signal,
    /// The meaning of SIGHUP: the end if the server runs in a terminal, which sends it when it is closed; else a reload.
    on_hangup: Signal,
    /// The reasons that [`watched`] reports.
    ends: mpsc::Receiver<&'static str>,
}

/// Watches for the end of the parent process and for the end of stdin, if asked to. Returns the channel for reasons
/// to end, with a sender for further ones. Called before the server starts, so that an end during the start is not
/// missed.
pub fn watched(with_parent: bool, with_stdin: bool) -> (mpsc::Sender<&'static str>, mpsc::Receiver<&'static str>) {
    let (sender, ends) = mpsc::channel(3);
    if with_parent {
        let (parent, sender) = (parent_id(), sender.clone());
        std::thread::spawn(move || {
            wait_for_end_of(parent);
            let _ = sender.blocking_send("the parent process has ended");
        });
    }
    if with_stdin {
        let sender = sender.clone();
        std::thread::spawn(move || {
            read_to_end(&mut std::io::stdin());
            let _ = sender.blocking_send("stdin is closed");
        });
    }
    (sender, ends)
}

/// Returns when the parent process has ended. The only portable sign of that is that the parent process id changes.
pub fn wait_for_end_of(parent: u32) {
    while parent_id() == parent {
        std::thread::sleep(limits::PARENT_LOOK);
    }
}

/// Reads until the end or an error, and discards the data.
fn read_to_end(input: &mut impl Read) {
    let mut piece = [0; 512];
    loop {
        match input.read(&mut piece) {
            Ok(0) => return,
            Err(error) if error.kind() != std::io::ErrorKind::Interrupted => return,
            _ => {}
        }
    }
}

impl Signals {
    /// Listens for signals and for `ends`, which [`watched`] has begun to watch.
    pub fn listen(ends: mpsc::Receiver<&'static str>) -> Result<Signals> {
        // with a handler, a write beyond the limit of file sizes fails, as on a full disk, instead of ending the process;
        // tokio keeps the handler when the listener is dropped
        drop(listen(SignalKind::from_raw(SIGXFSZ))?);
        // they would end the process, and some log rotations and supervisors send them
        for ignored in [SignalKind::user_defined1(), SignalKind::user_defined2(), SignalKind::alarm()] {
            drop(listen(ignored)?);
        }
        let is_terminal = std::io::stdin().is_terminal();
        Ok(Signals {
            terminate: listen(SignalKind::terminate())?,
            interrupt: listen(SignalKind::interrupt())?,
            hangup: listen(SignalKind::hangup())?,
            on_hangup: if is_terminal { Signal::End("the terminal is closed") } else { Signal::Reload },
            ends,
        })
    }

    pub async fn next(&mut self) -> Signal {
        tokio::select! {
            _ = self.terminate.recv() => Signal::End("signal"),
            _ = self.interrupt.recv() => Signal::End("signal"),
            _ = self.hangup.recv() => self.on_hangup,
            Some(why) = self.ends.recv() => Signal::End(why),
        }
    }

    /// Waits for a reason to shut down, and ignores requests to reload.
    pub async fn end(&mut self) {
        while self.next().await == Signal::Reload {}
    }
}
