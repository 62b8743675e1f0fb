//! Authentication: front proxies, client certificates, bearer tokens, anonymous requests.
//!
//! Invariant: a request with invalid credentials is rejected with 401; it never becomes anonymous.

mod accounts;
mod certificate;
mod issuers;
mod jose;
mod names;
mod proxy;
mod review;
mod tokens;
pub mod websocket;
pub mod x509_v1;

use std::collections::HashMap;
use std::sync::Arc;

use arc_swap::ArcSwap;
use base::notice::Notices;
use base::request::User;
use machinery::status::Reason;
use machinery::{Status, Text};
use objects::Objects;

pub use self::certificate::{ClientCertificate, Verified};

pub use accounts::{AccountOptions, Accounts, Bound, LAST_USED, Realm, Reference};
pub use issuers::{Anonymous, AuthenticationConfiguration};
pub use jose::Algorithm;
pub use names::Subject;
pub use proxy::ProxyHeaders;
pub use review::{ReviewVersion, TokenReviewer};
pub use tokens::StaticTokens;

/// The credentials of a connection and a request.
pub struct Credentials<'a> {
    pub certificate: &'a ClientCertificate,
    pub headers: &'a http::HeaderMap,
    /// The requested sub-protocols of a WebSocket, in which browsers send tokens.
    pub protocols: Option<&'a str>,
    /// The path of the request: anonymous requests may be restricted to some paths.
    pub path: &'a str,
}

impl Credentials<'_> {
    /// The bearer token, if there is one.
    fn token(&self) -> Result<Option<String>, Status> {
        let authorization = self.headers.get(http::header::AUTHORIZATION).and_then(|value| value.to_str().ok());
        match authorization.and_then(bearer) {
            Some(token) => Ok(Some(token.to_owned())),
            None => self.protocols.map(websocket::token).transpose().map(Option::flatten),
        }
    }
}

/// The configured authenticators, in the order in which they are used. Clones share them: a reload changes all.
#[derive(Clone, Default)]
pub struct Authentication {
    pub proxy: ProxyHeaders,
    pub tokens: StaticTokens,
    pub accounts: Accounts,
    pub issuers: Arc<ArcSwap<Vec<issuers::Issuer>>>,
    pub reviewer: Option<Arc<TokenReviewer>>,
    pub anonymous: Anonymous,
}

/// Authenticates a request. Other credentials that the request has do not count.
enum Presented {
    /// A front proxy or a client certificate names this user.
    User(User),
    Token(String),
    Nothing,
}

/// A user, and the audiences of the credentials.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Identity {
    pub user: User,
    /// The requested audiences that the credentials are for.
    pub audiences: Vec<Text>,
    pub remarks: CredentialWarnings,
}

/// Warnings and audit annotations about discouraged credentials.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CredentialWarnings {
    pub warnings: Vec<&'static str>,
    pub annotations: Vec<(&'static str, Text)>,
}

/// The error of an unknown token. As in kube-apiserver, it also precedes more specific errors.
const INVALID_TOKEN: &str = "invalid bearer token";

/// kube-apiserver's 401.
pub fn unauthorized() -> Status {
    Status::new(Reason::Unauthorized, "Unauthorized")
}

impl Authentication {
    /// Authenticates a token for one of `audiences`, or for this server if there are none. The error says why it is invalid.
    pub async fn token(&self, objects: &Objects, token: &str, audiences: &[Text]) -> Result<Identity, String> {
        let mut refusals = vec![INVALID_TOKEN.to_owned()];
        let own_audiences = self.own_audiences(audiences);
        let is_for_this_server = !own_audiences.is_empty();
        let identity =
            |user: User| Identity { user, audiences: own_audiences.clone(), remarks: CredentialWarnings::default() };
        if is_for_this_server && let Some(user) = self.tokens.user(token) {
            return Ok(identity(user));
        }
        match self.accounts.authenticate_new(objects, token, audiences).await {
            Some(Ok(identity)) => return Ok(identity),
            Some(Err(why)) => refusals.push(why),
            None => {}
        }
        if is_for_this_server {
            for issuer in self.issuers.load_full().iter() {
                match Box::pin(issuer.authenticate(token)).await {
                    Some(Ok(user)) => return Ok(identity(user)),
                    Some(Err(error)) => refusals.push(error.to_string()),
                    None => {}
                }
            }
        }
        if let Some(reviewer) = &self.reviewer {
            let wanted = if audiences.is_empty() { self.accounts.audiences() } else { audiences };
            match Box::pin(reviewer.review(token, wanted)).await {
                Ok(Some(identity)) => return Ok(identity),
                Ok(None) => {}
                Err(error) => refusals.push(error.to_string()),
            }
        }
        Err(machinery::status::aggregate(&refusals))
    }

    /// Replaces the issuers by those of a new configuration. Its settings of anonymous requests must be unchanged.
    pub fn reconfigure(
        &self,
        configuration: AuthenticationConfiguration,
        initial: &Option<Anonymous>,
    ) -> Result<(), String> {
        if configuration.anonymous != *initial {
            return Err("anonymous: Forbidden: changed from initial configuration file".to_owned());
        }
        self.issuers.store(Arc::new(configuration.issuers));
        Ok(())
    }

    /// The requested audiences that this server accepts; tokens without audiences are for this server alone.
    fn own_audiences(&self, wanted: &[Text]) -> Vec<Text> {
        let audiences = self.accounts.audiences().iter();
        audiences.filter(|audience| wanted.is_empty() || wanted.contains(audience)).cloned().collect()
    }

    /// Finds the credential that authenticates a request.
    fn presented(&self, credentials: &Credentials<'_>) -> Result<Presented, Status> {
        let certificate = credentials.certificate;
        if certificate.is_proxy()
            && let Some(user) = self.proxy.user(credentials.headers)
        {
            return Ok(Presented::User(user));
        }
        if let Some(user) = certificate.user() {
            return Ok(Presented::User(user.clone()));
        }
        Ok(credentials.token()?.map_or(Presented::Nothing, Presented::Token))
    }

    /// Finds the token that authenticates a request, unless it is a static one.
    fn presented_token(&self, credentials: &Credentials<'_>) -> Option<String> {
        match self.presented(credentials) {
            Ok(Presented::Token(token)) if self.tokens.user(&token).is_none() => Some(token),
            _ => None,
        }
    }

    /// The realm of the ServiceAccount whose token a request has, if this server has signed the token and no other credential
    /// of the request precedes it; empty for the server's own accounts. The token may be invalid for other reasons.
    pub fn realm_of(&self, credentials: &Credentials<'_>) -> Option<Text> {
        self.accounts.realm_of(&self.presented_token(credentials)?)
    }

    /// Whether a request is authenticated by a valid token of a ServiceAccount among these objects.
    pub async fn is_by_account(&self, objects: &Objects, credentials: &Credentials<'_>) -> bool {
        let Some(token) = self.presented_token(credentials) else { return false };
        matches!(self.accounts.authenticate_new(objects, &token, &[]).await, Some(Ok(_)))
    }

    /// Authenticates a request. The error is 401.
    pub async fn authenticate(
        &self,
        objects: &Objects,
        credentials: &Credentials<'_>,
        remarks: &mut CredentialWarnings,
    ) -> Result<User, Status> {
        let presented = match self.presented(credentials) {
            Ok(Presented::User(user)) => return Ok(user),
            other => other,
        };
        let authorization = credentials.headers.get(http::header::AUTHORIZATION).and_then(|value| value.to_str().ok());
        remarks.warnings.extend(authorization.and_then(header_warning));
        match presented? {
            Presented::User(user) => Ok(user),
            Presented::Token(token) => match self.token(objects, &token, &[]).await {
                Ok(identity) => {
                    remarks.warnings.extend(identity.remarks.warnings);
                    remarks.annotations.extend(identity.remarks.annotations);
                    Ok(identity.user)
                }
                Err(why) => {
                    static REFUSED: Notices = Notices::new();
                    if let Some(more) = REFUSED.due("") {
                        tracing::warn!(why, more, "a bearer token was refused");
                    }
                    Err(unauthorized())
                }
            },
            Presented::Nothing if credentials.certificate.is_refused() => Err(unauthorized()),
            Presented::Nothing if self.anonymous.allows(credentials.path) => Ok(User::anonymous()),
            Presented::Nothing => Err(unauthorized()),
        }
    }
}

/// The token of `Bearer <token>`; text after another space is ignored.
fn bearer(header: &str) -> Option<&str> {
    let mut parts = header.trim().splitn(3, ' ');
    let (scheme, token) = (parts.next()?, parts.next()?);
    (scheme.eq_ignore_ascii_case("bearer") && !token.is_empty()).then_some(token)
}

/// The extra attributes of a user in headers, in the order of the headers. `key_of` returns the key in the name of a header,
/// percent-encoded; `None` for other headers.
pub fn extra_of_headers<'a>(
    headers: &'a http::HeaderMap,
    key_of: impl Fn(&'a str) -> Option<&'a str>,
    text: impl Fn(&http::HeaderValue) -> Text,
) -> Vec<(Text, Vec<Text>)> {
    let mut extra: Vec<(Text, Vec<Text>)> = vec![];
    let mut index: HashMap<Text, usize> = HashMap::new();
    for (name, value) in headers {
        let Some(key) = key_of(name.as_str()) else { continue };
        let key = Text::from(machinery::url::decode(key).unwrap_or_else(|| key.to_owned()));
        let at = *index.entry(key.clone()).or_insert(extra.len());
        match extra.get_mut(at) {
            Some((_, values)) => values.push(text(value)),
            None => extra.push((key, vec![text(value)])),
        }
    }
    extra
}

/// The kinds of credentials that a request had, for the audit log.
pub fn attempted(certificate: &ClientCertificate, headers: &http::HeaderMap) -> String {
    let header = headers.get(http::header::AUTHORIZATION).and_then(|value| value.to_str().ok()).unwrap_or_default();
    let scheme = header.split_whitespace().next().unwrap_or_default().to_ascii_lowercase();
    let x509 = if matches!(certificate, ClientCertificate::None) { "" } else { "x509" };
    let methods: Vec<&str> = [scheme.as_str(), x509].into_iter().filter(|method| !method.is_empty()).collect();
    if methods.is_empty() {
        return "Authentication failed, no credentials provided".to_owned();
    }
    format!("Authentication failed, attempted: {}", methods.join(", "))
}

/// The warning about a token in the wrong place of a header.
fn header_warning(header: &str) -> Option<&'static str> {
    let mut parts = header.trim().splitn(3, ' ');
    let misplaced = parts.next()?.eq_ignore_ascii_case("bearer") && parts.next()?.is_empty() && parts.next().is_some();
    misplaced
        .then_some("the provided Authorization header contains extra space before the bearer token, and is ignored")
}

#[cfg(test)]
mod tests {
    use http::HeaderMap;

    use super::*;

    async fn user_of(certificate: &ClientCertificate, header: Option<&str>) -> Result<User, Status> {
        let objects = accounts::tests::objects().await;
        let tokens = StaticTokens::parse("t1,ann,1,\"a,b\"\n\nt2,bob,2\n").unwrap();
        let authentication = Authentication { tokens, ..Authentication::default() };
        let mut headers = HeaderMap::new();
        if let Some(header) = header {
            headers.insert(http::header::AUTHORIZATION, header.parse().unwrap());
        }
        let shown = Credentials { certificate, headers: &headers, protocols: None, path: "/" };
        authentication.authenticate(&objects, &shown, &mut CredentialWarnings::default()).await
    }

    #[tokio::test]
    async fn tokens() {
        let none = &ClientCertificate::None;
        let ann = user_of(none, Some("bearer t1")).await.unwrap();
        assert_eq!(ann.name, "ann");
        assert_eq!(ann.groups, ["a", "b", "system:authenticated"]);
        assert_eq!(user_of(none, Some("Bearer t1 more")).await.unwrap().name, "ann");
        assert_eq!(user_of(none, Some("Bearer nope")).await.unwrap_err(), unauthorized());
        for absent in [None, Some("Bearer  t1"), Some("Basic t1"), Some("Bearer")] {
            assert_eq!(user_of(none, absent).await.unwrap(), User::anonymous(), "{absent:?}");
        }
        assert!(StaticTokens::parse("t1,ann").is_err());
    }

    #[tokio::test]
    async fn token_authenticates_beside_rejected_certificate() {
        let refused = &ClientCertificate::Refused;
        assert_eq!(user_of(refused, None).await.unwrap_err(), unauthorized());
        assert_eq!(user_of(refused, Some("Bearer nope")).await.unwrap_err(), unauthorized());
        assert_eq!(user_of(refused, Some("Bearer t1")).await.unwrap().name, "ann");
    }

    #[test]
    fn anonymous_access_can_be_limited_to_paths() {
        let allows = |enabled: bool, paths: &[&str], path: &str| {
            Anonymous { enabled, paths: paths.iter().map(|path| Text::from(*path)).collect() }.allows(path)
        };
        assert!(allows(true, &[], "/x") && allows(true, &["/x"], "/x"));
        assert!(!allows(true, &["/x"], "/y") && !allows(false, &[], "/x"));
    }
}
