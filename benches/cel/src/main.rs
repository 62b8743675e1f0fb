//! Compares the times of our CEL crate with those of `cel`, another CEL crate for Rust: `cargo xtask bench --only cel`.
//!
//! Both are measured alternately in one process, and the fastest of many short runs counts, since other processes only add
//! time. Each crate reads values in its own form: ours reads the decoded object, theirs a value made of it, whose conversion
//! is a measure of its own.

use machinery::{FieldPath, Release, Value, value::decode};
use ours::rules::{Options, Rules, Validation};
use ours::{Decl, Environment, Program, SchemaOf, Val, from_json};
use std::hint::black_box;
use std::sync::Arc;
use std::time::{Duration, Instant};

const TYPICAL: &str = "self.replicas <= 500 || self.image.startsWith('big')";
const LIST: &str = "self.list.all(x, x.port > -1)";
const NAMES: &str = "self.list.all(x, x.name.startsWith('web') && x.port < 70000)";
/// Rules over an object of 1.5 KB.
const TEN: [&str; 10] = [
    "self.replicas <= 500 || self.image.startsWith('big')",
    "self.min <= self.max",
    "self.min >= 0 && self.max <= 1000",
    "!has(self.paused) || self.replicas > 0",
    "self.image.contains(':')",
    "self.mode in ['fast', 'slow', 'off']",
    "self.mode != 'off' || self.replicas == 0",
    "size(self.env) < 64",
    "self.ports.all(p, p.port > 0 && p.port < 65536)",
    "self.env.exists(e, e.name == 'HOME')",
];

/// How often a measure is repeated; the fastest counts.
const RUNS: usize = 40;

/// The fastest of many runs of one evaluation each.
struct Best(Duration);

impl Best {
    fn new() -> Best {
        Best(Duration::MAX)
    }

    /// One run of as many rounds as take about a millisecond.
    fn run(&mut self, rounds: u32, mut once: impl FnMut()) {
        let start = Instant::now();
        for _ in 0..rounds {
            once();
        }
        self.0 = self.0.min(start.elapsed() / rounds);
    }
}

fn shown(time: Duration) -> String {
    let nanos = time.as_nanos() as f64;
    match nanos {
        n if n < 1e3 => format!("{n:.0} ns"),
        n if n < 1e6 => format!("{:.2} µs", n / 1e3),
        n => format!("{:.2} ms", n / 1e6),
    }
}

/// A measurement of both crates.
struct Measure<'m> {
    what: &'m str,
    target: Option<Duration>,
    rounds: u32,
    ours: Box<dyn FnMut() + 'm>,
    theirs: Option<Box<dyn FnMut() + 'm>>,
}

impl Measure<'_> {
    fn take(mut self) {
        let (mut ours, mut theirs) = (Best::new(), Best::new());
        for _ in 0..RUNS {
            ours.run(self.rounds, &mut self.ours);
            if let Some(once) = &mut self.theirs {
                theirs.run(self.rounds, once);
            }
        }
        let (other, ratio) = match &self.theirs {
            Some(_) => (shown(theirs.0), format!("{:.1}", theirs.0.as_secs_f64() / ours.0.as_secs_f64())),
            None => (String::new(), String::new()),
        };
        let (target, reached) = match self.target {
            Some(target) => (shown(target), if ours.0 <= target { "yes" } else { "no" }),
            None => (String::new(), ""),
        };
        println!("| {} | {} | {target} | {reached} | {other} | {ratio} |", self.what, shown(ours.0));
    }
}

fn object() -> Value {
    let filler = "x".repeat(24);
    let env: Vec<String> = (0..16)
        .map(|i| {
            format!(r#"{{"name":"{}","value":"{filler}"}}"#, if i == 15 { "HOME".into() } else { format!("NAME_{i}") })
        })
        .collect();
    let ports: Vec<String> = (0..8).map(|i| format!(r#"{{"name":"port-{i}","port":{}}}"#, 8000 + i)).collect();
    let text = format!(
        r#"{{"replicas":700,"image":"bigfoot:1.2","min":1,"max":10,"mode":"fast","env":[{}],"ports":[{}]}}"#,
        env.join(","),
        ports.join(",")
    );
    decode(text.as_bytes()).expect("JSON")
}

fn schema() -> Value {
    let text = r#"{"type":"object","properties":{
        "replicas":{"type":"integer"},"image":{"type":"string","maxLength":64},"paused":{"type":"boolean"},
        "min":{"type":"integer"},"max":{"type":"integer"},"mode":{"type":"string","maxLength":8},
        "env":{"type":"array","maxItems":64,"items":{"type":"object","properties":{
            "name":{"type":"string","maxLength":64},"value":{"type":"string","maxLength":64}}}},
        "ports":{"type":"array","maxItems":64,"items":{"type":"object","properties":{
            "name":{"type":"string","maxLength":64},"port":{"type":"integer"}}}},
        "list":{"type":"array","maxItems":2000,"items":{"type":"object","properties":{
            "name":{"type":"string","maxLength":64},"port":{"type":"integer"}}}}}}"#;
    decode(text.as_bytes()).expect("JSON")
}

/// The same value for the other crate.
fn theirs(value: &Value) -> theirs::Value {
    let json: serde_json::Value = serde_json::from_str(&value.to_json()).expect("JSON");
    theirs::to_value(json).expect("a value")
}

fn measure_single<'m>(
    what: &'m str,
    rule: &str,
    target: Option<Duration>,
    rounds: u32,
    env: &Environment,
    object: &'m Value,
    decl: &'m Arc<Decl>,
) -> Measure<'m> {
    let program = Program::new(env, &env.check(rule).expect("a rule")).expect("a program");
    let program: &'m Program = Box::leak(Box::new(program));
    let other = theirs::Program::compile(rule).expect("a rule");
    let mut context = theirs::Context::default();
    context.add_variable_from_value("self", theirs(object));
    let good = program.eval(&[("self", from_json(object, decl).expect("a value"))], u64::MAX).result;
    assert!(matches!(good, Ok(Val::Bool(true))), "{rule}: {good:?}");
    assert_eq!(other.execute(&context).expect("a result"), theirs::Value::Bool(true), "{rule}");
    Measure {
        what,
        target,
        rounds,
        ours: Box::new(move || {
            black_box(program.eval(&[("self", from_json(object, decl).expect("a value"))], 1_000_000).cost);
        }),
        theirs: Some(Box::new(move || {
            black_box(other.execute(&context).is_ok());
        })),
    }
}

fn ten_rules<'m>(object: &'m Value, schema: &Value) -> Measure<'m> {
    let mut definition = schema.clone();
    let rules = TEN.iter().map(|rule| Value::from([("rule", Value::from(*rule))])).collect();
    definition.set_at(&["x-kubernetes-validations"], rules);
    let errors = Rules::check(&definition, &FieldPath::root(), &Options::default());
    assert!(errors.fields.is_empty() && errors.expressions.is_empty(), "{errors:?}");
    let rules = Rules::of(&definition, SchemaOf::Resource, Release::default()).expect("rules");
    assert!(rules.validate(object, &Validation::default()).errors.is_empty());
    let programs: Vec<_> = TEN.iter().map(|rule| theirs::Program::compile(rule).expect("a rule")).collect();
    let mut context = theirs::Context::default();
    context.add_variable_from_value("self", theirs(object));
    programs.iter().for_each(|p| assert_eq!(p.execute(&context).expect("a result"), theirs::Value::Bool(true)));
    Measure {
        what: "ten rules over 1.5 KB",
        target: Some(Duration::from_micros(10)),
        rounds: 400,
        ours: Box::new(move || {
            black_box(rules.validate(object, &Validation::default()).cost);
        }),
        theirs: Some(Box::new(move || programs.iter().for_each(|p| drop(black_box(p.execute(&context)))))),
    }
}

fn main() {
    let (schema, small) = (schema(), object());
    let decl = Decl::from_schema(&schema);
    let env = Environment::kubernetes(34).declared("self", &decl);
    let items: Value =
        (0..1000).map(|i| Value::from([("name", Value::from("web")), ("port", Value::from(i64::from(i)))])).collect();
    let large = Value::from([("list", items)]);
    println!("| measure | ours | target | reached | `cel` 0.15 | ratio |");
    println!("| --- | --- | --- | --- | --- | --- |");
    Measure {
        what: "compile a typical rule (theirs: parse only)",
        target: Some(Duration::from_micros(50)),
        rounds: 100,
        ours: Box::new(|| drop(black_box(env.check(TYPICAL).map(|checked| Program::new(&env, &checked))))),
        theirs: Some(Box::new(|| drop(black_box(theirs::Program::compile(TYPICAL))))),
    }
    .take();
    let micros = |n| Some(Duration::from_micros(n));
    let nanos = |n| Some(Duration::from_nanos(n));
    measure_single(
        "`self.replicas <= 500 \\|\\| self.image.startsWith('big')`",
        TYPICAL,
        nanos(300),
        4000,
        &env,
        &small,
        &decl,
    )
    .take();
    ten_rules(&small, &schema).take();
    measure_single("`x.port > -1` of 1,000 items", LIST, micros(100), 20, &env, &large, &decl).take();
    measure_single("two tests of 1,000 items", NAMES, None, 20, &env, &large, &decl).take();
    Measure {
        what: "make a value of the object of 1.5 KB",
        target: None,
        rounds: 400,
        ours: Box::new(|| drop(black_box(from_json(&small, &decl)))),
        theirs: Some(Box::new(|| drop(black_box(theirs(&small))))),
    }
    .take();
}
