//! Explanation of the estimated costs of a CRD, with bounds to add.
//!
//! The effect of a bound is found by trial: it is added to a copy of the schema, whose cost is estimated again. So the
//! numbers are those that kube-apiserver will compute.

use super::define::{self, Observed};
use super::{DEFINITION_COST_MAX, EXPRESSION_COST_MAX, Options, RuleErrors};
use crate::cost::estimate::Part;
use crate::decl::{self, Decl};
use crate::limits::EXPLAINED_BOUNDS_MAX;
use machinery::{FieldError, FieldPath, Text, Value};

/// The costs of the rules of a schema.
#[derive(Debug)]
#[non_exhaustive]
pub struct Explanation {
    /// All rules and message expressions that compile, in the order of the schema.
    pub estimates: Vec<Estimate>,
    /// The total cost, which is compared with [`DEFINITION_COST_MAX`].
    pub total: u64,
    /// The errors that kube-apiserver would respond with.
    pub errors: Vec<FieldError>,
}

/// The cost of one expression.
#[derive(Debug)]
#[non_exhaustive]
pub struct Estimate {
    /// The path of the expression in the CRD.
    pub path: FieldPath,
    /// The path in objects of the node that has the rule, such as `spec.list[*]`; empty for the root.
    pub node: String,
    /// The expression.
    pub text: String,
    /// The cost of one evaluation.
    pub each: u64,
    /// The greatest number of values that it is evaluated for.
    pub times: u64,
    /// The pieces of the expression that cost most.
    pub parts: Vec<Part>,
    /// Bounds that would lower the cost, the most effective first.
    pub bounds: Vec<Bound>,
    /// The largest number that suffices if all of `bounds` have it.
    pub together: Option<u64>,
}

impl Estimate {
    /// The cost that is compared with [`EXPRESSION_COST_MAX`].
    pub fn cost(&self) -> u64 {
        self.each.saturating_mul(self.times)
    }
}

/// A bound of the schema that an estimate depends on.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Bound {
    /// The path of the node in objects.
    pub node: String,
    /// `maxLength`, `maxItems` or `maxProperties`.
    pub keyword: &'static str,
    /// The bound in the schema.
    pub now: Option<u64>,
    /// The size of the estimate: the bound, or what fits in a request. Strings have four bytes per character.
    pub counted: u64,
    /// The largest number that suffices by itself, if there is one.
    pub enough: Option<u64>,
}

const VALIDATIONS: &str = "x-kubernetes-validations";

/// A place of the schema where a bound can be.
#[derive(Clone)]
struct Candidate {
    /// The keys from the root of the schema.
    keys: Vec<Text>,
    bound: Bound,
}

/// The position of an expression.
struct ExpressionPlace {
    path: String,
    node: String,
    keys: Vec<Text>,
    rule: Value,
    field: &'static str,
}

#[derive(Default)]
struct ExplainWalk {
    candidates: Vec<Candidate>,
    places: Vec<ExpressionPlace>,
}

pub(super) fn explain(schema: &Value, path: &FieldPath) -> Explanation {
    let options = Options { parts: true, ..Options::default() };
    let (RuleErrors { mut fields, expressions }, observed) = define::check(schema, path, &options);
    fields.extend(expressions);
    let total = observed.iter().fold(0_u64, |sum, one| sum.saturating_add(cost(one)));
    let mut walk = ExplainWalk::default();
    walk.node(schema, path, &[], "");
    let mut estimates = vec![];
    for place in &walk.places {
        let Some(one) = observed.iter().find(|one| one.path.as_str() == place.path) else { continue };
        let (bounds, together) =
            BoundTrial::new(schema, place).bounds(&walk.candidates, cost(one), limit(cost(one), total));
        estimates.push(Estimate {
            path: one.path.clone(),
            node: place.node.clone(),
            text: place.rule.str_at(&[place.field]).to_owned(),
            each: one.cost,
            times: one.times,
            parts: one.parts.clone(),
            bounds,
            together,
        });
    }
    Explanation { estimates, total, errors: fields }
}

fn cost(observed: &Observed) -> u64 {
    observed.cost.saturating_mul(observed.times)
}

/// The suggested maximum cost of an expression: a tenth of its limit where the sum of all is too large.
fn limit(cost: u64, total: u64) -> u64 {
    let single = EXPRESSION_COST_MAX;
    if cost <= single && total > DEFINITION_COST_MAX { single / 10 } else { single }
}

impl ExplainWalk {
    fn node(&mut self, schema: &Value, path: &FieldPath, keys: &[Text], node: &str) {
        self.candidate(schema, keys, node);
        for (i, rule) in schema.items_at(&[VALIDATIONS]).iter().enumerate() {
            for field in ["rule", "messageExpression"] {
                let path = path.child(VALIDATIONS).index(i).child(field).as_str().to_owned();
                let place =
                    ExpressionPlace { path, node: node.to_owned(), keys: keys.to_vec(), rule: rule.clone(), field };
                self.places.push(place);
            }
        }
        let below =
            |more: &[&str]| keys.iter().cloned().chain(more.iter().map(|key| Text::new(*key))).collect::<Vec<_>>();
        if let Some(properties) = schema.get("properties").and_then(Value::as_object) {
            for (name, property) in properties.iter() {
                let child = if node.is_empty() { name.to_string() } else { format!("{node}.{name}") };
                self.node(property, &path.child("properties").key(name), &below(&["properties", name]), &child);
            }
        }
        if let Some(value) = decl::additional(schema) {
            let child = format!("{node}[*]");
            self.node(value, &path.child("additionalProperties"), &below(&["additionalProperties"]), &child);
        }
        if let Some(item) = decl::items(schema) {
            self.node(item, &path.child("items"), &below(&["items"]), &format!("{node}[*]"));
        }
    }

    fn candidate(&mut self, schema: &Value, keys: &[Text], node: &str) {
        let keyword = match schema.str_at(&["type"]) {
            "array" => "maxItems",
            "object" if decl::additional(schema).is_some() => "maxProperties",
            "string" => "maxLength",
            _ if schema.is_true_at(&["x-kubernetes-int-or-string"]) => "maxLength",
            _ => return,
        };
        let now = schema.get(keyword).and_then(Value::as_float).map(|n| n.max(0.0) as u64);
        let counted = Decl::from_schema(schema).elements_max;
        let bound = Bound { node: node.to_owned(), keyword, now, counted, enough: None };
        self.candidates.push(Candidate { keys: keys.to_vec(), bound });
    }
}

/// A schema with one expression, to try bounds on.
struct BoundTrial<'p> {
    schema: Value,
    place: &'p ExpressionPlace,
}

impl<'p> BoundTrial<'p> {
    fn new(schema: &Value, place: &'p ExpressionPlace) -> BoundTrial<'p> {
        let mut schema = schema.clone();
        strip(&mut schema);
        let mut rule = Value::object();
        for key in ["rule", "optionalOldSelf", place.field] {
            place.rule.get(key).into_iter().for_each(|value| rule.set_at(&[key], value.clone()));
        }
        let keys = place.keys.iter().map(Text::as_str).chain([VALIDATIONS]).collect::<Vec<_>>();
        schema.set_at(&keys, Value::Array(vec![rule]));
        BoundTrial { schema, place }
    }

    /// The cost with these bounds.
    fn cost(&self, bounds: &[&Candidate], number: u64) -> u64 {
        let mut schema = self.schema.clone();
        for candidate in bounds {
            let keys = candidate.keys.iter().map(Text::as_str).chain([candidate.bound.keyword]).collect::<Vec<_>>();
            schema.set_at(&keys, Value::from(number));
        }
        let (_, observed) = define::check(&schema, &FieldPath::root(), &Options::default());
        let own = observed.iter().find(|one| one.path.as_str().ends_with(&format!(".{}", self.place.field)));
        own.map_or(u64::MAX, cost)
    }

    /// The largest number with which the cost is within the limit, if there is one.
    fn enough(&self, bounds: &[&Candidate], limit: u64) -> Option<u64> {
        if self.cost(bounds, 1) > limit {
            return None;
        }
        let (mut good, mut bad) = (1, bounds.iter().map(|c| c.bound.counted).max()?.saturating_add(1));
        while bad - good > 1 {
            let middle = good + (bad - good) / 2;
            if self.cost(bounds, middle) <= limit { good = middle } else { bad = middle }
        }
        Some(good)
    }

    /// The bounds with an effect, and the number that suffices if all of them have it.
    fn bounds(&self, candidates: &[Candidate], cost: u64, limit: u64) -> (Vec<Bound>, Option<u64>) {
        let related = candidates.iter().filter(|candidate| self.is_related(candidate));
        let mut effective: Vec<(u64, &Candidate)> = related
            .map(|candidate| (self.cost(&[candidate], 1), candidate))
            .filter(|(lowest, _)| *lowest < cost)
            .collect();
        effective.sort_by_key(|(lowest, _)| *lowest);
        effective.truncate(EXPLAINED_BOUNDS_MAX);
        let chosen: Vec<&Candidate> = effective.into_iter().map(|(_, candidate)| candidate).collect();
        let too_much = cost > limit;
        let bound = |candidate: &&Candidate| {
            let enough = if too_much { self.enough(&[candidate], limit) } else { None };
            Bound { enough, ..candidate.bound.clone() }
        };
        let bounds: Vec<Bound> = chosen.iter().map(bound).collect();
        let together = if too_much && chosen.len() > 1 { self.enough(&chosen, limit) } else { None };
        (bounds, together)
    }

    /// Whether the expression may depend on a node: the node contains the rule, or it is below the rule and the expression
    /// names every field on the way.
    fn is_related(&self, candidate: &Candidate) -> bool {
        let own = &self.place.keys;
        if own.starts_with(&candidate.keys) {
            return true;
        }
        let Some(below) = candidate.keys.strip_prefix(own.as_slice()) else { return false };
        let text = self.place.rule.str_at(&[self.place.field]);
        let mut keys = below.iter();
        while let Some(key) = keys.next() {
            if key == "properties" {
                let Some(name) = keys.next() else { return false };
                let escaped = decl::escape(name);
                if !text.contains(name.as_str()) && !escaped.is_some_and(|escaped| text.contains(escaped.as_str())) {
                    return false;
                }
            }
        }
        true
    }
}

fn strip(schema: &mut Value) {
    let Some(fields) = schema.as_object_mut() else { return };
    fields.remove(VALIDATIONS);
    if let Some(properties) = fields.get_mut("properties").and_then(Value::as_object_mut) {
        properties.values_mut().for_each(strip);
    }
    ["items", "additionalProperties"].into_iter().for_each(|key| fields.get_mut(key).into_iter().for_each(strip));
}
