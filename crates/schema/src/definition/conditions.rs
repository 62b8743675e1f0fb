//! The conditions of definitions, as pure functions: names, establishing, structural schemas, API approval.

use std::collections::{HashMap, HashSet};

use machinery::url::Url;
use machinery::{FieldError, FieldPath, Map, Text, Value, status};

use super::openapi::{list, text};
use super::{conversion, structural};

/// The fields of a condition other than times.
const FIELDS: [&str; 4] = ["type", "status", "reason", "message"];

/// A condition without its time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Condition {
    pub kind: &'static str,
    pub status: &'static str,
    pub reason: String,
    pub message: String,
}

impl Condition {
    fn new(kind: &'static str, status: &'static str, reason: &str, message: impl Into<String>) -> Condition {
        Condition { kind, status, reason: reason.to_owned(), message: message.into() }
    }

    /// Whether a stored condition equals this one apart from its time.
    pub fn equals(&self, stored: &Value) -> bool {
        text(stored, "type") == self.kind
            && text(stored, "status") == self.status
            && text(stored, "reason") == self.reason
            && text(stored, "message") == self.message
    }
}

pub fn find_condition<'a>(definition: &'a Value, kind: &str) -> Option<&'a Value> {
    definition.items_at(&["status", "conditions"]).iter().find(|c| text(c, "type") == kind)
}

pub fn is_condition_true(definition: &Value, kind: &str) -> bool {
    find_condition(definition, kind).is_some_and(|c| text(c, "status") == "True")
}

/// Sets a condition. Its time only changes when its status does.
pub fn set_condition(definition: &mut Value, condition: &Condition, now: &str) {
    let mut conditions = definition.items_at(&["status", "conditions"]).to_vec();
    let position = conditions.iter().position(|c| text(c, "type") == condition.kind);
    let old = position.and_then(|i| conditions.get(i));
    let mut map = old.and_then(Value::as_object).cloned().unwrap_or_default();
    let time = old
        .filter(|o| text(o, "status") == condition.status)
        .and_then(|o| o.get("lastTransitionTime"))
        .filter(|t| !t.is_null())
        .cloned();
    map.insert("lastTransitionTime", time.unwrap_or_else(|| Value::from(now)));
    map.insert("type", Value::from(condition.kind));
    map.insert("status", Value::from(condition.status));
    for (key, value) in [("reason", &condition.reason), ("message", &condition.message)] {
        if value.is_empty() {
            map.remove(key);
        } else {
            map.insert(key, Value::from(value));
        }
    }
    match position.and_then(|i| conditions.get_mut(i)) {
        Some(slot) => *slot = Value::Object(map),
        None => conditions.push(Value::Object(map)),
    }
    definition.set_at(&["status", "conditions"], Value::Array(conditions));
}

/// Whether an object of any kind has a condition like `wanted`, apart from its time.
pub fn has_condition(object: &Value, wanted: &Value) -> bool {
    let is_wanted = |known: &Value| FIELDS.iter().all(|field| known.get(field) == wanted.get(field));
    object.items_at(&["status", "conditions"]).iter().any(is_wanted)
}

/// Adds a condition to an object of any kind, or replaces the one of its type, whose time stays if it has the same status.
pub fn replace_condition(object: &mut Value, mut condition: Value, now: &str) {
    let mut conditions = object.items_at(&["status", "conditions"]).to_vec();
    let known = conditions.iter_mut().find(|known| text(known, "type") == text(&condition, "type"));
    let same = known.as_deref().filter(|known| text(known, "status") == text(&condition, "status"));
    let since = same.map(|same| same.get("lastTransitionTime").cloned().unwrap_or_default());
    condition.set_at(&["lastTransitionTime"], since.unwrap_or_else(|| Value::from(now)));
    match known {
        Some(known) => *known = condition,
        None => conditions.push(condition),
    }
    object.set_at(&["status", "conditions"], Value::Array(conditions));
}

pub fn remove_condition(definition: &mut Value, kind: &str) {
    let conditions = definition.items_at(&["status", "conditions"]);
    let rest: Value = conditions.iter().filter(|c| text(c, "type") != kind).cloned().collect();
    definition.set_at(&["status", "conditions"], rest);
}

/// The result of the naming rules for a CRD.
#[derive(Clone, Debug, PartialEq)]
pub struct Naming {
    pub accepted_names: Value,
    pub names_accepted: Condition,
    /// The new Established condition; `None` if the stored one stays.
    pub established: Option<Condition>,
}

/// The accepted names of the definitions in one group, and how many definitions have each, since stored ones may share
/// some.
#[derive(Clone, Debug, Default)]
pub struct Taken {
    resources: HashMap<Text, usize>,
    kinds: HashMap<Text, usize>,
}

/// The resource names and the kinds among accepted names. Names that are not set are empty.
fn names_of(accepted: &Value) -> (impl Iterator<Item = &str>, [&str; 2]) {
    let short = list(accepted, "shortNames").iter().filter_map(Value::as_str);
    let resources = [text(accepted, "plural"), text(accepted, "singular")].into_iter().chain(short);
    (resources, [text(accepted, "kind"), text(accepted, "listKind")])
}

impl Taken {
    pub fn add(&mut self, accepted: &Value) {
        let (resources, kinds) = names_of(accepted);
        resources.for_each(|name| *self.resources.entry(name.into()).or_default() += 1);
        kinds.into_iter().for_each(|name| *self.kinds.entry(name.into()).or_default() += 1);
    }

    /// Removes the names that [`Taken::add`] has added.
    pub fn remove(&mut self, accepted: &Value) {
        fn remove(names: &mut HashMap<Text, usize>, name: &str) {
            if let Some(count) = names.get_mut(name) {
                *count -= 1;
                if *count == 0 {
                    names.remove(name);
                }
            }
        }
        let (resources, kinds) = names_of(accepted);
        resources.for_each(|name| remove(&mut self.resources, name));
        kinds.into_iter().for_each(|name| remove(&mut self.kinds, name));
    }
}

/// Whether a different CustomResourceDefinition has a name.
type Used<'a> = &'a dyn Fn(&str) -> bool;

/// Decides which names of `definition` are accepted. `taken` holds the names of all definitions in its group, including
/// its own. `None` if nothing changes.
pub fn naming(definition: &Value, taken: &[&Taken]) -> Option<Naming> {
    let empty = Value::Object(Map::new());
    let requested = definition.at(&["spec", "names"]).unwrap_or(&empty);
    let accepted = definition.at(&["status", "acceptedNames"]).unwrap_or(&empty);
    if requested == accepted {
        return None;
    }
    let resources = |name: &str| taken.iter().any(|taken| taken.resources.contains_key(name));
    let kinds = |name: &str| taken.iter().any(|taken| taken.kinds.contains_key(name));
    let mut names = Map::new();
    let mut conflict: Option<(&str, String)> = None;
    let in_use = |name: &str| format!("{} is already in use", machinery::value::quote(name));
    let single: [(&str, &str, Used<'_>); 5] = [
        ("plural", "PluralConflict", &resources),
        ("singular", "SingularConflict", &resources),
        ("shortNames", "", &resources),
        ("kind", "KindConflict", &kinds),
        ("listKind", "ListKindConflict", &kinds),
    ];
    for (key, reason, used) in single {
        if key == "shortNames" {
            let problems = short_name_problems(requested, accepted, used, &in_use);
            let from = if problems.is_empty() { requested } else { accepted };
            if !problems.is_empty() {
                conflict = Some(("ShortNamesConflict", status::aggregate(&problems)));
            }
            copy(key, from, &mut names);
            continue;
        }
        let (want, have) = (text(requested, key), text(accepted, key));
        if want != have && used(want) {
            conflict = Some((reason, in_use(want)));
            copy(key, accepted, &mut names);
        } else {
            copy(key, requested, &mut names);
        }
    }
    copy("categories", requested, &mut names);
    for key in ["plural", "kind"] {
        if !names.contains_key(key) {
            names.insert(key, Value::from(""));
        }
    }
    let names_accepted = match &conflict {
        Some((reason, message)) => Condition::new("NamesAccepted", "False", reason, message.as_str()),
        None => Condition::new("NamesAccepted", "True", "NoConflicts", "no conflicts found"),
    };
    let accepted_names = Value::Object(names);
    let known = find_condition(definition, "NamesAccepted").is_some_and(|c| names_accepted.equals(c));
    if accepted_names == *accepted && known {
        return None;
    }
    let established = established(definition, conflict.as_ref());
    Some(Naming { accepted_names, names_accepted, established })
}

fn copy(key: &str, from: &Value, to: &mut Map) {
    if let Some(value) = from.get(key) {
        to.insert(key, value.clone());
    }
}

fn short_name_problems(
    requested: &Value,
    accepted: &Value,
    used: Used<'_>,
    in_use: &dyn Fn(&str) -> String,
) -> Vec<String> {
    let accepted: HashSet<&str> = list(accepted, "shortNames").iter().filter_map(Value::as_str).collect();
    let requested = list(requested, "shortNames").iter().filter_map(Value::as_str);
    requested.filter(|name| !accepted.contains(name) && used(name)).map(in_use).collect()
}

/// The Established condition, where other definitions may have the names already; `None` if nothing changes.
fn established<C>(definition: &Value, conflict: Option<C>) -> Option<Condition> {
    if is_condition_true(definition, "Established") {
        return None;
    }
    if conflict.is_none() {
        let message = "the initial names have been accepted";
        return Some(Condition::new("Established", "False", "Installing", message));
    }
    match find_condition(definition, "Established") {
        Some(_) => None,
        None => Some(Condition::new("Established", "False", "NotAccepted", "not all names are accepted")),
    }
}

/// The Established condition that follows from accepted names; `None` if nothing changes.
pub fn establish(definition: &Value) -> Option<Condition> {
    if !is_condition_true(definition, "NamesAccepted") || is_condition_true(definition, "Established") {
        return None;
    }
    if has_bad_bundle(definition) {
        let message = "The conversion webhook CABundle is invalid";
        let condition = Condition::new("Established", "False", "InvalidCABundle", message);
        let known = find_condition(definition, "Established").is_some_and(|c| condition.equals(c));
        return (!known).then_some(condition);
    }
    let message = "the initial names have been accepted";
    Some(Condition::new("Established", "True", "InitialNamesAccepted", message))
}

/// Whether the CA bundle of the conversion webhook cannot be read, so that no object can be converted.
pub fn has_bad_bundle(definition: &Value) -> bool {
    let conversion = definition.at(&["spec", "conversion"]).unwrap_or(&Value::Null);
    let bundle = conversion.str_at(&["webhook", "clientConfig", "caBundle"]);
    text(conversion, "strategy") == "Webhook" && !bundle.is_empty() && conversion::ca_bundle_problem(bundle).is_some()
}

/// Whether a definition preserves unknown fields. Only then may its schemas be non-structural. Any other definition
/// with such a schema is refused, in every version of the API and even if it was stored like that.
pub fn preserves_unknown_fields(definition: &Value) -> bool {
    definition.is_true_at(&["spec", "preserveUnknownFields"])
}

/// The NonStructuralSchema condition; `None` if it is to be removed.
pub fn non_structural(definition: &Value) -> Option<Condition> {
    const KIND: &str = "NonStructuralSchema";
    let mut errors = vec![];
    if preserves_unknown_fields(definition) {
        let path = FieldPath::new("spec.preserveUnknownFields");
        errors.push(FieldError::invalid(&path, &Value::Bool(true), "must be false"));
    }
    let versions = definition.items_at(&["spec", "versions"]);
    for (i, version) in versions.iter().enumerate() {
        let Some(schema) = version.at(&["schema", "openAPIV3Schema"]) else { continue };
        if let Some(problem) = structural::unsupported(schema) {
            let name = text(version, "name");
            let message = format!("failed to check validation schema for version {name}: {problem}");
            return Some(Condition::new(KIND, "Unknown", "StructuralError", message));
        }
        let path = FieldPath::new(format!("spec.versions[{i}].schema.openAPIV3Schema"));
        errors.extend(structural::violations(schema, &path));
    }
    (!errors.is_empty()).then(|| Condition::new(KIND, "True", "Violations", status::aggregate(&errors)))
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Approval {
    Missing,
    Invalid,
    Bypassed,
    Approved,
}

pub(super) fn is_protected(group: &str) -> bool {
    ["k8s.io", "kubernetes.io"]
        .iter()
        .any(|protected| group == *protected || group.strip_suffix(protected).is_some_and(|front| front.ends_with('.')))
}

/// The state of the approval annotation, and the reason for it.
pub(super) fn approval(definition: &Value) -> (Approval, String) {
    let name = super::APPROVAL_ANNOTATION;
    let value = definition.str_at(&["metadata", "annotations", name]);
    let quoted = machinery::value::quote(name);
    let see = "see https://github.com/kubernetes/enhancements/pull/1111";
    if value.is_empty() {
        return (Approval::Missing, format!("protected groups must have approval annotation {quoted}, {see}"));
    }
    if value.starts_with("unapproved") {
        return (Approval::Bypassed, format!("not approved: {}", machinery::value::quote(value)));
    }
    match Url::parse_request(value) {
        Ok(url) if !url.host.is_empty() && !url.scheme.is_empty() => {
            (Approval::Approved, format!("approved in {value}"))
        }
        _ => {
            let how = "with either a URL or a reason starting with \"unapproved\"";
            (Approval::Invalid, format!("protected groups must have approval annotation {quoted} {how}, {see}"))
        }
    }
}

/// The KubernetesAPIApprovalPolicyConformant condition; `None` for groups that are not protected.
pub fn api_approval(definition: &Value) -> Option<Condition> {
    if !is_protected(definition.str_at(&["spec", "group"])) {
        return None;
    }
    let (state, message) = approval(definition);
    let (status, reason) = match state {
        Approval::Missing => ("False", "MissingAnnotation"),
        Approval::Invalid => ("False", "InvalidAnnotation"),
        Approval::Bypassed => ("False", "UnapprovedAnnotation"),
        Approval::Approved => ("True", "ApprovedAnnotation"),
    };
    Some(Condition::new("KubernetesAPIApprovalPolicyConformant", status, reason, message))
}
