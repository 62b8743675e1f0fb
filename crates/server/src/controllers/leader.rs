//! Leader election: of the servers that share a store, controllers run on the one that holds a Lease. As in client-go, the
//! holder renews the Lease; others take it over once they have seen it unchanged, by their own clock, for its duration.
//!
//! The Lease of a workspace is not renewed, since thousands of them would keep the store writing. Each server renews one Lease of
//! its own in `default`, and what it holds in workspaces ends with that.

use std::sync::{Arc, Weak};
use std::time::Duration;

use base::clock;
use machinery::{Result, Status, Value, json};
use objects::{Scope, Stored};
use resource::Resource;
use tokio::sync::watch;
use tokio::time::Instant;

use super::ControllerManager;
use crate::limits;
use crate::verbs::{self, Context};

const USER: &str = "system:serviceaccount:kube-system:pintle-controllers";
const GROUP: &str = "coordination.k8s.io";
const PLURAL: &str = "leases";
const NAMESPACE: &str = "kube-system";
const NAME: &str = "pintle-controllers";

/// Whether this is an object that names the server which runs the controllers, or the Lease of a server.
pub fn is_lease(group: &str, plural: &str, path: &str) -> bool {
    let is_named = |(namespace, name): (&str, &str)| namespace == NAMESPACE && name.starts_with(NAME);
    (group, plural) == (GROUP, PLURAL) && path.split_once('/').is_some_and(is_named)
}

/// This server among those that run the controllers of workspaces.
#[derive(Debug)]
pub struct Membership {
    /// The API that has the Leases of the servers.
    home: Weak<Context>,
    identity: String,
    /// Whether this server holds its own Lease.
    lives: watch::Sender<bool>,
}

impl Membership {
    /// Keeps a Lease of this server until `stop` becomes true.
    pub fn begin(home: &Arc<Context>, stop: &watch::Receiver<bool>) -> Arc<Membership> {
        let (identity, lives) = (clock::uuid(), watch::Sender::new(false));
        let membership = Arc::new(Membership { home: Arc::downgrade(home), identity, lives });
        let candidate = Candidate::of_server(home, &membership.identity);
        let (kept, stop) = (membership.clone(), stop.clone());
        base::task::spawn("lease of the server", async move {
            candidate.remove_old().await;
            candidate.take_part(&kept.lives, |_| {}, stop).await;
        });
        membership
    }

    /// The version of the Lease of a server; `None` if that has ended in good order, or long ago.
    async fn version_of(&self, server: &str) -> Option<u64> {
        let candidate = Candidate::of_server(&self.home.upgrade()?, server);
        if candidate.lease().is_none() && candidate.context.objects.catch_up().await.is_err() {
            return Some(0);
        }
        candidate.lease().filter(|lease| !lease.holder().is_empty()).map(|lease| lease.version)
    }
}

/// A server that takes part in the election.
struct Candidate {
    context: Arc<Context>,
    /// The name of the Lease.
    name: String,
    identity: String,
    /// The version of the Lease that is renewed when it was last read, and the time since which it has not changed.
    seen: (u64, Instant),
    /// What the Lease lasts by, if it is not renewed itself.
    membership: Option<Arc<Membership>>,
}

/// Takes part in the election until `stop` becomes true, then releases the Lease, so that others need not wait for its end.
pub async fn run(context: Arc<Context>, controllers: Arc<ControllerManager>, stop: watch::Receiver<bool>) {
    let membership = controllers.membership.clone();
    let identity = membership.as_ref().map_or_else(clock::uuid, |membership| membership.identity.clone());
    let seen = (0, clock::instant());
    let candidate = Candidate { context: context.clone(), name: NAME.to_owned(), identity, seen, membership };
    let change = |until: Option<&watch::Receiver<bool>>| match until {
        Some(ended) => {
            tracing::info!("this server runs the controllers");
            super::start_all(&context, &controllers, ended);
        }
        None => tracing::info!("this server no longer runs the controllers"),
    };
    candidate.take_part(&controllers.leads, change, stop).await;
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
    /// For the Lease of a server itself.
    fn of_server(home: &Arc<Context>, server: &str) -> Candidate {
        Candidate {
            context: home.clone(),
            name: format!("{NAME}-{server}"),
            identity: server.to_owned(),
            seen: (0, clock::instant()),
            membership: None,
        }
    }

    /// Removes the Leases of servers that ended long ago.
    async fn remove_old(&self) {
        let Some(resource) = self.resource() else { return };
        let oldest = clock::now_micros() / 1_000_000 - limits::IDENTITY_LEASE_SECONDS;
        let is_old = |stored: &Arc<Stored>| {
            let renewed = stored.body.to_value(0).str_at(&["spec", "renewTime"]).to_owned();
            is_lease(GROUP, PLURAL, &format!("{}/{}", stored.meta.namespace, stored.meta.name))
                && stored.meta.name != NAME
                && machinery::time::parse_rfc3339(&renewed).is_none_or(|(seconds, _)| seconds < oldest)
        };
        let old = resource.collection.latest().0.values().filter(|stored| is_old(stored)).cloned().collect();
        if let Err(status) = verbs::delete_as_server(&self.context, &resource, old).await {
            tracing::debug!(error = %status, "Leases of former servers cannot be removed");
        }
    }

    /// Calls `change` each time that it has taken the Lease, with a receiver that becomes true at its end, and without one then.
    /// `holds` is whether it has it.
    async fn take_part(
        mut self,
        holds: &watch::Sender<bool>,
        change: impl Fn(Option<&watch::Receiver<bool>>),
        mut stop: watch::Receiver<bool>,
    ) {
        loop {
            tokio::select! {
                () = self.acquire() => {}
                () = super::stopped(&mut stop) => return,
            }
            let ended = watch::Sender::new(false);
            change(Some(&ended.subscribe()));
            holds.send_replace(true);
            let stopping = tokio::select! {
                () = self.hold() => false,
                () = super::stopped(&mut stop) => true,
            };
            ended.send_replace(true);
            holds.send_replace(false);
            change(None);
            if stopping {
                self.release().await;
                return;
            }
        }
    }

    fn resource(&self) -> Option<Arc<Resource>> {
        self.context.registry.get(GROUP, PLURAL)
    }

    fn path(&self) -> String {
        format!("{NAMESPACE}/{}", self.name)
    }

    fn lease(&self) -> Option<StoredLease> {
        let resource = self.resource()?;
        let stored = resource.collection.get(&self.path())?;
        Some(StoredLease { lease: stored.body.to_value(stored.revision), version: stored.revision })
    }

    /// Waits until the Lease is free and takes it.
    async fn acquire(&mut self) {
        if let Some(membership) = &self.membership {
            let _ = membership.lives.subscribe().wait_for(|lives| *lives).await;
        }
        loop {
            let found = self.lease();
            if self.is_free(found.as_ref()).await && self.write(&self.identity, found).await.is_ok() {
                return;
            }
            self.changed().await;
        }
    }

    /// Waits until the Lease changes, at most [`limits::LEASE_RETRY`].
    async fn changed(&self) {
        let after = self.context.objects.revision();
        let scope = Scope::Path(self.path().into());
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
    async fn is_free(&mut self, found: Option<&StoredLease>) -> bool {
        let holder = found.map(StoredLease::holder).unwrap_or_default();
        let Some(found) = found.filter(|_| !holder.is_empty() && holder != self.identity) else { return true };
        let version = match &self.membership {
            None => found.version,
            Some(membership) => match membership.version_of(holder).await {
                Some(version) => version,
                None => return true,
            },
        };
        if self.seen.0 != version {
            self.seen = (version, clock::instant());
        }
        let seconds = found.lease.at(&["spec", "leaseDurationSeconds"]).and_then(Value::as_int).unwrap_or_default();
        let lasts = Duration::from_secs(u64::try_from(seconds).unwrap_or_default());
        self.seen.1.elapsed() > lasts
    }

    /// Keeps the Lease until that of this server, or renewals of this one, have failed for [`limits::LEASE_RENEW`] or another server
    /// holds it.
    async fn hold(&self) {
        let Some(membership) = &self.membership else { return self.renew().await };
        let mut lives = membership.lives.subscribe();
        let kept = async {
            while self.lease().is_none_or(|found| found.holder() == self.identity) {
                verbs::establish_all(&self.context).await;
                self.changed().await;
            }
        };
        tokio::select! {
            _ = lives.wait_for(|lives| !lives) => {}
            () = kept => {}
        }
    }

    async fn renew(&self) {
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
    async fn write(&self, holder: &str, found: Option<StoredLease>) -> Result<()> {
        let Some(resource) = self.resource() else { return Err(Status::no_such_resource()) };
        let now = machinery::time::rfc3339_micro(clock::now_micros());
        let is_taken = !holder.is_empty() && found.as_ref().is_some_and(|found| found.holder() != holder);
        let old = |key: &str| found.as_ref().and_then(|found| found.lease.at(&["spec", key])).cloned();
        let transitions = old("leaseTransitions").and_then(|n| n.as_int()).unwrap_or_default();
        let acquired = old("acquireTime").filter(|_| !is_taken).unwrap_or_else(|| Value::from(now.clone()));
        let mut lease = json!({
            "metadata": {"name": (self.name.as_str()), "namespace": NAMESPACE},
            "spec": {
                "holderIdentity": holder,
                "leaseDurationSeconds": (Value::Int(limits::LEASE.as_secs() as i64)),
                "acquireTime": acquired,
                "renewTime": now,
                "leaseTransitions": (Value::Int(transitions + i64::from(is_taken)))
            }
        });
        let own = self.context.as_user(USER, &resource, NAMESPACE, &self.name);
        let Some(found) = found else { return own.create(&lease).await };
        lease.set_at(&["metadata", "resourceVersion"], Value::from(found.version.to_string()));
        own.update(&lease).await
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::test_server::TestServer;

    async fn api() -> Arc<Context> {
        TestServer::start().await.context
    }

    fn candidate(context: &Arc<Context>, identity: &str, membership: Option<&Arc<Membership>>) -> Candidate {
        Candidate {
            context: context.clone(),
            name: NAME.to_owned(),
            identity: identity.to_owned(),
            seen: (0, clock::instant()),
            membership: membership.cloned(),
        }
    }

    #[tokio::test]
    async fn only_the_holder_releases_the_lease() {
        let context = api().await;
        let (mut first, second) = (candidate(&context, "first", None), candidate(&context, "second", None));
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

    #[tokio::test(start_paused = true)]
    async fn leases_of_workspaces_last_as_long_as_their_server_without_writes() {
        let (home, workspace) = (api().await, api().await);
        let member = |identity: &str| {
            let lives = watch::Sender::new(true);
            Arc::new(Membership { home: Arc::downgrade(&home), identity: identity.to_owned(), lives })
        };
        let (one, two) = (member("one"), member("two"));
        let mut server = Candidate::of_server(&home, "one");
        server.acquire().await;
        let mut first = candidate(&workspace, "one", Some(&one));
        let mut second = candidate(&workspace, "two", Some(&two));
        first.acquire().await;
        let written = workspace.objects.revision();
        for _ in 0..3 {
            assert!(!second.is_free(second.lease().as_ref()).await);
            assert!(tokio::time::timeout(limits::LEASE_RENEW, first.hold()).await.is_err(), "it is held");
            server.write("one", server.lease()).await.unwrap();
        }
        assert_eq!(workspace.objects.revision(), written, "a Lease that is held is not written");
        // a server that has failed renews nothing
        assert!(!second.is_free(second.lease().as_ref()).await);
        tokio::time::sleep(limits::LEASE + limits::LEASE_RETRY).await;
        assert!(second.is_free(second.lease().as_ref()).await);
        server.write("one", server.lease()).await.unwrap();
        assert!(!second.is_free(second.lease().as_ref()).await);
        // one that ends in good order releases its own
        server.release().await;
        second.acquire().await;
        first.hold().await;
        assert_eq!(second.lease().unwrap().holder(), "two");
        two.lives.send_replace(false);
        second.hold().await;
    }

    #[tokio::test]
    async fn leases_of_former_servers_are_removed() {
        let home = api().await;
        let [new, mut known, mut former] = ["new", "known", "former"].map(|server| Candidate::of_server(&home, server));
        known.acquire().await;
        let clock = Arc::new(clock::WorkspaceClock::default());
        clock.set(Some(clock::Reading { shown: 1, since: None }));
        clock::within(Some(clock), former.acquire()).await;
        new.remove_old().await;
        assert!(known.lease().is_some() && former.lease().is_none());
    }
}
