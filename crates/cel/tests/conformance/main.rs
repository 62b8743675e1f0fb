//! The conformance tests of the CEL specification, `tests/simple` of module `cel.dev/expr`.
//!
//! Not part of `cargo test`, since Go fetches the data: `cargo test -p pintle-cel --test conformance`. Every test is run.
//! Tests that need messages or enums of protocol buffers may fail, and those that `exclusions.txt` lists with a reason; an
//! exclusion of a test that passes is an error.

mod textproto;
mod translate;

use cel::{Environment, Program, Val};
use machinery::value::decode;
use std::path::{Path, PathBuf};
use std::process::Command;
use textproto::{Message, Value};

/// Downloads the module, pinned by go.mod and go.sum; returns its directory.
fn data() -> PathBuf {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/conformance");
    let cache = Path::new(env!("CARGO_TARGET_TMPDIR")).join("conformance");
    let mut go = Command::new("go");
    go.args(["mod", "download", "-json", "cel.dev/expr"]).current_dir(folder);
    let output = go.env("GOMODCACHE", cache).env("GOFLAGS", "-modcacherw").output().expect("Go is installed");
    assert!(output.status.success(), "go mod download: {}", String::from_utf8_lossy(&output.stdout));
    let module = decode(&output.stdout).expect("JSON");
    Path::new(module.str_at(&["Dir"])).join("tests/simple/testdata")
}

/// The environment of a test and the values of its variables.
fn environment(test: &Message) -> Result<(Environment, Vec<(String, Val<'static>)>), String> {
    let mut env = Environment::standard();
    env.container = test.text("container").into();
    let mut values = vec![];
    for decl in test.all("type_env") {
        let name = decl.text("name");
        let t = decl.message("ident").and_then(|ident| ident.message("type")).and_then(translate::type_of);
        env = env.variable(&name, t.ok_or_else(|| format!("no type for {name}"))?);
        let bound = test.all("bindings").find(|binding| binding.text("key") == name);
        let value = bound.and_then(|binding| binding.message("value")?.message("value"));
        if let Some(value) = value {
            let value = translate::value(value).ok_or_else(|| format!("no value for {name}"))?;
            values.push((name, value));
        }
    }
    Ok((env, values))
}

/// Runs a test. The error is the difference.
fn run(test: &Message) -> Result<(), String> {
    let (env, values) = environment(test)?;
    let values: Vec<(&str, Val<'_>)> = values.iter().map(|(name, value)| (name.as_str(), value.clone())).collect();
    let text = test.text("expr");
    let failing = test.get("eval_error").or(test.get("any_eval_errors")).is_some();
    let checked = if test.flag("disable_check") { env.unchecked(&text) } else { env.check(&text) };
    let checked = match checked {
        Ok(checked) => checked,
        Err(_) if failing => return Ok(()),
        Err(error) => return Err(error.to_string()),
    };
    let typed = test.message("typed_result");
    if let Some(want) = typed.and_then(|typed| typed.message("deduced_type")) {
        let want = translate::type_of(want).ok_or("no such type")?;
        if *checked.output_type() != want {
            return Err(format!("type {} instead of {}", checked.output_type().format(""), want.format("")));
        }
    }
    if test.flag("check_only") {
        return Ok(());
    }
    let result = Program::new(&env, &checked).map_err(|error| error.to_string());
    let outcome = result.as_ref().map(|program| program.eval(&values, u64::MAX).result);
    let got = match outcome {
        Ok(Ok(got)) => got,
        Ok(Err(_)) | Err(_) if failing => return Ok(()),
        Ok(Err(error)) => return Err(error.to_string()),
        Err(error) => return Err(error.clone()),
    };
    let want = match test.message("value").or(typed.and_then(|typed| typed.message("result"))) {
        Some(want) => translate::value(want).ok_or("the result is a message")?,
        None => Val::Bool(true),
    };
    match !failing && translate::same(&want, &got) {
        true => Ok(()),
        false => Err(format!("{got:?} instead of {}", if failing { "an error".into() } else { format!("{want:?}") })),
    }
}

/// Whether a test needs messages or enums of protocol buffers: its container, a type, a value or its text names one.
fn needs_messages(test: &Message) -> bool {
    let native = |name: &str| ["Timestamp", "Duration"].iter().any(|native| name.starts_with(native));
    let names = |text: &str| text.split("google.protobuf").skip(1).any(|rest| !native(rest.trim_start_matches('.')));
    test.0.iter().any(|(name, value)| match value {
        Value::Message(message) => names(name) || name.contains("TestAllTypes") || needs_messages(message),
        other => {
            let text = other.text();
            let described = name != "description" && name != "name";
            described && (text.contains("cel.expr.conformance") || text.contains("TestAllTypes") || names(&text))
        }
    })
}

/// Patterns of other tests that fail, as `file/section/test` with `*` for any name, with their reasons.
fn exclusions() -> Vec<(Vec<&'static str>, &'static str)> {
    let lines = include_str!("exclusions.txt").lines().filter(|line| !line.is_empty() && !line.starts_with('#'));
    let pairs = lines.map(|line| line.split_once(' ').expect("a pattern and a reason"));
    pairs.map(|(pattern, reason)| (pattern.split('/').collect(), reason)).collect()
}

#[derive(Default)]
struct Tally {
    total: u32,
    passed: u32,
    messages: u32,
    failures: Vec<String>,
}

impl Tally {
    fn count(&mut self, name: [&str; 3], test: &Message, exclusions: &[(Vec<&str>, &str)], used: &mut [u32]) {
        self.total += 1;
        let Err(difference) = run(test) else {
            self.passed += 1;
            return;
        };
        if needs_messages(test) {
            self.messages += 1;
            return;
        }
        let matches = |pattern: &[&str]| pattern.iter().zip(name).all(|(part, name)| *part == "*" || *part == name);
        match exclusions.iter().position(|(pattern, _)| matches(pattern)) {
            Some(at) => used[at] += 1,
            None => self.failures.push(format!("{}: {}\n  {difference}", name.join("/"), test.text("expr"))),
        }
    }
}

#[test]
fn cel_conformance() {
    let mut files: Vec<PathBuf> = std::fs::read_dir(data()).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.retain(|path| path.extension().is_some_and(|extension| extension == "textproto"));
    files.sort();
    let exclusions = exclusions();
    let mut used = vec![0; exclusions.len()];
    let mut tally = Tally::default();
    for path in files {
        let file = textproto::parse(&std::fs::read_to_string(&path).unwrap());
        let stem = path.file_stem().unwrap().to_string_lossy();
        for section in file.all("section") {
            for test in section.all("test") {
                let name = [&*stem, &section.text("name"), &test.text("name")];
                tally.count(name, test, &exclusions, &mut used);
            }
        }
    }
    let Tally { total, passed, messages, failures } = tally;
    let others: u32 = used.iter().sum();
    let share = |of: u32| 100.0 * f64::from(passed) / f64::from(of);
    println!("{passed} of {total} tests pass: {:.1} %", share(total));
    println!(
        "{messages} need messages or enums of protocol buffers; of the others pass {:.1} %",
        share(total - messages)
    );
    println!("{others} are excluded for other reasons, which are listed in exclusions.txt");
    assert!(failures.is_empty(), "{} fail:\n{}", failures.len(), failures.join("\n"));
    let stale: Vec<_> = exclusions.iter().zip(&used).filter(|(_, count)| **count == 0).map(|(e, _)| e).collect();
    assert!(stale.is_empty(), "exclusions of tests that pass: {stale:?}");
}
