//! Matching of writes by webhooks and policies.

use machinery::selector::LabelSelector;
use machinery::{Text, Value};
use resource::Version;

use super::GROUP;
use super::attributes::Attributes;
use super::sources::SourceScope;

const POLICIES: [&str; 4] = [
    "mutatingadmissionpolicies",
    "mutatingadmissionpolicybindings",
    "validatingadmissionpolicies",
    "validatingadmissionpolicybindings",
];
const WEBHOOKS: [&str; 2] = ["mutatingwebhookconfigurations", "validatingwebhookconfigurations"];

/// One of `resourceRules`, `excludeResourceRules` or of a webhook's `rules`.
#[derive(Debug)]
struct MatchRule {
    operations: Vec<Text>,
    groups: Vec<Text>,
    versions: Vec<Text>,
    resources: Vec<Text>,
    scope: Text,
    names: Vec<Text>,
}

/// `MatchResources`, or the corresponding fields of a webhook.
#[derive(Debug, Default)]
pub struct Matching {
    rules: Vec<MatchRule>,
    excluded: Vec<MatchRule>,
    /// `matchPolicy: Equivalent`: a rule matches all versions of its resources.
    equivalent: bool,
    namespaces: LabelSelector,
    objects: LabelSelector,
    /// Without rules, everything matches.
    all_without_rules: bool,
}

fn contains(patterns: &[Text], text: &str) -> bool {
    patterns.iter().any(|pattern| pattern == "*" || pattern == text)
}

impl MatchRule {
    fn all(value: &Value, key: &str) -> Vec<MatchRule> {
        let rule = |rule: &Value| MatchRule {
            operations: rule.text_list_at(&["operations"]),
            groups: rule.text_list_at(&["apiGroups"]),
            versions: rule.text_list_at(&["apiVersions"]),
            resources: rule.text_list_at(&["resources"]),
            scope: rule.str_at(&["scope"]).into(),
            names: rule.text_list_at(&["resourceNames"]),
        };
        value.items_at(&[key]).iter().map(rule).collect()
    }

    fn matches(&self, attributes: &Attributes<'_>, version: &Version) -> bool {
        let is_cluster_scoped = attributes.is_namespace() || attributes.namespace.is_empty();
        let in_scope = match self.scope.as_str() {
            "Namespaced" => !is_cluster_scoped,
            "Cluster" => is_cluster_scoped,
            _ => true,
        };
        let matches_resource = |pattern: &Text| {
            let (resource, subresource) = pattern.split_once('/').unwrap_or((pattern, ""));
            let same = resource == "*" || attributes.plural() == resource;
            same && (subresource == "*" || subresource == attributes.subresource)
        };
        in_scope
            && contains(&self.operations, attributes.operation.as_str())
            && contains(&self.groups, attributes.group())
            && contains(&self.versions, &version.name)
            && self.resources.iter().any(matches_resource)
            && (self.names.is_empty() || self.names.iter().any(|name| name == attributes.name))
    }
}

fn selector(value: &Value, key: &str) -> LabelSelector {
    value.get(key).and_then(LabelSelector::from_value).unwrap_or_default()
}

fn label<'a>(object: &'a Value, key: &str) -> Option<&'a str> {
    object.at(&["metadata", "labels"])?.get(key)?.as_str()
}

impl Matching {
    /// Reads the `MatchResources` of a policy or binding.
    pub fn of_resources(resources: &Value) -> Matching {
        Matching {
            rules: MatchRule::all(resources, "resourceRules"),
            excluded: MatchRule::all(resources, "excludeResourceRules"),
            equivalent: resources.str_at(&["matchPolicy"]) == "Equivalent",
            namespaces: selector(resources, "namespaceSelector"),
            objects: selector(resources, "objectSelector"),
            all_without_rules: true,
        }
    }

    /// Reads the rules and selectors of a webhook.
    pub fn of_webhook(webhook: &Value) -> Matching {
        let matching = Matching::of_resources(webhook);
        Matching { rules: MatchRule::all(webhook, "rules"), excluded: vec![], all_without_rules: false, ..matching }
    }

    /// Whether a write matches in any version.
    pub fn matches(&self, attributes: &Attributes<'_>) -> bool {
        self.is_everything() || self.version(attributes).is_some()
    }

    /// Whether everything matches, as for most bindings.
    fn is_everything(&self) -> bool {
        let rules = self.rules.is_empty() && self.all_without_rules && self.excluded.is_empty();
        rules && self.namespaces.is_empty() && self.objects.is_empty()
    }

    /// The version in which a write matches; `None` if it does not match.
    pub fn version<'a>(&self, attributes: &Attributes<'a>) -> Option<&'a Version> {
        if !self.matches_objects(attributes) || self.version_in(&self.excluded, attributes).is_some() {
            return None;
        }
        let version = if self.rules.is_empty() && self.all_without_rules {
            attributes.version
        } else {
            self.version_in(&self.rules, attributes)?
        };
        let in_namespace = self.namespaces.is_empty() || self.matches_namespace(attributes);
        in_namespace.then_some(version)
    }

    /// The version of the request if a rule names it; otherwise, with `matchPolicy: Equivalent`, the first version that a
    /// rule names.
    fn version_in<'a>(&self, rules: &[MatchRule], attributes: &Attributes<'a>) -> Option<&'a Version> {
        if rules.iter().any(|rule| rule.matches(attributes, attributes.version)) {
            return Some(attributes.version);
        }
        if !self.equivalent {
            return None;
        }
        let versions = &attributes.resource.versions;
        let others = || versions.iter().filter(|version| version.served && version.name != attributes.version.name);
        let matched = |rule: &MatchRule| others().find(|version| rule.matches(attributes, version));
        rules.iter().find_map(matched).map(|version| &**version)
    }

    fn matches_objects(&self, attributes: &Attributes<'_>) -> bool {
        self.objects.is_empty() || attributes.objects().any(|object| self.objects.matches(|key| label(object, key)))
    }

    /// Matches the labels of the namespace, the new ones if the write is of the namespace itself. Cluster-scoped objects
    /// always match.
    fn matches_namespace(&self, attributes: &Attributes<'_>) -> bool {
        let is_main_resource = attributes.subresource.is_empty();
        if attributes.is_namespace()
            && is_main_resource
            && let Some(object) = attributes.object
        {
            return self.namespaces.matches(|key| label(object, key));
        }
        if attributes.namespace.is_empty() {
            return true;
        }
        let found = attributes.cluster.namespace(attributes.namespace);
        found.is_some_and(|stored| self.namespaces.matches(|key| stored.meta.label(key)))
    }
}

/// The effect of an error of a policy or a webhook on the write: `failurePolicy`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FailurePolicy {
    Fail,
    Ignore,
}

impl FailurePolicy {
    /// The failure policy of a webhook, or of the `spec` of a policy.
    pub fn of(configuration: &Value) -> FailurePolicy {
        match configuration.str_at(&["failurePolicy"]) {
            "Ignore" => FailurePolicy::Ignore,
            _ => FailurePolicy::Fail,
        }
    }
}

/// The policies that see a write. No policy sees reviews, and only policies from manifests see writes of policies and
/// bindings.
pub fn scope_of_policies(attributes: &Attributes<'_>) -> Option<SourceScope> {
    let is_policy = attributes.group() == GROUP && POLICIES.contains(&attributes.plural().as_str());
    (!attributes.resource.is_review()).then_some(if is_policy { SourceScope::Manifests } else { SourceScope::All })
}

/// The webhooks that see a write. With the feature gate ExcludeAdmissionWebhookVirtualResources, no webhook sees
/// reviews. Only webhooks from manifests see writes of policies and webhook configurations.
pub fn scope_of_webhooks(attributes: &Attributes<'_>) -> Option<SourceScope> {
    let sees_reviews = !attributes.resource.gates.has(base::request::Feature::WebhooksWithoutReviews);
    let plural = attributes.plural().as_str();
    let is_configuration = POLICIES.contains(&plural) || WEBHOOKS.contains(&plural);
    let scope = if is_configuration && attributes.group() == GROUP { SourceScope::Manifests } else { SourceScope::All };
    (sees_reviews || !attributes.resource.is_review()).then_some(scope)
}
