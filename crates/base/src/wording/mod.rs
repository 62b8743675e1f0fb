//! Go's and Kubernetes' wording of the errors that our crates return: what kube-apiserver sends, to the byte.
//!
//! The crates return typed errors with positions; nothing else in the server composes these texts, and nothing compares
//! them.

pub mod managed_fields;
pub mod patch;

use machinery::DecodeError;
use machinery::cbor::{CborError, CborProblem};
use machinery::protobuf::ProtobufError;
use machinery::time::DurationError;
use machinery::value::{JsonContext, JsonError, JsonProblem, quote};
use machinery::yaml::{DEPTH_MAX, EncodingProblem, ParseProblem, ScanProblem, YamlError, YamlProblem};

/// The text of a decode error in any encoding.
pub fn decode_error(error: &DecodeError) -> String {
    match error {
        DecodeError::Json(error) => json_error(error),
        DecodeError::Yaml(error) => yaml_error(error),
        DecodeError::Cbor(error) => cbor_error(error),
        DecodeError::Protobuf(error) => protobuf_error(error),
    }
}

/// The text of `encoding/json`.
pub fn json_error(error: &JsonError) -> String {
    match &error.problem {
        JsonProblem::Unexpected { byte, context } => {
            format!("invalid character {} {}", quote_byte(*byte), json_context(*context))
        }
        JsonProblem::NumberOutOfRange { literal } => {
            format!("json: cannot unmarshal number {literal} into Go value of type float64")
        }
        _ => "unexpected end of JSON input".to_owned(),
    }
}

fn json_context(context: JsonContext) -> String {
    let fixed = match context {
        JsonContext::Literal { literal, expected } => {
            return format!("in literal {literal} (expecting {})", quote_byte(expected));
        }
        JsonContext::Value => "looking for beginning of value",
        JsonContext::Depth => "exceeded max depth",
        JsonContext::Key => "looking for beginning of object key string",
        JsonContext::AfterKey => "after object key",
        JsonContext::AfterField => "after object key:value pair",
        JsonContext::AfterItem => "after array element",
        JsonContext::AfterDocument => "after top-level value",
        JsonContext::Number => "in numeric literal",
        JsonContext::Fraction => "after decimal point in numeric literal",
        JsonContext::Exponent => "in exponent of numeric literal",
        JsonContext::String => "in string literal",
        JsonContext::Escape => "in string escape code",
        JsonContext::HexEscape => "in \\u hexadecimal character escape",
    };
    fixed.to_owned()
}

/// One byte as Go quotes it in errors.
fn quote_byte(byte: u8) -> String {
    match byte {
        b'\'' => r"'\''".to_owned(),
        b'"' => "'\"'".to_owned(),
        _ => {
            let quoted = quote(&char::from(byte).to_string());
            format!("'{}'", &quoted[1..quoted.len() - 1])
        }
    }
}

/// The text of `sigs.k8s.io/yaml` 1.6.0 over go-yaml v2.
pub fn yaml_error(error: &YamlError) -> String {
    let problem = match &error.problem {
        YamlProblem::Encoding(problem) => encoding_problem(*problem).to_owned(),
        // go-yaml omits the line number if it is the first line
        YamlProblem::Scan(problem) => at_line(error.line.filter(|line| *line > 1), &scan_problem(*problem)),
        // the parser counts lines from 0
        YamlProblem::Parse(problem) => {
            let line = error.line.and_then(|line| line.checked_sub(1)).filter(|line| *line > 0);
            at_line(line, parse_problem(*problem))
        }
        YamlProblem::UnknownAnchor(name) => format!("unknown anchor '{name}' referenced"),
        YamlProblem::CyclicAnchor(name) => format!("anchor '{name}' value contains itself"),
        YamlProblem::ExcessiveAliasing => "document contains excessive aliasing".to_owned(),
        YamlProblem::CollectionAsKey(key) => format!("invalid map key: {key}"),
        YamlProblem::MergeOfNonMapping => "map merge requires map or sequence of maps as the value".to_owned(),
        YamlProblem::TagMismatch { found, text, tag } => format!("cannot decode !!{found} `{text}` as a !!{tag}"),
        YamlProblem::InvalidBase64 => "!!binary value contains invalid base64 data".to_owned(),
        // upstream finds these errors when it converts the document to JSON
        YamlProblem::NullAsKey { value } => {
            return format!("unsupported map key of type: %!s(<nil>), key: <nil>, value: {value}");
        }
        YamlProblem::LargeIntegerAsKey { key, value } => {
            return format!("unsupported map key of type: uint64, key: {key}, value: {value}");
        }
        YamlProblem::NotFinite(number) => return format!("json: unsupported value: {number}"),
        YamlProblem::TooDeep(bracket) => return format!("invalid character '{bracket}' exceeded max depth"),
        other => format!("{other:?}"),
    };
    format!("yaml: {problem}")
}

fn at_line(line: Option<usize>, problem: &str) -> String {
    line.map_or_else(|| problem.to_owned(), |line| format!("line {line}: {problem}"))
}

fn encoding_problem(problem: EncodingProblem) -> &'static str {
    match problem {
        EncodingProblem::ControlCharacter => "control characters are not allowed",
        EncodingProblem::InvalidLeadingByte => "invalid leading UTF-8 octet",
        EncodingProblem::IncompleteCharacter => "incomplete UTF-8 octet sequence",
        EncodingProblem::InvalidTrailingByte => "invalid trailing UTF-8 octet",
        EncodingProblem::OverlongCharacter => "invalid length of a UTF-8 sequence",
        EncodingProblem::InvalidCharacter => "invalid Unicode character",
        EncodingProblem::IncompleteUtf16Unit => "incomplete UTF-16 character",
        EncodingProblem::UnexpectedLowSurrogate => "unexpected low surrogate area",
        EncodingProblem::IncompleteSurrogatePair => "incomplete UTF-16 surrogate pair",
        EncodingProblem::MissingLowSurrogate => "expected low surrogate area",
    }
}

fn scan_problem(problem: ScanProblem) -> String {
    let fixed = match problem {
        ScanProblem::TooManyOpenCollections => return format!("exceeded max depth of {DEPTH_MAX}"),
        ScanProblem::PastEndOfStream => "attempted to go past the end of stream; corrupted value?",
        ScanProblem::InvalidFirstCharacter => "found character that cannot start any token",
        ScanProblem::MissingColon => "could not find expected ':'",
        ScanProblem::BlockEntryNotAllowed => "block sequence entries are not allowed in this context",
        ScanProblem::KeyNotAllowed => "mapping keys are not allowed in this context",
        ScanProblem::ValueNotAllowed => "mapping values are not allowed in this context",
        ScanProblem::TabViolatesIndentation => "found a tab character that violates indentation",
        ScanProblem::DocumentIndicatorInQuotes => "found unexpected document indicator",
        ScanProblem::UnclosedQuotes => "found unexpected end of stream",
        ScanProblem::UnknownEscape => "found unknown escape character",
        ScanProblem::InvalidHexadecimalEscape => "did not find expected hexdecimal number",
        ScanProblem::InvalidEscapedCharacter => "found invalid Unicode character escape code",
        ScanProblem::MissingCommentOrLineBreak => "did not find expected comment or line break",
        ScanProblem::ZeroIndentationIndicator => "found an indentation indicator equal to 0",
        ScanProblem::TabInsteadOfIndentation => "found a tab character where an indentation space is expected",
        ScanProblem::MissingAnchorName => "did not find expected alphabetic or numeric character",
        ScanProblem::UnclosedVerbatimTag => "did not find the expected '>'",
        ScanProblem::MissingSpaceOrLineBreak => "did not find expected whitespace or line break",
        ScanProblem::MissingTagDelimiter => "did not find expected '!'",
        ScanProblem::MissingTagUri => "did not find expected tag URI",
        ScanProblem::InvalidLeadingByteInUri => "found an incorrect leading UTF-8 octet",
        ScanProblem::InvalidTrailingByteInUri => "found an incorrect trailing UTF-8 octet",
        ScanProblem::MissingEscapedByteInUri => "did not find URI escaped octet",
        ScanProblem::MissingDirectiveName => "could not find expected directive name",
        ScanProblem::InvalidDirectiveName => "found unexpected non-alphabetical character",
        ScanProblem::UnknownDirective => "found unknown directive name",
        ScanProblem::InvalidVersion => "did not find expected digit or '.' character",
        ScanProblem::LongVersion => "found extremely long version number",
        ScanProblem::MissingVersion => "did not find expected version number",
        ScanProblem::MissingSpace => "did not find expected whitespace",
    };
    fixed.to_owned()
}

fn parse_problem(problem: ParseProblem) -> &'static str {
    match problem {
        ParseProblem::MissingDocumentStart => "did not find expected <document start>",
        ParseProblem::DuplicateVersionDirective => "found duplicate %YAML directive",
        ParseProblem::UnsupportedVersion => "found incompatible YAML document",
        ParseProblem::DuplicateTagDirective => "found duplicate %TAG directive",
        ParseProblem::UndefinedTagHandle => "found undefined tag handle",
        ParseProblem::MissingNode => "did not find expected node content",
        ParseProblem::MissingBlockEntry => "did not find expected '-' indicator",
        ParseProblem::MissingKey => "did not find expected key",
        ParseProblem::UnclosedFlowSequence => "did not find expected ',' or ']'",
        ParseProblem::UnclosedFlowMapping => "did not find expected ',' or '}'",
    }
}

/// The text of `github.com/fxamacker/cbor`, as far as the profile of Kubernetes shows it.
pub fn cbor_error(error: &CborError) -> String {
    let problem = match &error.problem {
        CborProblem::Empty => return "EOF".to_owned(),
        CborProblem::UnexpectedEnd => return "unexpected EOF".to_owned(),
        CborProblem::Malformed(why) => why.clone(),
        CborProblem::TrailingBytes { count } => {
            format!("{count} bytes of extraneous data starting at index {}", error.offset)
        }
        CborProblem::TooDeep { max } => format!("exceeded max nested level {max}"),
        CborProblem::TooManyItems { max } => format!("exceeded max number of elements {max} for CBOR array"),
        CborProblem::TooManyFields { max } => format!("exceeded max number of key-value pairs {max} for CBOR map"),
        CborProblem::IntegerOutOfRange(integer) => format!("cannot unmarshal {integer} into Go value of type int64"),
        CborProblem::NotFinite => "floating-point NaN and infinity are not supported".to_owned(),
        CborProblem::UnsupportedType(name) => format!("{name} is not supported"),
        CborProblem::BigNumber => "big numbers are not supported".to_owned(),
        CborProblem::KeyNotText(key) => format!("cannot unmarshal {key} into Go value of type string"),
        CborProblem::DuplicateKey(key) => format!("found duplicate map key {}", quote(key)),
        CborProblem::InvalidTime(value) => format!("cannot set {value} for time.Time"),
        other => format!("{other:?}"),
    };
    format!("cbor: {problem}")
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

/// The text of the protobuf serializer of Kubernetes.
pub fn protobuf_error(error: &ProtobufError) -> String {
    match error {
        ProtobufError::Empty => "empty data".to_owned(),
        ProtobufError::MissingPrefix => {
            "provided data does not appear to be a protobuf message, expected prefix [107 56 115 0]".to_owned()
        }
        ProtobufError::UnknownKind { api_version, kind } => format!(
            "no kind \"{kind}\" is registered for version \"{api_version}\" in scheme \"pkg/runtime/scheme.go:111\""
        ),
        _ => "proto: illegal wireType".to_owned(),
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
