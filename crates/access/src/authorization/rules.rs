//! Rules of roles: matching and coverage.

use machinery::{Text, Value};

use super::AccessAttributes;

/// A rule of a role.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
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

/// Whether all items of `some` are contained.
fn has_every(list: &[Text], some: &[Text]) -> bool {
    some.iter().all(|item| list.contains(item))
}

/// Whether a URL of a rule matches a path: exactly, or by the prefix before its `*`.
fn url_covers(url: &str, path: &str) -> bool {
    url == path || (url.ends_with('*') && path.starts_with(url.trim_end_matches('*')))
}

impl PolicyRule {
    pub fn parse(value: &Value) -> PolicyRule {
        let texts = |name: &str| -> Vec<Text> {
            let items = value.get(name).and_then(Value::as_array).unwrap_or_default();
            items.iter().filter_map(Value::as_str).map(Text::from).collect()
        };
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

    /// The rules of a role.
    pub fn of_role(role: &Value) -> Vec<PolicyRule> {
        role.get("rules").and_then(Value::as_array).unwrap_or_default().iter().map(PolicyRule::parse).collect()
    }

    /// Whether the rule allows this.
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

    /// Splits a rule into rules with one verb, group, resource and name each.
    pub fn break_down(&self) -> Vec<PolicyRule> {
        let one = |text: &Text| vec![text.clone()];
        let mut out = vec![];
        for group in &self.groups {
            for resource in &self.resources {
                for verb in &self.verbs {
                    let rule = PolicyRule {
                        verbs: one(verb),
                        groups: one(group),
                        resources: one(resource),
                        ..PolicyRule::default()
                    };
                    match self.names.as_slice() {
                        [] => out.push(rule),
                        names => out.extend(names.iter().map(|name| PolicyRule { names: one(name), ..rule.clone() })),
                    }
                }
            }
        }
        for url in &self.urls {
            out.extend(self.verbs.iter().map(|verb| PolicyRule {
                verbs: one(verb),
                urls: one(url),
                ..PolicyRule::default()
            }));
        }
        out
    }

    /// Whether this rule covers the other one.
    fn covers(&self, other: &PolicyRule) -> bool {
        let all = |own: &[Text], others: &[Text]| has(own, "*") || has_every(own, others);
        let names = match other.names.as_slice() {
            [] => self.names.is_empty(),
            names => self.names.is_empty() || has_every(&self.names, names),
        };
        all(&self.verbs, &other.verbs)
            && all(&self.groups, &other.groups)
            && (has(&self.resources, "*") || other.resources.iter().all(|r| self.covers_resource(r)))
            && names
            && other.urls.iter().all(|url| self.urls.iter().any(|own| url_covers(own, url)))
    }

    fn covers_resource(&self, resource: &Text) -> bool {
        let any_sub = |sub: &str| self.resources.iter().any(|own| own.strip_prefix("*/") == Some(sub));
        self.resources.contains(resource) || resource.split_once('/').is_some_and(|(_, sub)| any_sub(sub))
    }

    /// Whether the rule is about one resource, and about one name at most.
    fn is_simple(&self) -> bool {
        self.groups.len() == 1 && self.resources.len() == 1 && self.urls.is_empty() && self.names.len() <= 1
    }

    /// Whether two simple rules differ only in their verbs.
    fn merges_with(&self, other: &PolicyRule) -> bool {
        self.is_simple()
            && other.is_simple()
            && self.groups == other.groups
            && self.resources == other.resources
            && self.names == other.names
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
        let shown: Vec<String> = given.map(|(name, list)| format!("{name}:{}", quoted(list))).collect();
        write!(f, "{{{}}}", shown.join(", "))
    }
}

/// Formats a list like Go's `%q`.
pub fn quoted(list: &[Text]) -> String {
    let items: Vec<String> = list.iter().map(|text| machinery::value::quote(text)).collect();
    format!("[{}]", items.join(" "))
}

/// The required rules that are not covered, merged if they differ only in their verbs.
pub fn missing(owned: &[PolicyRule], needed: &[PolicyRule]) -> Vec<PolicyRule> {
    let mut out: Vec<PolicyRule> = vec![];
    let parts = needed.iter().flat_map(PolicyRule::break_down);
    for part in parts.filter(|part| !owned.iter().any(|rule| rule.covers(part))) {
        match out.iter_mut().find(|rule| rule.merges_with(&part)) {
            Some(rule) => rule.verbs.extend(part.verbs),
            None => out.push(part),
        }
    }
    out
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

    #[test]
    fn missing_files_are_recreated() {
        let owned = [rule("get", "g", "a", ""), rule("get", "g", "b", "x")];
        let needed = [rule("get put del", "g", "a", ""), rule("get", "g", "b", "x y"), rule("get", "g", "b", "")];
        let shown: Vec<String> = missing(&owned, &needed).iter().map(ToString::to_string).collect();
        assert_eq!(
            shown,
            [
                "{APIGroups:[\"g\"], Resources:[\"a\"], Verbs:[\"put\" \"del\"]}",
                "{APIGroups:[\"g\"], Resources:[\"b\"], ResourceNames:[\"y\"], Verbs:[\"get\"]}",
                "{APIGroups:[\"g\"], Resources:[\"b\"], Verbs:[\"get\"]}",
            ]
        );
    }
}
