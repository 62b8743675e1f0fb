//! `x-kubernetes-validations`. The crate `cel` compiles and evaluates these rules.

use cel::rules::{Rules, RulesAt, SchemaNode, Validation};
use machinery::{FieldError, FieldPath, Value};

use crate::program::Node;
use crate::ratchet;

/// The errors of an object, and warnings about errors in what an update leaves unchanged.
pub(crate) fn validate(rules: &Rules, new: &Value, old: Option<&Value>, root: &Node) -> (Vec<FieldError>, Vec<String>) {
    let verdict = rules.validate(new, &Validation::of(old).ratcheting(root));
    (verdict.errors, verdict.warnings)
}

/// The errors of the default at a path, and the remaining `budget`. The default must be valid both as an unchanged
/// value and as a new one.
pub(crate) fn validate_default(
    rules: RulesAt<'_>,
    default: &Value,
    path: &FieldPath,
    budget: u64,
) -> (Vec<FieldError>, u64) {
    let run = |old| {
        let verdict = rules.validate(default, &Validation::of(old).cost_max(budget).at(path));
        (verdict.errors, budget.saturating_sub(verdict.cost))
    };
    let (errors, left) = run(Some(default));
    if !errors.is_empty() {
        return (errors, left);
    }
    let (errors, left_as_new) = run(None);
    (errors, left.min(left_as_new))
}

impl SchemaNode for Node {
    fn field(&self, name: &str) -> Option<&dyn SchemaNode> {
        self.field_or_additional(name).map(|node| node as &dyn SchemaNode)
    }

    fn items(&self) -> Option<&dyn SchemaNode> {
        self.items.as_deref().map(|node| node as &dyn SchemaNode)
    }

    fn unchanged(&self, new: &Value, old: &Value) -> bool {
        ratchet::unchanged(new, old, self)
    }
}
