//! Tests of kube-rs with Pintle: `Api`, discovery, watcher, reflector, apply, and a controller with a finalizer and events.
//!
//! Without KUBECONFIG the server is in the process of this program. Cases in which it restarts are left out.

mod boat;
mod harness;
mod life;
mod operator;
mod watches;

use harness::Cases;

/// Where the server runs.
#[derive(Clone, Copy, PartialEq)]
enum Place {
    /// In a process of its own, which KUBECONFIG names.
    Outside,
    Here,
}

impl Place {
    async fn client(self) -> anyhow::Result<kube::Client> {
        match self {
            Place::Outside => Ok(kube::Client::try_default().await?),
            Place::Here => {
                let server = pintle::Server::ephemeral().start().await?;
                Ok(kube::Client::new(server.workspace().await?.api(), "default"))
            }
        }
    }
}

#[tokio::main]
async fn main() -> anyhow::Result<std::process::ExitCode> {
    let place = if std::env::var_os("KUBECONFIG").is_some() { Place::Outside } else { Place::Here };
    let client = place.client().await?;
    let mut cases = Cases::default();
    cases.run("a CRD is created and becomes established", life::create_crd(client.clone())).await;
    cases.run("legacy and aggregated discovery agree", life::discovery(client.clone())).await;
    cases.run("custom resources are created, updated, patched, listed and deleted", life::boats(client.clone())).await;
    cases.run("dynamic objects: pages of metadata, patch and watch", life::dynamic_objects(client.clone())).await;
    cases.run("two field managers apply parts of a custom resource", life::server_side_apply(client.clone())).await;
    cases.run("rejected requests are errors of kube", life::errors(client.clone())).await;
    if place == Place::Outside {
        restarts(&mut cases, &client).await;
    }
    cases.run("deleting a CRD deletes its objects", life::delete_crd(client.clone())).await;
    Ok(cases.exit_code())
}

/// Cases in which the server restarts.
async fn restarts(cases: &mut Cases, client: &kube::Client) {
    cases.run("a watcher that lists resumes after a restart", watches::watcher(client.clone(), false, "restart")).await;
    cases.run("a watcher that lists resumes after a crash", watches::watcher(client.clone(), false, "kill")).await;
    cases.run("a streaming watcher resumes after a restart", watches::watcher(client.clone(), true, "restart")).await;
    cases.run("a streaming watcher resumes after a crash", watches::watcher(client.clone(), true, "kill")).await;
    cases
        .run("a watcher that lists relists after its watch has expired", watches::expired(client.clone(), false))
        .await;
    cases.run("a streaming watcher relists after its watch has expired", watches::expired(client.clone(), true)).await;
    cases.run("a reflector of metadata has the current objects", watches::metadata_reflector(client.clone())).await;
    cases.run("a controller survives a restart and a crash", operator::survives(client.clone())).await;
}
