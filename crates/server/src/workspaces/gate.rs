//! The gate in front of workspaces: decides who may enter which one, and which requests are refused before they reach
//! the workspace's API.
//!
//! Invariant: a client that may not enter a workspace gets the same response whether or not it exists.

use std::sync::Arc;

use base::notice::Notices;
use base::request::{RequestInfo, Verb};
use futures_util::future::BoxFuture;
use http::{HeaderMap, Method, Request};
use machinery::status::{Details, Reason};
use machinery::{Result, Status, Value, names};
use tracing::Instrument as _;

use super::definition::{GROUP, PLURAL, Spec};
use super::manager::Workspaces;
use super::unusable::Unusable;
use super::workspace::{Entered, Opened, Workspace};
use crate::http::{BRANCHES, Branches, Client, HttpResponse, RequestBody, set_path, status_response};
use crate::limits;

/// Groups whose objects are not stored, so that even a template accepts their creation.
const REVIEWS: [&str; 2] = ["/apis/authorization.k8s.io/", "/apis/authentication.k8s.io/"];

const METRICS_PATH: &str = "/metrics";
/// The path that encrypts the values of a workspace again, for operators.
const REWRITE_PATH: &str = "/storage/rewrite";

/// How a client may enter a workspace.
#[derive(Clone, Copy, PartialEq, Eq)]
enum EnteredBy {
    /// As a user who is authorized in `default`.
    Right,
    /// With a token that the workspace has signed. The workspace's own API has yet to verify it.
    OwnToken,
}

/// The workspace that a request is for, and the path in it.
#[derive(Clone, Copy)]
struct Place<'a> {
    name: &'a str,
    uid: Option<&'a str>,
    /// The path below the workspace.
    path: &'a str,
}

/// A workspace that a client may enter, and by which means.
struct Entrance {
    workspace: Arc<Workspace>,
    by: EnteredBy,
}

/// A refused request, with the API that refuses it. That API counts and records the response.
enum RefusedEntry {
    ByDefault(Status),
    ByWorkspace(Arc<Opened>, Status),
}

impl From<Status> for RefusedEntry {
    fn from(status: Status) -> RefusedEntry {
        RefusedEntry::ByDefault(status)
    }
}

impl Branches for Workspaces {
    fn domain(&self) -> &str {
        &self.parts.config.domain
    }

    fn serve(self: Arc<Self>, client: Arc<Client>, request: Request<RequestBody>) -> BoxFuture<'static, HttpResponse> {
        Box::pin(async move { self.respond(client, request).await.unwrap_or_else(|status| status_response(&status)) })
    }
}

impl Workspaces {
    async fn respond(self: &Arc<Self>, client: Arc<Client>, mut request: Request<RequestBody>) -> Result<HttpResponse> {
        let below = request.uri().path().strip_prefix(BRANCHES).unwrap_or_default().to_owned();
        let (name, path) = below.find('/').map_or((below.as_str(), ""), |end| below.split_at(end));
        if request.method() == Method::POST && path.is_empty() {
            return self.create_quickly(client, request, name).await;
        }
        // names have no dot: a uid may follow one, and then no later workspace of the same name is meant
        let (name, uid) = name.split_once('.').map_or((name, None), |(name, uid)| (name, Some(uid)));
        if uid.is_some() {
            set_path(request.uri_mut(), &format!("{BRANCHES}{name}{path}"));
        }
        let query = request.uri().query().unwrap_or_default();
        let place = Place { name, uid, path };
        let info = RequestInfo::parse(request.method(), path, query);
        if info.path.trim_end_matches('/') == METRICS_PATH {
            return self.metrics(client, request).await;
        }
        if request.method() == Method::POST && path == REWRITE_PATH {
            let rewritten = self.rewrite(&client, request.headers(), name, query).await;
            return self.settle(client, request, rewritten).await;
        }
        match self.pass(&client, request.headers(), place, &info).await {
            Ok(Entered { opened, guard }) => {
                let watch = (info.verb == Verb::Watch).then(|| opened.watches.clone());
                let response = opened.edge.clone().serve(client, request).instrument(opened.span.clone()).await;
                Ok(response.map(|body| body.guarded(Box::new((guard, watch)))))
            }
            Err(RefusedEntry::ByDefault(status)) => self.settle(client, request, Err(status)).await,
            Err(RefusedEntry::ByWorkspace(opened, status)) => {
                Ok(opened.edge.clone().settle(client, request, Err(status)).instrument(opened.span.clone()).await)
            }
        }
    }

    /// Responds with the outcome of a request that the gate handles itself.
    async fn settle(
        &self,
        client: Arc<Client>,
        request: Request<RequestBody>,
        outcome: Result<Value>,
    ) -> Result<HttpResponse> {
        let home = self.home().ok_or_else(stopping)?;
        Ok(home.settle(client, request, outcome).await)
    }

    /// Decides whether a request may pass.
    async fn pass(
        self: &Arc<Self>,
        client: &Client,
        headers: &HeaderMap,
        Place { name, uid, path }: Place<'_>,
        info: &RequestInfo,
    ) -> Result<Entered, RefusedEntry> {
        let Entrance { workspace, by } = self.admit(client, headers, name).await?;
        if uid.is_some_and(|uid| workspace.uid != uid) {
            let why = format!("workspace {name:?} has been deleted, and another one has its name");
            return Err(Status::new(Reason::Forbidden, why).into());
        }
        if !workspace.settled(limits::WORKSPACE_COPY_WAIT).await {
            return Err(unavailable(&format!("workspace {name:?} is not ready yet")).into());
        }
        // `Forbidden`, so that clients do not retry, which would not help
        let failed = |fault: Unusable| {
            let why = fault.to_string();
            static UNUSABLE: Notices = Notices::new();
            // a workspace whose phase is Failed shows the reason in its status already
            if workspace.failure().is_none()
                && let Some(more) = UNUSABLE.due(name)
            {
                let cause = std::error::Error::source(&fault).map(ToString::to_string);
                tracing::error!(workspace = name, why, cause, more, "a workspace cannot be used");
            }
            Status::new(Reason::Forbidden, format!("workspace {name:?} cannot be used: {why}"))
        };
        let Entered { opened, guard } = match workspace.enter() {
            Some(entered) => entered,
            None => self.open(&workspace).await.map_err(failed)?,
        };
        if by == EnteredBy::OwnToken && !opened.edge.is_by_account(client, headers, path).await {
            self.vouch(client, headers, name).await?;
        }
        let spec = workspace.spec();
        let refused = if spec.template && writes(&info.method, path) {
            let why = format!("workspace {name:?} is a template and cannot be changed; fork it");
            Err(Status::new(Reason::MethodNotAllowed, why))
        } else if info.verb == Verb::Watch {
            check_watches(&spec, &opened, self.parts.watches_max)
        } else {
            Ok(())
        };
        match refused {
            Ok(()) => Ok(Entered { opened, guard }),
            Err(status) => Err(RefusedEntry::ByWorkspace(opened, status)),
        }
    }

    /// Finds the workspace by name, if the client may enter it: with a token of one of its own ServiceAccounts, or as
    /// a user who may `get` the resource `workspaces/content` in `default`.
    async fn admit(&self, client: &Client, headers: &HeaderMap, name: &str) -> Result<Entrance> {
        if !names::dns1123_label(name).is_empty() {
            return Err(Status::not_found(GROUP, PLURAL, name));
        }
        let home = self.home().ok_or_else(stopping)?;
        // another server may just have created the workspace
        let catch_up = async || -> Result<_> {
            home.context.objects.catch_up().await.map_err(|error| unavailable(error.summary()))?;
            Ok(self.workspace(name))
        };
        let path = content_path(name);
        let is_own = |workspace: &Option<Arc<Workspace>>| {
            let uid = workspace.as_ref().map(|workspace| &workspace.uid);
            uid.is_some() && home.realm_of(client, headers, &path).as_ref() == uid
        };
        let mut workspace = self.workspace(name);
        let mut by = EnteredBy::OwnToken;
        if !is_own(&workspace) {
            let vouched = self.vouch(client, headers, name).await;
            // a client that may not enter waits even if the workspace is known: the response time must not show that
            // it exists
            if workspace.is_none() || vouched.is_err() {
                workspace = catch_up().await?;
            }
            if !is_own(&workspace) {
                vouched?;
                by = EnteredBy::Right;
            }
        }
        let workspace = workspace.ok_or_else(|| Status::not_found(GROUP, PLURAL, name))?;
        Ok(Entrance { workspace, by })
    }

    /// The metrics of the whole server, all workspaces included. Therefore only users who may read them in `default`
    /// get them.
    async fn metrics(&self, client: Arc<Client>, request: Request<RequestBody>) -> Result<HttpResponse> {
        let home = self.home().ok_or_else(stopping)?;
        let (mut parts, body) = request.into_parts();
        parts.uri = http::Uri::from_static(METRICS_PATH);
        Ok(home.serve(client, Request::from_parts(parts, body)).await)
    }

    /// Fails unless the authorizers of `default` allow the client to enter a workspace of this name.
    async fn vouch(&self, client: &Client, headers: &HeaderMap, name: &str) -> Result<()> {
        let home = self.home().ok_or_else(stopping)?;
        home.vouch(client, headers, RequestInfo::parse(&Method::GET, &content_path(name), "")).await
    }
}

/// The path in `default` for which a user who enters a workspace is authorized.
fn content_path(name: &str) -> String {
    format!("/apis/{GROUP}/v1alpha1/{PLURAL}/{name}/content")
}

/// Whether a request may change the content of a workspace.
fn writes(method: &Method, path: &str) -> bool {
    let reads = [Method::GET, Method::HEAD, Method::OPTIONS].contains(method);
    !reads && !REVIEWS.iter().any(|group| path.starts_with(group))
}

/// Refuses a watch beyond the workspace's limit. If its specification sets none, `default` is the limit.
fn check_watches(spec: &Spec, opened: &Opened, default: usize) -> Result<()> {
    let limit = if spec.limits.watches > 0 { spec.limits.watches } else { default };
    if opened.watches() >= limit {
        let why = format!("the workspace has its {limit} watches already");
        return Err(Status::too_many_requests(why, 1));
    }
    Ok(())
}

pub(super) fn stopping() -> Status {
    unavailable("the server is stopping")
}

fn unavailable(why: &str) -> Status {
    Status::new(Reason::ServiceUnavailable, why).with_details(Details { retry_after_seconds: 1, ..Details::default() })
}
