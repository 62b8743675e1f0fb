//! Default objects as they are stored: what the write pipeline makes of them is recorded in `image.txt`, so that a start does
//! not make it again.
//!
//! A line has the digest of the object to be created, the releases, and the stored text with placeholders for the uid and the
//! times. An object that differs from the recorded one in any byte has no line, and goes through the pipeline. A test compares
//! each line with what the pipeline stores.

use std::sync::LazyLock;

use base::{clock, digest};
use machinery::Value;
use objects::{Encoded, Stored};

use super::Request;
use super::meta;

const IMAGE: &str = include_str!("image.txt");
const UID: &str = "@uid@";
const TIME: &str = "@time@";

/// The lines by digest.
static LINES: LazyLock<Vec<(&str, &str)>> =
    LazyLock::new(|| IMAGE.lines().filter_map(|line| line.split_once(' ')).collect());

/// The digest of an object that a request creates.
fn digest_of(request: &Request, manager: &str, wanted: &Value) -> String {
    let resource = &request.resource;
    digest::short(format!("{}/{} {manager} {}", resource.group, resource.plural, wanted.to_json()).as_bytes())
}

/// A new object as the pipeline would store it, if it is recorded.
pub fn recorded(request: &Request, manager: &str, wanted: &Value) -> Option<Encoded> {
    let (digest, release) = (digest_of(request, manager, wanted), request.resource.release.to_string());
    let first = LINES.partition_point(|(of, _)| *of < digest.as_str());
    let same = LINES[first..].iter().take_while(|(of, _)| *of == digest);
    let of_release = |(_, line): &(&'static str, &'static str)| {
        line.split_once(' ').filter(|(releases, _)| releases.split(',').any(|one| one == release))
    };
    let (_, text) = same.filter_map(of_release).next()?;
    let name = |field| wanted.str_at(&["metadata", field]);
    let named = || meta::named_in(&request.resource.group, &request.resource.kind, name("namespace"), name("name"));
    let text = text.replace(TIME, &clock::now_rfc3339()).replace(UID, &clock::uid(named));
    let Stored { body, meta, .. } = Stored::parse(0, &text.into())?;
    let is_shown = request.strategy.storage_codec().is_shown_as_stored(&Value::Null);
    Some(Encoded { body, meta, shown_in: is_shown.then_some(request.version.id) })
}

#[cfg(test)]
mod tests {
    use std::collections::{BTreeMap, BTreeSet};

    use access::authorization::{GROUP, defaults};
    use access::flow;
    use base::request::FeatureGates;
    use machinery::Release;
    use resource::RuntimeConfig;
    use resource::builtin::{API_SERVICES, FLOW_GROUP, REGISTRATION_GROUP};
    use store::Memory;

    use super::super::as_server::path_of;
    use super::super::upkeep::{FLOW, PLAIN, ROLES, Upkeep};
    use super::super::{Context, Document, Subresource, bootstrap, create};
    use super::*;
    use crate::assembly::{Beginning, Blueprint};

    /// A server without any object.
    async fn bare_server(gates: &FeatureGates) -> std::sync::Arc<Context> {
        let runtime = RuntimeConfig::parse(&[], gates).unwrap();
        let blueprint = Blueprint { runtime, gates: gates.clone(), ..Blueprint::default() };
        let beginning = Beginning::of(objects::Storage::own(std::sync::Arc::new(Memory::default())));
        let context = blueprint.load(beginning).await.unwrap().context;
        bootstrap::create_namespaces(&context).await.unwrap();
        context
    }

    /// The kinds whose default objects are recorded.
    fn wanted(context: &Context) -> Vec<(Upkeep, &'static str, &'static str, Vec<Value>)> {
        let gates = context.registry.gates();
        let services = resource::built_in_api_services(&context.registry).into_values().collect();
        vec![
            (ROLES, GROUP, "clusterroles", defaults::cluster_roles(gates).collect()),
            (ROLES, GROUP, "clusterrolebindings", defaults::cluster_role_bindings(gates).collect()),
            (ROLES, GROUP, "roles", defaults::roles(gates).collect()),
            (ROLES, GROUP, "rolebindings", defaults::role_bindings(gates).collect()),
            (FLOW, FLOW_GROUP, "prioritylevelconfigurations", flow::defaults::levels()),
            (FLOW, FLOW_GROUP, "flowschemas", flow::defaults::schemas()),
            (PLAIN, REGISTRATION_GROUP, API_SERVICES, services),
        ]
    }

    /// What the pipeline stores, by digest.
    async fn stored(gates: &FeatureGates) -> BTreeMap<String, String> {
        let context = bare_server(gates).await;
        let mut lines = BTreeMap::new();
        for (kept, group, plural, objects) in wanted(&context) {
            let resource = context.registry.get(group, plural).unwrap();
            for wanted in objects {
                let place = ["namespace", "name"].map(|field| wanted.str_at(&["metadata", field]));
                let path = format!("{}?fieldManager={}", path_of(&resource, place[0], ""), kept.manager);
                let request = context.server_request(&resource, &http::Method::POST, &path, Subresource::None);
                create(&context, &request, &Document::json(&wanted)).await.unwrap();
                let stored = resource.collection.get(&resource.key(place[0], place[1]).path).unwrap();
                let mut object = stored.body.to_value(0);
                object.set_at(&["metadata", "uid"], Value::from(UID));
                object.set_at(&["metadata", "creationTimestamp"], Value::from(TIME));
                for (outer, list, time) in
                    [("metadata", "managedFields", "time"), ("status", "conditions", "lastTransitionTime")]
                {
                    let entries = object.get_mut(outer).and_then(|outer| outer.get_mut(list)?.as_array_mut());
                    entries.into_iter().flatten().for_each(|entry| entry.set_at(&[time], Value::from(TIME)));
                }
                lines.insert(digest_of(&request, kept.manager, &wanted), object.to_json());
            }
        }
        lines
    }

    /// Run with `UPDATE_IMAGE=1` to record the objects.
    #[tokio::test]
    async fn image_is_what_the_pipeline_stores() {
        let mut lines: BTreeMap<(String, String), BTreeSet<Release>> = BTreeMap::new();
        for release in Release::ALL {
            for line in stored(&FeatureGates::of(release)).await {
                lines.entry(line).or_default().insert(release);
            }
        }
        let line = |((digest, text), releases): (&(String, String), &BTreeSet<Release>)| {
            let releases: Vec<String> = releases.iter().map(Release::to_string).collect();
            format!("{digest} {} {text}\n", releases.join(","))
        };
        let image: String = lines.iter().map(line).collect();
        if std::env::var_os("UPDATE_IMAGE").is_some() {
            std::fs::write(concat!(env!("CARGO_MANIFEST_DIR"), "/src/verbs/image.txt"), &image).unwrap();
        } else {
            assert!(image == IMAGE, "image.txt differs from what is stored: run this test with UPDATE_IMAGE=1");
        }
    }

    #[tokio::test]
    async fn image_does_not_depend_on_feature_gates() {
        let all = ["AllAlpha=true".to_owned(), "AllBeta=true".to_owned()];
        for release in Release::ALL {
            let usual = stored(&FeatureGates::of(release)).await;
            for (digest, text) in stored(&FeatureGates::parse(&all, release).unwrap()).await {
                assert!(usual.get(&digest).is_none_or(|usual| *usual == text), "{release} {text}");
            }
        }
    }
}
