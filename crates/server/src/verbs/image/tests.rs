use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use access::authorization::GROUP;
use access::flow::SeatSupply;
use base::request::FeatureGates;
use kinds::{API_SERVICES, FLOW_GROUP, REGISTRATION_GROUP, RuntimeConfig};
use machinery::{Value, json};
use store::Memory;

use super::super::bootstrap;
use super::*;
use crate::assembly::{ApiConfig, Assembled, Beginning};
use crate::controllers::Controllers;

/// The kinds whose default objects are recorded. Namespaces come first.
const KINDS: [(&str, &str); 9] = [
    ("", "namespaces"),
    (FLOW_GROUP, "flowschemas"),
    (FLOW_GROUP, "prioritylevelconfigurations"),
    (GROUP, "clusterrolebindings"),
    (GROUP, "clusterroles"),
    (GROUP, "rolebindings"),
    (GROUP, "roles"),
    (REGISTRATION_GROUP, API_SERVICES),
    ("scheduling.k8s.io", "priorityclasses"),
];

fn all_switches() -> impl Iterator<Item = Switches> {
    [true, false]
        .into_iter()
        .flat_map(|fairness| [true, false].into_iter().map(move |aggregation| Switches { fairness, aggregation }))
}

/// A server of a release with its default configuration.
fn api_config(release: Release, switches: Switches) -> ApiConfig {
    let gates = FeatureGates::of(release);
    ApiConfig {
        runtime: RuntimeConfig::parse(&[], &gates).unwrap(),
        controllers: if switches.aggregation { Controllers::default() } else { Controllers::none() },
        seats: switches.fairness.then_some(SeatSupply::Own(600)),
        gates,
        ..ApiConfig::default()
    }
}

async fn load(api: &ApiConfig) -> Assembled {
    api.load(Beginning::of(objects::Storage::own(Arc::new(Memory::default())))).await.unwrap()
}

/// A stored object with placeholders in place of its uid and its times.
fn template(object: &Stored) -> String {
    let mark = |name: &str| Value::from(format!("{MARK}{name}{MARK}"));
    let mut object = object.body.to_value(0);
    object.set_at(&["metadata", "uid"], mark(UID));
    object.set_at(&["metadata", "creationTimestamp"], mark(TIME));
    for (outer, list, time) in [("metadata", "managedFields", "time"), ("status", "conditions", "lastTransitionTime")] {
        let entries = object.get_mut(outer).and_then(|outer| outer.get_mut(list)?.as_array_mut());
        entries.into_iter().flatten().for_each(|entry| entry.set_at(&[time], mark(TIME)));
    }
    object.to_json()
}

/// The objects of the recorded kinds: the place of their kind, their key and their template.
fn templates(context: &Context) -> Vec<(usize, String, String)> {
    let of_kind = |(at, (group, plural)): (usize, &(&str, &str))| {
        let objects = context.registry.get(group, plural).unwrap().collection.latest().0;
        let one = |(path, stored): (&machinery::Text, &Arc<Stored>)| {
            (at, format!("{group}/{plural}/{path}"), template(stored))
        };
        objects.iter().map(one).collect::<Vec<_>>()
    };
    KINDS.iter().enumerate().flat_map(of_kind).collect()
}

/// Compares with what the pipeline and the controllers store.
async fn made(release: Release, switches: Switches) -> Vec<(usize, String, String)> {
    let Assembled { context, controllers } = load(&api_config(release, switches)).await;
    bootstrap(&context, None, None).await.unwrap();
    controllers.finish_work(&context).await;
    templates(&context)
}

/// Run with `UPDATE_IMAGE=1` to record the objects.
#[tokio::test]
async fn image_is_what_pipeline_and_controllers_store() {
    let mut found: BTreeMap<_, BTreeMap<String, Vec<Switches>>> = BTreeMap::new();
    for release in Release::ALL {
        for switches in all_switches() {
            for object in made(release, switches).await {
                found.entry(object).or_default().entry(release.to_string()).or_default().push(switches);
            }
        }
    }
    let mut image = String::new();
    for ((_, key, template), by_release) in found {
        let mut by_condition: BTreeMap<&str, Vec<String>> = BTreeMap::new();
        for (release, switches) in by_release {
            let is_so = |holds: Condition| all_switches().filter(|one| holds(*one)).collect::<Vec<_>>();
            let condition = CONDITIONS.iter().find(|(_, holds)| is_so(*holds) == switches);
            let (word, _) = condition.unwrap_or_else(|| panic!("{key} is stored with {switches:?} alone"));
            by_condition.entry(word).or_default().push(release);
        }
        assert_eq!(template.matches(MARK).count() % 2, 0, "{key}");
        for (condition, releases) in by_condition {
            image += &format!("{} {condition} {key} {template}\n", releases.join(","));
        }
    }
    if std::env::var_os("UPDATE_IMAGE").is_some() {
        std::fs::write(concat!(env!("CARGO_MANIFEST_DIR"), "/src/verbs/image.txt"), &image).unwrap();
    } else {
        assert!(image == IMAGE, "image.txt differs from what is stored: run this test with UPDATE_IMAGE=1");
    }
}

/// A new server begins with the image, and its controllers find nothing to do.
#[tokio::test]
async fn new_server_has_what_pipeline_and_controllers_store() {
    for release in Release::ALL {
        for switches in all_switches() {
            let api = api_config(release, switches);
            let storage = objects::Storage::own(Arc::new(Memory::default()));
            let Assembled { context, controllers } = api.assemble(Beginning::of(storage)).await.unwrap();
            let revision = context.objects.revision();
            controllers.finish_work(&context).await;
            assert_eq!(context.objects.revision(), revision, "{release} {switches:?}");
            let image = Image::of(release, switches.fairness, switches.aggregation);
            let recorded =
                image.0.iter().map(|one| (format!("{}/{}/{}", one.group, one.plural, one.path), one.template));
            let stored = templates(&context).into_iter().map(|(_, key, template)| (key, template));
            assert!(stored.eq(recorded.map(|(key, template)| (key, template.to_owned()))), "{release} {switches:?}");
            let objects = context.registry.get(GROUP, "clusterroles").unwrap().collection.latest().0;
            let uids: BTreeSet<_> = objects.values().map(|stored| stored.meta.uid.clone()).collect();
            assert_eq!(uids.len(), objects.len());
        }
    }
}

#[tokio::test]
async fn changed_objects_are_repaired_in_a_store_that_has_the_others() {
    let store = Arc::new(Memory::default());
    let switches = Switches { fairness: true, aggregation: true };
    let api = api_config(Release::default(), switches);
    let start = async || api.assemble(Beginning::of(objects::Storage::own(store.clone()))).await.unwrap().context;
    let image = Image::of(Release::default(), true, true);
    let stored =
        |context: &Context| KINDS.iter().filter(|(group, plural)| image.is_stored(context, group, plural)).count();

    let context = start().await;
    assert_eq!(stored(&context), KINDS.len());
    let roles = context.registry.get(GROUP, "clusterroles").unwrap();
    let without_rules = |object: &mut Value| object.set_at(&["rules"], json!([]));
    context.as_server(&roles, "", "system:discovery").change(without_rules).await.unwrap();
    let services = context.registry.get(REGISTRATION_GROUP, API_SERVICES).unwrap();
    let unserved = services.collection.get("v1.apps").unwrap().body.to_value(0).to_json().replace("apps", "gone");
    let object = Encoded { shown_in: None, ..encoded(&unserved) };
    stored::put(&context, &services.key("", "v1.gone"), object, None).await.unwrap();
    assert_eq!(stored(&context), KINDS.len() - 1);
    drop(context);

    let context = start().await;
    let role = context.registry.get(GROUP, "clusterroles").unwrap().collection.get("system:discovery").unwrap();
    assert!(!role.body.to_value(0).items_at(&["rules"]).is_empty(), "missing rules are added");
    let services = context.registry.get(REGISTRATION_GROUP, API_SERVICES).unwrap();
    assert!(services.collection.get("v1.gone").is_none(), "a group that is not served has no APIService");
    let revision = context.objects.revision();
    drop(context);
    assert_eq!(start().await.objects.revision(), revision);
}

fn encoded(text: &str) -> Encoded {
    let Stored { body, meta, .. } = Stored::parse(0, &text.to_owned().into()).unwrap();
    Encoded { body, meta, shown_in: None }
}

#[test]
fn texts_match_their_template_with_any_uid_and_time() {
    let template = r#"{"t":"@time@","u":"@uid@"}"#;
    let (uid, time) = ("0b0a3d0c-1f6c-4f0e-8f0e-0123456789ab", "2026-01-02T03:04:05Z");
    let text = stamp(template, uid, time);
    assert_eq!(text, r#"{"t":"2026-01-02T03:04:05Z","u":"0b0a3d0c-1f6c-4f0e-8f0e-0123456789ab"}"#);
    let cases = [
        (text.clone(), true),
        (text.replace("2026", "1999"), true),
        (text.replace("\"t\"", "\"s\""), false),
        (text.replace("2026", "202"), false),
        (text.replace("01-02T", "\",\"a\":"), false),
        (text.clone() + " ", false),
        (text[..text.len() - 1].to_owned(), false),
        (String::new(), false),
    ];
    for (text, want) in cases {
        assert_eq!(is_stamped(template, text.as_bytes()), want, "{text}");
    }
}
