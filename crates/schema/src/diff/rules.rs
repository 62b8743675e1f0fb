//! The CEL rules of two schemas.
//!
//! The rules of a node are one conjunction, so that splitting a rule, reordering rules or laying out a text differently
//! changes nothing. The other terms are matched by similarity: a term that gains alternatives is looser, and one with the
//! same message is the same rule with another text.

use std::collections::BTreeMap;

use cel::rules::{EXPRESSION_COST_MAX, Rules};
use cel::{conjuncts, disjuncts};
use machinery::{FieldPath, Value};

use super::{FoundChanges, checks};
use crate::openapi::{additional, entries, items, list, property, text};

const KEY: &str = "x-kubernetes-validations";

/// The estimated costs of expressions, by their paths in the schema.
struct Costs(BTreeMap<String, u64>);

impl Costs {
    fn of(schema: &Value) -> Costs {
        let costs = Rules::costs(schema, &FieldPath::root());
        Costs(costs.into_iter().map(|(path, cost)| (path.as_str().to_owned(), cost)).collect())
    }

    /// The estimated cost of the rule with this index at a path of the schema.
    fn of_rule(&self, place: &FieldPath, index: usize) -> Option<u64> {
        self.0.get(place.child(KEY).index(index).child("rule").as_str()).copied()
    }
}

/// One node of both schemas.
struct Place<'a> {
    old: &'a Value,
    new: &'a Value,
    schema: FieldPath,
    /// The path in objects.
    path: String,
}

pub(super) fn compare(old: &Value, new: &Value, changes: &mut FoundChanges) {
    let costs = [Costs::of(old), Costs::of(new)];
    let root = Place { old, new, schema: FieldPath::root(), path: String::new() };
    walk(&root, &costs, changes);
}

fn walk(place: &Place<'_>, costs: &[Costs; 2], changes: &mut FoundChanges) {
    node(place, costs, changes);
    for (name, old) in entries(place.old, "properties") {
        if let Some(new) = property(place.new, name) {
            let path = if place.path.is_empty() { name.to_owned() } else { format!("{}.{name}", place.path) };
            walk(&Place { old, new, schema: place.schema.child("properties").key(name), path }, costs, changes);
        }
    }
    let pairs = [
        ("additionalProperties", additional(place.old), additional(place.new)),
        ("items", items(place.old), items(place.new)),
    ];
    for (key, old, new) in pairs {
        if let (Some(old), Some(new)) = (old, new) {
            let below = Place { old, new, schema: place.schema.child(key), path: format!("{}[*]", place.path) };
            walk(&below, costs, changes);
        }
    }
}

/// A term of the conjunction of a node's rules.
#[derive(Clone)]
struct Term {
    /// The term in a form that does not depend on layout.
    normal: String,
    /// The number of its rule.
    rule: usize,
}

fn terms(rules: &[Value]) -> Vec<Term> {
    let of = |(rule, value): (usize, &Value)| {
        let expression = text(value, "rule").trim();
        let found = conjuncts(expression).unwrap_or_else(|| vec![expression.to_owned()]);
        // with optionalOldSelf, a rule means something else: it is evaluated without an old value, too
        let optional = value.is_true_at(&["optionalOldSelf"]);
        let mark = if optional { "optionalOldSelf: " } else { "" };
        found.into_iter().map(move |term| Term { normal: format!("{mark}{term}"), rule })
    };
    rules.iter().enumerate().flat_map(of).collect()
}

fn node(place: &Place<'_>, costs: &[Costs; 2], changes: &mut FoundChanges) {
    let (before, after) = (list(place.old, KEY), list(place.new, KEY));
    let (old, new) = (terms(before), terms(after));
    let is_in = |term: &Term, terms: &[Term]| terms.iter().any(|other| other.normal == term.normal);
    let mut gone: Vec<&Term> = old.iter().filter(|term| !is_in(term, &new)).collect();
    let added: Vec<&Term> = new.iter().filter(|term| !is_in(term, &old)).collect();
    let text_of = |rules: &[Value], term: &Term| rules.get(term.rule).map_or("", |rule| text(rule, "rule")).to_owned();
    for term in added {
        let cost = cost_text(costs[1].of_rule(&place.schema, term.rule));
        let is_whole = new.iter().filter(|other| other.rule == term.rule).count() == 1;
        let now = text_of(after, term);
        let partner = gone.iter().position(|former| is_same_rule(before, after, former, term));
        match partner.map(|at| gone.remove(at)) {
            Some(former) if is_looser(&former.normal, &term.normal) => {
                let reason = format!("the rule {} is looser: {now}{cost}", text_of(before, former));
                changes.add(&checks::RULE_LOOSENED, &place.path, reason);
            }
            Some(former) if is_looser(&term.normal, &former.normal) => {
                let reason = format!("the rule {} is tighter: {now}{cost}", text_of(before, former));
                changes.add(&checks::RULE_TIGHTENED, &place.path, reason);
            }
            Some(former) => {
                let reason = format!("the rule {} changes to {now}{cost}", text_of(before, former));
                changes.add(&checks::RULE_CHANGED, &place.path, reason);
            }
            None if is_whole => changes.add(&checks::RULE_ADDED, &place.path, format!("the rule {now} is added{cost}")),
            None => {
                let reason = format!("the rule {now} has one more condition, {}{cost}", term.normal);
                changes.add(&checks::RULE_TIGHTENED, &place.path, reason);
            }
        }
    }
    for term in gone {
        let is_whole = old.iter().filter(|other| other.rule == term.rule).all(|other| !is_in(other, &new));
        let former = text_of(before, term);
        match is_whole {
            true => changes.add(&checks::RULE_REMOVED, &place.path, format!("the rule {former} is removed")),
            false => {
                let reason = format!("the rule {former} has one condition less, {}", term.normal);
                changes.add(&checks::RULE_LOOSENED, &place.path, reason);
            }
        }
    }
    for (i, rule) in before.iter().enumerate() {
        let same = |other: &Value| is_same_expression(rule, other);
        if let Some(at) = after.iter().position(same) {
            details(place, rule, &after[at], changes);
            cost_change(
                place,
                rule,
                [costs[0].of_rule(&place.schema, i), costs[1].of_rule(&place.schema, at)],
                changes,
            );
        }
    }
}

fn cost_text(cost: Option<u64>) -> String {
    cost.map(|cost| format!(" (estimated cost {cost} of {EXPRESSION_COST_MAX})")).unwrap_or_default()
}

fn is_same_expression(one: &Value, other: &Value) -> bool {
    let (one, other) = (text(one, "rule"), text(other, "rule"));
    one == other || conjuncts(one).is_some_and(|terms| Some(terms) == conjuncts(other))
}

/// Whether two terms belong to the same rule: one with the same message, or a looser one.
fn is_same_rule(before: &[Value], after: &[Value], former: &Term, term: &Term) -> bool {
    let messages = |rules: &[Value], term: &Term| -> Vec<String> {
        let rule = rules.get(term.rule);
        ["message", "messageExpression"]
            .into_iter()
            .map(|key| rule.map_or("", |rule| text(rule, key)).to_owned())
            .collect()
    };
    let (one, other) = (messages(before, former), messages(after, term));
    let has_message = one.iter().any(|text| !text.is_empty());
    has_message && one == other || is_looser(&former.normal, &term.normal) || is_looser(&term.normal, &former.normal)
}

/// Whether a term has all alternatives of a former one, and more.
fn is_looser(former: &str, term: &str) -> bool {
    let (Some(before), Some(after)) = (disjuncts(former), disjuncts(term)) else { return false };
    before.len() < after.len() && before.iter().all(|alternative| after.contains(alternative))
}

/// Compares what two rules with the same expression report.
fn details(place: &Place<'_>, old: &Value, new: &Value, changes: &mut FoundChanges) {
    let rule = text(new, "rule");
    for (key, check) in [
        ("message", &checks::RULE_MESSAGE_CHANGED),
        ("messageExpression", &checks::RULE_MESSAGE_CHANGED),
        ("reason", &checks::RULE_REASON_CHANGED),
        ("fieldPath", &checks::RULE_REASON_CHANGED),
    ] {
        let (before, after) = (text(old, key), text(new, key));
        if before != after {
            changes.add(check, &place.path, format!("the {key} of {rule} changes from {before:?} to {after:?}"));
        }
    }
}

/// Adds the rise of a rule's estimated cost, which follows the bounds of what the rule reads.
fn cost_change(place: &Place<'_>, rule: &Value, costs: [Option<u64>; 2], changes: &mut FoundChanges) {
    if let [Some(before), Some(after)] = costs
        && after > before
    {
        let rule = text(rule, "rule");
        let reason = format!("the estimated cost of {rule} rises from {before} to {after}, of {EXPRESSION_COST_MAX}");
        changes.add(&checks::RULE_COST_RAISED, &place.path, reason);
    }
}
