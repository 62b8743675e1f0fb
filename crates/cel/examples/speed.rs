//! Times of compiling and evaluating typical rules, best of several runs.

#![allow(clippy::disallowed_methods, reason = "it measures time")]

use cel::rules::{Options, Rules, Validation};
use cel::value::{Val, from_json};
use cel::{Environment, Program};
use machinery::{FieldPath, Value, json};
use std::time::{Duration, Instant};

fn best(mut run: impl FnMut(), rounds: u32) -> Duration {
    let mut best = Duration::MAX;
    for _ in 0..9 {
        let start = Instant::now();
        for _ in 0..rounds {
            run();
        }
        best = best.min(start.elapsed() / rounds);
    }
    best
}

fn main() {
    let schema = json!({"type": "object", "properties": {
        "replicas": {"type": "integer"},
        "image": {"type": "string", "maxLength": 64},
        "list": {"type": "array", "maxItems": 2000, "items": {"type": "object", "properties": {
            "port": {"type": "integer"}, "name": {"type": "string", "maxLength": 64}}}}
    }});
    let decl = cel::decl::from_schema(&schema, false);
    let env = Environment::kubernetes(34).declared("self", &decl);
    let items: Value = (0..1000).map(|i| json!({"port": (i64::from(i)), "name": "web"})).collect();
    let object = Value::from([("replicas", Value::from(700)), ("image", Value::from("bigfoot")), ("list", items)]);
    for rule in [
        "self.replicas <= 500 || self.image.startsWith('big')",
        "self.list.all(x, x.port > -1)",
        "self.list.filter(x, x.port > 500).size() == 499",
        "self.list.map(x, x.name).all(n, n == 'web')",
    ] {
        let compile = best(|| drop(env.check(rule).map(|checked| Program::new(&env, &checked))), 200);
        let Ok(checked) = env.check(rule) else { continue };
        let Ok(program) = Program::new(&env, &checked) else { continue };
        let mut last = None;
        let eval = best(
            || {
                let outcome = program.eval(&[from_json(&object, &decl).ok()], u64::MAX);
                last = outcome.result.ok().map(|v| matches!(v, Val::Bool(true)));
            },
            if rule.contains("list") { 50 } else { 10_000 },
        );
        println!("{rule}: compile {compile:?}, evaluation {eval:?}, true: {last:?}");
    }
    let mut definition = schema.clone();
    let rule = json!({"rule": "self.replicas <= 500 || self.image.startsWith('big')"});
    definition.set_at(&["x-kubernetes-validations"], Value::Array(vec![rule]));
    let (rules, errors) = Rules::compile(&definition, &FieldPath::root(), &Options::default());
    assert!(errors.is_empty());
    let Some(rules) = rules else { return };
    let validation = Validation::default();
    println!("Rules::validate: {:?}", best(|| drop(rules.validate(&object, &validation)), 10_000));
    println!(
        "Rules::compile: {:?}",
        best(|| drop(Rules::compile(&definition, &FieldPath::root(), &Options::default())), 200)
    );
}
