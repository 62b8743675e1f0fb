//! Where the objects of sources belong in a store, and the definitions of kinds that no source defines.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use base::clock;
use machinery::time::rfc3339;
use machinery::{Text, Value, json};

use crate::capture::{Capture, Captured, CapturedLog, LogKey};
use crate::layouts;
use crate::packed::PackedObject;
use crate::problems::Problems;

/// The annotation of definitions and Namespaces that were inferred from objects.
pub const INFERRED: &str = "sources.pintle.dev/inferred";
/// The annotation of objects whose version is no longer served, with that version.
const CAPTURED_VERSION: &str = "sources.pintle.dev/captured-version";

const DEFINITIONS: (&str, &str) = ("apiextensions.k8s.io", "customresourcedefinitions");

/// Facts of a kind that a server knows by itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Known {
    Kind(KnownKind),
    /// The kind, of which no version is served.
    NotServed,
    Nothing,
}

/// The resource of a kind.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KnownKind {
    pub group: Text,
    pub plural: Text,
    pub namespaced: bool,
    /// The version in which its objects are served; empty if that is their own.
    pub api_version: Text,
}

/// An object, and where it belongs.
#[derive(Clone, Debug, PartialEq)]
pub struct Planned {
    pub group: Text,
    pub plural: Text,
    /// `namespace/name`, or `name` for objects of the cluster.
    pub path: Text,
    pub object: PackedObject,
    pub origin: Origin,
}

/// Where an object comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Origin {
    /// From a cluster.
    Captured,
    /// No server has seen it: it is a manifest.
    Written,
}

/// The content of all sources together.
#[derive(Debug, Default)]
pub struct Plan {
    /// In the order of their resourceVersions.
    pub objects: Vec<Planned>,
    /// The number of objects that the sources have.
    captured: usize,
    /// The number of their kinds, and of those whose definition was inferred.
    kinds: usize,
    inferred: usize,
    pub logs: BTreeMap<LogKey, CapturedLog>,
    /// The latest moment of a capture.
    pub moment: Option<i64>,
    pub problems: Problems,
    /// The number of objects that today's rules would refuse, if it was counted.
    pub invalid: usize,
    names: Vec<String>,
}

impl Plan {
    /// The line at the start: "3 objects of 2 kinds from bundle.tar.gz; 1 skipped, 1 kind without a definition".
    pub fn summary(&self) -> String {
        let mut text = format!(
            "{} of {} from {}",
            counted(self.captured, "object"),
            counted(self.kinds, "kind"),
            self.names.join(", ")
        );
        let without = format!("{} without a definition", counted(self.inferred, "kind"));
        let skipped = format!("{} skipped", thousands(self.problems.count()));
        let invalid = format!("{} invalid", thousands(self.invalid));
        let notes = [(self.problems.count(), skipped), (self.invalid, invalid), (self.inferred, without)];
        let notes: Vec<String> = notes.into_iter().filter(|(count, _)| *count > 0).map(|(_, note)| note).collect();
        if !notes.is_empty() {
            text += &format!("; {}", notes.join(", "));
        }
        text
    }
}

fn counted(count: usize, noun: &str) -> String {
    format!("{} {noun}{}", thousands(count), if count == 1 { "" } else { "s" })
}

/// A number with commas.
fn thousands(number: usize) -> String {
    let digits = number.to_string();
    let mut text = String::new();
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// A kind whose definition no source has.
struct Inferred {
    plural: Text,
    versions: BTreeSet<String>,
    namespaced: bool,
}

type GroupKind = (Text, Text);

fn group_kind(object: &PackedObject) -> GroupKind {
    (object.group().into(), object.kind.clone())
}

/// The kinds that the definitions of sources define.
fn defined(captures: &[Capture]) -> HashMap<GroupKind, KnownKind> {
    let objects = captures.iter().flat_map(|capture| &capture.objects).map(|captured| &captured.object);
    let definitions =
        objects.filter(|object| (object.group(), &*object.kind) == (DEFINITIONS.0, "CustomResourceDefinition"));
    definitions
        .map(|definition| {
            let definition = definition.value();
            let text = |path: &[&str]| Text::from(definition.str_at(path));
            let kind = KnownKind {
                group: text(&["spec", "group"]),
                plural: text(&["spec", "names", "plural"]),
                namespaced: definition.str_at(&["spec", "scope"]) != "Cluster",
                api_version: Text::default(),
            };
            ((kind.group.clone(), text(&["spec", "names", "kind"])), kind)
        })
        .collect()
}

/// All kinds that are known.
struct Kinds<'a> {
    known: &'a dyn Fn(&str, &str) -> Known,
    defined: HashMap<GroupKind, KnownKind>,
    inferred: BTreeMap<GroupKind, Inferred>,
}

impl Kinds<'_> {
    /// The resource of an object. Fails with a one-line message.
    fn of(&self, object: &PackedObject) -> Result<KnownKind, String> {
        let (version, kind) = (&object.api_version, &object.kind);
        match (self.known)(version, kind) {
            Known::Kind(kind) => return Ok(kind),
            Known::NotServed => return Err(format!("{version} {kind} is not served")),
            Known::Nothing => {}
        }
        let of_group = group_kind(object);
        match (self.defined.get(&of_group), self.inferred.get(&of_group)) {
            (Some(kind), _) => Ok(kind.clone()),
            (None, Some(Inferred { plural, namespaced, .. })) => {
                let (group, plural, api_version) = (of_group.0, plural.clone(), Text::default());
                Ok(KnownKind { group, plural, namespaced: *namespaced, api_version })
            }
            (None, None) => Err(format!("{version} {kind} is not a kind")),
        }
    }
}

/// Plans the content of a store. Of two objects with one name, that of the later source wins, or the newer one of the same.
pub fn plan(captures: Vec<Capture>, known: &dyn Fn(&str, &str) -> Known) -> Plan {
    let defined = defined(&captures);
    let inferred = inferred(&captures, &defined, known);
    let mut kinds = Kinds { known, defined, inferred };
    let mut plan = Plan::default();
    let mut chosen: HashMap<(Text, Text, Text), (usize, PackedObject)> = HashMap::new();
    for (source, capture) in captures.into_iter().enumerate() {
        plan.moment = plan.moment.max(capture.moment);
        plan.names.push(capture.name);
        plan.logs.extend(capture.logs);
        plan.problems.extend(capture.problems);
        for Captured { mut object, path, .. } in capture.objects {
            let resource = match kinds.of(&object) {
                Ok(resource) => resource,
                Err(why) => {
                    plan.problems.add(&path, &why);
                    continue;
                }
            };
            let at = match completed(&mut object, &resource) {
                Ok(at) => at,
                Err(why) => {
                    plan.problems.add(&path, why);
                    continue;
                }
            };
            let key = (resource.group, resource.plural, at);
            if let Some((_, other)) = chosen.get(&key).filter(|(of, _)| *of == source) {
                if other.revision > object.revision || other.revision == object.revision && is_in_other_version(&object)
                {
                    continue;
                }
                // tools write an object to several files, and Events in both of their groups
                if other.revision == object.revision && differ(other, &object) {
                    plan.problems.add(&path, "an object has the name of another one, which is not served");
                }
            }
            chosen.insert(key, (source, object));
        }
    }
    let stored: BTreeSet<(&str, &str)> =
        chosen.keys().map(|(group, plural, _)| (group.as_str(), plural.as_str())).collect();
    plan.kinds = stored.len();
    let inferred = &mut kinds.inferred;
    inferred.retain(|(group, _), kind| stored.contains(&(group.as_str(), kind.plural.as_str())));
    plan.inferred = inferred.len();
    let mut objects: Vec<((usize, u64), Planned)> = chosen
        .into_iter()
        .map(|((group, plural, path), (source, object))| {
            ((source, object.revision), Planned { group, plural, path, object, origin: Origin::Captured })
        })
        .collect();
    // those without a resourceVersion have an order that does not vary from run to run
    objects.sort_by(|(a, one), (b, other)| {
        (a, &one.group, &one.plural, &one.path).cmp(&(b, &other.group, &other.plural, &other.path))
    });
    let moment = plan.moment.unwrap_or_else(clock::now_seconds);
    let namespaces = missing_namespaces(objects.iter().map(|(_, planned)| planned));
    plan.captured = objects.len();
    plan.objects = namespaces.iter().map(|name| namespace(name)).collect();
    plan.objects.extend(inferred.iter().map(|((group, kind), inferred)| definition(group, kind, inferred)));
    plan.objects.extend(objects.into_iter().map(|(_, planned)| planned));
    plan.objects.iter_mut().for_each(|planned| identify(planned, moment));
    plan
}

/// The kinds of objects that neither the server nor a source defines.
fn inferred(
    captures: &[Capture],
    defined: &HashMap<GroupKind, KnownKind>,
    known: &dyn Fn(&str, &str) -> Known,
) -> BTreeMap<GroupKind, Inferred> {
    let mut found: BTreeMap<GroupKind, Inferred> = BTreeMap::new();
    for captured in captures.iter().flat_map(|capture| &capture.objects) {
        let object = &captured.object;
        let (group, version, kind) = (object.group(), object.version(), &object.kind);
        let key = group_kind(object);
        if group.is_empty() || defined.contains_key(&key) || known(&object.api_version, kind) != Known::Nothing {
            continue;
        }
        let is_name = |name: &str| machinery::names::dns1123_subdomain(name).is_empty();
        if !is_name(group) || !is_name(version) || !is_name(&kind.to_ascii_lowercase()) {
            continue;
        }
        let plural = || captured.plural.clone().unwrap_or_else(|| layouts::plural(&captured.path, kind)).into();
        let inferred = found.entry(key).or_insert_with(|| Inferred {
            plural: plural(),
            versions: BTreeSet::new(),
            namespaced: false,
        });
        inferred.versions.insert(version.to_owned());
        inferred.namespaced |= !object.namespace.is_empty();
    }
    found
}

/// The namespaces of objects that no source has, in which nothing could be written; `default` if there would be none.
fn missing_namespaces<'a>(objects: impl Iterator<Item = &'a Planned> + Clone) -> BTreeSet<String> {
    let is_namespace = |planned: &&Planned| planned.group.is_empty() && planned.plural == "namespaces";
    let known: BTreeSet<&str> = objects.clone().filter(is_namespace).map(|planned| planned.path.as_str()).collect();
    let used = objects.filter_map(|planned| planned.path.split_once('/').map(|(namespace, _)| namespace));
    let default = known.is_empty().then_some("default");
    used.chain(default).filter(|name| !known.contains(name)).map(str::to_owned).collect()
}

fn namespace(name: &str) -> Planned {
    let value = json!({
        "apiVersion": "v1",
        "kind": "Namespace",
        "metadata": {
            "name": name,
            "labels": {"kubernetes.io/metadata.name": name},
            "annotations": {"sources.pintle.dev/inferred": "true"}
        },
        "spec": {"finalizers": ["kubernetes"]},
        "status": {"phase": "Active"}
    });
    written(("", "namespaces"), name, value)
}

/// The definition of a kind that was inferred. Its objects have any fields.
fn definition(group: &str, kind: &str, Inferred { plural, versions, namespaced }: &Inferred) -> Planned {
    let name = format!("{plural}.{group}");
    let newest = versions.last().cloned().unwrap_or_default();
    let of_version = |version: &String| {
        json!({
            "name": (version.as_str()),
            "served": true,
            "storage": (*version == newest),
            "schema": {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": true}}
        })
    };
    let mut value = json!({
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": (name.as_str()), "annotations": {"sources.pintle.dev/inferred": "true"}},
        "spec": {
            "group": group,
            "names": {
                "kind": kind,
                "listKind": (format!("{kind}List")),
                "plural": (plural.as_str()),
                "singular": (kind.to_ascii_lowercase())
            },
            "scope": (if *namespaced { "Namespaced" } else { "Cluster" })
        }
    });
    value.set_at(&["spec", "versions"], Value::Array(versions.iter().map(of_version).collect()));
    written(DEFINITIONS, &name, value)
}

fn written((group, plural): (&str, &str), path: &str, value: Value) -> Planned {
    let object = PackedObject::of(value);
    Planned { group: group.into(), plural: plural.into(), path: path.into(), object, origin: Origin::Written }
}

/// Whether two objects of one version differ.
fn differ(one: &PackedObject, other: &PackedObject) -> bool {
    one.api_version == other.api_version && !is_in_other_version(one) && one.json() != other.json()
}

/// Whether an object was captured in a version that is no longer served.
fn is_in_other_version(object: &PackedObject) -> bool {
    object.mentions(CAPTURED_VERSION)
}

/// Gives an object the version in which its kind is served, and the namespace of its scope. Returns its path.
fn completed(object: &mut PackedObject, resource: &KnownKind) -> Result<Text, &'static str> {
    let is_plain = |name: &str| {
        !name.is_empty() && name.len() <= 253 && !name.contains(['/', '\0', '%']) && name != "." && name != ".."
    };
    if !is_plain(&object.name) {
        return Err("an object has no valid name");
    }
    if !resource.api_version.is_empty() && resource.api_version != object.api_version {
        let captured = object.api_version.clone();
        object.edit(|value| {
            value.set_at(&["apiVersion"], Value::from(resource.api_version.as_str()));
            value.set_at(&["metadata", "annotations", CAPTURED_VERSION], Value::from(captured.as_str()));
        });
    }
    match (resource.namespaced, object.namespace.as_str()) {
        (true, "") => object.edit(|value| value.set_at(&["metadata", "namespace"], Value::from("default"))),
        (true, namespace) if !is_plain(namespace) => return Err("an object has no valid namespace"),
        (false, namespace) if !namespace.is_empty() => {
            object.edit(|value| drop(value.remove_at(&["metadata", "namespace"])));
        }
        _ => {}
    }
    let PackedObject { namespace, name, .. } = object;
    Ok(if resource.namespaced { format!("{namespace}/{name}").into() } else { name.clone() })
}

/// Gives an object that never was in a cluster what clients identify it by.
fn identify(Planned { object, origin, .. }: &mut Planned, moment: i64) {
    if object.has_uid && object.has_creation_time {
        return;
    }
    let has_uid = object.has_uid;
    let is_namespace = (object.api_version.as_str(), object.kind.as_str()) == ("v1", "Namespace");
    object.edit(|value| {
        if !has_uid {
            *origin = Origin::Written;
            value.set_at(&["metadata", "uid"], Value::from(clock::uuid()));
            if is_namespace && value.items_at(&["spec", "finalizers"]).is_empty() {
                // as it gets them when it is created, so that its objects are deleted with it
                value.set_at(&["spec", "finalizers"], json!(["kubernetes"]));
                value.set_at(&["status", "phase"], Value::from("Active"));
            }
        }
        if value.str_at(&["metadata", "creationTimestamp"]).is_empty() {
            value.set_at(&["metadata", "creationTimestamp"], Value::from(rfc3339(moment)));
        }
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    fn captured(value: Value, path: &str) -> Captured {
        Captured { object: PackedObject::of(value), path: path.into(), plural: None }
    }

    fn known(version: &str, kind: &str) -> Known {
        let kind_of = |group: &str, plural: &str, namespaced| {
            let (group, plural) = (group.into(), plural.into());
            Known::Kind(KnownKind { group, plural, namespaced, api_version: Text::default() })
        };
        match (version, kind) {
            ("v1", "Pod") => kind_of("", "pods", true),
            ("v1", "Node") => kind_of("", "nodes", false),
            ("apiextensions.k8s.io/v1", _) => kind_of(DEFINITIONS.0, DEFINITIONS.1, false),
            ("policy/v1beta1", _) => Known::NotServed,
            ("autoscaling/v2beta1", _) => Known::Kind(KnownKind {
                group: "autoscaling".into(),
                plural: "hpas".into(),
                namespaced: true,
                api_version: "autoscaling/v2".into(),
            }),
            ("autoscaling/v2", _) => kind_of("autoscaling", "hpas", true),
            _ => Known::Nothing,
        }
    }

    fn object(version: &str, kind: &str, namespace: &str, name: &str, revision: u64) -> Captured {
        let metadata =
            json!({"name": name, "namespace": namespace, "uid": "u", "resourceVersion": (revision.to_string())});
        captured(json!({"apiVersion": version, "kind": kind, "metadata": metadata}), "x/gizmoes.yaml")
    }

    /// Two objects of one version, of which the second was captured in another one.
    fn assert_versions(planned: &[Planned]) {
        let objects: Vec<Value> = planned.iter().map(|planned| planned.object.value()).collect();
        let captured = |value: &Value| value.str_at(&["metadata", "annotations", CAPTURED_VERSION]).to_owned();
        assert_eq!(objects.iter().map(captured).collect::<Vec<_>>(), ["", "autoscaling/v2beta1"]);
        assert!(objects.iter().all(|object| object.str_at(&["apiVersion"]) == "autoscaling/v2"));
    }

    #[test]
    fn objects_find_their_places() {
        let definition = json!({"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "metadata": {"name": "as.g.io"},
            "spec": {"group": "g.io", "scope": "Cluster", "names": {"plural": "as", "kind": "A"}}});
        let first = Capture {
            name: "first".to_owned(),
            moment: Some(5),
            objects: vec![
                object("v1", "Pod", "n", "late", 20),
                object("v1", "Pod", "n", "p", 9),
                object("v1", "Pod", "n", "p", 7),
                object("v1", "Node", "n", "node", 1),
                object("v1", "Node", "n", "node", 1),
                captured(
                    json!({"apiVersion": "v1", "kind": "Node", "metadata": {"name": "node", "resourceVersion": "1"}}),
                    "x/node.yaml",
                ),
                object("v1", "Pod", "", "in-default", 2),
                object("v1", "Pod", "n", "a/../b", 2),
                object("v1", "Unknown", "n", "p", 2),
                object("policy/v1beta1", "PodDisruptionBudget", "n", "p", 2),
                object("autoscaling/v2beta1", "H", "n", "old", 6),
                object("autoscaling/v2", "H", "n", "both", 6),
                object("autoscaling/v2beta1", "H", "n", "both", 6),
                object("g.io/v1", "A", "", "a", 3),
                object("h.io/v1", "Gizmo", "n", "g", 4),
                object("h.io/v2", "Gizmo", "n", "h", 5),
                captured(definition, "crd.yaml"),
            ],
            ..Capture::default()
        };
        let mut newer = object("v1", "Pod", "n", "p", 1);
        newer.object.edit(|value| value.set_at(&["spec"], json!({"nodeName": "x"})));
        let second = Capture { name: "second".to_owned(), objects: vec![newer], ..Capture::default() };
        let plan = plan(vec![first, second], &known);
        let places: Vec<String> =
            plan.objects.iter().map(|one| format!("{}/{}/{}", one.group, one.plural, one.path)).collect();
        assert_eq!(
            places,
            [
                "/namespaces/default",
                "/namespaces/n",
                "apiextensions.k8s.io/customresourcedefinitions/gizmoes.h.io",
                "apiextensions.k8s.io/customresourcedefinitions/as.g.io",
                "/nodes/node",
                "/pods/default/in-default",
                "g.io/as/a",
                "h.io/gizmoes/n/g",
                "h.io/gizmoes/n/h",
                "autoscaling/hpas/n/both",
                "autoscaling/hpas/n/old",
                "/pods/n/late",
                "/pods/n/p",
            ]
        );
        assert_eq!(plan.summary(), "10 objects of 6 kinds from first, second; 4 skipped, 1 kind without a definition");
        assert_eq!(plan.objects[12].object.value().str_at(&["spec", "nodeName"]), "x");
        assert_versions(&plan.objects[9..11]);
        let inferred = plan.objects[2].object.value();
        assert_eq!(inferred.str_at(&["metadata", "annotations", INFERRED]), "true");
        assert_eq!(inferred.str_at(&["metadata", "creationTimestamp"]), "1970-01-01T00:00:05Z");
        assert_eq!(inferred.items_at(&["spec", "versions"]).len(), 2);
        let all = plan.problems.lines().join("|");
        assert!(
            all.contains("v1 Unknown is not a kind")
                && all.contains("policy/v1beta1 PodDisruptionBudget is not served"),
            "{all}"
        );
        assert!(all.contains("an object has no valid name"), "{all}");
        assert!(all.contains("x/node.yaml: an object has the name of another one"), "{all}");
    }

    #[test]
    fn numbers_have_commas() {
        for (number, want) in [(0, "0"), (999, "999"), (48_312, "48,312"), (1_000_000, "1,000,000")] {
            assert_eq!(thousands(number), want);
        }
    }
}
