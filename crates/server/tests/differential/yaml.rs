//! YAML: randomly changed documents of the repository, and documents composed of parts, against `sigs.k8s.io/yaml`.
//!
//! `DIFFERENTIAL_YAML` is a directory with more documents, such as sources of projects with CRDs.

use std::path::{Path, PathBuf};

use base::wording::yaml_error;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use machinery::value::decode;
use machinery::{Value, json, yaml};

use crate::{Difference, Random, responses};

const CHANGED: usize = 20_000;
const MADE: usize = 30_000;
const SCALARS: usize = 10_000;
const ENCODED: usize = 30_000;
/// Maximum size in bytes of a document that is changed.
const CHANGED_BYTES_MAX: usize = 3_000;
/// Questions per run of the Go program.
const QUESTIONS_AT_ONCE: usize = 10_000;

const SEEDS: &[&str] = &[
    "a: &x {b: 1, c: [d, 'e']}\nf:\n  <<: *x\n  g: >-\n    folded\n    text\n\n    more\n? h\n: i\n",
    "%YAML 1.1\n%TAG !e! tag:example.org,2000:\n--- !e!x\n- !!str 1\n- !<tag:yaml.org,2002:int> 7\n- !local a\n...\nb\n",
    "a: |+\n  one\n   two\n\nb: >2-\n   three\n  four\nc: \"d\\n\\u00e9\\\n  e\\/\"\n",
    "{{- if .Values.a }}\napiVersion: v1\nkind: {{ .Values.kind }}\nmetadata:\n  name: {{ include \"a\" . | quote }}\n{{- end }}\n",
    "- - a\n  - b\n-\n  - c: d\n    e:\n    - f\n    g: h\n- ? [k]\n  : v\n",
    "a: [\n  b, c: d,\n]\ne: {\n  f: g,\n}\n",
    "a: 'it''s'\nb: \"x \n  y\n\n  z\"\nc: plain\n  more\n\n  text # comment\n",
    "a: 1\na: 2\n1: x\n1.5: z\n~: n\n",
];

const PARTS: &[&str] = &[
    "a", "b", "a", "b", "key", "é", "1", "~", "a b", " ", " ", "  ", "    ", "\n", "\n", "\n", "\n  ", "\n    ",
    "\n- ", "\n  - ", ": ", ": ", ":", "a: ", "b: ", "a:\n  ", "a: b\n", "- ", "-", "? ", "?", "[", "]", "[a", "{",
    "}", "{a: b", ", ", ",", "&a ", "&b ", "*a", "*b", "<<: *a", "<<", "!", "!!str ", "!!int ", "!x ", "!!", "!<a>",
    "|", "|-\n", "|+\n", ">\n", "|2\n", "| # c\n", "\"", "\"a\"", "\"\\", "\\n", "\\/", "\\x41", "\\u12", "'", "'b'",
    "''", "#", " #", "# c\n", "\t", "\n\t", "---", "---\n", "--- ", "...", "...\n", "%", "%YAML 1.1\n", "%TAG ! a\n",
    "@", "`", "\r\n", "\r", "\u{85}", "\u{2028}", "\u{feff}", "\u{7f}", "=", "{{ .a }}", "{{- b }}\n", "[]", "{}",
    "[]: ", "{}: a\n", "\"a\": b",
];

const SCALAR_PARTS: &[&str] = &[
    "0", "1", "7", "8", "9", "12", "255", "9223372036854775807", "18446744073709551615", "99999999999999999999", "0x",
    "0X", "0o", "0b", "0b-", "b", "f", "F", "_", "_", "+", "-", "-", ".", ".", "e", "E", "e5", "e+", "e400", "e-400",
    ":", "2001-", "2001-02-03", "T04:05:06Z", " 04:05:06.7", ".inf", ".nan", "inf", "nan", "yes", "No", "on", "OFF",
    "y", "N", "true", "null", "~", "<<", "=", "a",
];
/// Parts of texts that are encoded. U+2028 and U+2029 are escaped here, unlike in go-yaml.
const ENCODED_PARTS: &[&str] = &[
    "a", "b", "Z", "é", "\u{a0}", "\u{1f600}", "\u{feff}", "\t", "\r", "\n", "\n", " ", " ", "  ", "word ",
    "longer words ", "-", ":", ": ", "?", "#", " #", ",", "[", "]", "{", "}", "&", "*", "!", "|", ">", "'", "\"", "\\",
    "%", "@", "`", "=", "<<", ".", "..", "/", "_", "0", "1", "7", "10", "59", "60", "200", "2001-02-03",
];
const ENCODED_FLOATS: &[f64] =
    &[0.5, -0.0, 1e-7, 0.00001, 0.0001, 123_456.5, 1_234_567.5, 1e20, 1e21, -1e19, 1.8e19, 1.5e300, 9.5e15, 1.0];

const TAGS: &[&str] = &[
    "", "", "", "", "!!int ", "!!float ", "!!str ", "!!bool ", "!!null ", "!!timestamp ", "!!binary ", "!!merge ",
    "! ", "!a ", "!!seq ",
];

/// All YAML files below a directory, except build output.
fn files(folder: &Path) -> Vec<PathBuf> {
    let mut found = vec![];
    for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
        let path = entry.path();
        if path.is_dir() && path.file_name().is_none_or(|name| name != "target") {
            found.extend(files(&path));
        } else if path
            .extension()
            .is_some_and(|extension| ["yaml", "yml", "tpl"].iter().any(|known| extension == *known))
        {
            found.push(path);
        }
    }
    found.sort();
    found
}

/// A random value: text, numbers, lists and maps.
fn value(random: &mut Random, depth: usize) -> Value {
    match random.below(if depth == 0 { 9 } else { 12 }) {
        0 => Value::Int(random.below(3_000_000) as i64 - 1_000),
        1 => Value::Float(ENCODED_FLOATS[random.below(ENCODED_FLOATS.len())]),
        2 => random.join(SCALAR_PARTS, 3).into(),
        3 => random.join(ENCODED_PARTS, 40).into(),
        4 => [Value::Null, Value::Bool(true), Value::Array(vec![]), Value::object()][random.below(4)].clone(),
        5..9 => random.join(ENCODED_PARTS, 6).into(),
        9 => (0..random.below(4)).map(|_| value(random, depth - 1)).collect(),
        _ => {
            let mut map = Value::object();
            for _ in 0..random.below(5) {
                let most = if random.below(8) == 0 { 40 } else { 4 };
                let key = random.join(ENCODED_PARTS, most);
                map.set_at(&[&key], value(random, depth - 1));
            }
            map
        }
    }
}

/// Randomly changes a few characters, words or lines.
fn change(random: &mut Random, text: &str) -> String {
    let start = random.below(text.len().saturating_sub(CHANGED_BYTES_MAX) + 1);
    let from = text.as_bytes()[..start].iter().rposition(|byte| *byte == b'\n').map_or(0, |at| at + 1);
    let mut text: String = text.get(from..).unwrap_or(text).chars().take(CHANGED_BYTES_MAX).collect();
    for _ in 0..=random.below(3) {
        let boundary = |at: usize| (0..=at).rev().find(|at| text.is_char_boundary(*at)).unwrap_or(0);
        let (at, other) = (boundary(random.below(text.len() + 1)), boundary(random.below(text.len() + 1)));
        let near = boundary((at + 1 + random.below(6)).min(text.len()));
        match random.below(5) {
            0 => text.replace_range(at..near, ""),
            1 => {
                let part = text[at.min(other)..at.max(other)].chars().take(40).collect::<String>();
                text.insert_str(at, &part);
            }
            2 => text.truncate(at),
            _ => text.insert_str(at, PARTS[random.below(PARTS.len())]),
        }
    }
    text
}

/// A random scalar with or without a tag, in a block or flow context.
fn scalar(random: &mut Random) -> String {
    let (tag, text) = (TAGS[random.below(TAGS.len())], random.join(SCALAR_PARTS, 4));
    match random.below(4) {
        0 => format!("{tag}{text}"),
        1 => format!("- {tag}{text}\n- '{text}'\n"),
        2 => format!("{{{tag}{text}: {tag}\"{text}\"}}"),
        _ => format!("a: {tag}{text}\n"),
    }
}

fn compare(text: &[u8], response: &Value) -> Difference {
    if response.get("panic").is_some() {
        return None;
    }
    let decoded = yaml::decode(text).map_err(|error| yaml_error(&error));
    let decoded = match (decoded, response.get("error").and_then(Value::as_str)) {
        (Err(error), Some(want)) if error == want => return None,
        (Err(error), Some(want)) => return Some(format!("{error:?} instead of {want:?}")),
        (Err(error), None) => return Some(format!("{error:?}, and the library decodes it")),
        (Ok(_), Some(want)) => return Some(format!("decoded, and the library says {want:?}")),
        (Ok(decoded), None) => decoded,
    };
    let results = response.items_at(&["json"]);
    let results = results.iter().map(|json| decode(json.as_str().unwrap_or_default().as_bytes()).expect("JSON"));
    let results: Vec<Value> = results.collect();
    if !results.contains(&decoded.value) {
        let expected: Vec<String> = results.iter().map(Value::to_json).collect();
        return Some(format!("{} instead of {}", decoded.value.to_json(), expected.join(" or ")));
    }
    let lines: String = decoded.duplicates.iter().map(|line| format!("\n  {line}")).collect();
    let strict = if lines.is_empty() { lines } else { format!("yaml: unmarshal errors:{lines}") };
    (strict != response.str_at(&["strict"]))
        .then(|| format!("{strict:?} instead of {:?}", response.str_at(&["strict"])))
}

#[test]
fn documents_decode_like_go() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let more = std::env::var_os("DIFFERENTIAL_YAML").map(PathBuf::from);
    let paths = ["examples", "tests", "docs"].iter().map(|folder| root.join(folder)).chain(more);
    let files: Vec<Vec<u8>> =
        paths.flat_map(|folder| files(&folder)).filter_map(|path| std::fs::read(path).ok()).collect();
    let mut random = Random(0x2545_F491_4F6C_DD1D);
    let mut seeds: Vec<String> = files.iter().filter_map(|file| String::from_utf8(file.clone()).ok()).collect();
    seeds.extend(SEEDS.iter().flat_map(|seed| std::iter::repeat_n((*seed).to_owned(), 4)));
    let mut documents = files;
    for _ in 0..CHANGED {
        let seed = &seeds[random.below(seeds.len())];
        documents.push(change(&mut random, seed).into_bytes());
    }
    documents.extend((0..MADE).map(|_| random.join(PARTS, 12).into_bytes()));
    documents.extend((0..SCALARS).map(|_| scalar(&mut random).into_bytes()));

    let mut differences = vec![];
    for chunk in documents.chunks(QUESTIONS_AT_ONCE) {
        let questions: Vec<Value> = chunk.iter().map(|text| json!({"Document": (BASE64.encode(text))})).collect();
        for (text, response) in chunk.iter().zip(responses(&questions)) {
            let text_shown = String::from_utf8_lossy(text);
            differences.extend(compare(text, &response).map(|difference| format!("{text_shown:?}: {difference}")));
        }
    }
    differences.sort_by_key(String::len);
    let shown = differences.iter().take(40).cloned().collect::<Vec<_>>().join("\n");
    assert!(differences.is_empty(), "{} of {} differ:\n{shown}", differences.len(), documents.len());
}

#[test]
fn values_encode_like_go() {
    let mut random = Random(0x51_7CC1_B727_220A);
    let values: Vec<Value> = (0..ENCODED).map(|_| value(&mut random, 3)).collect();
    let mut differences = vec![];
    for chunk in values.chunks(QUESTIONS_AT_ONCE) {
        let questions: Vec<Value> = chunk.iter().map(|value| json!({"Encode": (value.clone())})).collect();
        for (value, response) in chunk.iter().zip(responses(&questions)) {
            let (written, want) = (yaml::encode(value), response.as_str().unwrap_or_default());
            if written != want {
                differences.push(format!("{}: {written:?} instead of {want:?}", value.to_json()));
            }
        }
    }
    differences.sort_by_key(String::len);
    let shown = differences.iter().take(40).cloned().collect::<Vec<_>>().join("\n");
    assert!(differences.is_empty(), "{} of {} differ:\n{shown}", differences.len(), values.len());
}
