//! Leader election: of the servers that share a store, controllers run on the one that holds a Lease. As in client-go, the
//! holder renews the Lease; others take it over once they have seen it unchanged, by their own clock, for its duration.

use std::sync::Arc;
use std::time::Duration;

use base::clock;
use machinery::{Status, Value, json};
use objects::Scope;
use resource::Resource;
use tokio::sync::watch;
use tokio::time::Instant;

use super::Derived;
use crate::limits;
use crate::verbs::{self, Context, Document};

const USER: &str = "system:serviceaccount:kube-system:pintle-controllers";
const NAMESPACE: &str = "kube-system";
const NAME: &str = "pintle-controllers";

/// A server that takes part in the election.
struct Candidate {
    context: Arc<Context>,
    identity: String,
    /// The resource version of the Lease when it was last read, and the time since which it has not changed.
    seen: (u64, Instant),
}

/// Takes part in the election until `stop` becomes true, then releases the Lease, so that others need not wait for its end.
pub async fn run(context: Arc<Context>, derived: Arc<Derived>, mut stop: watch::Receiver<bool>) {
    let mut candidate = Candidate { context, identity: clock::uuid(), seen: (0, clock::instant()) };
    loop {
        tokio::select! {
            () = candidate.acquire() => {}
            () = super::stopped(&mut stop) => return,
        }
        let ended = watch::Sender::new(false);
        tracing::info!("this server runs the controllers");
        super::start_all(&candidate.context, &derived, &ended.subscribe());
        let stopping = tokio::select! {
            () = candidate.hold() => false,
            () = super::stopped(&mut stop) => true,
        };
        ended.send_replace(true);
        tracing::info!("this server no longer runs the controllers");
        if stopping {
            let _ = candidate.write(false).await;
            return;
        }
    }
}

/// Completes interrupted writes, as [`Candidate::hold`] does, on a server that runs its controllers without a Lease.
pub async fn complete_writes(context: Arc<Context>, mut stop: watch::Receiver<bool>) {
    loop {
        tokio::select! {
            () = tokio::time::sleep(limits::LEASE_RETRY) => verbs::establish_all(&context).await,
            () = super::stopped(&mut stop) => return,
        }
    }
}

impl Candidate {
    fn resource(&self) -> Option<Arc<Resource>> {
        self.context.registry.get("coordination.k8s.io", "leases")
    }

    /// The Lease and its resource version.
    fn lease(&self) -> Option<(Value, u64)> {
        let resource = self.resource()?;
        let stored = resource.collection.get(&format!("{NAMESPACE}/{NAME}"))?;
        Some((stored.body.to_value(stored.revision), stored.revision))
    }

    /// Waits until the Lease is free and takes it.
    async fn acquire(&mut self) {
        loop {
            if self.is_free() && self.write(true).await.is_ok() {
                return;
            }
            self.changed().await;
        }
    }

    /// Waits until the Lease changes, at most [`limits::LEASE_RETRY`].
    async fn changed(&self) {
        let after = self.context.objects.revision();
        let scope = Scope::Path(format!("{NAMESPACE}/{NAME}").into());
        let cursor = self.resource().and_then(|resource| resource.collection.subscribe(scope, after).ok());
        let changed = async {
            match cursor {
                Some(mut cursor) => drop(cursor.next().await),
                None => std::future::pending().await,
            }
        };
        let _ = tokio::time::timeout(limits::LEASE_RETRY, changed).await;
    }

    /// Whether the Lease is free, has expired or is held by this server.
    fn is_free(&mut self) -> bool {
        let Some((lease, version)) = self.lease() else { return true };
        if self.seen.0 != version {
            self.seen = (version, clock::instant());
        }
        let holder = lease.str_at(&["spec", "holderIdentity"]);
        let seconds = lease.at(&["spec", "leaseDurationSeconds"]).and_then(Value::as_int).unwrap_or_default();
        let lasts = Duration::from_secs(u64::try_from(seconds).unwrap_or_default());
        holder.is_empty() || holder == self.identity || self.seen.1.elapsed() > lasts
    }

    /// Renews the Lease, until renewals have failed for [`limits::LEASE_RENEW`] or another server holds it.
    async fn hold(&mut self) {
        let mut renewed = clock::instant();
        while renewed.elapsed() < limits::LEASE_RENEW {
            // complete writes of a server that failed after the commit
            verbs::establish_all(&self.context).await;
            tokio::time::sleep(limits::LEASE_RETRY).await;
            if self.lease().is_some_and(|(lease, _)| lease.str_at(&["spec", "holderIdentity"]) != self.identity) {
                return;
            }
            let left = limits::LEASE_RENEW.saturating_sub(renewed.elapsed());
            match tokio::time::timeout(left, self.write(true)).await {
                Ok(Ok(())) => renewed = clock::instant(),
                Ok(Err(status)) => {
                    tracing::debug!(error = %status, "the Lease of the controllers cannot be renewed; will retry")
                }
                Err(_) => return,
            }
        }
    }

    /// Takes or renews the Lease, or releases it unless `hold`. Fails if it has changed since it was read.
    async fn write(&self, hold: bool) -> Result<(), Status> {
        let Some(resource) = self.resource() else { return Err(Status::no_such_resource()) };
        let holder = if hold { self.identity.as_str() } else { "" };
        let now = machinery::time::rfc3339_micro(clock::now_micros());
        let found = self.lease();
        let before = found.as_ref().map_or("", |(lease, _)| lease.str_at(&["spec", "holderIdentity"]));
        let renewal = before == holder;
        let old = |key: &str| found.as_ref().and_then(|(lease, _)| lease.at(&["spec", key])).cloned();
        let transitions = old("leaseTransitions").and_then(|n| n.as_int()).unwrap_or_default();
        let acquired = old("acquireTime").filter(|_| renewal || !hold).unwrap_or_else(|| Value::from(now.clone()));
        let mut lease = json!({
            "metadata": {"name": NAME, "namespace": NAMESPACE},
            "spec": {
                "holderIdentity": holder,
                "leaseDurationSeconds": (Value::Int(limits::LEASE.as_secs() as i64)),
                "acquireTime": acquired,
                "renewTime": now,
                "leaseTransitions": (Value::Int(transitions + i64::from(!renewal && found.is_some() && hold)))
            }
        });
        let (method, name) = match &found {
            None => (http::Method::POST, ""),
            Some((_, version)) => {
                lease.set_at(&["metadata", "resourceVersion"], Value::from(version.to_string()));
                (http::Method::PUT, NAME)
            }
        };
        let path = verbs::path_of(&resource, NAMESPACE, name);
        let request = verbs::controller_request(USER, &resource, &method, &path);
        let document = Document::json(&lease);
        match found {
            None => verbs::create(&self.context, &request, &document).await.map(drop),
            Some(_) => verbs::update(&self.context, &request, &document).await.map(drop),
        }
    }
}
