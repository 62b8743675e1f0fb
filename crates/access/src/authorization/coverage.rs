//! Coverage of rules by other rules, for the prevention of privilege escalation.

use std::collections::{BTreeSet, HashMap, HashSet};

use machinery::Text;

use super::PolicyRule;
use crate::limits;

/// The parts of the required rules exceed [`limits::RULE_PARTS_BYTES_MAX`].
#[derive(Debug, PartialEq, Eq)]
pub struct TooManyParts;

/// The required rules that are not covered, merged if they differ only in their verbs. A rule that a single rule covers is
/// not split into parts, so that its size does not matter.
pub fn missing(owned: &[PolicyRule], needed: &[PolicyRule]) -> Result<Vec<PolicyRule>, TooManyParts> {
    let owned: Vec<OwnedRule<'_>> = owned.iter().map(OwnedRule::new).collect();
    let mut missing = MissingRules::default();
    let mut bytes = 0;
    for rule in needed.iter().filter(|rule| !owned.iter().any(|owned| owned.covers_rule(rule))) {
        for part in parts(rule) {
            bytes += part.bytes();
            if bytes > limits::RULE_PARTS_BYTES_MAX {
                return Err(TooManyParts);
            }
            if !owned.iter().any(|owned| owned.covers(part)) {
                missing.add(part);
            }
        }
    }
    Ok(missing.rules)
}

/// The smallest permission that a rule consists of.
#[derive(Clone, Copy)]
enum Part<'a> {
    Resource { target: Target<'a>, verb: &'a Text },
    Url { url: &'a Text, verb: &'a Text },
}

/// A resource of a group, restricted to the object `name` if there is one.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
struct Target<'a> {
    group: &'a Text,
    resource: &'a Text,
    name: Option<&'a Text>,
}

impl Part<'_> {
    fn bytes(&self) -> usize {
        let texts = match self {
            Part::Resource { target: Target { group, resource, name }, verb } => {
                group.len() + resource.len() + name.map_or(0, |name| name.len()) + verb.len()
            }
            Part::Url { url, verb } => url.len() + verb.len(),
        };
        limits::RULE_PART_BYTES + texts
    }
}

/// The parts of a rule. Each step makes one: the lists that are multiplied are not empty.
fn parts(rule: &PolicyRule) -> impl Iterator<Item = Part<'_>> {
    let groups: &[Text] = if rule.resources.is_empty() || rule.verbs.is_empty() { &[] } else { &rule.groups };
    let urls: &[Text] = if rule.verbs.is_empty() { &[] } else { &rule.urls };
    let resources = groups.iter().flat_map(|group| rule.resources.iter().map(move |resource| (group, resource)));
    let targets = resources.flat_map(|(group, resource)| {
        let unnamed = rule.names.is_empty().then_some(None);
        let names = unnamed.into_iter().chain(rule.names.iter().map(Some));
        names.map(move |name| Target { group, resource, name })
    });
    let of_targets = targets.flat_map(|target| rule.verbs.iter().map(move |verb| Part::Resource { target, verb }));
    let of_urls = urls.iter().flat_map(|url| rule.verbs.iter().map(move |verb| Part::Url { url, verb }));
    of_targets.chain(of_urls)
}

/// A list of a rule in which `*` stands for everything.
struct Names<'a> {
    names: HashSet<&'a str>,
    has_all: bool,
}

impl<'a> Names<'a> {
    fn new(list: &'a [Text]) -> Names<'a> {
        let names: HashSet<&str> = list.iter().map(Text::as_str).collect();
        Names { has_all: names.contains("*"), names }
    }

    fn covers(&self, name: &str) -> bool {
        self.has_all || self.names.contains(name)
    }

    fn covers_all(&self, names: &[Text]) -> bool {
        self.has_all || names.iter().all(|name| self.names.contains(name.as_str()))
    }
}

/// A rule that a user has, indexed.
struct OwnedRule<'a> {
    verbs: Names<'a>,
    groups: Names<'a>,
    resources: Names<'a>,
    /// The subresources of entries such as `*/scale`.
    subresources: HashSet<&'a str>,
    /// The names of objects; none means that the rule is not restricted.
    names: HashSet<&'a str>,
    urls: Urls<'a>,
}

impl<'a> OwnedRule<'a> {
    fn new(rule: &'a PolicyRule) -> OwnedRule<'a> {
        OwnedRule {
            verbs: Names::new(&rule.verbs),
            groups: Names::new(&rule.groups),
            resources: Names::new(&rule.resources),
            subresources: rule.resources.iter().filter_map(|resource| resource.strip_prefix("*/")).collect(),
            names: rule.names.iter().map(Text::as_str).collect(),
            urls: Urls::new(&rule.urls),
        }
    }

    fn covers_resource(&self, resource: &str) -> bool {
        self.resources.covers(resource)
            || resource.split_once('/').is_some_and(|(_, subresource)| self.subresources.contains(subresource))
    }

    fn covers_name(&self, name: Option<&Text>) -> bool {
        self.names.is_empty() || name.is_some_and(|name| self.names.contains(name.as_str()))
    }

    fn covers(&self, part: Part<'_>) -> bool {
        match part {
            Part::Resource { target: Target { group, resource, name }, verb } => {
                self.verbs.covers(verb)
                    && self.groups.covers(group)
                    && self.covers_resource(resource)
                    && self.covers_name(name)
            }
            Part::Url { url, verb } => self.verbs.covers(verb) && self.urls.cover(url),
        }
    }

    /// Whether this rule covers each part of a rule.
    fn covers_rule(&self, rule: &PolicyRule) -> bool {
        let covers_names = match rule.names.as_slice() {
            [] => self.covers_name(None),
            names => names.iter().all(|name| self.covers_name(Some(name))),
        };
        self.verbs.covers_all(&rule.verbs)
            && self.groups.covers_all(&rule.groups)
            && rule.resources.iter().all(|resource| self.covers_resource(resource))
            && covers_names
            && rule.urls.iter().all(|url| self.urls.cover(url))
    }
}

/// The URLs of a rule.
struct Urls<'a> {
    exact: HashSet<&'a str>,
    /// What precedes a final `*`; no prefix begins with another one.
    prefixes: BTreeSet<&'a str>,
}

impl<'a> Urls<'a> {
    fn new(urls: &'a [Text]) -> Urls<'a> {
        let sorted: BTreeSet<&str> =
            urls.iter().filter(|url| url.ends_with('*')).map(|url| url.trim_end_matches('*')).collect();
        let mut prefixes: BTreeSet<&str> = BTreeSet::new();
        for prefix in sorted {
            if prefixes.last().is_none_or(|shorter| !prefix.starts_with(shorter)) {
                prefixes.insert(prefix);
            }
        }
        Urls { exact: urls.iter().map(Text::as_str).collect(), prefixes }
    }

    fn cover(&self, url: &str) -> bool {
        // a prefix of the URL sorts before it, and only longer texts with that prefix would sort between them
        let nearest = self.prefixes.range(..=url).next_back();
        self.exact.contains(url) || nearest.is_some_and(|prefix| url.starts_with(prefix))
    }
}

/// Missing parts as rules.
#[derive(Default)]
struct MissingRules<'a> {
    rules: Vec<PolicyRule>,
    /// The index of the rule of each target, which collects its verbs.
    by_target: HashMap<Target<'a>, usize>,
}

impl<'a> MissingRules<'a> {
    fn add(&mut self, part: Part<'a>) {
        let list = |text: &Text| vec![text.clone()];
        match part {
            Part::Url { url, verb } => {
                self.rules.push(PolicyRule { verbs: list(verb), urls: list(url), ..PolicyRule::default() });
            }
            Part::Resource { target, verb } => {
                let index = *self.by_target.entry(target).or_insert_with(|| {
                    let (groups, resources) = (list(target.group), list(target.resource));
                    let names = target.name.map(list).unwrap_or_default();
                    self.rules.push(PolicyRule { groups, resources, names, ..PolicyRule::default() });
                    self.rules.len() - 1
                });
                self.rules[index].verbs.push(verb.clone());
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::slice::from_ref;

    use super::*;

    fn list(text: &str) -> Vec<Text> {
        text.split_whitespace().map(Text::from).collect()
    }

    fn rule(verbs: &str, group: &str, resources: &str, names: &str) -> PolicyRule {
        let groups = vec![group.into()];
        PolicyRule { verbs: list(verbs), groups, resources: list(resources), names: list(names), urls: vec![] }
    }

    fn urls(verbs: &str, urls: &str) -> PolicyRule {
        PolicyRule { verbs: list(verbs), urls: list(urls), ..PolicyRule::default() }
    }

    fn shown(owned: &[PolicyRule], needed: &[PolicyRule]) -> Vec<String> {
        missing(owned, needed).unwrap().iter().map(ToString::to_string).collect()
    }

    #[test]
    fn missing_parts_are_merged_by_verbs() {
        let owned = [rule("get", "g", "a", ""), rule("get", "g", "b", "x")];
        let needed = [rule("get put del", "g", "a", ""), rule("get", "g", "b", "x y"), rule("get", "g", "b", "")];
        assert_eq!(
            shown(&owned, &needed),
            [
                "{APIGroups:[\"g\"], Resources:[\"a\"], Verbs:[\"put\" \"del\"]}",
                "{APIGroups:[\"g\"], Resources:[\"b\"], ResourceNames:[\"y\"], Verbs:[\"get\"]}",
                "{APIGroups:[\"g\"], Resources:[\"b\"], Verbs:[\"get\"]}",
            ]
        );
    }

    #[test]
    fn rules_are_covered_part_by_part() {
        let covered = [
            (rule("*", "*", "*", ""), rule("get put", "g", "a a/b", "x y")),
            (rule("get", "g", "*/scale", ""), rule("get", "g", "a/scale b/scale", "")),
            (urls("get", "/a/* /b"), urls("get", "/a/ /a/x /b")),
            (urls("get", "/a* /a/b* /c"), urls("get", "/a/z")),
            (urls("get", "*"), urls("get", "/a /b/*")),
        ];
        for (owned, needed) in covered {
            assert_eq!(shown(from_ref(&owned), from_ref(&needed)), [""; 0], "{owned} {needed}");
        }
        let uncovered = [
            (rule("get", "g", "a", "x"), rule("get", "g", "a", "")),
            (rule("get", "g", "a", ""), rule("get", "g", "a/status", "")),
            (rule("get", "g", "*/scale", ""), rule("get", "g", "a/status", "")),
            (rule("get", "g", "a", ""), rule("get", "h", "a", "")),
            (urls("get", "/a/* /c"), urls("get", "/b")),
            (urls("get", "/a/*"), urls("get", "/a")),
            (urls("get", "/a"), urls("put", "/a")),
        ];
        for (owned, needed) in uncovered {
            assert_eq!(shown(from_ref(&owned), from_ref(&needed)), [needed.to_string()], "{owned}");
        }
        let halves = [rule("get", "g", "a", ""), rule("put", "g", "a", "")];
        assert_eq!(shown(&halves, &[rule("get put", "g", "a", "x")]), [""; 0]);
    }

    #[test]
    fn large_products_are_not_expanded() {
        let many: String = (0..100_000).map(|i| format!("n{i} ")).collect();
        let large = [rule(&many, "g", &many, &many)];
        assert_eq!(shown(&[rule("*", "*", "*", "")], &large), [""; 0]);
        assert_eq!(shown(&large, &large), [""; 0]);
        assert_eq!(missing(&[], &large), Err(TooManyParts));
        assert_eq!(missing(&[], &[rule("", "g", &many, &many)]), Ok(vec![]));
    }
}
