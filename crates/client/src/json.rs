//! Requests with objects as bodies, one after the other.

use std::path::PathBuf;

use hyper::Method;
use machinery::Value;

use crate::access::Access;
use crate::connection::{self, Call, Connection};

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

    /// The body of a success. The error is the message of the server.
    pub fn ok(self) -> Result<Value, String> {
        if self.is_ok() { Ok(self.body) } else { Err(self.message()) }
    }

    pub fn message(&self) -> String {
        match self.body.str_at(&["message"]) {
            "" => format!("the server responded with status {}", self.code),
            message => message.to_owned(),
        }
    }
}

impl JsonClient {
    /// Connects to the server of the current context of kubeconfigs. Fails with a one-line message.
    pub async fn connect(kubeconfigs: &[PathBuf]) -> Result<JsonClient, String> {
        JsonClient::of(&Access::read_all(kubeconfigs)?).await
    }

    /// Connects to a server of a kubeconfig. Fails with a one-line message.
    pub async fn of(access: &Access) -> Result<JsonClient, String> {
        Ok(JsonClient { connection: connection::connect(access).await? })
    }

    pub async fn get(&mut self, path: &str) -> Result<JsonResponse, String> {
        self.call(Method::GET, path, "application/json", None).await
    }

    /// Reads a text, such as a log. Fails with a one-line message.
    pub async fn text(&mut self, path: &str) -> Result<Vec<u8>, String> {
        let response = self.connection.send(Call { accept: "*/*", ..Call::get(path) }).await?;
        let message = |body: Value| JsonResponse { code: response.status, body }.message();
        match response.is_success() {
            true => Ok(response.body),
            false => Err(message(machinery::value::decode(&response.body).unwrap_or_default())),
        }
    }

    /// Sends a request with a JSON body, a merge patch for PATCH; `accept` is the media type of the response.
    pub async fn call(
        &mut self,
        method: Method,
        path: &str,
        accept: &'static str,
        body: Option<&Value>,
    ) -> Result<JsonResponse, String> {
        let content_type = match body {
            None => "",
            Some(_) if method == Method::PATCH => "application/merge-patch+json",
            Some(_) => "application/json",
        };
        let body = body.map(Value::to_json).unwrap_or_default().into();
        let call = Call { method, path: path.to_owned(), accept, content_type, body, user: "" };
        let response = self.connection.send(call).await?;
        let body = machinery::value::decode(&response.body).unwrap_or_default();
        Ok(JsonResponse { code: response.status, body })
    }
}
