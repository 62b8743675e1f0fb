//! Requests to the server of this process, as a user of its own.

use http::header::CONTENT_TYPE;
use http::{Method, Request, Response};
use machinery::{Status, Value};
use offline::engine::Verdict;
use server::{Caller, LocalApi, Mapping, User};

/// The user of requests, and the field manager of what they apply.
const USER: &str = "system:serviceaccount:kube-system:pintle-directory";
const MANAGER: &str = "pintle-directory";

const APPLY: &str = "application/apply-patch+yaml";
const JSON: &str = "application/json";

/// Whether a request has an effect.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Effect {
    Stored,
    /// The verdict is asked for, and nothing is stored.
    Verdict,
}

#[derive(Clone)]
pub struct Api {
    local: LocalApi,
    caller: Caller,
}

impl Api {
    pub fn new(local: LocalApi) -> Api {
        Api { local, caller: Caller::new(User::system(USER)) }
    }

    pub fn mapping(&self, object: &Value) -> Option<Mapping> {
        self.local.mapping(object.str_at(&["apiVersion"]), object.str_at(&["kind"]))
    }

    pub fn mappings(&self) -> Vec<Mapping> {
        self.local.mappings()
    }

    /// Applies an object server-side. The fields that it names are taken from other managers, as the files decide about them.
    pub async fn apply(&self, path: &str, object: &Value, effect: Effect) -> Result<Value, Status> {
        let dry_run = if effect == Effect::Verdict { "&dryRun=All" } else { "" };
        let uri = format!("{path}?fieldManager={MANAGER}&force=true&fieldValidation=Strict{dry_run}");
        self.call(Method::PATCH, &uri, APPLY, Some(object)).await
    }

    /// Sends a request, and returns the object of its response.
    pub async fn call(
        &self,
        method: Method,
        uri: &str,
        content_type: &str,
        body: Option<&Value>,
    ) -> Result<Value, Status> {
        Verdict::read(self.send(method, uri, content_type, body).await?).await.object()
    }

    /// Sends a request, such as a watch, whose response is not read yet.
    pub async fn send(
        &self,
        method: Method,
        uri: &str,
        content_type: &str,
        body: Option<&Value>,
    ) -> Result<Response<server::Body>, Status> {
        let mut request = Request::builder().method(method).uri(uri).header("accept", JSON);
        if !content_type.is_empty() {
            request = request.header(CONTENT_TYPE, content_type);
        }
        let body = body.map(Value::to_json).unwrap_or_default();
        let request = request.body(body.into()).map_err(|error| Status::bad_request(error.to_string()))?;
        Ok(self.local.call(&self.caller, request).await)
    }
}
