//! A command that runs as a child of this process: signals are forwarded to it.

use std::io::IsTerminal as _;
use std::os::unix::process::ExitStatusExt as _;
use std::process::{Child, ExitCode, ExitStatus};

use client::{Context as _, Result};
use rustix::process::{Pid, Signal, kill_process};
use tokio::signal::unix::SignalKind;

use crate::runtime::listen;

/// The exit status for the status of a command; 128 plus the number of the signal if a signal has ended it, as in shells.
pub fn exit_code(status: ExitStatus) -> ExitCode {
    let code = status.code().unwrap_or_else(|| 128 + status.signal().unwrap_or_default());
    ExitCode::from(u8::try_from(code).unwrap_or(u8::MAX))
}

/// The signals that are forwarded to the command.
pub struct Forwarded {
    forwarded: [(tokio::signal::unix::Signal, Signal); 4],
    child: tokio::signal::unix::Signal,
}

impl Forwarded {
    /// From here on, a signal is for the command.
    pub fn listen() -> Result<Forwarded> {
        Ok(Forwarded {
            forwarded: [
                (listen(SignalKind::terminate())?, Signal::TERM),
                (listen(SignalKind::hangup())?, Signal::HUP),
                (listen(SignalKind::interrupt())?, Signal::INT),
                (listen(SignalKind::quit())?, Signal::QUIT),
            ],
            child: listen(SignalKind::child())?,
        })
    }

    /// Returns the exit status of the command.
    pub async fn forward_until_end(mut self, mut child: Child) -> Result<ExitStatus> {
        // a terminal sends Ctrl-C to the command as well
        let is_terminal = std::io::stdin().is_terminal();
        loop {
            if let Some(status) = child.try_wait().context("cannot wait for the command")? {
                return Ok(status);
            }
            let [terminate, hangup, interrupt, quit] = &mut self.forwarded;
            let signal = tokio::select! {
                _ = terminate.0.recv() => terminate.1,
                _ = hangup.0.recv() => hangup.1,
                _ = interrupt.0.recv() => interrupt.1,
                _ = quit.0.recv() => quit.1,
                _ = self.child.recv() => continue,
            };
            if !(is_terminal && matches!(signal, Signal::INT | Signal::QUIT)) {
                let _ = kill_process(Pid::from_child(&child), signal);
            }
        }
    }
}
