//! Rules of roles: matching and coverage.

use machinery::value::quote_list;
use machinery::{Text, Value};

use super::AccessAttributes;

/// A rule of a role.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct PolicyRule {
    pub verbs: Vec<Text>,
    pub groups: Vec<Text>,
    pub resources: Vec<Text>,
    pub names: Vec<Text>,
    pub urls: Vec<Text>,
}

fn has(list: &[Text], text: &str) -> bool {
    list.iter().any(|item| item == text)
}

fn has_or_all(list: &[Text], text: &str) -> bool {
    list.iter().any(|item| item == text || item == "*")
}

/// Whether a URL of a rule matches a path: exactly, or by the prefix before its `*`.
fn url_covers(url: &str, path: &str) -> bool {
    url == path || (url.ends_with('*') && path.starts_with(url.trim_end_matches('*')))
}

impl PolicyRule {
    pub fn parse(value: &Value) -> PolicyRule {
        let texts = |name| value.text_list_at(&[name]);
        PolicyRule {
            verbs: texts("verbs"),
            groups: texts("apiGroups"),
            resources: texts("resources"),
            names: texts("resourceNames"),
            urls: texts("nonResourceURLs"),
        }
    }

    /// The rules that allow everything: one for resources, one for paths.
    pub fn all() -> [PolicyRule; 2] {
        let all = || vec![Text::new_static("*")];
        [
            PolicyRule { verbs: all(), groups: all(), resources: all(), ..PolicyRule::default() },
            PolicyRule { verbs: all(), urls: all(), ..PolicyRule::default() },
        ]
    }

    pub fn of_role(role: &Value) -> Vec<PolicyRule> {
        role.items_at(&["rules"]).iter().map(PolicyRule::parse).collect()
    }

    fn lists(&self) -> [&[Text]; 5] {
        [&self.verbs, &self.groups, &self.resources, &self.names, &self.urls]
    }

    /// The number of items of all lists.
    pub fn items(&self) -> usize {
        self.lists().iter().map(|list| list.len()).sum()
    }

    /// About the size in bytes of the rule in a response.
    pub fn bytes(&self) -> usize {
        const OVERHEAD: usize = 32;
        let texts = self.lists().into_iter().flatten();
        OVERHEAD + texts.map(|text| text.len() + OVERHEAD / 8).sum::<usize>()
    }

    /// Whether the rule allows a request with these attributes.
    pub fn allows(&self, attributes: &AccessAttributes<'_>) -> bool {
        if !has_or_all(&self.verbs, attributes.verb) {
            return false;
        }
        if !attributes.is_resource {
            return self.urls.iter().any(|url| url_covers(url, attributes.path));
        }
        has_or_all(&self.groups, attributes.group)
            && self.resources.iter().any(|resource| names_resource(resource, attributes))
            && (self.names.is_empty() || has(&self.names, attributes.name))
    }
}

fn names_resource(pattern: &str, attributes: &AccessAttributes<'_>) -> bool {
    if pattern == "*" {
        return true;
    }
    if attributes.subresource.is_empty() {
        return pattern == attributes.resource;
    }
    match pattern.split_once('/') {
        Some((resource, sub)) => sub == attributes.subresource && (resource == "*" || resource == attributes.resource),
        None => false,
    }
}

impl std::fmt::Display for PolicyRule {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let parts = [
            ("APIGroups", &self.groups),
            ("Resources", &self.resources),
            ("NonResourceURLs", &self.urls),
            ("ResourceNames", &self.names),
            ("Verbs", &self.verbs),
        ];
        let given = parts.iter().filter(|(_, list)| !list.is_empty());
        let shown: Vec<String> = given.map(|(name, list)| format!("{name}:{}", quote_list(list))).collect();
        write!(f, "{{{}}}", shown.join(", "))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rule(verbs: &str, group: &str, resources: &str, names: &str) -> PolicyRule {
        let list = |text: &str| text.split_whitespace().map(Text::from).collect();
        PolicyRule {
            verbs: list(verbs),
            groups: vec![group.into()],
            resources: list(resources),
            names: list(names),
            urls: vec![],
        }
    }

    #[test]
    fn rules_allow_what_they_name() {
        let cases = [
            (rule("get", "g", "foos", ""), "get", "foos", "", "x", true),
            (rule("get", "g", "foos", ""), "get", "foos", "status", "x", false),
            (rule("*", "*", "*", ""), "get", "foos", "status", "x", true),
            (rule("get", "g", "*/status", ""), "get", "foos", "status", "x", true),
            (rule("get", "g", "foos/*", ""), "get", "foos", "status", "x", false),
            (rule("get", "g", "foos/status", ""), "get", "foos", "status", "x", true),
            (rule("get list", "g", "foos", "x"), "list", "foos", "", "", false),
            (rule("get list", "g", "foos", "x"), "get", "foos", "", "x", true),
            (rule("get", "h", "foos", ""), "get", "foos", "", "x", false),
        ];
        for (rule, verb, resource, subresource, name, allowed) in cases {
            let attributes = AccessAttributes {
                verb,
                group: "g",
                resource,
                subresource,
                name,
                is_resource: true,
                ..AccessAttributes::default()
            };
            assert_eq!(rule.allows(&attributes), allowed, "{rule} {verb} {resource}/{subresource} {name}");
        }
        let urls =
            PolicyRule { verbs: vec!["get".into()], urls: vec!["/a".into(), "/b/*".into()], ..PolicyRule::default() };
        for (path, allowed) in [("/a", true), ("/a/b", false), ("/b/c", true), ("/b", false)] {
            assert_eq!(
                urls.allows(&AccessAttributes { verb: "get", path, ..AccessAttributes::default() }),
                allowed,
                "{path}"
            );
        }
    }
}
