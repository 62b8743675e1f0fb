use machinery::value::decode;
use machinery::{Release, json};

use super::*;
use crate::CompileOptions;

fn check(schema: &str, value: &str, want: &[&str]) {
    check_in(Release::NEWEST, schema, value, want);
}

fn check_in(release: Release, schema: &str, value: &str, want: &[&str]) {
    let openapi = decode(schema.as_bytes()).unwrap();
    let schema = Schema::compile(&openapi, &CompileOptions { release, ..CompileOptions::default() });
    let got: Vec<String> =
        schema.validate(&decode(value.as_bytes()).unwrap(), None).iter().map(ToString::to_string).collect();
    assert_eq!(got, want, "{value}");
}

#[test]
fn types_and_bounds() {
    let schema = r#"{"type":"object","properties":{"i":{"type":"integer","minimum":2},"s":{"type":"string","maxLength":1},
        "d":{"type":"string","format":"date"},"m":{"additionalProperties":{"type":"integer"},"type":"object"}},"required":["r"]}"#;
    check(schema, r#"{"r":1,"i":2}"#, &[]);
    check(
        schema,
        r#"{"i":"x","s":"ab","d":5,"m":{"a.b":"q"}}"#,
        &[
            r#"d: Invalid value: "int64": d in body must be of type date: "int64""#,
            r#"i: Invalid value: "string": i in body must be of type integer: "string""#,
            r#"m.a.b: Invalid value: "string": m.a.b in body must be of type integer: "string""#,
            "s: Too long: may not be more than 1 byte",
            "r: Required value",
        ],
    );
}

#[test]
fn ranges_of_numbers_are_enforced_since_1_36() {
    let schema = r#"{"type":"object","properties":{"i":{"type":"integer"},"i32":{"type":"integer","format":"int32"},
        "i64":{"type":"integer","format":"int64"},"f":{"type":"number","format":"float"},
        "half":{"type":"integer","minimum":2.5,"multipleOf":0.5},"n":{"type":"number","format":"int32"}}}"#;
    let checks = [
        (r#"{"i":1.0,"i32":-2147483648,"f":3.5e38,"n":1e10}"#, vec!["f"]),
        (r#"{"i":0.999999999999999}"#, vec![]),
        (r#"{"i":9999999999.5,"i32":2147483648,"half":3}"#, vec!["i", "i32", "half", "half"]),
    ];
    for (value, out_of_range) in checks {
        let object = decode(value.as_bytes()).unwrap();
        let errors_in = |release| {
            let options = CompileOptions { release, ..CompileOptions::default() };
            Schema::compile(&decode(schema.as_bytes()).unwrap(), &options).validate(&object, None)
        };
        let ranges = |errors: Vec<FieldError>| -> Vec<String> {
            let found =
                errors.iter().filter(|error| error.detail.contains("must be of type") && error.field == "<nil>");
            found.filter_map(|error| Some(error.detail.rsplit_once(" in ")?.1.to_owned())).collect()
        };
        assert_eq!(ranges(errors_in(Release::V1_36)).len(), ranges(errors_in(Release::V1_37)).len());
        let found = ranges(errors_in(Release::V1_37));
        for name in &out_of_range {
            assert!(found.iter().any(|found| found == name), "{value}: {found:?}");
        }
        assert!(ranges(errors_in(Release::V1_35)).is_empty(), "{value}");
    }
    let wrong = r#"<nil>: Invalid value: "": Checked value must be of type integer with format int32 in i32"#;
    check(schema, r#"{"i32":2147483648}"#, &[wrong]);
    check_in(Release::V1_35, schema, r#"{"i32":2147483648}"#, &[]);
}

#[test]
fn junctor_errors_report_best_branch() {
    let schema = r#"{"type":"object","properties":{"v":{"type":"string","anyOf":[{"pattern":"^a"},{"minLength":5}]}}}"#;
    check(
        schema,
        r#"{"v":"b"}"#,
        &[
            r#"<nil>: Invalid value: "": "v" must validate at least one schema (anyOf)"#,
            r#"v: Invalid value: "b": v in body should match '^a'"#,
        ],
    );
}

/// Nested lists.
fn nested(levels: usize) -> String {
    format!(r#"{{"free":{}{}}}"#, "[".repeat(levels), "]".repeat(levels))
}

#[test]
fn deep_values_do_not_overflow_the_stack() {
    let run = || {
        let free = r#"{"type":"object","properties":{"free":{"type":"array","items":{"type":"array",
            "items":{"x-kubernetes-preserve-unknown-fields":true}}}}}"#;
        let unknown = r#"{"type":"object","additionalProperties":true}"#;
        let mut deep = r#"{"type":"string"}"#.to_owned();
        for _ in 0..3_000 {
            deep = format!(r#"{{"type":"array","items":{deep}}}"#);
        }
        let exact = format!(r#"{{"type":"object","properties":{{"free":{deep}}}}}"#);
        for openapi in [free, unknown, &exact] {
            let schema = Schema::compile(&decode(openapi.as_bytes()).unwrap(), &CompileOptions::default());
            let mut value = decode(nested(9_000).as_bytes()).unwrap();
            schema.prune(&mut value, &mut vec![]);
            schema.default(&mut value).expect("few defaults");
            let old = decode(nested(2_999).as_bytes()).unwrap();
            schema.validate(&value, Some(&old));
        }
    };
    let thread = std::thread::Builder::new().stack_size(64 << 20).spawn(run);
    thread.unwrap().join().unwrap();
}

/// This was quadratic: each error was compared with all errors before it, and each item of a keyed list with all old
/// items.
#[test]
fn errors_of_long_lists_are_bounded() {
    let keyed = json!({"type": "object", "required": ["k", "n"], "properties": {"k": {"type": "string"}, "n": {"type": "integer"}}});
    let schema = json!({"type": "object", "properties": {
        "texts": {"type": "array", "items": {"type": "string", "enum": ["a"]}},
        "map": {"type": "object", "additionalProperties": {"type": "array", "items": {"type": "string"}}},
        "keyed": {"type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["k"], "items": (keyed)}
    }});
    let schema = Schema::compile(&schema, &CompileOptions::default());
    let errors = |new: &Value, old: Option<&Value>| {
        let errors = schema.validate_after(Prior::Metadata(vec![]), new, old).errors;
        (errors.len(), errors.iter().map(|error| error.field.len() + error.detail.len()).sum::<usize>())
    };
    let numbers = |count: usize| Value::Array(vec![Value::Int(1); count]);
    assert_eq!(errors(&json!({"texts": (numbers(10_000))}), None).0, 20_000);
    let (count, bytes) = errors(&json!({"texts": (numbers(400_000))}), None);
    assert!(count > 20_000 && bytes < crate::limits::ERRORS_BYTES_MAX, "{count} errors of {bytes} bytes");
    let mut long = Value::object();
    long.set_at(&["map", &"k".repeat(1_000_000)], numbers(100_000));
    assert!(errors(&long, None).0 < 10);
    let items: Value = (0..50_000).map(|i| json!({"k": (format!("{i}"))})).collect();
    let (old, mut new) = (json!({"keyed": (items.clone())}), json!({"keyed": (items)}));
    assert_eq!(errors(&new, Some(&old)).0, 0);
    new.get_mut("keyed").and_then(Value::as_array_mut).unwrap().push(json!({"k": "new"}));
    assert_eq!(errors(&new, Some(&old)).0, 1);
}

#[test]
fn patterns_of_an_object_share_a_bound() {
    let pattern = "[ab]{0,1000}".repeat(500) + "c";
    let schema = format!(r#"{{"type":"array","items":{{"type":"string","pattern":"{pattern}"}}}}"#);
    let schema = Schema::compile(&decode(schema.as_bytes()).unwrap(), &CompileOptions::default());
    let text = Value::from("ab".repeat(20) + "c");
    let few = Value::Array(vec![text.clone(); 2]);
    assert!(schema.validate(&few, None).is_empty());
    let errors = schema.validate(&Value::Array(vec![text; 1_000]), None);
    let first = errors.first().map(|error| error.detail.clone()).unwrap_or_default();
    assert!(first.contains("in body takes too long to match with"), "{first}");
}

/// A schema for an object with a text field that has `count` alternatives.
fn alternatives(junctor: &str, count: usize, alternative: impl Fn(usize) -> Value) -> Schema {
    let branches: Value = (0..count).map(alternative).collect();
    let mut text = json!({"type": "string"});
    text.set_at(&[junctor], branches);
    Schema::compile(&json!({"type": "object", "properties": {"s": (text)}}), &CompileOptions::default())
}

#[test]
fn errors_of_many_alternatives_are_bounded() {
    let object = json!({"s": ("é".repeat(500_000))});
    let all = alternatives("allOf", 1_000, |i| json!({"pattern": (format!("^x{i}"))}));
    let errors = all.validate(&object, None);
    let bytes: usize = errors.iter().map(|error| error.value.len()).sum();
    assert!(errors.len() > 4 && bytes < 2 * crate::limits::ERRORS_BYTES_MAX, "{} of {bytes}", errors.len());
    let any = alternatives("anyOf", 1_000, |i| json!({"minLength": (500_001 + i as i64)}));
    let details: Vec<String> = any.validate(&object, None).into_iter().map(|error| error.detail).collect();
    let want = ["\"s\" must validate at least one schema (anyOf)", "s in body should be at least 500001 chars long"];
    assert_eq!(details, want);
}

#[test]
fn interrupt_ends_validation() {
    let object = json!({"s": ("a".repeat(100_000))});
    let schema = alternatives("allOf", 100, |i| json!({"pattern": (if i < 99 { "^a" } else { "^x" })}));
    assert_eq!(schema.validate(&object, None).len(), 2);
    let interrupted = machinery::work::interruptible(|| true, || schema.validate(&object, None));
    assert_eq!(interrupted.len(), 0);
}
