//! Calls to the etcd members: each member is tried in turn until one responds, as far as a retry is safe.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use http::uri::PathAndQuery;
use store::StoreError;
use tokio::sync::watch;
use tonic::Request;
use tonic::client::Grpc;
use tonic::metadata::{Ascii, MetadataValue};
use tonic::transport::Channel;
use tonic_prost::ProstCodec;

use crate::cluster::Cluster;
use crate::error::OptionsError;
use crate::failure::Failure;
use crate::limits;
use crate::member::{Member, has_honest_progress};
use crate::messages::{self as m, Response};
use crate::options::{Credentials, Options};
use crate::trouble::Trouble;

enum Token {
    Unknown,
    /// etcd has authentication disabled.
    None,
    Is(MetadataValue<Ascii>),
}

/// The members of one cluster.
pub struct Client {
    members: Vec<Member>,
    /// The member that is called first.
    current: watch::Sender<usize>,
    cluster: Cluster,
    credentials: Option<Credentials>,
    token: tokio::sync::Mutex<Token>,
    /// Whether every member connected so far reports watch progress reliably, see [`has_honest_progress`].
    honest_progress: AtomicBool,
    /// The current failure, if the last calls have failed.
    trouble: Trouble,
}

impl Client {
    /// Creates a client; it does not connect yet.
    pub fn new(options: &Options) -> Result<Client, OptionsError> {
        let members = options.endpoints()?;
        Ok(Client {
            members: members.into_iter().map(|(url, endpoint)| Member::new(url, endpoint)).collect(),
            current: watch::Sender::new(0),
            cluster: Cluster::new(options)?,
            credentials: options.credentials.clone(),
            token: tokio::sync::Mutex::new(Token::Unknown),
            honest_progress: AtomicBool::new(true),
            trouble: Trouble::default(),
        })
    }

    pub fn honest_progress(&self) -> bool {
        self.honest_progress.load(Ordering::Relaxed)
    }

    /// Makes a call without effects, which is retried after every error that may be temporary.
    pub async fn read<Q: m::Message, A: Response>(&self, path: &'static str, request: &Q) -> Result<A, Failure> {
        self.call(path, request, Failure::is_temporary).await
    }

    /// Makes a call with effects, which is retried only if it certainly had no effect.
    pub async fn write<Q: m::Message, A: Response>(&self, path: &'static str, request: &Q) -> Result<A, Failure> {
        self.call(path, request, |failure| failure.is_temporary() && !matches!(failure, Failure::Unknown(_))).await
    }

    async fn call<Q: m::Message, A: Response>(
        &self,
        path: &'static str,
        request: &Q,
        again: fn(&Failure) -> bool,
    ) -> Result<A, Failure> {
        let mut last = no_response("no member", limits::CALL_TIMEOUT);
        let tries = async {
            for attempt in 0.. {
                self.pause(attempt).await;
                let at = self.current();
                let silent = no_response(&self.members[at].url, limits::ATTEMPT_TIMEOUT);
                last = silent.clone();
                let response = tokio::time::timeout(limits::ATTEMPT_TIMEOUT, self.attempt(at, path, request)).await;
                match response.unwrap_or(Err(silent)) {
                    Ok(response) => {
                        self.mark_healthy();
                        return Ok(response);
                    }
                    Err(failure) => {
                        self.failed(at, &failure, attempt).await;
                        if !again(&failure) {
                            return Err(failure);
                        }
                        last = failure;
                    }
                }
            }
            unreachable!("attempts end with a response or with their time limit")
        };
        let response = tokio::time::timeout(limits::CALL_TIMEOUT, tries).await;
        response.unwrap_or_else(|_| {
            self.mark_unhealthy(last.text());
            Err(last)
        })
    }

    /// Waits before an attempt. There is no pause until every member has been tried.
    pub async fn pause(&self, attempt: usize) {
        if let Some(rounds) = (attempt + 1).checked_sub(self.members.len()).filter(|_| attempt > 0) {
            let doubled = limits::RETRY_PAUSE_MIN * (1 << rounds.min(8));
            tokio::time::sleep(doubled.min(limits::RETRY_PAUSE_MAX)).await;
        }
    }

    fn current(&self) -> usize {
        *self.current.borrow()
    }

    /// Notifies of changes of the current member.
    pub fn moves(&self) -> watch::Receiver<usize> {
        self.current.subscribe()
    }

    /// Reacts to a failure: later calls go to another member, or the client authenticates again.
    async fn failed(&self, at: usize, failure: &Failure, attempt: usize) {
        self.turn_away(at, failure).await;
        if !failure.is_temporary() || matches!(failure, Failure::Unauthenticated(_)) {
            return;
        }
        if attempt + 1 >= self.members.len() {
            self.mark_unhealthy(failure.text());
        } else {
            tracing::debug!(why = failure.text(), "switching to another member of etcd");
        }
    }

    async fn turn_away(&self, at: usize, failure: &Failure) {
        match failure {
            Failure::Unauthenticated(_) => *self.token.lock().await = Token::Unknown,
            _ if failure.is_temporary() => self.leave(at),
            _ => {}
        }
    }

    /// Closes the connection to a member and makes the next one the current member.
    fn leave(&self, at: usize) {
        self.members[at].forget();
        let next = (at + 1) % self.members.len();
        self.current.send_if_modified(|current| *current == at && std::mem::replace(current, next) != next);
    }

    async fn attempt<Q: m::Message, A: Response>(
        &self,
        at: usize,
        path: &'static str,
        request: &Q,
    ) -> Result<A, Failure> {
        let channel = self.channel(at).await?;
        let request = self.signed(&channel, request.clone()).await.map_err(|failure| self.name_member(at, failure))?;
        let response: A = unary(channel, path, request).await.map_err(|failure| self.name_member(at, failure))?;
        self.check_cluster(at, &response)?;
        Ok(response)
    }

    /// A request with our token, for members that have a leader.
    async fn signed<T>(&self, channel: &Channel, message: T) -> Result<Request<T>, Failure> {
        let mut request = Request::new(message);
        request.metadata_mut().insert("hasleader", MetadataValue::from_static("true"));
        if let Some(token) = self.token(channel).await? {
            request.metadata_mut().insert("token", token);
        }
        Ok(request)
    }

    async fn token(&self, channel: &Channel) -> Result<Option<MetadataValue<Ascii>>, Failure> {
        let Some(Credentials { user, password }) = &self.credentials else { return Ok(None) };
        let mut token = self.token.lock().await;
        if matches!(*token, Token::Unknown) {
            let request = m::AuthenticateRequest { name: user.clone(), password: password.clone() };
            let response = unary::<_, m::AuthenticateResponse>(channel.clone(), m::AUTHENTICATE, Request::new(request));
            *token = match response.await {
                Ok(response) => Token::Is(response.token.parse().map_err(|_| refused("the token cannot be sent"))?),
                Err(Failure::NoAuthentication(_)) => {
                    tracing::warn!("etcd has no authentication enabled: the user name and the password are not used");
                    Token::None
                }
                Err(failure) => return Err(failure),
            };
        }
        Ok(match &*token {
            Token::Is(value) => Some(value.clone()),
            _ => None,
        })
    }

    /// The connection to a member. For a new connection, the cluster id is checked first.
    async fn channel(&self, at: usize) -> Result<Channel, Failure> {
        let member = &self.members[at];
        if let Some(channel) = member.open() {
            return Ok(channel);
        }
        let _turn = member.connecting.lock().await;
        if let Some(channel) = member.open() {
            return Ok(channel);
        }
        let channel = member.connect().await?;
        let status = unary(channel.clone(), m::STATUS, Request::new(m::StatusRequest {})).await;
        let status: m::StatusResponse = match status {
            Ok(status) => status,
            // the user of etcd may lack permission for this call; the cluster id is in other responses too
            Err(Failure::Refused(_)) => m::StatusResponse::default(),
            Err(failure) => return Err(Failure::NotDone(self.name_member(at, failure).text().to_owned())),
        };
        self.check_cluster(at, &status)?;
        if !status.version.is_empty() && !has_honest_progress(&status.version) {
            self.honest_progress.store(false, Ordering::Relaxed);
        }
        member.keep(&channel);
        Ok(channel)
    }

    fn check_cluster<A: Response>(&self, at: usize, response: &A) -> Result<(), Failure> {
        let Some(found) = response.header().map(|header| header.cluster_id) else { return Ok(()) };
        let foreign = |why| Failure::Foreign(format!("etcd at {} {why}", self.members[at].url));
        self.cluster.check(found).map_err(foreign)
    }

    /// Adds the URL of the member to a failure.
    fn name_member(&self, at: usize, failure: Failure) -> Failure {
        let with_url =
            |why: String| format!("etcd at {}: {}", self.members[at].url, why.trim_start_matches("etcdserver: "));
        match failure {
            Failure::NotDone(why) => Failure::NotDone(with_url(why)),
            Failure::Unknown(why) => Failure::Unknown(with_url(why)),
            Failure::Unauthenticated(why) => Failure::Unauthenticated(with_url(why)),
            Failure::Refused(why) => Failure::Refused(with_url(why)),
            Failure::LeaseGone(why) => Failure::LeaseGone(with_url(why)),
            other => other,
        }
    }

    /// Opens a stream of watches at the current member.
    pub async fn watch(
        &self,
        requests: tokio_stream::wrappers::ReceiverStream<m::WatchRequest>,
        attempt: usize,
    ) -> Result<Stream<'_>, Failure> {
        let at = self.current();
        let opened = tokio::time::timeout(limits::ATTEMPT_TIMEOUT, async {
            let channel = self.channel(at).await?;
            let request = self.signed(&channel, requests).await.map_err(|failure| self.name_member(at, failure))?;
            let mut grpc = grpc(channel).await?;
            let streaming = grpc.streaming(request, PathAndQuery::from_static(m::WATCH), ProstCodec::default()).await;
            streaming.map_err(|status| self.name_member(at, Failure::of(&status)))
        });
        let silent = no_response(&self.members[at].url, limits::ATTEMPT_TIMEOUT);
        match opened.await.unwrap_or(Err(silent)) {
            Ok(response) => Ok(Stream { client: self, at, responses: response.into_inner() }),
            Err(failure) => {
                self.failed(at, &failure, attempt).await;
                Err(failure)
            }
        }
    }

    pub fn mark_healthy(&self) {
        self.trouble.end();
    }

    pub fn mark_unhealthy(&self, why: &str) {
        self.trouble.begin(why);
    }

    pub fn health(&self) -> Result<(), StoreError> {
        self.trouble.why().map_or(Ok(()), |why| Err(StoreError::Unavailable(why)))
    }
}

#[cfg(test)]
impl Client {
    /// Pretends that members report progress reliably, or do not.
    pub fn assume_progress(&self, honest: bool) {
        self.honest_progress.store(honest, Ordering::Relaxed);
    }

    /// Pretends that this client has been connected to the cluster of another client.
    pub fn assume_cluster(&self, other: &Client) {
        self.cluster.id().set(*other.cluster.id().get().unwrap()).unwrap();
    }
}

/// An open stream of watches.
pub struct Stream<'a> {
    client: &'a Client,
    at: usize,
    responses: tonic::Streaming<m::WatchResponse>,
}

impl Stream<'_> {
    /// The next response; at the end of the stream the client moves on to another member.
    pub async fn next(&mut self) -> Result<m::WatchResponse, Failure> {
        let response = match self.responses.message().await {
            Ok(Some(response)) => self.client.check_cluster(self.at, &response).map(|()| response),
            Ok(None) => Err(Failure::Unknown("the stream of changes ended".to_owned())),
            Err(status) => Err(Failure::of(&status)),
        };
        match response {
            Ok(response) => Ok(response),
            Err(failure) => Err(self.failed(failure).await),
        }
    }

    pub async fn failed(&self, failure: Failure) -> Failure {
        let failure = self.client.name_member(self.at, failure);
        self.client.turn_away(self.at, &failure).await;
        failure
    }
}

fn refused(why: &str) -> Failure {
    Failure::Refused(why.to_owned())
}

fn no_response(url: &str, after: Duration) -> Failure {
    Failure::Unknown(format!("etcd at {url} has not responded within {} s", after.as_secs()))
}

async fn grpc(channel: Channel) -> Result<Grpc<Channel>, Failure> {
    let mut grpc = Grpc::new(channel).max_decoding_message_size(usize::MAX).max_encoding_message_size(usize::MAX);
    match grpc.ready().await {
        Ok(()) => Ok(grpc),
        Err(error) => Err(Failure::NotDone(crate::member::deepest(&error))),
    }
}

async fn unary<Q: m::Message, A: Response>(
    channel: Channel,
    path: &'static str,
    request: Request<Q>,
) -> Result<A, Failure> {
    let mut grpc = grpc(channel).await?;
    let response = grpc.unary(request, PathAndQuery::from_static(path), ProstCodec::default()).await;
    response.map(tonic::Response::into_inner).map_err(|status| Failure::of(&status))
}
