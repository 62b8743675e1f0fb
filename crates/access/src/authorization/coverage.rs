//! Coverage of rules by other rules, for the prevention of privilege escalation.

use std::collections::{BTreeSet, HashMap, HashSet};

use machinery::Text;

use super::PolicyRule;
use crate::limits;

/// The rules are too many, or too large, to be compared.
#[derive(Debug, PartialEq, Eq)]
pub struct TooManyParts;

/// The required rules that are not covered, merged if they differ only in their verbs. A rule that a single rule covers is
/// not split into parts, so that its size does not matter.
pub fn missing<'a>(
    owned: impl IntoIterator<Item = &'a PolicyRule>,
    needed: &[PolicyRule],
) -> Result<Vec<PolicyRule>, TooManyParts> {
    let mut owned = OwnedRules::new(owned);
    let mut missing = MissingRules::default();
    let mut bytes = 0;
    for rule in needed {
        if owned.cover_rule(rule)? {
            continue;
        }
        for part in parts(rule) {
            bytes += part.bytes();
            if bytes > limits::RULE_PARTS_BYTES_MAX {
                return Err(TooManyParts);
            }
            if !owned.cover(part)? {
                missing.add(part);
            }
        }
    }
    if owned.is_truncated && !missing.rules.is_empty() { Err(TooManyParts) } else { Ok(missing.rules) }
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

/// The parts of a rule. Every step of the iteration yields one, since none of the lists that are multiplied is empty.
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

/// A list of a rule, with a set of its items if it is long.
struct Names<'a> {
    list: &'a [Text],
    set: HashSet<&'a str>,
    /// Whether the list has `*`.
    has_all: bool,
}

impl<'a> Names<'a> {
    fn new(list: &'a [Text]) -> Names<'a> {
        const SHORT: usize = 8;
        let set = if list.len() > SHORT { list.iter().map(Text::as_str).collect() } else { HashSet::new() };
        Names { list, set, has_all: list.iter().any(|item| item == ALL) }
    }

    fn has(&self, name: &str) -> bool {
        if self.set.is_empty() { self.list.iter().any(|item| item == name) } else { self.set.contains(name) }
    }

    /// Whether the list has a name, or `*`, which stands for everything.
    fn covers(&self, name: &str) -> bool {
        self.has_all || self.has(name)
    }

    fn covers_all(&self, names: &[Text]) -> bool {
        self.has_all || names.iter().all(|name| self.has(name))
    }
}

/// The item that stands for everything.
const ALL: &str = "*";

#[derive(Clone, Copy, PartialEq, Eq, Hash)]
enum RuleField {
    Verb,
    Group,
    Resource,
    /// The subresources of entries such as `*/scale`.
    Subresource,
    Name,
    Url,
}

/// The distinct rules that a user has, by the items of their lists.
struct OwnedRules<'a> {
    rules: Vec<OwnedRule<'a>>,
    by_item: HashMap<(RuleField, &'a str), Vec<u32>>,
    /// Whether there are more than [`limits::OWNED_RULES_MAX`].
    is_truncated: bool,
    /// The remaining part of [`limits::RULE_LOOKUPS_MAX`].
    lookups: usize,
}

impl<'a> OwnedRules<'a> {
    fn new(rules: impl IntoIterator<Item = &'a PolicyRule>) -> OwnedRules<'a> {
        let mut known = HashSet::new();
        let mut distinct = rules.into_iter().filter(|rule| known.insert(*rule));
        let rules: Vec<OwnedRule<'a>> = distinct.by_ref().take(limits::OWNED_RULES_MAX).map(OwnedRule::new).collect();
        let is_truncated = distinct.next().is_some();
        let mut by_item: HashMap<_, Vec<u32>> = HashMap::new();
        for (number, rule) in (0..).zip(&rules) {
            rule.keys().for_each(|key| by_item.entry(key).or_default().push(number));
        }
        OwnedRules { rules, by_item, is_truncated, lookups: limits::RULE_LOOKUPS_MAX }
    }

    /// The rules that may cover a part. They are looked up by the field whose value the fewest rules have.
    fn candidates<'s>(&'s self, part: Part<'s>) -> impl Iterator<Item = &'s u32> + use<'s, 'a> {
        let with = |field, value| self.by_item.get(&(field, value)).map_or(&[][..], Vec::as_slice);
        let any_of = |field, value| [with(field, value), with(field, ALL), &[]];
        let fields = match part {
            Part::Resource { target: Target { group, resource, name }, verb } => {
                let [named, all, _] = any_of(RuleField::Resource, resource.as_str());
                let subresource = resource.split_once('/').map_or("", |(_, subresource)| subresource);
                let resources = [named, all, with(RuleField::Subresource, subresource)];
                let names = any_of(RuleField::Name, name.map_or("", Text::as_str));
                vec![any_of(RuleField::Verb, verb.as_str()), any_of(RuleField::Group, group.as_str()), resources, names]
            }
            Part::Url { url, verb } => {
                vec![any_of(RuleField::Verb, verb.as_str()), any_of(RuleField::Url, url.as_str())]
            }
        };
        let fewest = fields.into_iter().min_by_key(|lists| lists.iter().map(|list| list.len()).sum::<usize>());
        fewest.into_iter().flatten().flatten()
    }

    /// Whether one of the rules covers a part.
    fn cover(&mut self, part: Part<'_>) -> Result<bool, TooManyParts> {
        self.any(part, 1, |owned| owned.covers(part))
    }

    /// Whether a single rule covers all parts of a rule, or the rule has no parts.
    fn cover_rule(&mut self, rule: &PolicyRule) -> Result<bool, TooManyParts> {
        let Some(first) = parts(rule).next() else { return Ok(true) };
        self.any(first, rule.items(), |owned| owned.covers_rule(rule))
    }

    /// Whether `covers` is true for one of the candidates of a part. Each call counts as `cost` lookups.
    fn any(
        &mut self,
        part: Part<'_>,
        cost: usize,
        covers: impl Fn(&OwnedRule<'a>) -> bool,
    ) -> Result<bool, TooManyParts> {
        let mut left = self.lookups;
        let covered = self.candidates(part).any(|number| {
            left = left.saturating_sub(cost);
            left == 0 || self.rules.get(*number as usize).is_some_and(&covers)
        });
        self.lookups = left;
        if left == 0 { Err(TooManyParts) } else { Ok(covered) }
    }
}

/// A rule that a user has.
struct OwnedRule<'a> {
    verbs: Names<'a>,
    groups: Names<'a>,
    resources: Names<'a>,
    subresources: HashSet<&'a str>,
    /// The names of objects; none means that the rule is not restricted.
    names: Names<'a>,
    urls: Urls<'a>,
}

impl<'a> OwnedRule<'a> {
    fn new(rule: &'a PolicyRule) -> OwnedRule<'a> {
        OwnedRule {
            verbs: Names::new(&rule.verbs),
            groups: Names::new(&rule.groups),
            resources: Names::new(&rule.resources),
            subresources: rule.resources.iter().filter_map(|resource| resource.strip_prefix("*/")).collect(),
            names: Names::new(&rule.names),
            urls: Urls::new(&rule.urls),
        }
    }

    /// The items by which the rule is found. A rule without names applies to all, as do URLs with a prefix.
    fn keys(&self) -> impl Iterator<Item = (RuleField, &'a str)> {
        let of = |field, list: &'a [Text]| list.iter().map(move |item| (field, item.as_str()));
        let lists = [
            (RuleField::Verb, self.verbs.list),
            (RuleField::Group, self.groups.list),
            (RuleField::Resource, self.resources.list),
            (RuleField::Name, self.names.list),
            (RuleField::Url, self.urls.exact.list),
        ];
        let all_names = self.names.list.is_empty().then_some((RuleField::Name, ALL));
        let all_urls = (!self.urls.prefixes.is_empty()).then_some((RuleField::Url, ALL));
        let subresources = self.subresources.iter().map(|subresource| (RuleField::Subresource, *subresource));
        let items = lists.into_iter().flat_map(move |(field, list)| of(field, list));
        items.chain(subresources).chain(all_names).chain(all_urls)
    }

    fn covers_resource(&self, resource: &str) -> bool {
        self.resources.covers(resource)
            || resource.split_once('/').is_some_and(|(_, subresource)| self.subresources.contains(subresource))
    }

    fn covers_name(&self, name: Option<&Text>) -> bool {
        self.names.list.is_empty() || name.is_some_and(|name| self.names.has(name))
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
    exact: Names<'a>,
    /// The text before a final `*`; no prefix begins with another one.
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
        Urls { exact: Names::new(urls), prefixes }
    }

    fn cover(&self, url: &str) -> bool {
        // a prefix of the URL sorts before it, and only longer texts with that prefix would sort between them
        let nearest = self.prefixes.range(..=url).next_back();
        self.exact.has(url) || nearest.is_some_and(|prefix| url.starts_with(prefix))
    }
}

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
    fn many_rules_are_looked_up_by_their_rarest_item() {
        const MANY: usize = 4_000;
        let rules = |from: usize| -> Vec<PolicyRule> {
            (from..from + MANY).map(|i| rule("get", "g", "maps", &format!("n{i}"))).collect()
        };
        let (owned, needed) = (rules(0), rules(MANY / 2));
        // each binding of a role repeats its rules
        let repeated = std::iter::repeat_n(&owned, 20).flatten();
        let mut owned = OwnedRules::new(repeated);
        assert_eq!((owned.rules.len(), owned.is_truncated), (MANY, false));
        let covered = needed.iter().filter(|rule| owned.cover_rule(rule).unwrap()).count();
        assert_eq!(covered, MANY / 2);
        assert!(limits::RULE_LOOKUPS_MAX - owned.lookups <= 5 * MANY, "{}", owned.lookups);
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
