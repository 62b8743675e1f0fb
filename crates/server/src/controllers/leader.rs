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

use super::ControllerManager;
use crate::limits;
use crate::verbs::{self, Context, Document};

const USER: &str = "system:serviceaccount:kube-system:pintle-controllers";
const GROUP: &str = "coordination.k8s.io";
const PLURAL: &str = "leases";
const NAMESPACE: &str = "kube-system";
const NAME: &str = "pintle-controllers";

/// Whether this is the object that names the server which runs the controllers.
pub fn is_lease(group: &str, plural: &str, path: &str) -> bool {
    (group, plural, path.split_once('/')) == (GROUP, PLURAL, Some((NAMESPACE, NAME)))
}

/// A server that takes part in the election.
struct Candidate {
    context: Arc<Context>,
    identity: String,
    /// The resource version of the Lease when it was last read, and the time since which it has not changed.
    seen: (u64, Instant),
}

/// Takes part in the election until `stop` becomes true, then releases the Lease, so that others need not wait for its end.
pub async fn run(context: Arc<Context>, controllers: Arc<ControllerManager>, mut stop: watch::Receiver<bool>) {
    let mut candidate = Candidate { context, identity: clock::uuid(), seen: (0, clock::instant()) };
    loop {
        tokio::select! {
            () = candidate.acquire() => {}
            () = super::stopped(&mut stop) => return,
        }
        let ended = watch::Sender::new(false);
        tracing::info!("this server runs the controllers");
        super::start_all(&candidate.context, &controllers, &ended.subscribe());
        let stopping = tokio::select! {
            () = candidate.hold() => false,
            () = super::stopped(&mut stop) => true,
        };
        ended.send_replace(true);
        controllers.leads.send_replace(false);
        tracing::info!("this server no longer runs the controllers");
        if stopping {
            candidate.release().await;
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

/// The Lease as it is stored.
struct StoredLease {
    lease: Value,
    version: u64,
}

impl StoredLease {
    /// The identity of the server that holds it; empty if none does.
    fn holder(&self) -> &str {
        self.lease.str_at(&["spec", "holderIdentity"])
    }
}

impl Candidate {
    fn resource(&self) -> Option<Arc<Resource>> {
        self.context.registry.get(GROUP, PLURAL)
    }

    fn lease(&self) -> Option<StoredLease> {
        let resource = self.resource()?;
        let stored = resource.collection.get(&format!("{NAMESPACE}/{NAME}"))?;
        Some(StoredLease { lease: stored.body.to_value(stored.revision), version: stored.revision })
    }

    /// Waits until the Lease is free and takes it.
    async fn acquire(&mut self) {
        loop {
            let found = self.lease();
            if self.is_free(found.as_ref()) && self.write(&self.identity, found).await.is_ok() {
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
    fn is_free(&mut self, found: Option<&StoredLease>) -> bool {
        let Some(found) = found else { return true };
        if self.seen.0 != found.version {
            self.seen = (found.version, clock::instant());
        }
        let holder = found.holder();
        let seconds = found.lease.at(&["spec", "leaseDurationSeconds"]).and_then(Value::as_int).unwrap_or_default();
        let lasts = Duration::from_secs(u64::try_from(seconds).unwrap_or_default());
        holder.is_empty() || holder == self.identity || self.seen.1.elapsed() > lasts
    }

    /// Renews the Lease, until renewals have failed for [`limits::LEASE_RENEW`] or another server holds it.
    async fn hold(&mut self) {
        let mut renewed = clock::instant();
        let left = |renewed: Instant| limits::LEASE_RENEW.saturating_sub(renewed.elapsed());
        while renewed.elapsed() < limits::LEASE_RENEW {
            // complete writes of a server that failed after the commit; the Lease ends even if the store does not respond
            if tokio::time::timeout(left(renewed), verbs::establish_all(&self.context)).await.is_err() {
                return;
            }
            tokio::time::sleep(limits::LEASE_RETRY).await;
            let found = self.lease();
            if found.as_ref().is_some_and(|found| found.holder() != self.identity) {
                return;
            }
            match tokio::time::timeout(left(renewed), self.write(&self.identity, found)).await {
                Ok(Ok(())) => renewed = clock::instant(),
                Ok(Err(status)) => {
                    tracing::debug!(error = %status, "the Lease of the controllers cannot be renewed; will retry")
                }
                Err(_) => return,
            }
        }
    }

    /// Releases the Lease if this server still holds it. A failure is not reported: the Lease expires.
    async fn release(&self) {
        if let Some(found) = self.lease().filter(|found| found.holder() == self.identity) {
            let _ = self.write("", Some(found)).await;
        }
    }

    /// Writes a holder into the Lease. Fails if the Lease has changed since `found` was read.
    async fn write(&self, holder: &str, found: Option<StoredLease>) -> Result<(), Status> {
        let Some(resource) = self.resource() else { return Err(Status::no_such_resource()) };
        let now = machinery::time::rfc3339_micro(clock::now_micros());
        let is_taken = !holder.is_empty() && found.as_ref().is_some_and(|found| found.holder() != holder);
        let old = |key: &str| found.as_ref().and_then(|found| found.lease.at(&["spec", key])).cloned();
        let transitions = old("leaseTransitions").and_then(|n| n.as_int()).unwrap_or_default();
        let acquired = old("acquireTime").filter(|_| !is_taken).unwrap_or_else(|| Value::from(now.clone()));
        let mut lease = json!({
            "metadata": {"name": NAME, "namespace": NAMESPACE},
            "spec": {
                "holderIdentity": holder,
                "leaseDurationSeconds": (Value::Int(limits::LEASE.as_secs() as i64)),
                "acquireTime": acquired,
                "renewTime": now,
                "leaseTransitions": (Value::Int(transitions + i64::from(is_taken)))
            }
        });
        let (method, name) = match &found {
            None => (http::Method::POST, ""),
            Some(found) => {
                lease.set_at(&["metadata", "resourceVersion"], Value::from(found.version.to_string()));
                (http::Method::PUT, NAME)
            }
        };
        let path = verbs::path_of(&resource, NAMESPACE, name);
        let request = self.context.controller_request(USER, &resource, &method, &path);
        let document = Document::json(&lease);
        match found {
            None => verbs::create(&self.context, &request, &document).await.map(drop),
            Some(_) => verbs::update(&self.context, &request, &document).await.map(drop),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::test_server::TestServer;

    #[tokio::test]
    async fn only_the_holder_releases_the_lease() {
        let context = TestServer::start().await.context;
        let candidate = |identity: &str| Candidate {
            context: context.clone(),
            identity: identity.to_owned(),
            seen: (0, clock::instant()),
        };
        let (mut first, second) = (candidate("first"), candidate("second"));
        first.acquire().await;
        let before = first.lease();
        second.write("second", second.lease()).await.unwrap();
        assert!(first.write("first", before).await.is_err(), "the Lease has changed since it was read");
        first.release().await;
        let lease = second.lease().unwrap();
        assert_eq!((lease.holder(), lease.lease.at(&["spec", "leaseTransitions"])), ("second", Some(&Value::Int(1))));
        second.release().await;
        assert_eq!(second.lease().unwrap().holder(), "");
    }
}
