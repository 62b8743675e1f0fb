//! The objects that differ between two workspaces.

use std::collections::BTreeMap;

use machinery::{Value, json};

use super::{DiffOutput, WORKSPACES};
use crate::count::counted;
use crate::logs;
use client::{JsonClient, Method, Result, fail};

/// Media type of discovery in one document.
const DISCOVERY: &str = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList";
/// Fields that the server maintains, and that differ without a change of what users see.
const MAINTAINED: [&str; 3] = ["resourceVersion", "generation", "managedFields"];

/// The objects of a workspace by group, kind, namespace and name.
type Objects = BTreeMap<[String; 4], Value>;

/// Prints the differences. Fails with a one-line message.
pub async fn run(client: &mut JsonClient, old: &str, new: Option<&str>, output: DiffOutput) -> Result<()> {
    let (before, after) = match new {
        Some(new) => (objects(client, old).await?, objects(client, new).await?),
        None => (objects_of_origin(client, old).await?, objects(client, old).await?),
    };
    let changes = compare(&before, &after);
    let text = match output {
        DiffOutput::Text => lines(&changes),
        DiffOutput::Patch => changes.iter().filter_map(Change::patch).map(|patch| patch.to_json() + "\n").collect(),
        DiffOutput::Json => changes.iter().map(Change::to_value).collect::<Value>().to_json() + "\n",
        DiffOutput::Yaml => machinery::yaml::encode(&changes.iter().map(Change::to_value).collect::<Value>()),
    };
    logs::print(text.as_bytes())
}

/// The objects that a workspace began with, read from a fork that exists as long as that takes.
async fn objects_of_origin(client: &mut JsonClient, name: &str) -> Result<Objects> {
    let spec = json!({"from": {"workspace": name, "origin": true}, "ephemeral": true, "template": true, "ttl": "10m"});
    let object = json!({"apiVersion": "workspaces.pintle.dev/v1alpha1", "kind": "Workspace",
        "metadata": {"generateName": "origin-"}, "spec": spec});
    let created = client.call(Method::POST, WORKSPACES, "application/json", Some(&object)).await?.ok()?;
    let fork = created.str_at(&["metadata", "name"]);
    let found = match super::ready(client, fork).await {
        Ok(_) => objects(client, fork).await,
        Err(why) => match client.get(&super::path(name)).await?.code {
            404 => fail(format!("there is no workspace {name:?}")),
            _ => Err(why),
        },
    };
    super::delete(client, fork).await?;
    found
}

/// All objects of a workspace that can be listed.
async fn objects(client: &mut JsonClient, workspace: &str) -> Result<Objects> {
    let prefix = if workspace == "default" { String::new() } else { format!("/clusters/{workspace}") };
    let mut all = Objects::new();
    for root in ["/api", "/apis"] {
        let groups = client.call(Method::GET, &format!("{prefix}{root}"), DISCOVERY, None).await?.ok()?;
        for group in groups.items_at(&["items"]) {
            let name = group.str_at(&["metadata", "name"]);
            // the first version is the preferred one
            let Some(version) = group.items_at(&["versions"]).first() else { continue };
            let place = if name.is_empty() { root.to_owned() } else { format!("{root}/{name}") };
            for resource in version.items_at(&["resources"]) {
                if !resource.texts_at(&["verbs"]).any(|verb| verb == "list") || name == "workspaces.pintle.dev" {
                    continue;
                }
                let plural = resource.str_at(&["resource"]);
                let path = format!("{prefix}{place}/{}/{plural}", version.str_at(&["version"]));
                let list = client.get(&path).await?.ok()?;
                let kind = resource.str_at(&["responseKind", "kind"]);
                for object in list.items_at(&["items"]).iter().filter(|object| !is_maintained(object)) {
                    let of = |field| object.str_at(&["metadata", field]).to_owned();
                    all.insert([name.to_owned(), kind.to_owned(), of("namespace"), of("name")], visible(object));
                }
            }
        }
    }
    Ok(all)
}

/// Whether the server itself writes an object whenever it is missing: an APIService of a group that it serves, and the Leases of the
/// servers that run controllers, where several share an etcd.
fn is_maintained(object: &Value) -> bool {
    let of = |field| object.str_at(&["metadata", field]);
    let has_holder = object.at(&["spec", "holderIdentity"]).is_some();
    has_holder && of("namespace") == "kube-system" && of("name").starts_with("pintle-controllers")
        || object.at(&["metadata", "labels", "kube-aggregator.kubernetes.io/automanaged"]).is_some()
}

/// An object without the fields that the server maintains.
fn visible(object: &Value) -> Value {
    let mut object = object.clone();
    for field in MAINTAINED {
        object.remove_at(&["metadata", field]);
    }
    // only namespaces have the label; its uid is the id of the cluster
    if object.str_at(&["metadata", "labels", "kubernetes.io/metadata.name"]) == "kube-system" {
        object.remove_at(&["metadata", "uid"]);
    }
    object
}

/// An object that differs.
struct Change<'a> {
    key: &'a [String; 4],
    before: Option<&'a Value>,
    after: Option<&'a Value>,
}

fn compare<'a>(before: &'a Objects, after: &'a Objects) -> Vec<Change<'a>> {
    let gone = before.iter().filter(|(key, _)| !after.contains_key(*key));
    let gone = gone.map(|(key, object)| Change { key, before: Some(object), after: None });
    let others = after.iter().filter_map(|(key, object)| {
        let old = before.get(key);
        (old != Some(object)).then_some(Change { key, before: old, after: Some(object) })
    });
    let mut changes: Vec<Change<'a>> = gone.chain(others).collect();
    changes.sort_by(|a, b| a.key.cmp(b.key));
    changes
}

impl Change<'_> {
    fn verb(&self) -> &'static str {
        match (self.before, self.after) {
            (None, _) => "created",
            (_, None) => "deleted",
            _ => "changed",
        }
    }

    /// `Kind.group namespace/name`.
    fn name(&self) -> String {
        let [group, kind, namespace, name] = self.key;
        let dot = if group.is_empty() { "" } else { "." };
        let slash = if namespace.is_empty() { "" } else { "/" };
        format!("{kind}{dot}{group} {namespace}{slash}{name}")
    }

    fn to_value(&self) -> Value {
        let mut out = json!({"change": (self.verb()), "object": (self.name())});
        for (field, object) in [("before", self.before), ("after", self.after)] {
            if let Some(object) = object {
                out.set_at(&[field], object.clone());
            }
        }
        out
    }

    /// A merge patch (RFC 7386) that makes the changed object of the old one.
    fn patch(&self) -> Option<Value> {
        let (before, after) = (self.before?, self.after?);
        Some(json!({"object": (self.name()), "patch": (merge_patch(before, after))}))
    }
}

fn merge_patch(before: &Value, after: &Value) -> Value {
    let (Value::Object(old), Value::Object(new)) = (before, after) else { return after.clone() };
    let mut patch = json!({});
    for (key, value) in new.iter() {
        match old.get(key) {
            Some(known) if known == value => {}
            Some(known) => patch.set_at(&[key], merge_patch(known, value)),
            None => patch.set_at(&[key], value.clone()),
        }
    }
    for (key, _) in old.iter().filter(|(key, _)| new.get(key).is_none()) {
        patch.set_at(&[key], Value::Null);
    }
    patch
}

fn lines(changes: &[Change<'_>]) -> String {
    let of = |verb: &str| changes.iter().filter(|change| change.verb() == verb).count();
    let mut text: String = changes.iter().map(|change| format!("{} {}\n", change.verb(), change.name())).collect();
    text.push_str(&format!(
        "{}: {} created, {} changed, {} deleted\n",
        counted(changes.len(), "difference"),
        of("created"),
        of("changed"),
        of("deleted")
    ));
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn differences_are_sorted_and_named() {
        let objects = |list: &[(&str, i64)]| -> Objects {
            let key = |name: &str| ["g.example.com", "Foo", "n", name].map(str::to_owned);
            list.iter().map(|(name, value)| (key(name), json!({"a": 1, "b": {"c": (*value), "d": 2}}))).collect()
        };
        let (before, after) = (objects(&[("a", 1), ("b", 1), ("d", 1)]), objects(&[("b", 2), ("c", 1), ("d", 1)]));
        let changes = compare(&before, &after);
        let expected = "deleted Foo.g.example.com n/a\nchanged Foo.g.example.com n/b\ncreated Foo.g.example.com n/c\n\
                        3 differences: 1 created, 1 changed, 1 deleted\n";
        assert_eq!(lines(&changes), expected);
        let patches: Vec<Value> = changes.iter().filter_map(Change::patch).collect();
        assert_eq!(patches, [json!({"object": "Foo.g.example.com n/b", "patch": {"b": {"c": 2}}})]);
        assert_eq!(merge_patch(&json!({"a": 1, "b": [1]}), &json!({"b": [2]})), json!({"b": [2], "a": null}));
        assert_eq!(visible(&json!({"metadata": {"generation": 1, "name": "a"}})), json!({"metadata": {"name": "a"}}));
    }
}
