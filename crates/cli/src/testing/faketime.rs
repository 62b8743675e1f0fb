//! `pintle clock exec`: a command whose clock is that of a workspace.
//!
//! libfaketime takes the place of the calls of the C library for the time. It reads the time to show from a file, which is
//! written again whenever the Clock changes.

use std::ffi::OsString;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

use clap::Args;
use client::{Context as _, Result, fail};
use machinery::Value;
use machinery::time::parse_rfc3339;

use super::{CLOCK, Objects, TargetWorkspace};
use crate::child::{Forwarded, exit_code};
use crate::files;
use crate::limits;
use crate::scratch::Scratch;

#[derive(Args)]
pub struct ExecWithClock {
    /// libfaketime [default: where packages of distributions install it].
    #[arg(long, value_name = "FILE")]
    library: Option<PathBuf>,

    #[command(flatten)]
    target: TargetWorkspace,

    /// Command to run, with its arguments.
    #[arg(last = true, required = true, value_name = "COMMAND")]
    command: Vec<OsString>,
}

/// Where distributions install libfaketime for programs with threads.
const LIBRARIES: [&str; 5] = [
    "/usr/lib/x86_64-linux-gnu/faketime/libfaketimeMT.so.1",
    "/usr/lib/aarch64-linux-gnu/faketime/libfaketimeMT.so.1",
    "/usr/lib64/faketime/libfaketimeMT.so.1",
    "/usr/lib/faketime/libfaketimeMT.so.1",
    "/usr/local/lib/faketime/libfaketimeMT.so.1",
];

/// Runs the command, and exits with its status. Fails with a one-line message.
pub async fn run(task: &ExecWithClock) -> Result<ExitCode> {
    let Some((program, arguments)) = task.command.split_first() else { return fail("there is no command") };
    require_c_library(program)?;
    let library = library(task.library.as_deref())?;
    let mut objects = Objects::connect(&task.target).await?;
    let file = Scratch::elsewhere();
    let mut shown = shown_time(&mut objects).await?;
    write(&file, &shown)?;
    let signals = Forwarded::listen()?;
    let child = Command::new(program)
        .args(arguments)
        .env("LD_PRELOAD", library)
        .env("FAKETIME_TIMESTAMP_FILE", &file.0)
        .env("FAKETIME_NO_CACHE", "1")
        .env("FAKETIME_FMT", "%s")
        // waits by the monotonic clock end as they would
        .env("FAKETIME_DONT_FAKE_MONOTONIC", "1")
        .spawn();
    let child = child.cannot("run", Path::new(program))?;
    let following = async {
        loop {
            tokio::time::sleep(limits::CLOCK_LOOK).await;
            // the command goes on with the last time while the server cannot be asked
            if let Ok(now) = shown_time(&mut objects).await
                && now != shown
            {
                write(&file, &now)?;
                shown = now;
            }
        }
    };
    tokio::select! {
        status = signals.forward_until_end(child) => status.map(exit_code),
        failed = following => failed,
    }
}

/// The time of the workspace as libfaketime reads it: seconds since the Unix epoch if it is stopped, or an offset from the
/// machine's clock.
async fn shown_time(objects: &mut Objects) -> Result<String> {
    let found = objects.get("clocks", CLOCK).await?;
    if found.code == 404 { Ok("+0".to_owned()) } else { Ok(faketime_of(&found.ok()?)) }
}

fn faketime_of(clock: &Value) -> String {
    let seconds = |field: &str| parse_rfc3339(clock.str_at(&["status", field])).map(|(seconds, _)| seconds);
    match (seconds("time"), seconds("since")) {
        (Some(time), Some(since)) => format!("{:+}", time - since),
        (Some(time), None) => time.to_string(),
        _ => "+0".to_owned(),
    }
}

/// Replaces the content of the file at once, since the command may read it at any time.
fn write(file: &Scratch, time: &str) -> Result<()> {
    let next = Scratch::beside(&file.0);
    let written = next.create()?.write_all(time.as_bytes());
    written.context("cannot write the time of the command")?;
    next.publish(&file.0)
}

fn library(given: Option<&Path>) -> Result<PathBuf> {
    if let Some(file) = given {
        return if file.is_file() { Ok(file.to_owned()) } else { fail(format!("{} does not exist", file.display())) };
    }
    let found = LIBRARIES.iter().map(Path::new).find(|file| file.is_file());
    let missing = "libfaketime is not installed: install the package libfaketime, or name the file with --library";
    Ok(found.map(Path::to_owned).ok_or(missing)?)
}

/// How a program asks for the time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ClockSource {
    /// By the C library, or it is a script, whose interpreter probably does.
    CLibrary,
    /// Go asks the kernel itself.
    Go,
    /// The C library is part of the program.
    Static,
}

/// Fails for a program that would see the time of the machine.
fn require_c_library(program: &std::ffi::OsStr) -> Result<()> {
    let Some(file) = in_path(program) else { return Ok(()) };
    let content = files::read(&file)?;
    let why = match source_of(&content) {
        ClockSource::CLibrary => return Ok(()),
        ClockSource::Go => {
            "is a Go program, which asks the kernel for the time and not the C library: give it a clock in \
                            its code, such as k8s.io/utils/clock/testing"
        }
        ClockSource::Static => "is linked statically, so the calls of its C library cannot be replaced",
    };
    fail(format!("{} {why}", file.display()))
}

/// The file that runs as a command, if there is one.
fn in_path(program: &std::ffi::OsStr) -> Option<PathBuf> {
    if Path::new(program).components().count() > 1 {
        return Some(PathBuf::from(program)).filter(|file| file.is_file());
    }
    let directories = std::env::var_os("PATH")?;
    std::env::split_paths(&directories).map(|directory| directory.join(program)).find(|file| file.is_file())
}

/// Begins the data that Go's linker adds.
const GO: &[u8] = b"\xff Go buildinf:";
const ELF: &[u8] = b"\x7fELF\x02\x01";
/// The program header that names the dynamic linker.
const PT_INTERP: [u8; 4] = 3_u32.to_le_bytes();

fn source_of(content: &[u8]) -> ClockSource {
    if !content.starts_with(ELF) {
        return ClockSource::CLibrary;
    }
    if content.windows(GO.len()).any(|window| window == GO) {
        return ClockSource::Go;
    }
    if has_interpreter(content).unwrap_or(true) { ClockSource::CLibrary } else { ClockSource::Static }
}

/// Whether a 64-bit little-endian ELF file has a dynamic linker; `None` if it is malformed.
fn has_interpreter(content: &[u8]) -> Option<bool> {
    let number = |at: usize| Some(u16::from_le_bytes(*content.get(at..)?.first_chunk::<2>()?));
    let first = usize::try_from(u64::from_le_bytes(*content.get(32..)?.first_chunk::<8>()?)).ok()?;
    let (size, count) = (usize::from(number(54)?), usize::from(number(56)?));
    let headers = content.get(first..)?.chunks(size.max(1)).take(count);
    Some(headers.into_iter().any(|header| header.starts_with(&PT_INTERP)))
}

#[cfg(test)]
mod tests {
    use machinery::json;

    use super::*;

    #[test]
    fn a_stopped_clock_is_a_time_and_a_running_one_an_offset() {
        for (status, wanted) in [
            (json!({"time": "2030-01-01T00:00:00.000000Z"}), "1893456000"),
            (json!({"time": "2030-01-01T01:00:00.5Z", "since": "2030-01-01T00:00:00Z"}), "+3600"),
            (json!({"time": "2030-01-01T00:00:00Z", "since": "2030-01-01T00:01:00Z"}), "-60"),
            (json!({}), "+0"),
        ] {
            assert_eq!(faketime_of(&json!({"status": status})), wanted);
        }
    }

    /// An ELF file with program headers of these types.
    fn elf(types: &[u32]) -> Vec<u8> {
        let mut file = ELF.to_vec();
        file.resize(64, 0);
        file[32] = 64;
        (file[54], file[56]) = (56, u8::try_from(types.len()).unwrap());
        for kind in types {
            file.extend(kind.to_le_bytes());
            file.resize(file.len() + 52, 0);
        }
        file
    }

    #[test]
    fn programs_without_a_shared_c_library_are_known() {
        for (content, wanted) in [
            (b"#!/bin/sh\n".to_vec(), ClockSource::CLibrary),
            (elf(&[6, 3, 1]), ClockSource::CLibrary),
            (elf(&[6, 1]), ClockSource::Static),
            ([elf(&[6, 3, 1]), GO.to_vec()].concat(), ClockSource::Go),
            (ELF.to_vec(), ClockSource::CLibrary),
        ] {
            assert_eq!(source_of(&content), wanted);
        }
    }
}
