//! OpenAPI (layer 7): v2 and v3 documents, built when somebody asks and kept (api-machinery 17, crd.md 18).

use std::sync::Arc;

use bytes::Bytes;

use crate::request::Query;
use crate::resource::Registry;

/// What a request for a document is answered with.
pub enum Answer {
    Document { content_type: &'static str, body: Bytes, etag: String, immutable: bool },
    NotModified { etag: String },
    /// To the same document under its current hash.
    Moved { location: String },
    NotFound,
    NotAcceptable,
}

/// The documents of OpenAPI.
pub struct OpenApi {
    registry: Arc<Registry>,
}

impl OpenApi {
    pub fn new(registry: Arc<Registry>) -> OpenApi {
        OpenApi { registry }
    }

    /// Answers `/openapi/v2`, `/openapi/v3` and `/openapi/v3/…`.
    pub fn answer(&self, _path: &str, _query: &Query, _accept: &str, _etag: &str) -> Answer {
        let _ = self.registry.generation();
        Answer::NotFound
    }
}
