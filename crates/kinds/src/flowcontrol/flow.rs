//! FlowSchema and PriorityLevelConfiguration (KEP-1040).

use std::collections::HashSet;

use machinery::{Value, json, names};

use schema::at::At;

/// API group of both kinds.
pub const FLOW_GROUP: &str = "flowcontrol.apiserver.k8s.io";

/// The name of the exempt level, which is also the name of the field that only exempt levels have.
const EXEMPT_FIELD: &str = "exempt";

/// The names of the mandatory objects, whose spec is fixed.
const MANDATORY: [&str; 2] = [EXEMPT_FIELD, "catch-all"];

pub fn validate_schema(at: At) {
    const METHODS: [&str; 2] = ["ByNamespace", "ByUser"];
    let spec = at.field("spec");
    let (precedence, method) = (spec.field("matchingPrecedence"), spec.field("distinguisherMethod"));
    match precedence.value.as_int() {
        Some(..=0) => precedence.invalid("must be a positive value"),
        Some(10_001..) => precedence.invalid("must not be greater than 10000"),
        Some(1) if at.text("metadata.name") != "exempt" => {
            precedence.invalid("only the schema named 'exempt' may have matchingPrecedence 1");
        }
        _ => {}
    }
    if method.is_given() && !METHODS.contains(&method.text("type")) {
        // kube-apiserver shows the whole method
        let shown = json!({"Type": (method.text("type"))});
        method.field("type").showing(&shown, |at| at.unsupported(&METHODS));
    }
    let level = spec.field("priorityLevelConfiguration.name");
    match level.as_text() {
        "" => level.required("must reference a priority level"),
        _ => level.check_text(names::dns1123_subdomain),
    }
    spec.items_of("rules").for_each(rules);
    fixed(at, "flowcontrol.FlowSchemaSpec", &[]);
}

/// Rejects changes to the spec of a mandatory object, except to the fields in `free`.
fn fixed(at: At, go: &'static str, free: &[&str]) {
    let (name, spec) = (at.text("metadata.name"), at.field("spec"));
    let compared = |spec: &Value| {
        let mut spec = spec.clone();
        free.iter().for_each(|field| drop(spec.remove_at(&[field])));
        spec
    };
    if MANDATORY.contains(&name) && spec.old.is_some_and(|old| compared(old) != compared(spec.value)) {
        let except: String = free.iter().map(|field| format!(" except the 'spec.{field}' field")).collect();
        spec.shown_as_go(go).invalid(format!("spec of '{name}'{except} must equal the fixed value"));
    }
}

fn rules(rules: At) {
    rules.field("subjects").required_if(rules.list("subjects").is_empty(), "subjects must contain at least one value");
    rules.items_of("subjects").for_each(subject);
    if rules.list("resourceRules").is_empty() && rules.list("nonResourceRules").is_empty() {
        rules.required("at least one of resourceRules and nonResourceRules has to be non-empty");
    }
    rules.items_of("resourceRules").for_each(resource_rule);
    for rule in rules.items_of("nonResourceRules") {
        verbs(rule);
        let missing = "nonResourceURLs must contain at least one value";
        if wildcard(rule.field("nonResourceURLs"), missing, "non-resource URLs") {
            for url in rule.items_of("nonResourceURLs") {
                url_problem(url.as_text()).into_iter().for_each(|why| url.invalid(why));
            }
        }
    }
}

/// Why a rule cannot have this URL path.
fn url_problem(url: &str) -> Option<&'static str> {
    match url {
        "" => Some("must not be empty"),
        "/" => None,
        _ if !url.starts_with('/') => Some("must start with slash"),
        _ if url.contains(' ') => Some("must not contain white-space"),
        _ if url.contains("//") => Some("must not contain double slash"),
        _ if url.strip_suffix("/*").unwrap_or(url).contains('*') => Some("wildcard can only do suffix matching"),
        _ => None,
    }
}

/// Every condition of a status needs a type, which no other condition has.
pub fn validate_states(at: At) {
    let mut known = HashSet::new();
    for condition in at.items_of("status.conditions") {
        condition.field_or_empty("type").unique(&mut known);
        condition.field_or_empty("type").require_text("");
    }
}

/// The kinds of subjects, and the fields that describe them.
const SUBJECTS: [(&str, &str); 3] = [("User", "user"), ("Group", "group"), ("ServiceAccount", "serviceAccount")];

fn subject(subject: At) {
    let kind = subject.field("kind");
    let Some((_, own)) = SUBJECTS.into_iter().find(|(known, _)| *known == kind.as_text()) else {
        return kind.shown_as_json().one_of(&["Group", "ServiceAccount", "User"]);
    };
    for (of, other) in SUBJECTS.into_iter().filter(|(_, other)| *other != own && subject.has(other)) {
        subject.field(other).forbidden(format!("{other} is forbidden when subject kind is not '{of}'"));
    }
    let described = subject.field(own);
    if !described.is_given() {
        return described.required(format!("{own} is required when subject kind is '{}'", kind.as_text()));
    }
    let (name, namespace) = (described.field("name"), described.field("namespace"));
    name.require_text("");
    if own == "serviceAccount" {
        if !["", "*"].contains(&name.as_text()) {
            name.check_text(names::dns1123_subdomain);
        }
        match namespace.as_text() {
            "" => namespace.required("must specify namespace for service account"),
            _ => namespace.check_text(names::dns1123_label),
        }
    }
}

/// Validates a list in which `*` must be the only item; `missing` is the error of an empty list, `others` what the items
/// are called. Returns whether the items still have to be validated one by one.
fn wildcard(list: At, missing: &str, others: &str) -> bool {
    let (count, any) = (list.items().len(), list.items().any(|item| item.as_text() == "*"));
    if count == 0 {
        list.required(missing);
    } else if any && count > 1 {
        list.invalid(format!("if '*' is present, must not specify other {others}"));
    }
    count > 0 && !any
}

fn verbs(rule: At) {
    const KNOWN: [&str; 9] =
        ["create", "delete", "deletecollection", "get", "list", "patch", "proxy", "update", "watch"];
    let verbs = rule.field("verbs");
    let is_known = |verb: At| KNOWN.contains(&verb.as_text());
    if wildcard(verbs, "verbs must contain at least one value", "verbs") && !verbs.items().all(is_known) {
        verbs.unsupported(&KNOWN);
    }
}

fn resource_rule(rule: At) {
    verbs(rule);
    wildcard(rule.field("apiGroups"), "resource rules must supply at least one api group", "api groups");
    wildcard(rule.field("resources"), "resource rules must supply at least one resource", "resources");
    let namespaces = rule.field("namespaces");
    if namespaces.items().len() == 0 && rule.is_true("clusterScope") {
        return;
    }
    let missing = "resource rules that are not cluster scoped must supply at least one namespace";
    if wildcard(namespaces, missing, "namespaces") {
        for namespace in namespaces.items() {
            for why in names::dns1123_label(namespace.as_text()) {
                namespace.invalid(format!("each member of this list must be '*' or a DNS-1123 label; {why}"));
            }
        }
    }
}

/// The spec of a mandatory level is fixed, except that shares of the exempt one may change.
pub fn fixed_level(at: At) {
    let free: &[&str] = if at.text("metadata.name") == EXEMPT_FIELD { &[EXEMPT_FIELD] } else { &[] };
    fixed(at, "flowcontrol.PriorityLevelConfigurationSpec", free);
}

/// Validates the queues of a level. A hash picks the hand of each flow, and its bits limit the size of hands and the
/// number of queues.
pub fn queuing(queuing: At) {
    const QUEUES_MAX: i64 = 10_000_000;
    const HASH_BITS: f64 = 60.0;
    let [length, queues_at, hand_at] =
        ["queueLengthLimit", "queues", "handSize"].map(|name| queuing.field_or_zero(name));
    for at in [length, queues_at, hand_at] {
        at.at_least(1, "must be positive");
    }
    let [queues, hand] = [queues_at, hand_at].map(|at| at.value.as_int().unwrap_or_default());
    if queues > QUEUES_MAX {
        queues_at.invalid(format!("must not be greater than {QUEUES_MAX}"));
    }
    if hand < 1 {
        return;
    }
    if hand > queues {
        return hand_at.invalid(format!("should not be greater than queues ({queues})"));
    }
    if ((queues as f64).log2() * hand as f64).ceil() > HASH_BITS {
        hand_at.invalid(format!(
            "required entropy bits of deckSize {queues} and handSize {hand} should not be greater than {HASH_BITS}"
        ));
    }
}
