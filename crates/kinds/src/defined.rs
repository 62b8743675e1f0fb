//! Resources that ThirdPartyResources define: like those of CRDs, but without schemas.

use std::sync::Arc;

use base::request::FeatureGates;
use base::webhook::Client;
use machinery::{Text, Value};
use objects::{Key, Objects, Stored};
use schema::definition::{ThirdPartyNames, from_third_party};

use crate::extensions::third_party::{THIRD_PARTY_GROUP, THIRD_PARTY_RESOURCES};
use crate::runtime_config::RuntimeConfig;
use resource::builtin::{DEFINITION_GROUP, DEFINITIONS};
use resource::{Defined, Resource, from_definition, from_stored};

/// The group and plural that an object defines, if it is a CRD or a ThirdPartyResource.
pub fn defined_by(key: &Key) -> Option<(Text, Text)> {
    match (key.group.as_str(), key.plural.as_str()) {
        (DEFINITION_GROUP, DEFINITIONS) => {
            let (plural, group) = key.path.split_once('.').unwrap_or((&key.path, ""));
            Some((group.into(), plural.into()))
        }
        (THIRD_PARTY_GROUP, THIRD_PARTY_RESOURCES) => {
            let names = ThirdPartyNames::parse(&key.path).ok()?;
            Some((names.group.into(), names.plural.into()))
        }
        _ => None,
    }
}

/// The resource that a CRD or a ThirdPartyResource defines for a group and plural. A ThirdPartyResource takes
/// precedence over a CRD, so that it keeps its instances until it is deleted.
pub fn defined(
    objects: &Objects,
    client: &Arc<Client>,
    config: &RuntimeConfig,
    gates: &FeatureGates,
    group: &Text,
    plural: &Text,
) -> Defined {
    let definitions = objects.collection(&DEFINITION_GROUP.into(), &DEFINITIONS.into());
    let definition = definitions.get(&format!("{plural}.{group}"));
    let defined = definition.map(|stored| from_stored(&stored.body.bytes, objects, client, gates));
    let defined = defined.unwrap_or(Defined { resource: None, names: None });
    let registration = config.third_party_resources().then(|| registrations(objects, group)).into_iter().flatten();
    let mut own = registration.filter(|(names, _)| *names.plural == **plural);
    let registered =
        own.find_map(|(_, stored)| from_registration(&stored.body.to_value(stored.revision), objects, client, gates));
    Defined { resource: registered.or(defined.resource), ..defined }
}

/// The ThirdPartyResources of a group, each with the names parsed from its own name, sorted by name.
pub fn registrations(objects: &Objects, group: &str) -> Vec<(ThirdPartyNames, Arc<Stored>)> {
    let (root, _) = objects.collection(&THIRD_PARTY_GROUP.into(), &THIRD_PARTY_RESOURCES.into()).latest();
    let named = |(name, stored): (&Text, &Arc<Stored>)| Some((ThirdPartyNames::parse(name).ok()?, stored.clone()));
    root.iter().filter_map(named).filter(|(names, _)| names.group == group).collect()
}

fn from_registration(
    registration: &Value,
    objects: &Objects,
    client: &Arc<Client>,
    gates: &FeatureGates,
) -> Option<Resource> {
    let definition = from_third_party(registration)?;
    let mut resource = from_definition(&definition.to_json().into(), objects, client, gates)?;
    resource.facts_mut().third_party = true;
    Some(resource)
}
