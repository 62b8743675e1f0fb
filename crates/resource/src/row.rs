//! Builds a [`Resource`] from the row of a built-in kind.

use std::sync::Arc;

use base::request::FeatureGates;
use bytes::Bytes;
use machinery::{Release, Text};
use objects::Objects;

use super::builtin::BuiltIn;
use super::version::Version;
use schema::ScalePaths;

use super::conversion::Conversion;
use super::model::{Facts, Resource};
use super::serving::Serving;

fn texts(list: &[&'static str]) -> Vec<Text> {
    list.iter().copied().map(Text::new_static).collect()
}

fn version(row: &'static BuiltIn, release: Release) -> Arc<Version> {
    let mut version = Version::encoded(Text::new_static(row.version), Bytes::new());
    version.status = row.status.is_some_and(|status| release >= status.since);
    version.deprecation = row.deprecation(release);
    version.built_in = Some(row);
    version.scale = row.scale.then(|| ScalePaths {
        spec_replicas: Text::new_static(".spec.replicas"),
        status_replicas: Text::new_static(".status.replicas"),
        label_selector: Some(Text::new_static(".spec.selector")),
    });
    Arc::new(version)
}

/// The resource of a built-in kind: `row`, and `older` versions of it that are served as well.
pub fn from_row(
    row: &'static BuiltIn,
    older: &[&'static BuiltIn],
    objects: &Objects,
    gates: &FeatureGates,
) -> Resource {
    let (group, plural) = (Text::new_static(row.group), Text::new_static(row.plural));
    let collection = objects.collection(&Text::new_static(row.storage_group()), &plural);
    let facts = Facts {
        release: gates.release(),
        gates: gates.clone(),
        group,
        plural,
        singular: Text::new_static(row.singular),
        kind: Text::new_static(row.kind),
        list_kind: Text::from(format!("{}List", row.kind)),
        short_names: texts(&row.short_names),
        categories: texts(&row.categories),
        namespaced: row.namespaced,
        versions: std::iter::once(row).chain(older.iter().copied()).map(|row| version(row, gates.release())).collect(),
        storage: 0,
        conversion: Conversion::None,
        built_in: Some(row),
        serving: &Serving::BUILT_IN,
        hooks: row.behaviour.hooks,
        deletion: &row.deletion,
        third_party: false,
        broken: false,
        established: true,
        names_accepted: true,
        terminating: false,
        fingerprint: String::new(),
        names: None,
        stored: Bytes::new(),
    };
    Resource::new(facts, collection)
}
