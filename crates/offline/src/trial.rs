//! A changed definition, tried on real objects.

use machinery::Value;
use schema::diff::{Change, checks};

use crate::engine::{Engine, Options, Provenance, RequestOptions, Target};
use crate::error::Error;

/// Tries a definition on objects that were stored under a former one: each is updated almost unchanged, with
/// ratcheting, and then created as if it were new. Returns what breaks, by object. Fails with a one-line message.
pub async fn on_objects(definition: &Value, objects: &[Value]) -> Result<Vec<Change>, Error> {
    let engine = Engine::start(&Options::default()).await?;
    let target = engine.target(definition).ok_or("definitions are not served")?;
    let mut own = definition.clone();
    for field in ["resourceVersion", "uid", "managedFields", "creationTimestamp", "generation"] {
        own.remove_at(&["metadata", field]);
    }
    let verdict = engine.create(&target, &own, &RequestOptions::default()).await;
    if let Some((_, message)) = verdict.error() {
        return Err(format!("the objects cannot be tried, since the definition is refused: {message}").into());
    }
    let mut changes = vec![];
    for object in objects.iter().filter(|object| is_of(definition, object)) {
        changes.extend(Trial { engine: &engine, object }.changes().await);
    }
    Ok(changes)
}

/// Whether an object is of the kind that a definition defines.
fn is_of(definition: &Value, object: &Value) -> bool {
    let group = object.str_at(&["apiVersion"]).split_once('/').map_or("", |(group, _)| group);
    group == definition.str_at(&["spec", "group"])
        && object.str_at(&["kind"]) == definition.str_at(&["spec", "names", "kind"])
}

struct Trial<'t> {
    engine: &'t Engine,
    object: &'t Value,
}

impl Trial<'_> {
    async fn changes(&self) -> Vec<Change> {
        let Some(target) = self.engine.target(self.object) else {
            return vec![self.change(&checks::OBJECT_NOT_SERVED, "the version of the object is not served".to_owned())];
        };
        let mut object = self.object.clone();
        for field in ["resourceVersion", "uid", "managedFields", "creationTimestamp", "generation", "selfLink"] {
            object.remove_at(&["metadata", field]);
        }
        let mut changes = vec![];
        changes.extend(self.pruned(&target, &object).await);
        let mut touched = object.clone();
        touched.set_at(&["metadata", "annotations", "pintle.dev/touched"], Value::from("true"));
        let options = RequestOptions::default();
        let updated = self.engine.update_of(&target, (&object, Provenance::Server), &touched, &options).await;
        if let Some((_, message)) = updated.error() {
            changes.push(self.change(&checks::OBJECT_REFUSED, format!("it cannot be updated: {message}")));
            return changes;
        }
        let dry = RequestOptions { dry_run: true, ..options };
        let created = self.engine.create(&target, &object, &dry).await;
        if let Some((_, message)) = created.error() {
            changes.push(self.change(&checks::OBJECT_INVALID, format!("it is invalid: {message}")));
        }
        changes
    }

    /// The fields that the schema does not have, as the server names them.
    async fn pruned(&self, target: &Target, object: &Value) -> Option<Change> {
        let dry = RequestOptions { dry_run: true, ..RequestOptions::default() };
        let unknown = self.engine.update_of(target, (object, Provenance::Server), object, &dry).await.warnings;
        let unknown: Vec<&str> = unknown.iter().filter_map(|warning| warning.strip_prefix("unknown field ")).collect();
        if unknown.is_empty() {
            return None;
        }
        Some(self.change(&checks::OBJECT_PRUNED, format!("unknown fields are dropped: {}", unknown.join(", "))))
    }

    fn change(&self, check: &'static checks::Check, reason: String) -> Change {
        let text = |path: &[&str]| self.object.str_at(path).to_owned();
        let (namespace, name) = (text(&["metadata", "namespace"]), text(&["metadata", "name"]));
        let name = if namespace.is_empty() { name } else { format!("{namespace}/{name}") };
        let version = text(&["apiVersion"]).rsplit('/').next().unwrap_or_default().to_owned();
        let path = format!("{} {name}", text(&["kind"]));
        Change { check, severity: check.severity, version, path, reason }
    }
}

/// The definitions of a server.
pub const DEFINITIONS: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";

/// The path of all objects that a definition defines, in its storage version.
pub fn path_of(definition: &Value) -> String {
    let versions = definition.items_at(&["spec", "versions"]);
    let is_usable = |version: &&Value| version.is_true_at(&["served"]);
    let stored = versions.iter().find(|version| is_usable(version) && version.is_true_at(&["storage"]));
    let version = stored.or_else(|| versions.iter().find(is_usable)).map_or("", |version| version.str_at(&["name"]));
    let (group, plural) = (definition.str_at(&["spec", "group"]), definition.str_at(&["spec", "names", "plural"]));
    format!("/apis/{group}/{version}/{plural}")
}

#[cfg(test)]
mod tests {
    use machinery::json;

    use super::*;

    fn definition(crew: &str) -> Value {
        with_rules(crew, "")
    }

    /// A definition with rules of the whole object.
    fn with_rules(crew: &str, rules: &str) -> Value {
        let text = format!(
            "apiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\nmetadata: {{name: boats.example.com}}\nspec: \
             {{group: example.com, scope: Namespaced, names: {{plural: boats, kind: Boat}}, versions: [{{name: v1, served: true, \
             storage: true, schema: {{openAPIV3Schema: {{type: object, x-kubernetes-validations: [{rules}], properties: {{spec: {{type: object, properties: \
             {{crew: {{{crew}}}}}}}}}}}}}}}]}}\n"
        );
        machinery::yaml::decode(text.as_bytes()).unwrap().value
    }

    fn boat(version: &str, spec: Value) -> Value {
        json!({
            "apiVersion": (format!("example.com/{version}")), "kind": "Boat", "metadata": {"name": "argo", "namespace": "n"},
            "spec": spec
        })
    }

    #[tokio::test]
    async fn objects_are_updated_and_created() {
        let rule = "x-kubernetes-validations: [{rule: self == oldSelf || self > 3}]";
        for (crew, object, wanted) in [
            ("type: integer", boat("v1", json!({"crew": 5})), vec![]),
            ("type: integer, maximum: 4", boat("v1", json!({"crew": 5})), vec!["object-invalid"]),
            (&format!("type: integer, {rule}"), boat("v1", json!({"crew": 1})), vec![]),
            ("type: integer", boat("v1", json!({"crew": 5, "home": "b"})), vec!["object-pruned"]),
            ("type: integer", boat("v2", json!({})), vec!["object-not-served"]),
            ("type: integer", json!({"apiVersion": "v1", "kind": "ConfigMap"}), vec![]),
        ] {
            let changes = on_objects(&definition(crew), std::slice::from_ref(&object)).await.unwrap();
            let names: Vec<&str> = changes.iter().map(|change| change.check.name).collect();
            assert_eq!(names, wanted, "{crew} {}: {changes:?}", object.to_json());
        }
        let refusing = with_rules("type: integer", "{rule: self.spec.crew < 5}");
        let changes = on_objects(&refusing, &[boat("v1", json!({"crew": 5}))]).await.unwrap();
        assert_eq!(
            (changes.len(), changes[0].check.name, changes[0].path.as_str()),
            (1, "object-refused", "Boat n/argo")
        );
        let error = on_objects(&definition("type: strin"), &[]).await.unwrap_err();
        assert!(error.to_string().starts_with("the objects cannot be tried"), "{error}");
    }

    #[test]
    fn objects_are_read_in_the_storage_version() {
        assert_eq!(path_of(&definition("type: integer")), "/apis/example.com/v1/boats");
    }
}
