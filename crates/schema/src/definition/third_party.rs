//! ThirdPartyResources, the predecessors of definitions, as definitions. Their name determines kind and group.

use std::collections::HashSet;

use machinery::{FieldError, FieldPath, Map, Value, json};

use super::openapi::list;

/// The names of the definition that a ThirdPartyResource stands for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ThirdPartyNames {
    pub kind: String,
    pub plural: String,
    pub group: String,
}

impl ThirdPartyNames {
    /// Parses a name: `cron-tab.stable.example.com` means the kind CronTab, the plural crontabs and the group
    /// stable.example.com. The error is upstream's text.
    pub fn parse(name: &str) -> Result<ThirdPartyNames, String> {
        let (dashed, group) = name.split_once('.').unwrap_or((name, ""));
        if !group.contains('.') {
            return Err(format!("unexpectedly short resource name: {name}, expected at least <kind>.<domain>.<tld>"));
        }
        let kind: String = dashed.split('-').map(capitalized).collect();
        let plural = plural(&kind.to_lowercase());
        Ok(ThirdPartyNames { kind, plural, group: group.to_owned() })
    }

    /// The name of the definition that serves the same resource.
    pub fn definition(&self) -> String {
        format!("{}.{}", self.plural, self.group)
    }
}

fn capitalized(part: &str) -> String {
    let mut chars = part.chars();
    chars.next().map(|first| first.to_ascii_uppercase()).into_iter().chain(chars).collect()
}

/// The plural that kubectl guesses for a lowercase kind.
fn plural(singular: &str) -> String {
    if singular.ends_with("endpoints") {
        return singular.to_owned();
    }
    match singular.strip_suffix('y') {
        Some(stem) => format!("{stem}ies"),
        None if singular.ends_with('s') => format!("{singular}es"),
        None => format!("{singular}s"),
    }
}

/// The errors of a ThirdPartyResource besides those of its metadata.
pub fn validate_third_party(registration: &Value) -> Vec<FieldError> {
    let mut errors = vec![];
    let name = registration.str_at(&["metadata", "name"]);
    if let Err(why) = ThirdPartyNames::parse(name) {
        errors.push(FieldError::invalid(&FieldPath::new("metadata.name"), &Value::from(name), why));
    }
    let mut met = HashSet::new();
    for (i, version) in list(registration, "versions").iter().enumerate() {
        let path = FieldPath::new("versions").index(i).child("name");
        let name = Value::from(version.str_at(&["name"]));
        if name.as_str() == Some("") {
            errors.push(FieldError::invalid(&path, &name, "must not be empty"));
        } else if !met.insert(version.str_at(&["name"])) {
            errors.push(FieldError::duplicate(&path, &name));
        }
    }
    errors
}

/// The names of the versions of a ThirdPartyResource. Objects are stored in the first one.
pub fn third_party_versions(registration: &Value) -> Vec<&str> {
    list(registration, "versions").iter().map(|version| version.str_at(&["name"])).collect()
}

/// A ThirdPartyResource as the stored form of an equivalent definition, which has no schemas and is established. `None`
/// if the name cannot be parsed.
pub fn from_third_party(registration: &Value) -> Option<Value> {
    let names = ThirdPartyNames::parse(registration.str_at(&["metadata", "name"])).ok()?;
    let mut definition = skeleton(registration, &names, |_| {});
    definition.set_at(&["spec", "preserveUnknownFields"], Value::Bool(true));
    definition.set_at(&["spec", "conversion"], json!({"strategy": "None"}));
    for key in ["uid", "creationTimestamp", "deletionTimestamp"] {
        if let Some(value) = registration.at(&["metadata", key]) {
            definition.set_at(&["metadata", key], value.clone());
        }
    }
    let accepted = definition.at(&["spec", "names"]).cloned().unwrap_or_default();
    let held = |kind: &str| json!({"type": kind, "status": "True"});
    let conditions = json!([(held("NamesAccepted")), (held("Established"))]);
    definition.set_at(&["status"], json!({"acceptedNames": accepted, "conditions": conditions}));
    Some(definition)
}

/// The definition that a user creates to keep what a ThirdPartyResource serves.
pub fn successor_of_third_party(registration: &Value) -> Result<Value, String> {
    let names = ThirdPartyNames::parse(registration.str_at(&["metadata", "name"]))?;
    let free = json!({"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": true}});
    Ok(skeleton(registration, &names, |version| version.set_at(&["schema"], free.clone())))
}

fn skeleton(registration: &Value, names: &ThirdPartyNames, complete: impl Fn(&mut Value)) -> Value {
    let versions = third_party_versions(registration).into_iter().enumerate().map(|(i, name)| {
        let mut version = json!({"name": name, "served": true, "storage": (i == 0)});
        complete(&mut version);
        version
    });
    let versions: Value = versions.collect();
    let singular = names.kind.to_lowercase();
    let list_kind = format!("{}List", names.kind);
    json!({
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": (names.definition())},
        "spec": {
            "group": (&names.group),
            "names": {"kind": (&names.kind), "listKind": list_kind, "plural": (&names.plural), "singular": singular},
            "scope": "Namespaced",
            "versions": versions
        }
    })
}

/// Whether a definition would go on serving the objects of a ThirdPartyResource once that is deleted. The error says why
/// not.
pub fn keeps_third_party(definition: &Value, registration: &Value) -> Result<(), String> {
    let names = ThirdPartyNames::parse(registration.str_at(&["metadata", "name"]))?;
    let want = |what: &str, found: &str, wanted: &str| match found == wanted {
        true => Ok(()),
        false => Err(format!("{what} is {found:?}, not {wanted:?}")),
    };
    let text = |path: &[&str]| definition.str_at(path).to_owned();
    want("spec.group", &text(&["spec", "group"]), &names.group)?;
    want("spec.names.plural", &text(&["spec", "names", "plural"]), &names.plural)?;
    want("spec.names.kind", &text(&["spec", "names", "kind"]), &names.kind)?;
    want("spec.scope", &text(&["spec", "scope"]), "Namespaced")?;
    let versions = definition.get("spec").map(|spec| list(spec, "versions")).unwrap_or_default();
    let served = versions.iter().filter(|version| version.is_true_at(&["served"]));
    let served: HashSet<&str> = served.map(|version| version.str_at(&["name"])).collect();
    if let Some(name) = third_party_versions(registration).into_iter().find(|name| !served.contains(name)) {
        return Err(format!("version {name:?} is not served"));
    }
    if super::is_condition_true(definition, "Established") { Ok(()) } else { Err("it is not established".to_owned()) }
}

/// Adds versions to the `status.storedVersions` of a definition.
pub fn add_stored_versions(definition: &mut Value, versions: &[&str]) {
    let stored = definition.items_at(&["status", "storedVersions"]);
    let mut known: HashSet<&str> = stored.iter().filter_map(Value::as_str).collect();
    let added: Vec<Value> = versions.iter().filter(|name| known.insert(name)).map(|name| Value::from(*name)).collect();
    let stored = [stored, &added].concat();
    if !matches!(definition.get("status"), Some(Value::Object(_))) {
        definition.set_at(&["status"], Value::Object(Map::new()));
    }
    definition.set_at(&["status", "storedVersions"], Value::Array(stored));
}

#[cfg(test)]
mod tests {
    use super::super::{ApiVersion, decode, prepare_for_create, validate_create};
    use super::*;

    /// The part of the name that stands for a kind.
    fn dashed(kind: &str) -> String {
        let inner = |(i, c): (usize, char)| {
            let dash = (i > 0 && c.is_ascii_uppercase()).then_some('-');
            dash.into_iter().chain(Some(c.to_ascii_lowercase()))
        };
        kind.chars().enumerate().flat_map(inner).collect()
    }

    #[test]
    fn names_say_kind_and_group() {
        let cases = [
            ("cron-tab.stable.example.com", "CronTab", "crontabs", "stable.example.com"),
            ("camel-case-kind.mygroup.example.com", "CamelCaseKind", "camelcasekinds", "mygroup.example.com"),
            ("foo.company.com", "Foo", "foos", "company.com"),
            ("network-policy.acme.org", "NetworkPolicy", "networkpolicies", "acme.org"),
            ("storage-class.acme.org", "StorageClass", "storageclasses", "acme.org"),
            ("mail-box.acme.org", "MailBox", "mailboxs", "acme.org"),
            ("my-endpoints.acme.org", "MyEndpoints", "myendpoints", "acme.org"),
            ("x-3d.acme.org", "X3d", "x3ds", "acme.org"),
        ];
        for (name, kind, plural, group) in cases {
            let names = ThirdPartyNames::parse(name).unwrap();
            assert_eq!((&*names.kind, &*names.plural, &*names.group), (kind, plural, group), "{name}");
            if !kind.contains('3') {
                assert_eq!(format!("{}.{group}", dashed(kind)), name);
            }
        }
        for name in ["foo", "foo.com"] {
            let why = format!("unexpectedly short resource name: {name}, expected at least <kind>.<domain>.<tld>");
            assert_eq!(ThirdPartyNames::parse(name), Err(why));
        }
    }

    #[test]
    fn version_names_are_unique() {
        let registration = json!({"metadata": {"name": "foo.com"}, "versions": [{"name": "v1"}, {}, {"name": "v1"}]});
        let texts: Vec<String> = validate_third_party(&registration).iter().map(ToString::to_string).collect();
        let want = [
            "metadata.name: Invalid value: \"foo.com\": unexpectedly short resource name: foo.com, expected at least <kind>.<domain>.<tld>",
            "versions[1].name: Invalid value: \"\": must not be empty",
            "versions[2].name: Duplicate value: \"v1\"",
        ];
        assert_eq!(texts, want);
    }

    #[test]
    fn definitions_of_the_same_names_keep_third_party_resources() {
        let registration =
            json!({"metadata": {"name": "cron-tab.stable.example.com"}, "versions": [{"name": "v1"}, {"name": "v2"}]});
        let successor = successor_of_third_party(&registration).unwrap();
        let mut read = decode(&successor, ApiVersion::V1).unwrap().definition;
        prepare_for_create(&mut read);
        assert_eq!(validate_create(&read, machinery::Release::NEWEST), []);
        assert_eq!(keeps_third_party(&successor, &registration), Err("it is not established".to_owned()));
        let own = from_third_party(&registration).unwrap();
        assert_eq!(keeps_third_party(&own, &registration), Ok(()));
        let without = |path: &[&str], value: Value| {
            let mut other = own.clone();
            other.set_at(path, value);
            keeps_third_party(&other, &registration).unwrap_err()
        };
        assert_eq!(without(&["spec", "scope"], "Cluster".into()), "spec.scope is \"Cluster\", not \"Namespaced\"");
        assert_eq!(without(&["spec", "names", "kind"], "Cron".into()), "spec.names.kind is \"Cron\", not \"CronTab\"");
        assert_eq!(
            without(&["spec", "versions"], json!([{"name": "v1", "served": true}])),
            "version \"v2\" is not served"
        );
        add_stored_versions(&mut read, &["v2", "v1"]);
        assert_eq!(read.at(&["status", "storedVersions"]), Some(&json!(["v1", "v2"])));
    }
}
