//! Requests with objects as bodies, one after the other.

use std::path::PathBuf;
use std::time::Duration;

use hyper::Method;
use machinery::Value;

use crate::access::Access;
use crate::connection::{self, Call, Connection};
use crate::error::Error;

/// The media type of objects.
pub const JSON: &str = "application/json";
/// Objects per page of a list; kubectl's `--chunk-size`.
const PAGE: usize = 500;
/// How often a server that is busy is asked, and the shortest and the longest pause between.
const BUSY_TRIES: usize = 10;
const BUSY_PAUSE: Duration = Duration::from_secs(1);
const BUSY_PAUSE_MAX: Duration = Duration::from_secs(30);

/// A connection for sequential requests.
pub struct JsonClient {
    connection: Connection,
}

/// A response: its status code, and its body if that is JSON.
pub struct JsonResponse {
    pub code: u16,
    pub body: Value,
}

impl JsonResponse {
    pub fn is_ok(&self) -> bool {
        (200..300).contains(&self.code)
    }

    /// The body of a success. The text of the error is the message of the server.
    pub fn ok(self) -> Result<Value, Error> {
        if self.is_ok() { Ok(self.body) } else { Err(Error::Refused { code: self.code, message: self.message() }) }
    }

    pub fn message(&self) -> String {
        match self.body.str_at(&["message"]) {
            "" => format!("the server responded with status {}", self.code),
            message => message.to_owned(),
        }
    }
}

impl JsonClient {
    /// Connects to the server of the current context of kubeconfigs.
    pub async fn connect(kubeconfigs: &[PathBuf]) -> Result<JsonClient, Error> {
        JsonClient::of(&Access::read_all(kubeconfigs)?).await
    }

    /// Connects to a server of a kubeconfig.
    pub async fn of(access: &Access) -> Result<JsonClient, Error> {
        Ok(JsonClient { connection: connection::connect(access).await? })
    }

    /// Reads a path. A server that is busy is asked again after the pause that it names.
    pub async fn get(&mut self, path: &str) -> Result<JsonResponse, Error> {
        self.get_as(path, JSON).await
    }

    async fn get_as(&mut self, path: &str, accept: &'static str) -> Result<JsonResponse, Error> {
        for _ in 0..BUSY_TRIES {
            let response = self.call(Method::GET, path, accept, None).await?;
            if response.code != 429 {
                return Ok(response);
            }
            let seconds = response.body.at(&["details", "retryAfterSeconds"]).and_then(Value::as_int);
            let pause = seconds.and_then(|seconds| u64::try_from(seconds).ok()).map(Duration::from_secs);
            tokio::time::sleep(pause.unwrap_or_default().clamp(BUSY_PAUSE, BUSY_PAUSE_MAX)).await;
        }
        Err(Error::Busy { path: path.to_owned() })
    }

    /// Reads a page of the list at a path, which has no query, as the media type `accept`. `token` is that of the page before, and
    /// empty for the first one. Returns the list; [`next_page`] has the token of the next page.
    pub async fn page(&mut self, path: &str, token: &str, accept: &'static str) -> Result<Value, Error> {
        let first = self.get_as(&format!("{path}?limit={PAGE}&continue={token}"), accept).await?;
        match next_page(&first.body) {
            // the server no longer keeps the objects as they were: this token continues with them as they are now
            newer if first.code == 410 && !newer.is_empty() => {
                self.get_as(&format!("{path}?limit={PAGE}&continue={newer}"), accept).await?.ok()
            }
            _ => first.ok(),
        }
    }

    /// Reads a text, such as a log.
    pub async fn text(&mut self, path: &str) -> Result<Vec<u8>, Error> {
        let response = self.connection.send(Call { accept: "*/*", ..Call::get(path) }).await?;
        if response.is_success() {
            return Ok(response.body);
        }
        let body = machinery::value::decode(&response.body).unwrap_or_default();
        let refused = JsonResponse { code: response.status, body };
        Err(Error::Refused { code: refused.code, message: refused.message() })
    }

    /// Sends a request with a JSON body, a merge patch for PATCH; `accept` is the media type of the response.
    pub async fn call(
        &mut self,
        method: Method,
        path: &str,
        accept: &'static str,
        body: Option<&Value>,
    ) -> Result<JsonResponse, Error> {
        let content_type = match body {
            None => "",
            Some(_) if method == Method::PATCH => "application/merge-patch+json",
            Some(_) => JSON,
        };
        let body = body.map(Value::to_json).unwrap_or_default().into();
        let call = Call { method, path: path.to_owned(), accept, content_type, body, user: "" };
        let response = self.connection.send(call).await?;
        let body = machinery::value::decode(&response.body).unwrap_or_default();
        Ok(JsonResponse { code: response.status, body })
    }
}

/// The token of the page after a list, which is empty for the last one.
pub fn next_page(list: &Value) -> String {
    list.str_at(&["metadata", "continue"]).to_owned()
}
