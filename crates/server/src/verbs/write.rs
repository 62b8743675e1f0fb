//! The writing verbs: turn the body of a request into a [`Change`].

use base::request::{FieldValidation, WriteOptions, WriteVerb};
use machinery::{Release, Result, Value};
use resource::{Document, Subresource};

use super::change::{Change, Write};
use super::context::Context;
use super::list::catch_up;
use super::meta;
use super::outcome::Outcome;
use super::patch::{self, Patch, PatchKind, decode_configuration};
use super::request::{Decoding, Request};
use super::review::respond;

/// Creates the object in the body.
pub async fn create(context: &Context, request: &Request, document: &Document) -> Result<Outcome> {
    let options = WriteOptions::parse(request.query(), WriteVerb::Create)?;
    let object = request.decode(document, options.field_validation)?;
    if let Some(review) = request.resource.review() {
        return respond(context, request, review, object, &options).await;
    }
    Write::new(context, request, Change::Create(object), &options).run().await
}

/// Fails if the options of an update are invalid.
pub fn check_update_options(request: &Request) -> Result<()> {
    WriteOptions::parse(request.query(), WriteVerb::Update).map(drop)
}

/// Replaces an object by the object in the body.
pub async fn update(context: &Context, request: &Request, document: &Document) -> Result<Outcome> {
    let options = WriteOptions::parse(request.query(), WriteVerb::Update)?;
    let mut object = request.decode(document, options.field_validation)?;
    meta::place_in(&mut object, request.scope())?;
    meta::check_name(&object, request.name())?;
    Write::new(context, request, Change::Replace(object), &options).run().await
}

/// Patches an object, or applies a configuration to it.
pub async fn patch(context: &Context, request: &Request, kind: PatchKind, document: &Document) -> Result<Outcome> {
    let verb = if kind == PatchKind::Apply { WriteVerb::Apply } else { WriteVerb::Patch };
    let options = WriteOptions::parse(request.query(), verb)?;
    // recorded as it was sent, even if it cannot be decoded
    request.audit(|audit| audit.request(|| document.decode().ok().map(|decoded| decoded.value)));
    let change = decode_change(request, kind, document, &options);
    if change.is_err() && request.resource.release >= Release::V1_37 {
        patch::check_encoding(kind, document)?;
    }
    check_exists(context, request, kind).await?;
    if change.is_err()
        && let Some(stored) = request.target()?
    {
        // kube-apiserver reads the object before it decodes the patch
        let decoding = if options.dry_run { Decoding::AsGet } else { Decoding::ForUpdate };
        request.read_for_write(&stored, decoding).await?;
    }
    let change = change?;
    Write::new(context, request, change, &options).run().await
}

/// Decodes the body of a patch or of an apply.
fn decode_change(
    request: &Request,
    kind: PatchKind,
    document: &Document,
    options: &WriteOptions,
) -> Result<Change<'static>> {
    let validation = options.field_validation;
    Ok(match Patch::decode(kind, document.bytes(), validation)? {
        Some(patch) => Change::Patch(patch),
        None => {
            let (configuration, repeated) = decode_configuration(document, validation, request.resource.release)?;
            Change::Apply { configuration, force: options.force, repeated }
        }
    })
}

/// Fails if the object to patch does not exist. This precedes errors in the body, except errors of its encoding. An
/// apply may create the object, except through a subresource.
async fn check_exists(context: &Context, request: &Request, kind: PatchKind) -> Result<()> {
    let exists = || request.target().map(|found| found.is_some());
    let may_create = kind == PatchKind::Apply && request.subresource == Subresource::None;
    if exists()? || may_create {
        return Ok(());
    }
    // another server may have created the object
    catch_up(context).await?;
    if exists()? { Ok(()) } else { Err(request.not_found()) }
}

impl Request {
    /// Decodes the body of a create or an update, and records it in the audit log.
    fn decode(&self, document: &Document, validation: FieldValidation) -> Result<Value> {
        let codec = self.strategy.codec();
        let object = codec.decode(document, validation, &|warning| self.warn(warning))?;
        self.audit(|audit| audit.object(&codec.audited(&object)));
        Ok(object)
    }
}
