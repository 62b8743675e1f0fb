//! Which requests, and which events of watches, an object of `testing.pintle.dev` is about.

use base::request::{RequestInfo, Verb};
use machinery::selector::LabelSelector;
use machinery::{Text, Value};

/// What requests and events are matched by. A list that is empty matches all.
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
    /// `None` for the events of a watch.
    pub verb: Option<Verb>,
    pub group: &'a str,
    pub resource: &'a str,
    pub subresource: &'a str,
    pub namespace: &'a str,
    pub name: &'a str,
    /// Whether it reads the state of objects.
    pub reads_state: bool,
    /// Whether kube-apiserver would serve it from its cache.
    pub may_be_stale: bool,
}

impl Matcher {
    /// Reads a `match` that its schema has validated. The error is one line.
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

    /// This, but only for some verbs, unless it names verbs itself.
    pub fn or_verbs(mut self, verbs: &[&str]) -> Matcher {
        if self.verbs.is_empty() {
            self.verbs = verbs.iter().map(|verb| Text::from(*verb)).collect();
        }
        self
    }

    /// Whether it matches. `labels` returns those of the object, if it is known.
    pub fn matches<'l>(&self, target: &Matchable<'_>, labels: impl FnOnce() -> Option<&'l [(Text, Text)]>) -> bool {
        self.is_about(target)
            && self.selector.as_ref().is_none_or(|selector| labels().is_some_and(|labels| selector.selects(labels)))
    }

    /// Whether the labels of the object matter.
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

/// Whether a list has a text, or is empty.
fn has(patterns: &[Text], text: &str) -> bool {
    patterns.is_empty() || patterns.iter().any(|pattern| fits(pattern, text))
}

/// Whether a text is that of a pattern, or begins with what precedes its `*`.
pub fn fits(pattern: &str, text: &str) -> bool {
    match pattern.strip_suffix('*') {
        Some(beginning) => text.starts_with(beginning),
        None => pattern == text,
    }
}

/// The verb, the resource and the object of a request.
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
