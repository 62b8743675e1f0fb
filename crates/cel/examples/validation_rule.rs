//! Validates objects with the rules of a schema (`x-kubernetes-validations`), within the cost limits of Kubernetes.
//!
//! `cargo run -p pintle-cel --example validation_rule`

use cel::SchemaOf;
use cel::rules::{OBJECT_COST_MAX, Options, Rules, Validation};
use machinery::{FieldPath, Release, json};

fn main() {
    let rule = json!({
        "rule": "self.min <= self.replicas && self.replicas <= self.max",
        "messageExpression": "'replicas must be from %d to %d'.format([self.min, self.max])"
    });
    let integer = json!({"type": "integer"});
    let schema = json!({
        "type": "object",
        "x-kubernetes-validations": [rule],
        "required": ["min", "max", "replicas"],
        "properties": {"min": (integer.clone()), "max": (integer.clone()), "replicas": (integer)}
    });

    // the check compiles the expressions and estimates their cost: too expensive rules are errors
    let errors = Rules::check(&schema, &FieldPath::new("openAPIV3Schema"), &Options::default());
    errors.fields.iter().chain(&errors.expressions).for_each(|error| println!("{error}"));
    for estimate in Rules::explain(&schema, &FieldPath::new("openAPIV3Schema")).estimates {
        println!("{}: at most {} of {OBJECT_COST_MAX} cost units", estimate.path, estimate.cost());
    }

    let Some(rules) = Rules::of(&schema, SchemaOf::Resource, Release::default()) else { return };
    for replicas in [3, 9] {
        let object = json!({"min": 1, "max": 5, "replicas": replicas});
        let verdict = rules.validate(&object, &Validation::default());
        println!("{replicas} replicas: {} errors for {} cost units", verdict.errors.len(), verdict.cost);
        verdict.errors.iter().for_each(|error| println!("  {error}"));
    }
}
