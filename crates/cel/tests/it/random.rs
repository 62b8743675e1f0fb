//! Random programs from a fixed seed: a checked program of type T returns a T or an error, and its cost is within the
//! estimate; texts that are nearly programs do not panic.

use crate::texts::{Random, Scope, mutated};
use cel::{Environment, Program, Type, Val, estimate, from_json};
use machinery::Value;
use machinery::value::decode;
use std::sync::Arc;

const SCHEMA: &str = r#"{"type": "object", "properties": {
    "int": {"type": "integer"}, "double": {"type": "number"}, "bool": {"type": "boolean"},
    "string": {"type": "string", "maxLength": 20}, "bytes": {"type": "string", "format": "byte", "maxLength": 20},
    "duration": {"type": "string", "format": "duration"}, "timestamp": {"type": "string", "format": "date-time"},
    "ints": {"type": "array", "maxItems": 5, "items": {"type": "integer"}},
    "strings": {"type": "array", "maxItems": 5, "x-kubernetes-list-type": "set",
                "items": {"type": "string", "maxLength": 10}},
    "map": {"type": "object", "maxProperties": 4, "additionalProperties": {"type": "integer"}},
    "absent": {"type": "integer"}}}"#;
const OBJECT: &str = r#"{"int": 7, "double": 2.5, "bool": true, "string": "a-text: é", "bytes": "aGVsbG8=",
    "duration": "1h30m", "timestamp": "2024-02-29T12:30:00Z", "ints": [3, 1, 2, -4], "strings": ["a", "bb", "a-b"],
    "map": {"a": 1, "b": -2}}"#;

/// Whether a value is of a type. A `dyn` may be anything.
fn is_of(value: &Val<'_>, t: &Type) -> bool {
    match (value, t) {
        (_, Type::Dyn) => true,
        (Val::List(list), Type::List(item)) => {
            (0..list.len()).all(|i| list.get(i).is_some_and(|value| value.is_ok_and(|value| is_of(&value, item))))
        }
        (Val::Map(map), Type::Map(pair)) => map
            .entries()
            .iter()
            .all(|(key, value)| is_of(key, &pair.0) && value.as_ref().is_ok_and(|value| is_of(value, &pair.1))),
        (Val::Optional(None), Type::Opaque("optional_type", _)) => true,
        (Val::Optional(Some(value)), Type::Opaque("optional_type", params)) => is_of(value, &params[0]),
        (Val::Type(_), Type::Type(_)) => true,
        (value, t) => value.type_of() == *t,
    }
}

/// The maximum cost of a program by its estimate. Estimates are upstream's to the digit, and upstream's can be too low:
/// they assume that comparisons of numbers and optional indices are free, that `split` returns no more parts than the
/// text has characters, and that `flatten` does not lengthen a list. So twice the estimate is allowed, and more for
/// `split` and `flatten`.
fn allowed(text: &str, estimated: u64) -> u64 {
    let low = text.contains(".flatten(") || text.contains(".split(");
    let more = if low { estimated.saturating_mul(15) } else { estimated };
    estimated.saturating_add(more).saturating_add(10)
}

struct Subject {
    env: Environment,
    decl: Arc<cel::Decl>,
    object: Value,
}

impl Subject {
    fn new() -> Subject {
        let decl = cel::Decl::from_schema(&decode(SCHEMA.as_bytes()).unwrap());
        let env = Environment::kubernetes(34).declared("self", &decl);
        Subject { env, decl, object: decode(OBJECT.as_bytes()).unwrap() }
    }

    /// Runs a text; returns whether it has a value.
    fn run(&self, text: &str) -> bool {
        let Ok(checked) = self.env.check(text) else { return false };
        let Ok(program) = Program::new(&self.env, &checked) else { return false };
        let estimated = estimate(&self.env, &checked);
        let outcome = program.eval(&[("self", from_json(&self.object, &self.decl).expect("a value"))], 1_000_000);
        let most = allowed(text, estimated.max);
        assert!(outcome.cost <= most, "{text} cost {} instead of at most {most}", outcome.cost);
        match outcome.result {
            Ok(value) => {
                let t = checked.output_type();
                assert!(is_of(&value, t), "{text} gives {value:?}, which is no {}", t.format(""));
                true
            }
            Err(_) => false,
        }
    }
}

#[test]
fn evaluation_matches_checked_type_and_estimated_cost() {
    let subject = Subject::new();
    let (mut values, mut random) = (0, Random(1));
    for _ in 0..6_000 {
        let t = random.pick(&["bool", "int", "string", "list(int)", "list(string)", "map", "optional", "double"]);
        let text = Scope::default().expression(&mut random, t, 4);
        assert!(subject.env.check(&text).is_ok(), "{text}: {}", subject.env.check(&text).unwrap_err());
        values += i32::from(subject.run(&text));
    }
    assert!(values > 2_000, "only {values} programs gave values");
}

#[test]
fn near_valid_programs_do_not_panic() {
    let subject = Subject::new();
    let standard = Environment::standard();
    let mut random = Random(2);
    for _ in 0..3_000 {
        let text = Scope::default().expression(&mut random, "bool", 3);
        let text = mutated(&mut random, &text);
        subject.run(&text);
        if let Ok(checked) = standard.unchecked(&text)
            && let Ok(program) = Program::new(&standard, &checked)
        {
            let outcome = program.eval(&[], 10_000);
            assert!(outcome.cost <= 10_000 || outcome.result.is_err(), "{text}");
        }
    }
}
