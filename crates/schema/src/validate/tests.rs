use machinery::value::decode;

use super::*;
use crate::CompileOptions;

fn check(schema: &str, value: &str, want: &[&str]) {
    let openapi = decode(schema.as_bytes()).unwrap();
    let schema = Schema::compile(&openapi, &CompileOptions::default());
    let got: Vec<String> =
        schema.validate(&decode(value.as_bytes()).unwrap(), None).iter().map(ToString::to_string).collect();
    assert_eq!(got, want, "{value}");
}

#[test]
fn types_and_bounds() {
    let schema = r#"{"type":"object","properties":{"i":{"type":"integer","minimum":2.5},"s":{"type":"string","maxLength":1},
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
fn junctors_show_the_best_branch() {
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

/// A list in a list in a list …
fn nested(levels: usize) -> String {
    format!(r#"{{"free":{}{}}}"#, "[".repeat(levels), "]".repeat(levels))
}

#[test]
fn deep_values_fit_a_stack() {
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
