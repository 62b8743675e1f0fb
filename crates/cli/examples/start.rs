//! Prints how long a server in this process, and a workspace for a test, take; `benches/packages` runs it.
#![allow(clippy::disallowed_methods, reason = "it measures the time of the machine")]

use std::time::{Duration, Instant};

use pintle::{Error, Server, json};

const NAMESPACES: &str = "/api/v1/namespaces";
const TESTS: usize = 200;

#[tokio::main]
async fn main() -> Result<(), Error> {
    let began = Instant::now();
    let server = Server::ephemeral().start().await?;
    server.workspace().await?.get(NAMESPACES).await?;
    let ready = began.elapsed();
    let template = server.template("built", |workspace| async move {
        workspace.post(NAMESPACES, &json!({"metadata": {"name": "built"}})).await?;
        Ok(())
    });
    let template = template.await?;
    let mut times = Vec::new();
    for _ in 0..TESTS {
        let began = Instant::now();
        let workspace = template.fork().await?;
        let forked = began.elapsed();
        workspace.get("/api/v1/namespaces/built").await?;
        workspace.delete().await?;
        times.push((forked, began.elapsed()));
    }
    let milliseconds = |duration: Duration| duration.as_secs_f64() * 1000.0;
    let mut median = |of: fn(&(Duration, Duration)) -> Duration| {
        times.sort_by_key(of);
        milliseconds(of(&times[TESTS / 2]))
    };
    let (fork, test) = (median(|time| time.0), median(|time| time.1));
    println!(r#"{{"ready": {}, "fork": {fork}, "test": {test}}}"#, milliseconds(ready));
    Ok(())
}
