//! Runs the test cases. Exchanges lines with tests/blackbox/test_clients.py, which starts the program.

use std::future::Future;
use std::io::BufRead;
use std::process::ExitCode;
use std::time::Duration;

use anyhow::{Context, Result, ensure};

// the watchers of kube wait longer after each failure, up to 30 s, and one case ends the server twice
const LIMIT: Duration = Duration::from_secs(180);

#[derive(Default)]
pub struct Cases {
    failed: bool,
}

impl Cases {
    pub async fn run(&mut self, name: &str, case: impl Future<Output = Result<()>>) {
        let outcome = tokio::time::timeout(LIMIT, case).await.context("timeout").and_then(|result| result);
        match outcome {
            Ok(()) => println!("ok {name}"),
            Err(error) => {
                self.failed = true;
                println!("FAIL {name}: {}", format!("{error:#}").replace('\n', " "));
            }
        }
    }

    /// The status with which the program exits.
    pub fn exit_code(self) -> ExitCode {
        ExitCode::from(u8::from(self.failed))
    }
}

/// Restarts the server with the same data and port: `command` is "restart" (SIGTERM) or "kill" (SIGKILL).
pub async fn restart_server(command: &'static str) -> Result<()> {
    let reply = tokio::task::spawn_blocking(move || {
        println!("{command}");
        let mut line = String::new();
        std::io::stdin().lock().read_line(&mut line).map(|_| line)
    });
    ensure!(reply.await?? == "started\n", "the harness did not start the server");
    Ok(())
}

/// Calls `check` until it returns a value. The timeout of the case ends the wait.
pub async fn eventually<T, F: Future<Output = Result<Option<T>>>>(mut check: impl FnMut() -> F) -> Result<T> {
    loop {
        if let Some(value) = check().await? {
            return Ok(value);
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}
