//! Go's and Kubernetes' wording of the errors that our crates return: what kube-apiserver sends, to the byte.
//!
//! Decoders report problems in Go's words already. Positions are added here, since Go leaves them out or counts them in its own
//! way.

pub mod patch;

use machinery::DecodeError;
use machinery::cbor::{CborError, CborProblem};
use machinery::time::DurationError;
use machinery::value::{JsonError, quote};
use machinery::yaml::{YamlError, YamlProblem};

/// The text of a decode error in any encoding.
pub fn decode_error(error: &DecodeError) -> String {
    match error {
        DecodeError::Json(error) => json_error(error),
        DecodeError::Yaml(error) => yaml_error(error),
        DecodeError::Cbor(error) => cbor_error(error),
        DecodeError::Protobuf(error) => error.to_string(),
    }
}

/// The text of `encoding/json`.
pub fn json_error(error: &JsonError) -> String {
    error.problem.to_string()
}

/// The text of `sigs.k8s.io/yaml` 1.6.0 over go-yaml v2.
pub fn yaml_error(error: &YamlError) -> String {
    let problem = &error.problem;
    let line = match problem {
        // upstream finds these errors when it converts the document to JSON
        YamlProblem::Conversion(_) | YamlProblem::TooDeep(_) => return problem.to_string(),
        // go-yaml omits the line number if it is the first line
        YamlProblem::Scan(_) => error.line.filter(|line| *line > 1),
        // the parser counts lines from 0
        YamlProblem::Parse(_) => error.line.and_then(|line| line.checked_sub(1)).filter(|line| *line > 0),
        _ => None,
    };
    let place = line.map(|line| format!("line {line}: ")).unwrap_or_default();
    format!("yaml: {place}{problem}")
}

/// The text of `github.com/fxamacker/cbor`, as far as the profile of Kubernetes shows it.
pub fn cbor_error(error: &CborError) -> String {
    match &error.problem {
        problem @ (CborProblem::Empty | CborProblem::UnexpectedEnd) => problem.to_string(),
        problem => format!("cbor: {problem}"),
    }
}

/// The struct into which Go decodes an object to look for its type.
const TYPE_STRUCT: &str =
    r#"struct { APIVersion string "json:\"apiVersion,omitempty\""; Kind string "json:\"kind,omitempty\"" }"#;

/// The text of `encoding/json` for a value of another type than an object, such as `array`.
pub fn not_an_object(json_type: &str) -> String {
    format!(
        "couldn't get version/kind; json parse error: json: cannot unmarshal {json_type} into Go value of type {TYPE_STRUCT}"
    )
}

/// The text of `time.ParseDuration`.
pub fn duration_error(error: &DurationError, text: &str) -> String {
    let text = quote(text);
    match error {
        DurationError::Invalid => format!("time: invalid duration {text}"),
        DurationError::MissingUnit => format!("time: missing unit in duration {text}"),
        DurationError::UnknownUnit(unit) => format!("time: unknown unit {} in duration {text}", quote(unit)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use machinery::{value, yaml};

    #[test]
    fn json() {
        let cases = [
            ("", "unexpected end of JSON input"),
            ("{", "unexpected end of JSON input"),
            ("x", "invalid character 'x' looking for beginning of value"),
            ("{a}", "invalid character 'a' looking for beginning of object key string"),
            ("{\"a\":1,}", "invalid character '}' looking for beginning of object key string"),
            ("{\"a\" 1}", "invalid character '1' after object key"),
            ("{\"a\":1 2", "invalid character '2' after object key:value pair"),
            ("[1 2]", "invalid character '2' after array element"),
            ("[1,]", "invalid character ']' looking for beginning of value"),
            ("1 2", "invalid character '2' after top-level value"),
            ("tru3", "invalid character '3' in literal true (expecting 'e')"),
            ("-x", "invalid character 'x' in numeric literal"),
            ("1.x", "invalid character 'x' after decimal point in numeric literal"),
            ("1e+x", "invalid character 'x' in exponent of numeric literal"),
            ("\"\\q\"", "invalid character 'q' in string escape code"),
            ("\"\\u12x4\"", "invalid character 'x' in \\u hexadecimal character escape"),
            ("\"a\nb\"", "invalid character '\\n' in string literal"),
            ("tru", "invalid character ' ' in literal true (expecting 'e')"),
            ("-", "invalid character ' ' in numeric literal"),
            ("[6E", "invalid character ' ' in exponent of numeric literal"),
            ("\"a\\", "invalid character ' ' in string escape code"),
            ("\"a", "unexpected end of JSON input"),
            ("[1e309x]", "invalid character 'x' after array element"),
            ("1e309", "json: cannot unmarshal number 1e309 into Go value of type float64"),
        ];
        for (text, want) in cases {
            assert_eq!(json_error(&value::decode(text.as_bytes()).unwrap_err()), want, "{text}");
        }
        let open = "[".repeat(value::DEPTH_MAX + 1);
        let deep = move || json_error(&value::decode(open.as_bytes()).unwrap_err());
        let thread = std::thread::Builder::new().stack_size(64 << 20).spawn(deep).unwrap();
        assert_eq!(thread.join().unwrap(), "invalid character '[' exceeded max depth");
    }

    /// Texts of go-yaml v2.4.3.
    #[test]
    fn yaml() {
        for (text, words) in [
            ("a: - b\n", "block sequence entries are not allowed in this context"),
            ("x: y\na: - b\n", "line 2: block sequence entries are not allowed in this context"),
            ("a: b\n  c: d\n", "line 2: mapping values are not allowed in this context"),
            ("a: b: c\n", "mapping values are not allowed in this context"),
            ("x: y\na: @b\n", "line 2: found character that cannot start any token"),
            ("a:\n\tb: c\n", "line 2: found character that cannot start any token"),
            ("\ta: b\n", "found character that cannot start any token"),
            ("a: b\n\tc: d\n", "line 2: found a tab character that violates indentation"),
            ("a: b\n\n\t\n", "line 3: found a tab character that violates indentation"),
            ("a: |\n\tb\n", "line 2: found a tab character where an indentation space is expected"),
            ("a: |x\n  b\n", "did not find expected comment or line break"),
            ("a: *\n", "did not find expected alphabetic or numeric character"),
            ("a: \"\\u00g1\"\n", "did not find expected hexdecimal number"),
            ("x: y\na: \"\\q\"\n", "line 2: found unknown escape character"),
            ("a: b\nc\nd: e\n", "line 3: could not find expected ':'"),
            ("a: 'b\n---\nc'\n", "line 2: found unexpected document indicator"),
            ("x: y\na: 'b\n\n", "line 4: found unexpected end of stream"),
            ("x:\n  - y\n  z: w\n", "line 2: did not find expected '-' indicator"),
            ("a:\n  b: c\n d: e\n", "line 2: did not find expected key"),
            ("a: [b\nc: d\n", "line 1: did not find expected ',' or ']'"),
            ("x: y\nb: {a: 1\n c: d\n", "line 2: did not find expected ',' or '}'"),
            ("a: [,]\n", "did not find expected node content"),
            ("a: ]\n", "did not find expected node content"),
            ("a: [b]]\n", "did not find expected key"),
            ("a: \"b\" c\n", "did not find expected key"),
            ("a: !x!y z\n", "found undefined tag handle"),
            ("a: &b\n  c: *b\n", "anchor 'b' value contains itself"),
            ("a: x\u{1}y\n", "control characters are not allowed"),
            ("%YAML 1.2\n---\na: b\n", "found incompatible YAML document"),
            ("# x\n%FOO\n---\na: b\n", "line 2: found unknown directive name"),
            ("a: !!int x\n", "cannot decode !!str `x` as a !!int"),
            // Helm templates
            ("{{- if .Values.a }}\na: b\n{{- end }}\n", "did not find expected node content"),
            ("a: {{ .Values.b }}\n", "invalid map key: map[interface {}]interface {}{\".Values.b\":interface {}(nil)}"),
            ("a: b\n{{ include \"c\" . }}\n", "line 3: could not find expected ':'"),
            ("a: {{ 1 }}\n", "invalid map key: map[interface {}]interface {}{1:interface {}(nil)}"),
            ("a: \"\\/\"\n", "found unknown escape character"),
            ("a: {b: 1, <<: 2}\n", "map merge requires map or sequence of maps as the value"),
            ("s: *nope", "unknown anchor 'nope' referenced"),
            ("a: {[1, 2]: a}", "invalid map key: []interface {}{1, 2}"),
        ] {
            let error = yaml::decode(text.as_bytes()).unwrap_err();
            assert_eq!(yaml_error(&error), format!("yaml: {words}"), "{text:?}");
        }
        assert_eq!(yaml_error(&yaml::decode(b"a: .inf").unwrap_err()), "json: unsupported value: +Inf");
    }

    #[test]
    fn cbor() {
        for (bytes, want) in [
            (&b""[..], "EOF"),
            (b"\x82\x01", "unexpected EOF"),
            (b"\x01\x02", "cbor: 1 bytes of extraneous data starting at index 1"),
            (b"\xa2\x41a\x01\x41a\x02", "cbor: found duplicate map key \"a\""),
            (b"\xf9\x7e\x00", "cbor: floating-point NaN and infinity are not supported"),
        ] {
            assert_eq!(cbor_error(&machinery::cbor::decode(bytes).unwrap_err()), want);
        }
    }
}
