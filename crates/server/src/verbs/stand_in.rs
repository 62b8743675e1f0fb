//! Objects that take the place of stored ones in dry runs. A verdict on an update then needs no write, so other
//! requests see no change, and requests for different objects need not wait for each other.

use std::sync::Arc;

use access::admission::Operation;
use base::request::{FieldValidation, WriteOptions};
use machinery::{Result, Value};
use objects::Stored;
use resource::builtin::Hooks;
use resource::{Document, Resource, Version};
use store::Revision;

use super::admit::{self, Admit};
use super::change::{Change, Write};
use super::context::Context;
use super::deposit::{completed, own_request};
use super::{hooks, meta, naming};

/// Where the object of a stand-in comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Provenance {
    /// A server has stored it, so it has everything that the server sets.
    Server,
    /// It is in a file, as a client would send it to create the object.
    File,
}

/// An object that takes the place of the stored one.
pub struct StandIn {
    pub stored: Arc<Stored>,
    /// Fields that the server adds when it creates the object, besides defaults. `None` if a server has stored it.
    pub addition: Option<Addition>,
}

impl StandIn {
    /// The resourceVersion with which a client can update the stand-in.
    pub fn revision(&self) -> Revision {
        self.stored.revision
    }
}

/// The object of a file, with its defaults, before and after a server has created it.
pub struct Addition {
    pub given: Value,
    pub created: Value,
}

/// Makes a stand-in from an object in `version`, in the collection at a path. It is not validated, because an earlier
/// server may have accepted it under other rules.
pub async fn stand_in(
    context: &Context,
    resource: &Arc<Resource>,
    version: &Arc<Version>,
    path: &str,
    object: &Value,
    origin: Provenance,
) -> Result<StandIn> {
    let mut request = own_request(context, resource, version, path);
    request.admitted = origin == Provenance::File;
    let object = request.strategy.codec().decode(&Document::json(object), FieldValidation::Ignore, &|_| {})?;
    let options = WriteOptions { dry_run: true, ..WriteOptions::default() };
    let (object, addition) = match origin {
        Provenance::Server => (completed(&request, object), None),
        Provenance::File => {
            let mut write = Write::new(context, &request, Change::Create(object), &options);
            let (given, mut created) = write.as_created().await?;
            if resource.hooks == Hooks::Definition {
                naming::set_established(context, &mut created);
            }
            (created.clone(), Some(Addition { given, created }))
        }
    };
    let write = Write::new(context, &request, Change::Create(Value::Null), &options);
    let encoded = write.encode(object, None).await?;
    // a client that sends no resourceVersion updates whatever there is, so any revision will do
    let stored = Stored::new(context.objects.revision().max(1), encoded.body, encoded.meta);
    Ok(StandIn { stored: Arc::new(stored), addition })
}

impl Write<'_> {
    /// The object of a create before and after admission and preparation, without validation.
    async fn as_created(&mut self) -> Result<(Value, Value)> {
        let Some(changed) = self.changed(None).await? else { return Ok((Value::Null, Value::Null)) };
        let given = changed.object;
        let options = admit::write_options("CreateOptions", self.options);
        let name = self.name_of(&given, false);
        let admit = Admit { options: &options, name: &name, ..self.admit(Operation::Create) };
        let mut object = match self.admitted_new(&admit, given.clone()).await {
            Ok((object, _)) => object,
            // an earlier server may have admitted what is refused now
            Err(_) => {
                let mut object = given.clone();
                meta::fill_system_fields(&mut object);
                object
            }
        };
        let mut reserved = object.clone();
        if let Ok(reservation) = hooks::reserve(self, &mut reserved, None).await {
            hooks::finish_reservation(self.context, reservation, &Ok(None)).await;
            object = reserved;
        }
        self.request.strategy.prepare_for_create(&mut object);
        Ok((given, object))
    }
}
