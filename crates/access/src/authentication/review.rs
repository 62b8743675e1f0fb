//! Authentication of tokens by a webhook (TokenReview).

use std::time::Duration;

use base::request::User;
use base::webhook::{CallError, Remote, ResponseCache};
use machinery::{Text, Value, json};

use super::{CredentialWarnings, Identity};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReviewVersion {
    V1,
    V1beta1,
}

impl ReviewVersion {
    pub fn parse(text: &str) -> Result<ReviewVersion, String> {
        match text {
            "v1" => Ok(ReviewVersion::V1),
            "v1beta1" => Ok(ReviewVersion::V1beta1),
            other => Err(format!("unsupported version {other:?}; wanted v1 or v1beta1")),
        }
    }

    pub fn name(self) -> &'static str {
        match self {
            ReviewVersion::V1 => "v1",
            ReviewVersion::V1beta1 => "v1beta1",
        }
    }

    pub fn api_version(self, group: &str) -> String {
        format!("{group}/{}", self.name())
    }
}

/// Why a webhook does not authenticate a token.
#[derive(Debug, thiserror::Error)]
pub enum ReviewError {
    #[error(transparent)]
    Call(#[from] CallError),
    /// The webhook says why.
    #[error("{0}")]
    Refused(String),
}

/// Authenticates tokens by a webhook, with a cache of its responses, including rejections.
#[derive(Debug)]
pub struct TokenReviewer {
    remote: Remote,
    version: ReviewVersion,
    cache: ResponseCache<Option<Identity>>,
}

impl TokenReviewer {
    pub fn new(remote: Remote, version: ReviewVersion, ttl: Duration) -> TokenReviewer {
        TokenReviewer { remote, version, cache: ResponseCache::new(move |_| ttl) }
    }

    /// Authenticates a token for one of `audiences`. `None` if the webhook does not know it.
    pub async fn review(&self, token: &str, audiences: &[Text]) -> Result<Option<Identity>, ReviewError> {
        let list: Value = audiences.iter().map(Value::from).collect();
        let spec = json!({"token": token, "audiences": list});
        // the cache key is a digest, so that tokens do not stay in memory
        let key = base::digest::short(spec.to_json().as_bytes());
        if let Some(known) = self.cache.get(&key) {
            return Ok(known);
        }
        let version = self.version.api_version("authentication.k8s.io");
        let review = json!({
            "kind": "TokenReview", "apiVersion": version, "metadata": {}, "spec": spec,
            "status": {"user": {}}
        });
        let response = self.remote.post(&review).await?;
        let found = self.identity(response.get("status").unwrap_or(&Value::Null), audiences)?;
        self.cache.put(key, found.clone());
        Ok(found)
    }

    fn identity(&self, status: &Value, audiences: &[Text]) -> Result<Option<Identity>, ReviewError> {
        if status.get("authenticated") != Some(&Value::Bool(true)) {
            return match status.str_at(&["error"]) {
                "" => Ok(None),
                why => Err(ReviewError::Refused(why.to_owned())),
            };
        }
        let given = status.items_at(&["audiences"]);
        // a response without audiences is valid for all of them
        let is_accepted =
            |audience: &&Text| given.is_empty() || given.iter().any(|value| value.as_str() == Some(audience.as_str()));
        let accepted: Vec<Text> = audiences.iter().filter(is_accepted).cloned().collect();
        if accepted.is_empty() {
            return Ok(None);
        }
        let user = User::from_value(status.get("user").unwrap_or(&Value::Null), "username");
        Ok(Some(Identity { user: user.authenticated(), audiences: accepted, remarks: CredentialWarnings::default() }))
    }
}
