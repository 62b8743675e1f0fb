//! Writes of the server itself and of controllers that pass the verbs, like those of clients.

use machinery::status::Reason;
use machinery::{Result, Value};
use resource::Document;

use super::as_server::OwnObject;
use super::delete::delete;
use super::patch::PatchKind;
use super::write::{create, patch, update};

impl OwnObject<'_> {
    /// Creates an object in the collection.
    pub async fn create(&self, object: &Value) -> Result<()> {
        let request = self.clone().collection().request(&http::Method::POST);
        create(self.context, &request, &Document::json(object)).await.map(drop)
    }

    pub async fn update(&self, object: &Value) -> Result<()> {
        update(self.context, &self.request(&http::Method::PUT), &Document::json(object)).await.map(drop)
    }

    pub async fn patch(&self, kind: PatchKind, body: &Value) -> Result<()> {
        patch(self.context, &self.request(&http::Method::PATCH), kind, &Document::json(body)).await.map(drop)
    }

    /// Deletes the object with these DeleteOptions.
    pub async fn delete(&self, options: &Value) -> Result<()> {
        let document = Document::json(options);
        delete(self.context, &self.request(&http::Method::DELETE), Some(&document)).await.map(drop)
    }
}

/// Takes errors with one of these reasons for success: what the write was for has happened, or has become pointless.
pub fn tolerating(reasons: &[Reason], written: Result<()>) -> Result<()> {
    written.or_else(|status| if reasons.contains(&status.reason) { Ok(()) } else { Err(status) })
}
