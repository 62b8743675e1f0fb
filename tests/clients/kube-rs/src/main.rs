//! kube-rs against pintle: `Api`, discovery, watcher, reflector, apply, and a controller with finalizer and events.

mod boat;
mod harness;
mod life;
mod operator;
mod watches;

use harness::Cases;

#[tokio::main]
async fn main() -> anyhow::Result<std::process::ExitCode> {
    let client = kube::Client::try_default().await?;
    let mut cases = Cases::default();
    cases.run("a definition is created and established", life::define(client.clone())).await;
    cases.run("discovery finds the same in both of its forms", life::discovered(client.clone())).await;
    cases.run("boats live their life", life::boats(client.clone())).await;
    cases.run("dynamic objects, metadata and pages", life::dynamic(client.clone())).await;
    cases.run("two managers share a boat by apply", life::applied(client.clone())).await;
    cases.run("refusals are kube's errors", life::refused(client.clone())).await;
    cases.run("a watcher that lists goes on over a restart", watches::watcher(client.clone(), false, "restart")).await;
    cases.run("a watcher that lists goes on over a crash", watches::watcher(client.clone(), false, "kill")).await;
    cases.run("a streaming watcher goes on over a restart", watches::watcher(client.clone(), true, "restart")).await;
    cases.run("a streaming watcher goes on over a crash", watches::watcher(client.clone(), true, "kill")).await;
    cases.run("a watcher that lists does so anew when it has expired", watches::expired(client.clone(), false)).await;
    cases.run("a streaming watcher lists anew when it has expired", watches::expired(client.clone(), true)).await;
    cases.run("a reflector of metadata holds what there is", watches::reflected(client.clone())).await;
    cases.run("a controller works, over a restart and a crash", operator::works(client.clone())).await;
    cases.run("a definition is deleted, and its objects with it", life::undefine(client.clone())).await;
    Ok(cases.close())
}
