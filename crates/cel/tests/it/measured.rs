//! Estimates, run-time costs, results and error texts measured with upstream's own code, for many expressions.
//!
//! `tests/measured` has a schema, an object, and a line for each expression with the result of apiextensions-apiserver
//! 0.35.3.

use cel::{Environment, Program, Val, estimate, from_json};
use machinery::Value;
use machinery::value::decode;

fn reported(env: &Environment, decl: &cel::Decl, object: &Value, rule: &str) -> Value {
    let error = |text: String| Value::from([("rule", Value::from(rule)), ("error", Value::from(text))]);
    let checked = match env.check(rule) {
        Ok(checked) => checked,
        Err(issues) => return error(format!("compilation failed: {issues}")),
    };
    if *checked.output_type() != cel::Type::Bool {
        return error("cel expression must evaluate to a bool".to_owned());
    }
    let program = match Program::new(env, &checked) {
        Ok(program) => program,
        Err(issue) => return error(format!("program instantiation failed: {issue}")),
    };
    let outcome = program.eval(&[("self", from_json(object, decl).expect("a value"))], 1_000_000);
    let result = match &outcome.result {
        Ok(Val::Bool(b)) => b.to_string(),
        Ok(_) => "no bool".to_owned(),
        Err(error) => error.text().to_owned(),
    };
    Value::from([
        ("rule", Value::from(rule)),
        ("estimate", Value::from(estimate(env, &checked).max.to_string())),
        ("cost", Value::from(outcome.cost as i64)),
        ("result", Value::from(result)),
    ])
}

/// Removes the number from `selfType123`, which differs each time.
fn anonymous(text: &str) -> String {
    let mut out = String::new();
    for (i, part) in text.split("selfType").enumerate() {
        out.push_str(if i > 0 { "selfType" } else { "" });
        out.push_str(if i > 0 { part.trim_start_matches(|c: char| c.is_ascii_digit()) } else { part });
    }
    out
}

#[test]
fn measured_encodings_match_ours() {
    let schema = decode(include_bytes!("../measured/schema.json")).unwrap();
    let object = decode(include_bytes!("../measured/object.json")).unwrap();
    let decl = cel::Decl::from_schema(&schema, false);
    let env = Environment::kubernetes(34).declared("self", &decl).declared("oldSelf", &decl);
    let mut differences = vec![];
    let lines: Vec<&str> = include_str!("../measured/costs.jsonl").lines().collect();
    for line in &lines {
        let want = decode(line.as_bytes()).unwrap();
        let got = reported(&env, &decl, &object, want.str_at(&["rule"]));
        if anonymous(&want.to_json()) != anonymous(&got.to_json()) {
            differences.push(format!("- {want}\n+ {got}"));
        }
    }
    assert!(differences.is_empty(), "{} of {} differ:\n{}", differences.len(), lines.len(), differences.join("\n"));
}
