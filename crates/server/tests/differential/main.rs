//! Differential tests of patterns, JSONPath, numbers, quantities and YAML against Go and the libraries of Kubernetes.
//!
//! Not part of `cargo test`, as it needs Go and modules that Go downloads: `cargo test -p pintle-server --test differential`.
//! Questions are composed of parts with a fixed seed; `main.go` responds to them.

mod quantities;
mod yaml;

use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::LazyLock;

use cel::regex::Regex;
use machinery::jsonpath::JsonPath;
use machinery::patch::gotext;
use machinery::value::decode;
use machinery::{Value, json};
use schema::{CompileOptions, Prior, Schema};

/// A xorshift generator: a seed always gives the same questions.
struct Random(u64);

impl Random {
    fn below(&mut self, n: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 % n as u64) as usize
    }

    fn join(&mut self, parts: &[&str], most: usize) -> String {
        (0..1 + self.below(most)).map(|_| parts[self.below(parts.len())]).collect()
    }
}

/// Builds the Go program.
fn program() -> PathBuf {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/differential");
    let place = Path::new(env!("CARGO_TARGET_TMPDIR")).join("differential");
    let mut build = Command::new("go");
    build.args(["build", "-o"]).arg(place.join("answers")).arg(".").current_dir(folder);
    let flags = std::env::var("GOFLAGS").unwrap_or_default();
    build.env("GOMODCACHE", place.join("modules")).env("GOFLAGS", format!("{flags} -modcacherw -mod=readonly"));
    let built = build.output().expect("Go is installed");
    assert!(built.status.success(), "go build: {}", String::from_utf8_lossy(&built.stderr));
    place.join("answers")
}

/// The responses of the Go program to all questions.
fn responses(questions: &[Value]) -> Vec<Value> {
    static PROGRAM: LazyLock<PathBuf> = LazyLock::new(program);
    let mut program = Command::new(PROGRAM.as_path());
    let mut program = program.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("a program");
    let mut input = program.stdin.take().expect("its input");
    let lines: String = questions.iter().map(|question| question.to_json() + "\n").collect();
    let writer = std::thread::spawn(move || input.write_all(lines.as_bytes()));
    let output = program.wait_with_output().expect("its output");
    writer.join().expect("a thread").expect("all questions are written");
    let responses = output.stdout.split(|b| *b == b'\n').filter(|line| !line.is_empty());
    let responses: Vec<Value> = responses.map(|line| decode(line).expect("JSON")).collect();
    assert_eq!(responses.len(), questions.len(), "there is a response to every question");
    responses
}

fn list(texts: &[&str]) -> Value {
    texts.iter().map(|text| Value::from(*text)).collect()
}

const PATTERN_PARTS: &[&str] = &[
    "a", "b", "é", "ß", "K", "\u{212a}", "1", "_", "-", " ", ".", "^", "$", "|", "(", ")", "(?:", "(?i)", "(?m)",
    "(?s)", "(?U)", "(?i:", "(?P<n>", "(?<m>", "*", "+", "?", "*?", "+?", "??", "{2}", "{1,3}", "{0,2}?", "{,2}",
    "{2,1}", "{1001}", "[a-c]", "[^a]", "[[:alpha:]]", "[[:^digit:]]", "[[]", "[a&&b]", "[a--c]", "[]a]", "[^]a]",
    "[a-]", "[\\d\\s]", "[b-a]", "[", "]", "{", "}", "\\d", "\\D", "\\w", "\\W", "\\s", "\\S", "\\b", "\\B", "\\A",
    "\\z", "\\Z", "\\Q.*\\E", "\\Q", "\\E", "\\pL", "\\PL", "\\p{Greek}", "\\p{^Greek}", "\\p{Lu}", "\\p{Foo}",
    "\\101", "\\x41", "\\x{e9}", "\\n", "\\t", "\\.", "\\\\", "\\<", "\\8", "\\C", "\\u", "(?=a)", "(?!a)", "(?x)",
    "a**", "(a*)*", "(a|ab)(c|bcd)", "(|a)+", "(?-i)", "\\/",
];
const TEXTS: &[&str] = &[
    "", "a", "ab", "abc", "abcd", "aaa", "K", "k", "\u{212a}", "é", "É", "straße", "STRASSE", "1", "a1_b-c", "a b",
    "a\nb\n", "\n", "[a]", "{2}", "a.b", ".*", "αβγ", "A", "\u{b}", "a\\b", "_", "٣", "x{,2}y",
];

/// The difference, if there is one.
type Difference = Option<String>;

fn compare_pattern(pattern: &str, response: &Value) -> Difference {
    let regex = match (Regex::new(pattern), response) {
        (Err(error), Value::String(want)) => {
            return (error.text != want.as_str()).then(|| format!("{:?} instead of {want:?}", error.text));
        }
        (Err(error), _) => return Some(format!("{:?}, and Go takes it", error.text)),
        (Ok(_), Value::String(want)) => return Some(format!("taken, and Go says {want:?}")),
        (Ok(regex), _) => regex,
    };
    for (text, want) in TEXTS.iter().zip(response.as_array().unwrap_or_default()) {
        let found: Vec<Vec<Option<&str>>> = regex.captures_iter(text).collect();
        let place = |i: &Value| i.as_int().and_then(|i| usize::try_from(i).ok());
        let group = |pair: &[Value]| text.get(place(pair.first()?)?..place(pair.get(1)?)?);
        let matches = want.as_array().unwrap_or_default().iter();
        let want: Vec<Vec<Option<&str>>> =
            matches.map(|places| places.as_array().unwrap_or_default().chunks(2).map(group).collect()).collect();
        if found != want || regex.is_match(text) == want.is_empty() {
            return Some(format!("in {text:?}: {found:?} instead of {want:?}"));
        }
    }
    None
}

const PATH_PARTS: &[&str] = &[
    ".a", ".b", ".list", ".map", ".n", ".missing", ".a\\.b", "['a']", "['a.b']", "[\"a\"]", "[0]", "[1]", "[-1]",
    "[7]", "[*]", "[0:2]", "[::2]", "[-2:]", "[1:0]", "[:]", "[]", "[0,1]", "['a','b']", ".*", "..", "..a",
    "[?(@.n>1)]", "[?(@.a==\"x\")]", "[?(@.a!='x')]", "[?(@.n<=2.5)]", "[?(@.missing)]", "[?(@.n==@.m)]", "[?(1==1)]",
    "[?(@.a==1)]", "[?(@.ok==true)]", "[?(@.a", "[", "]", "}", "{", " ", "x", "'q'", "\"q\"", "5", "-", "@", "$", ".",
    "[a]", "[1:2:3:4]", "[?(@.a>)]", "\\",
];
const OBJECTS: &[&str] = &[
    r#"{"a":"x","b":1,"n":2.5,"a.b":"dot","list":[{"a":"x","n":1},{"a":"y","n":2,"m":2},{"n":3.5,"ok":true}],"map":{"a":{"n":5},"b":[1,2,3]}}"#,
    r#"{"a":{"a":{"b":null}},"list":["p","q","r"],"map":{"x":"text"},"n":[[1,2],[3]]}"#,
    r#"{"a":[1,2.0,"x",null,true],"list":{"a":1},"b":"text"}"#,
    r#"{}"#,
];

fn compare_path(path: &str, response: &Value) -> Difference {
    let path = match (JsonPath::parse(path), response) {
        (Err(error), Value::String(want)) => {
            return (error != want.as_str()).then(|| format!("{error:?} instead of {want:?}"));
        }
        (Err(error), _) => return Some(format!("{error:?}, and the library takes it")),
        (Ok(_), Value::String(want)) => return Some(format!("taken, and the library says {want:?}")),
        (Ok(path), _) => path,
    };
    for (object, want) in OBJECTS.iter().zip(response.as_array().unwrap_or_default()) {
        let object = decode(object.as_bytes()).expect("JSON");
        let found = match path.find(&object) {
            Ok(found) => {
                let mut texts: Vec<String> = found.iter().map(|value| value.to_json()).collect();
                texts.sort();
                texts.into_iter().map(Value::from).collect()
            }
            Err(_) => Value::from("failed"),
        };
        if found != *want {
            return Some(format!("in {}: {} instead of {}", object.to_json(), found.to_json(), want.to_json()));
        }
    }
    None
}

const NUMBERS: &[&str] = &[
    "0", "-0", "0.0", "-0.0", "1", "-1", "1.0", "1.5", "2.5", "-2.5", "1e0", "1e3", "1E3", "1e-3", "1e21", "1e20",
    "123456789", "1e6", "1000000.5", "100000000000000000000", "9007199254740991", "9007199254740992",
    "9007199254740993", "9007199254740993.0", "9223372036854775807", "9223372036854775808", "-9223372036854775808",
    "-9223372036854775809", "18446744073709551615", "0.1", "0.3", "0.30000000000000004", "1.0000000001",
    "0.9999999999", "1.00000000001", "5e-324", "1e-7", "0.000001", "1.7976931348623157e308", "1e309", "1e-400",
    "3.0000000000000004", "2147483648", "1.1", "33.3333333333", "4.9999999999", "6", "7", "-3", "-4.5", "1e15", "1e16",
    "1600012345678901.25", "1600012345678901.75", "9007199254740993.0", "4503599627370497.5", "1125899906842625.25",
];
const BOUNDS: &[&str] =
    &["0", "1", "2", "3", "0.5", "1.5", "2.5", "-0.5", "-3", "0.1", "1e3", "9007199254740993", "1e19", "-2.9", "0.25"];

/// Random schemas of bounds and multiples.
fn number_schemas(random: &mut Random) -> Vec<Value> {
    let bound = |random: &mut Random| decode(BOUNDS[random.below(BOUNDS.len())].as_bytes()).expect("JSON");
    let schemas = (0..12).map(|_| {
        let mut schema = match random.below(3) {
            0 => json!({"type": "integer"}),
            1 => json!({"type": "number"}),
            _ => json!({}),
        };
        for key in ["minimum", "maximum", "multipleOf"] {
            let value = bound(random);
            if random.below(2) == 0 && (key != "multipleOf" || value.as_float() > Some(0.0)) {
                schema.set_at(&[key], value);
            }
        }
        for key in ["exclusiveMinimum", "exclusiveMaximum"] {
            if random.below(4) == 0 {
                schema.set_at(&[key], Value::Bool(true));
            }
        }
        schema
    });
    schemas.collect()
}

fn compare_number(number: &str, schemas: &[Value], response: &Value) -> Difference {
    let Ok(value) = decode(number.as_bytes()) else {
        return (response.as_str() != Some("refused")).then(|| "refused, and Go reads it".to_owned());
    };
    if response.as_str() == Some("refused") {
        return Some("read, and Go refuses it".to_owned());
    }
    let of = if matches!(value, Value::Int(_)) { "int64" } else { "float64" };
    let seen = [of.to_owned(), gotext::plain(&value), value.to_json()];
    let want = ["type", "shown", "written"].map(|key| response.str_at(&[key]).to_owned());
    if seen != want {
        return Some(format!("{seen:?} instead of {want:?}"));
    }
    for (schema, want) in schemas.iter().zip(response.items_at(&["said"])) {
        let whole = json!({"type": "object", "properties": {"n": (schema.clone())}});
        let object = json!({"n": (value.clone())});
        let outcome =
            Schema::compile(&whole, &CompileOptions::default()).validate_after(Prior::Metadata(vec![]), &object, None);
        let mut said: Vec<String> = outcome.errors.into_iter().map(|error| error.detail).collect();
        said.sort();
        let said: Value = said.into_iter().map(Value::from).collect();
        if said != *want {
            return Some(format!("under {}: {} instead of {}", schema.to_json(), said.to_json(), want.to_json()));
        }
    }
    None
}

#[test]
fn json_path_output_matches_go() {
    let mut random = Random(0x9E37_79B9_7F4A_7C15);
    let objects: Vec<Value> = OBJECTS.iter().map(|object| decode(object.as_bytes()).expect("JSON")).collect();
    let patterns: Vec<String> = (0..20_000).map(|_| random.join(PATTERN_PARTS, 7)).collect();
    let paths: Vec<String> = (0..10_000).map(|_| random.join(PATH_PARTS, 5)).collect();
    let numbers: Vec<(&str, Vec<Value>)> =
        NUMBERS.iter().flat_map(|number| [*number; 12]).map(|number| (number, number_schemas(&mut random))).collect();
    let mut questions: Vec<Value> =
        patterns.iter().map(|text| json!({"Pattern": (text.as_str()), "Texts": (list(TEXTS))})).collect();
    questions
        .extend(paths.iter().map(|text| json!({"Path": (text.as_str()), "Objects": (Value::Array(objects.clone()))})));
    let number =
        |(text, schemas): &(&str, Vec<Value>)| json!({"Number": (*text), "Schemas": (Value::Array(schemas.clone()))});
    questions.extend(numbers.iter().map(number));
    let amounts: Vec<(String, Vec<String>)> = (0..20_000)
        .map(|_| (quantities::text(&mut random), (0..3).map(|_| quantities::text(&mut random)).collect()))
        .collect();
    let amount = |(text, others): &(String, Vec<String>)| {
        let others: Value = others.iter().map(|other| Value::from(other.as_str())).collect();
        json!({"Amount": (text.as_str()), "Texts": (others)})
    };
    questions.extend(amounts.iter().map(amount));

    let responses = responses(&questions);
    let (first, rest) = responses.split_at(patterns.len());
    let (second, rest) = rest.split_at(paths.len());
    let (third, fourth) = rest.split_at(numbers.len());
    let reported = |what: &str, difference: Difference| difference.map(|difference| format!("{what}: {difference}"));
    let mut differences: Vec<String> = patterns
        .iter()
        .zip(first)
        .filter_map(|(text, response)| reported(text, compare_pattern(text, response)))
        .collect();
    differences
        .extend(paths.iter().zip(second).filter_map(|(text, response)| reported(text, compare_path(text, response))));
    let number = |((text, schemas), response): (&(&str, Vec<Value>), &Value)| {
        reported(text, compare_number(text, schemas, response))
    };
    differences.extend(numbers.iter().zip(third).filter_map(number));
    let amount = |((text, others), response): (&(String, Vec<String>), &Value)| {
        reported(text, quantities::compare(text, others, response))
    };
    differences.extend(amounts.iter().zip(fourth).filter_map(amount));
    let shown = differences.iter().take(40).cloned().collect::<Vec<_>>().join("\n");
    assert!(differences.is_empty(), "{} of {} differ:\n{shown}", differences.len(), questions.len());
}
