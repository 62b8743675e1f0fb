//! Runs cases, and exchanges lines with tests/blackbox/test_clients.py, which started the program.

use std::future::Future;
use std::io::BufRead;
use std::process::ExitCode;
use std::time::Duration;

use anyhow::{Context, Result, ensure};

const LIMIT: Duration = Duration::from_secs(60);

#[derive(Default)]
pub struct Cases {
    failed: bool,
}

impl Cases {
    pub async fn run(&mut self, name: &str, case: impl Future<Output = Result<()>>) {
        let outcome = tokio::time::timeout(LIMIT, case).await.context("it took too long").and_then(|done| done);
        match outcome {
            Ok(()) => println!("ok {name}"),
            Err(error) => {
                self.failed = true;
                println!("FAIL {name}: {}", format!("{error:#}").replace('\n', " "));
            }
        }
    }

    pub fn close(self) -> ExitCode {
        ExitCode::from(u8::from(self.failed))
    }
}

/// Has the server end, by "restart" or by "kill", and start again with its data and its port.
pub async fn end(how: &'static str) -> Result<()> {
    let answer = tokio::task::spawn_blocking(move || {
        println!("{how}");
        let mut line = String::new();
        std::io::stdin().lock().read_line(&mut line).map(|_| line)
    });
    ensure!(answer.await?? == "started\n", "the harness did not start the server");
    Ok(())
}

/// Waits until `check` answers something; the limit of the case ends it otherwise.
pub async fn eventually<T, F: Future<Output = Result<Option<T>>>>(mut check: impl FnMut() -> F) -> Result<T> {
    loop {
        if let Some(found) = check().await? {
            return Ok(found);
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}
