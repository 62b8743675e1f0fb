//! The requests, and the events of watches, that an object of `testing.pintle.dev` concerns.

use base::request::{RequestInfo, Verb};
use machinery::selector::LabelSelector;
use machinery::{Text, Value};

use super::choice::hash_of;

/// Conditions on requests and events. An empty list matches everything.
#[derive(Clone, Debug, Default)]
pub struct Matcher {
    users: Vec<Text>,
    agents: Vec<Text>,
    verbs: Vec<Text>,
    groups: Vec<Text>,
    resources: Vec<Text>,
    namespaces: Vec<Text>,
    names: Vec<Text>,
    selector: Option<LabelSelector>,
}

/// A request, or an event of a watch.
pub struct Matchable<'a> {
    pub user: &'a str,
    pub agent: &'a str,
    /// `None` for an event of a watch.
    pub verb: Option<Verb>,
    pub group: &'a str,
    pub resource: &'a str,
    pub subresource: &'a str,
    pub namespace: &'a str,
    pub name: &'a str,
    /// Whether the request reads the state of objects.
    pub reads_state: bool,
    /// Whether kube-apiserver would serve the request from its cache.
    pub may_be_stale: bool,
}

impl Matchable<'_> {
    /// The hash of the verb, the resource and the object. The client is left out: its user and version may differ between runs.
    pub fn subject(&self) -> u64 {
        let verb = self.verb.map_or("", Verb::as_str);
        hash_of([verb, self.group, self.resource, self.subresource, self.namespace, self.name])
    }

    /// The hash of the client, by its user and program.
    pub fn client(&self) -> u64 {
        hash_of([self.user, self.agent.split('/').next().unwrap_or_default()])
    }
}

impl Matcher {
    /// Reads a `match` that its schema has validated. Fails with a one-line message.
    pub fn read(value: &Value) -> Result<Matcher, String> {
        let texts = |name: &str| -> Vec<Text> {
            value.items_at(&[name]).iter().filter_map(Value::as_str).map(Text::from).collect()
        };
        let selector = match value.get("selector") {
            None | Some(Value::Null) => None,
            Some(selector) => {
                Some(LabelSelector::from_value(selector).ok_or("match.selector is not a label selector")?)
            }
        };
        Ok(Matcher {
            users: texts("users"),
            agents: texts("userAgents"),
            verbs: texts("verbs"),
            groups: texts("groups"),
            resources: texts("resources"),
            namespaces: texts("namespaces"),
            names: texts("names"),
            selector,
        })
    }

    /// Restricts the matcher to these verbs, unless it names verbs itself.
    pub fn or_verbs(mut self, verbs: &[&str]) -> Matcher {
        if self.verbs.is_empty() {
            self.verbs = verbs.iter().map(|verb| Text::from(*verb)).collect();
        }
        self
    }

    /// Whether the matcher matches. `labels` returns the labels of the object, if they are known.
    pub fn matches<'l>(&self, target: &Matchable<'_>, labels: impl FnOnce() -> Option<&'l [(Text, Text)]>) -> bool {
        self.is_about(target)
            && self.selector.as_ref().is_none_or(|selector| labels().is_some_and(|labels| selector.selects(labels)))
    }

    /// Whether the labels of the object are compared.
    pub fn needs_labels(&self) -> bool {
        self.selector.is_some()
    }

    fn is_about(&self, target: &Matchable<'_>) -> bool {
        let full = || format!("{}/{}", target.resource, target.subresource);
        let resource = |patterns: &[Text]| match target.subresource {
            "" => has(patterns, target.resource),
            _ => has(patterns, &full()),
        };
        has(&self.users, target.user)
            && has(&self.agents, target.agent)
            && target.verb.is_none_or(|verb| has(&self.verbs, verb.as_str()))
            && has(&self.groups, target.group)
            && (self.resources.is_empty() || resource(&self.resources))
            && has(&self.namespaces, target.namespace)
            && has(&self.names, target.name)
    }
}

/// Whether a list matches a text. An empty list matches every text.
fn has(patterns: &[Text], text: &str) -> bool {
    patterns.is_empty() || patterns.iter().any(|pattern| fits(pattern, text))
}

/// Whether a text equals a pattern, or begins with the text before the pattern's `*`.
pub fn fits(pattern: &str, text: &str) -> bool {
    match pattern.strip_suffix('*') {
        Some(beginning) => text.starts_with(beginning),
        None => pattern == text,
    }
}

/// Describes a request: its verb, resource and object.
pub fn described(info: &RequestInfo) -> String {
    let mut text = format!("{} {}", info.verb.as_str(), info.resource);
    for (mark, part) in [('/', &info.subresource), ('.', &info.group), (' ', &info.namespace), ('/', &info.name)] {
        if !part.is_empty() {
            text.push(if mark == '/' && info.namespace.is_empty() && part == &info.name { ' ' } else { mark });
            text.push_str(part);
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use machinery::json;

    use super::*;

    const MATCHABLE: Matchable<'static> = Matchable {
        user: "system:serviceaccount:default:robo",
        agent: "manager/v1 (linux)",
        verb: Some(Verb::Update),
        group: "apps",
        resource: "deployments",
        subresource: "status",
        namespace: "default",
        name: "web",
        reads_state: false,
        may_be_stale: false,
    };

    #[test]
    fn every_given_list_must_match() {
        let labels = [(Text::from("tier"), Text::from("front"))];
        let cases = [
            (json!({}), true),
            (json!({"users": ["ann", "system:serviceaccount:default:*"]}), true),
            (json!({"users": ["system:serviceaccount:default"]}), false),
            (json!({"userAgents": ["manager/*"], "verbs": ["update"]}), true),
            (json!({"userAgents": ["manager/*"], "verbs": ["get"]}), false),
            (json!({"groups": [""]}), false),
            (json!({"groups": ["apps"], "resources": ["deployments"]}), false),
            (json!({"resources": ["deployments/status"]}), true),
            (json!({"resources": ["deployments/*"]}), true),
            (json!({"resources": ["deploy*"]}), true),
            (json!({"namespaces": ["default"], "names": ["web"]}), true),
            (json!({"names": ["db"]}), false),
            (json!({"selector": {"matchLabels": {"tier": "front"}}}), true),
            (json!({"selector": {"matchLabels": {"tier": "back"}}}), false),
            (json!({"selector": {"matchExpressions": [{"key": "tier", "operator": "Exists"}]}}), true),
        ];
        for (value, wanted) in cases {
            let matcher = Matcher::read(&value).unwrap();
            assert_eq!(matcher.matches(&MATCHABLE, || Some(&labels)), wanted, "{}", value.to_json());
        }
        let labelled = Matcher::read(&json!({"selector": {"matchLabels": {"tier": "front"}}})).unwrap();
        assert!(!labelled.matches(&MATCHABLE, || None), "an unknown object has no labels");
        let verbs = Matcher::read(&json!({"verbs": ["get"]})).unwrap();
        assert!(verbs.matches(&Matchable { verb: None, ..MATCHABLE }, || None), "verbs do not matter for events");
    }
}
