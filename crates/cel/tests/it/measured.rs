//! Estimates, run-time costs, results and error texts measured with upstream's own code, for many expressions.
//!
//! `tests/measured` has schemas, objects, and a line for each expression with the result of apiextensions-apiserver
//! 0.37.2: `costs` for every function of the libraries, `names` for metadata of roots and embedded resources.

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

/// Compares each line with what we report. `root` says that the schema is that of a resource.
fn compare(schema: &[u8], object: &[u8], root: bool, lines: &str) {
    let (schema, object) = (decode(schema).unwrap(), decode(object).unwrap());
    let decl = if root { cel::Decl::from_resource_schema(&schema) } else { cel::Decl::from_schema(&schema) };
    let env = Environment::kubernetes(37).declared("self", &decl).declared("oldSelf", &decl);
    let mut differences = vec![];
    for line in lines.lines() {
        let want = decode(line.as_bytes()).unwrap();
        let got = reported(&env, &decl, &object, want.str_at(&["rule"]));
        if anonymous(&want.to_json()) != anonymous(&got.to_json()) {
            differences.push(format!("- {want}\n+ {got}"));
        }
    }
    assert!(differences.is_empty(), "{} differ:\n{}", differences.len(), differences.join("\n"));
}

#[test]
fn measured_costs_match_ours() {
    let (schema, object) = (include_bytes!("../measured/schema.json"), include_bytes!("../measured/object.json"));
    compare(schema, object, false, include_str!("../measured/costs.jsonl"));
}

#[test]
fn measured_costs_over_metadata_match_ours() {
    let (schema, object) =
        (include_bytes!("../measured/names-schema.json"), include_bytes!("../measured/names-object.json"));
    compare(schema, object, true, include_str!("../measured/names.jsonl"));
}
