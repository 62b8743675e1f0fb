//! Who is asking (layer 3): client certificate, bearer token, or nobody.
//!
//! Invariant: credentials that are shown and wrong are 401, never anonymous.

mod accounts;
mod certificate;
pub mod websocket;

use std::collections::HashMap;

use machinery::status::Reason;
use machinery::{Status, Text};

pub use self::certificate::ClientCertificate;
use crate::objects::Objects;
use crate::request::User;

pub use accounts::{AccountOptions, Accounts, Bound};

/// What a connection and a request show.
pub struct Credentials<'a> {
    pub certificate: &'a ClientCertificate,
    /// The Authorization header.
    pub authorization: Option<&'a str>,
    /// The sub-protocols that a WebSocket was asked for with; browsers have no other place for a token.
    pub protocols: Option<&'a str>,
}

/// The configured ways to say who one is.
#[derive(Default)]
pub struct Authentication {
    tokens: HashMap<String, User>,
    pub accounts: Accounts,
    pub anonymous: bool,
}

/// Who somebody is, and to whom.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Identity {
    pub user: User,
    /// Those of the wanted audiences that the credentials are for.
    pub audiences: Vec<Text>,
}

/// The exact 401.
pub fn unauthorized() -> Status {
    Status::new(Reason::Unauthorized, "Unauthorized")
}

impl Authentication {
    /// Reads the lines `token,user,uid[,"group1,group2"]` of a token file.
    pub fn with_tokens(text: &str) -> Result<Authentication, String> {
        let mut tokens = HashMap::new();
        for (i, line) in text.lines().enumerate() {
            if line.trim().is_empty() {
                continue;
            }
            let fields = csv(line);
            let [token, name, uid, groups @ ..] = fields.as_slice() else {
                return Err(format!("line {}: expected at least token,user,uid", i + 1));
            };
            let groups = groups.iter().flat_map(|g| g.split(',')).map(str::trim).filter(|g| !g.is_empty());
            let user = User {
                name: name.trim().into(),
                uid: uid.trim().into(),
                groups: groups.map(Text::from).collect(),
                extra: vec![],
            };
            tokens.insert(token.trim().to_owned(), user.authenticated());
        }
        Ok(Authentication { tokens, accounts: Accounts::default(), anonymous: true })
    }

    /// Whose token this is, for one of `audiences`, or for this server if there are none. The error says why nobody's.
    pub fn token(&self, objects: &Objects, token: &str, audiences: &[Text]) -> Result<Identity, String> {
        if let Some(user) = self.tokens.get(token) {
            // tokens of a file are for this server and no other audience
            let own = self.accounts.audiences();
            let meant = |audience: &&Text| audiences.is_empty() || audiences.contains(audience);
            let audiences: Vec<Text> = own.iter().filter(meant).cloned().collect();
            if !audiences.is_empty() {
                return Ok(Identity { user: user.clone(), audiences });
            }
        }
        self.accounts.authenticate(objects, token, audiences).unwrap_or_else(|| Err("invalid bearer token".to_owned()))
    }

    pub fn authenticate(&self, objects: &Objects, credentials: &Credentials<'_>) -> Result<User, Status> {
        let certificate = credentials.certificate;
        if let Some(user) = certificate.user() {
            return Ok(user.clone());
        }
        let shown = match credentials.authorization.and_then(bearer) {
            Some(token) => Some(token.to_owned()),
            None => credentials.protocols.map(websocket::token).transpose()?.flatten(),
        };
        match shown {
            Some(token) => match self.token(objects, &token, &[]) {
                Ok(identity) => Ok(identity.user),
                Err(why) => {
                    tracing::debug!(why, "a bearer token was refused");
                    Err(unauthorized())
                }
            },
            None if certificate.is_refused() => Err(unauthorized()),
            None if self.anonymous => Ok(User::anonymous()),
            None => Err(unauthorized()),
        }
    }
}

/// The token of `Bearer <token>`.
fn bearer(header: &str) -> Option<&str> {
    let (scheme, token) = header.trim().split_once(' ')?;
    let token = token.trim();
    (scheme.eq_ignore_ascii_case("bearer") && !token.is_empty()).then_some(token)
}

/// The fields of a line; quotes keep commas together.
fn csv(line: &str) -> Vec<String> {
    let mut fields = vec![String::new()];
    let mut quoted = false;
    for c in line.chars() {
        match c {
            '"' => quoted = !quoted,
            ',' if !quoted => fields.push(String::new()),
            c => {
                if let Some(field) = fields.last_mut() {
                    field.push(c);
                }
            }
        }
    }
    fields
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn tokens() {
        let objects = accounts::tests::objects().await;
        let authentication = Authentication::with_tokens("t1,ann,1,\"a,b\"\n\nt2,bob,2\n").unwrap();
        let ask = |header: Option<&str>| {
            let certificate = &ClientCertificate::None;
            authentication.authenticate(&objects, &Credentials { certificate, authorization: header, protocols: None })
        };
        let ann = ask(Some("bearer t1")).unwrap();
        assert_eq!(ann.name, "ann");
        assert_eq!(ann.groups, ["a", "b", "system:authenticated"]);
        assert_eq!(ask(Some("Bearer nope")).unwrap_err(), unauthorized());
        assert_eq!(ask(None).unwrap(), User::anonymous());
        assert!(Authentication::with_tokens("t1,ann").is_err());
    }

    #[tokio::test]
    async fn a_refused_certificate_is_no_way_in_but_a_token_beside_it_is() {
        let objects = accounts::tests::objects().await;
        let authentication = Authentication::with_tokens("t1,ann,1").unwrap();
        let ask = |header: Option<&str>| {
            let certificate = &ClientCertificate::Refused;
            authentication.authenticate(&objects, &Credentials { certificate, authorization: header, protocols: None })
        };
        assert_eq!(ask(None).unwrap_err(), unauthorized());
        assert_eq!(ask(Some("Bearer nope")).unwrap_err(), unauthorized());
        assert_eq!(ask(Some("Bearer t1")).unwrap().name, "ann");
    }
}
