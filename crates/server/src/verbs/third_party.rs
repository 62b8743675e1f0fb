//! The creation and deletion of ThirdPartyResources.
//!
//! Their names are checked like the names of CRDs. A deletion first deletes the instances, using the finalizer of
//! CRDs. But if a CRD with the same names takes the instances over, only the ThirdPartyResource is deleted.

use std::sync::Arc;

use kinds::{THIRD_PARTY_GROUP, THIRD_PARTY_RESOURCES, add_cleanup_finalizer};
use machinery::{FieldError, FieldPath, Result, Status, Value};
use resource::builtin::{DEFINITION_GROUP, DEFINITIONS};
use resource::{Resource, Subresource};
use schema::definition::{self, ThirdPartyNames, add_stored_versions, keeps_third_party, third_party_versions};

use super::context::Context;
use super::delete::{Pass, delete_instances};
use super::naming::{establish_peers, name_conflict, third_party_resources};
use super::request::Request;

/// Fails if names are already taken.
pub fn check_names(context: &Context, request: &Request, object: &Value) -> Result<()> {
    let name = object.str_at(&["metadata", "name"]);
    let Ok(names) = ThirdPartyNames::parse(name) else { return Ok(()) };
    let why = if context.registry.is_built_in(&names.group, &names.plural) {
        Some(format!("{:?} is already in use", names.plural))
    } else {
        name_conflict(context, object, &names)
    };
    let Some(why) = why else { return Ok(()) };
    let (path, value) = (FieldPath::new("metadata.name"), Value::from(name));
    let detail = format!("{} {} cannot be served in group {}: {why}", names.kind, names.plural, names.group);
    let (resource, error) = (&request.resource, FieldError::invalid(&path, &value, detail));
    Err(Status::invalid(&resource.group, &resource.kind, name, &[error]))
}

/// Prepares the deletion of a ThirdPartyResource. If a CRD takes its instances over, hands them over; fails if the
/// CRD does not fit. Otherwise adds a finalizer to `marked`, which stays until the instances are deleted.
pub async fn before_deletion(context: &Context, dry_run: bool, marked: &mut Value) -> Result<()> {
    if let Some(names) = successor(context, marked)? {
        return if dry_run { Ok(()) } else { hand_over(context, &names, marked).await };
    }
    add_cleanup_finalizer(marked);
    Ok(())
}

/// The names of the CRD that takes over the instances of a ThirdPartyResource; `None` if there is none.
fn successor(context: &Context, registration: &Value) -> Result<Option<ThirdPartyNames>> {
    let Ok(names) = ThirdPartyNames::parse(registration.str_at(&["metadata", "name"])) else { return Ok(None) };
    let name = names.definition();
    let definitions = context.objects.collection(&DEFINITION_GROUP.into(), &DEFINITIONS.into());
    let Some(stored) = definitions.get(&name).filter(|stored| !stored.meta.deleting) else { return Ok(None) };
    let definition = stored.body.to_value(0);
    let kept =
        keeps_third_party(&definition, registration).and_then(|()| stored_versions_fit(context, &definition, &names));
    kept.map(|()| Some(names)).map_err(|why| {
        let why = format!(
            "the CustomResourceDefinition {name:?} does not fit: {why}; correct it to keep the instances, or delete it to delete them too"
        );
        let name = registration.str_at(&["metadata", "name"]);
        Status::conflict(THIRD_PARTY_GROUP, THIRD_PARTY_RESOURCES, name, &why)
    })
}

/// The versions in which instances are stored, without duplicates.
fn stored_versions(context: &Context, names: &ThirdPartyNames) -> Vec<String> {
    let (root, _) = context.objects.collection(&names.group.as_str().into(), &names.plural.as_str().into()).latest();
    let mut versions: Vec<String> = vec![];
    for stored in root.values() {
        let version = stored.body.to_value(0).str_at(&["apiVersion"]).rsplit('/').next().unwrap_or_default().to_owned();
        if !versions.contains(&version) {
            versions.push(version);
        }
    }
    versions
}

fn stored_versions_fit(context: &Context, definition: &Value, names: &ThirdPartyNames) -> Result<(), String> {
    let versions = definition.items_at(&["spec", "versions"]);
    let known = |name: &String| versions.iter().any(|version| version.str_at(&["name"]) == name);
    match stored_versions(context, names).iter().find(|name| !known(name)) {
        Some(name) => Err(format!("instances are stored in version {name:?}, which it does not have")),
        None => Ok(()),
    }
}

/// Adds the versions in which instances are stored to the `storedVersions` of a CRD.
async fn hand_over(context: &Context, names: &ThirdPartyNames, registration: &Value) -> Result<()> {
    let Some(resource) = context.registry.get(DEFINITION_GROUP, DEFINITIONS) else { return Ok(()) };
    let found = stored_versions(context, names);
    // writes in flight will still be stored in the first version
    let first = third_party_versions(registration).into_iter().take(1);
    let versions: Vec<&str> = found.iter().map(String::as_str).chain(first).collect();
    let add = |definition: &mut Value| add_stored_versions(definition, &versions);
    context.as_server(&resource, "", &names.definition()).through(Subresource::Status).change(add).await
}

/// Makes one pass over all ThirdPartyResources that are being deleted: deletes their instances, then removes their
/// finalizer.
pub async fn finalize(context: &Context) -> Pass {
    let mut pass = Pass::default();
    let Some(resource) = third_party_resources(context) else { return pass };
    let (root, _) = resource.collection.latest();
    for (name, _) in root.iter().filter(|(_, stored)| stored.meta.deleting && stored.meta.finalizers) {
        pass.pending = true;
        if let Err(status) = finalize_one(context, &resource, name).await {
            tracing::warn!(registration = %name, error = %status, "the instances of a ThirdPartyResource cannot be deleted; will retry");
            pass.failed = true;
        }
    }
    pass
}

async fn finalize_one(context: &Context, resource: &Arc<Resource>, name: &str) -> Result<()> {
    let Ok(names) = ThirdPartyNames::parse(name) else { return Ok(()) };
    // the resource that is served under these names may belong to another ThirdPartyResource
    let served = context.registry.get(&names.group, &names.plural).filter(|served| served.third_party);
    if served.is_some_and(|served| served.terminating) {
        delete_instances(context, &names.group, &names.plural).await?;
        if !context.objects.collection(&names.group.as_str().into(), &names.plural.as_str().into()).is_empty() {
            return Ok(());
        }
    }
    let release = definition::remove_cleanup_finalizer;
    context.as_server(resource, "", name).through(Subresource::Status).change(release).await?;
    establish_peers(context, &names.group, "").await
}
