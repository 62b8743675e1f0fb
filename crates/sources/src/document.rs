//! Documents and the objects in them, with the positions of their fields.

use std::collections::VecDeque;
use std::io::{BufRead, Read as _};
use std::sync::Arc;

use base::wording;
use bytes::Bytes;
use machinery::Value;
use machinery::value::{Decoded, decode_strict, float_text};
use machinery::yaml::{self, FieldStep, Located, Position, Positions, YamlError};

use crate::error::Error;
use crate::limits::{DECODED_BYTES_MAX, DOCUMENT_BYTES_MAX};
use crate::split;

/// A document of an input.
#[derive(Clone, Debug)]
pub struct Document {
    /// The name of its input.
    pub file: Arc<str>,
    pub text: Bytes,
    /// The number of lines and of bytes before it in its input.
    lines_before: usize,
    bytes_before: u64,
}

/// Where the text of a document is in its input.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TextPlace {
    pub offset: u64,
    pub length: u32,
}

/// Why a document has no objects.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Undecodable {
    /// The line in the input, counted from 1.
    pub line: usize,
    /// One line.
    pub why: String,
}

/// A key that an object has more than once.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RepeatedKey {
    /// The index of the object in the items of a list; `None` if the document is the object, or the list itself has the key twice.
    pub item: Option<usize>,
    pub place: RepeatedPlace,
}

/// The decoder's report of a repeated key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RepeatedPlace {
    /// The line in the input, and the text of the decoder of YAML.
    Line(usize, String),
    /// The path in the object, from the decoder of JSON.
    Path(String),
}

/// An object of a document: the document itself, or an item of a list.
#[derive(Clone, Debug)]
pub struct Object {
    pub value: Arc<Value>,
    /// The index in the items of its list.
    pub item: Option<usize>,
    json: Option<Bytes>,
    is_sendable: bool,
}

impl Object {
    fn new(mut value: Value, item: Option<usize>, json: Option<Bytes>) -> Object {
        let mut left = DECODED_BYTES_MAX;
        let is_sendable = match &json {
            // numbers are as in the text
            Some(text) => text.len() <= DECODED_BYTES_MAX,
            None => as_decoded(&mut value, &mut left),
        };
        Object { value: Arc::new(value), item, json, is_sendable }
    }

    pub fn into_value(self) -> Value {
        Arc::unwrap_or_clone(self.value)
    }

    /// The text of a JSON document, so that the server sees numbers as they were written. `None` for YAML, which is converted
    /// first, as by kubectl.
    pub fn json(&self) -> Option<&Bytes> {
        self.json.as_ref()
    }

    /// Whether the value is short and equals what a JSON decoder would make of its encoding, so that it needs no decoding.
    pub fn is_sendable(&self) -> bool {
        self.is_sendable
    }
}

/// Troubleshoot's replacement of secrets and addresses.
const REDACTED: &[u8] = b"***HIDDEN***";

/// YAML with quotes around scalars that begin with a redaction, which YAML takes for aliases. `None` if there are no such scalars.
fn with_quoted_redactions(text: &[u8]) -> Option<Vec<u8>> {
    let (mut quoted, mut is_changed) = (vec![], false);
    for line in text.split_inclusive(|byte| *byte == b'\n') {
        let start = line.windows(REDACTED.len()).position(|part| part == REDACTED);
        match start.map(|start| line.split_at(start)) {
            Some((before, scalar)) if before.ends_with(b": ") || before.ends_with(b"- ") => {
                quoted.extend([before, b"'"].concat());
                scalar.trim_ascii_end().iter().for_each(|byte| match byte {
                    b'\'' => quoted.extend(b"''"),
                    byte => quoted.push(*byte),
                });
                quoted.extend(b"'\n");
                is_changed = true;
            }
            _ => quoted.extend(line),
        }
    }
    is_changed.then_some(quoted)
}

/// Changes a value to what a JSON decoder makes of its encoding: floats without a fraction become integers. Returns
/// false if the value has more than `left` bytes.
fn as_decoded(value: &mut Value, left: &mut usize) -> bool {
    // each value is followed by a comma, and has brackets or quotes
    let mut take = |bytes: usize| {
        *left = left.saturating_sub(bytes + 3);
        *left > 0
    };
    match value {
        Value::Null | Value::Bool(_) | Value::Int(_) => take(20),
        Value::Float(float) => {
            if let Ok(whole) = float_text(*float).parse::<i64>() {
                *value = Value::Int(whole);
            }
            take(25)
        }
        Value::String(text) | Value::Encoded(text) => take(text.len()),
        Value::Array(items) => take(0) && items.iter_mut().all(|item| as_decoded(item, left)),
        Value::Object(fields) => {
            let names: usize = fields.keys().map(|name| name.len() + 3).sum();
            take(names) && fields.values_mut().all(|field| as_decoded(field, left))
        }
    }
}

/// Whether a text begins with the mark of UTF-16, in which zeros are part of text.
pub fn is_wide(text: &[u8]) -> bool {
    text.starts_with(&[0xff, 0xfe]) || text.starts_with(&[0xfe, 0xff])
}

/// Fails if a part of a text is binary.
///
/// # Errors
/// It has a zero, and the text is not UTF-16.
pub fn check_text(part: &[u8], is_wide: bool) -> std::io::Result<()> {
    if part.contains(&0) && !is_wide { Err(std::io::Error::other("this is not text")) } else { Ok(()) }
}

/// The documents of an input, one after the other: the memory that reading takes depends on the largest document.
pub struct Documents {
    file: Arc<str>,
    reader: Box<dyn BufRead + Send>,
    /// The line that begins the next document, and the number of lines before it.
    begun: Vec<u8>,
    lines_before: usize,
    bytes_before: u64,
    /// JSON documents that have been read with the first of them.
    ready: VecDeque<Document>,
    has_ended: bool,
    /// Whether the text is UTF-16.
    is_wide: bool,
}

impl Documents {
    pub(crate) fn new(file: Arc<str>, reader: Box<dyn BufRead + Send>) -> Documents {
        let (begun, ready) = (vec![], VecDeque::new());
        Documents { file, reader, begun, lines_before: 0, bytes_before: 0, ready, has_ended: false, is_wide: false }
    }

    /// Reads a line of at most `left` bytes. Fails if it is binary. The beginning of a file is looked at before it is read,
    /// since a device may have no end of a line.
    fn read_line(&mut self, left: usize, text: &mut Vec<u8>) -> std::io::Result<usize> {
        let start = text.len();
        if self.bytes_before == 0 && start == 0 {
            let first = self.reader.fill_buf()?;
            self.is_wide = is_wide(first);
            check_text(first, self.is_wide)?;
        }
        let read = (&mut self.reader).take(left as u64).read_until(b'\n', text)?;
        check_text(&text[start..], self.is_wide)?;
        Ok(read)
    }

    /// Reads up to the next separator, and returns what is before it.
    fn read(&mut self) -> Result<(), Error> {
        let mut text = std::mem::take(&mut self.begun);
        let mut lines = usize::from(!text.is_empty());
        let next = loop {
            let start = text.len();
            // a line of a device may have no end
            let left = (DOCUMENT_BYTES_MAX + 1).saturating_sub(start);
            let read = self.read_line(left, &mut text);
            if read.map_err(|source| Error::Unreadable { name: self.file.to_string(), source })? == 0 {
                self.has_ended = true;
                break vec![];
            }
            if start > 0 && yaml::begins_document(&text[start..]) {
                break text.split_off(start);
            }
            if text.len() > DOCUMENT_BYTES_MAX {
                return Err(Error::LongDocument { name: self.file.to_string() });
            }
            lines += 1;
        };
        let text = Bytes::from(text);
        self.ready.extend(split::parts(&text).into_iter().map(|span| Document {
            file: self.file.clone(),
            text: text.slice(span.bytes.clone()),
            lines_before: self.lines_before + span.lines_before,
            bytes_before: self.bytes_before + span.bytes.start as u64,
        }));
        self.bytes_before += text.len() as u64;
        self.begun = next;
        self.lines_before += lines;
        Ok(())
    }
}

impl Iterator for Documents {
    /// An error ends the iteration.
    type Item = Result<Document, Error>;

    fn next(&mut self) -> Option<Result<Document, Error>> {
        loop {
            if let Some(document) = self.ready.pop_front() {
                return Some(Ok(document));
            }
            if self.has_ended {
                return None;
            }
            if let Err(error) = self.read() {
                self.has_ended = true;
                return Some(Err(error));
            }
        }
    }
}

impl Document {
    /// A document whose place in its input does not matter.
    pub(crate) fn alone(file: Arc<str>, text: Bytes) -> Document {
        Document { file, text, lines_before: 0, bytes_before: 0 }
    }

    /// The place of the text; `None` if the text is too long for a [`TextPlace`].
    pub fn place(&self) -> Option<TextPlace> {
        Some(TextPlace { offset: self.bytes_before, length: u32::try_from(self.text.len()).ok()? })
    }

    pub fn objects(&self) -> Result<(Vec<Object>, Vec<RepeatedKey>), Undecodable> {
        let (Decoded { mut value, duplicates }, is_json) = self.decode()?;
        let json = (is_json && duplicates.is_empty()).then(|| self.text.clone());
        if !matches!(value, Value::Object(_)) {
            let why = "the document is not an object".to_owned();
            return Err(Undecodable { line: self.lines_before + 1, why });
        }
        let is_list = value.str_at(&["kind"]).ends_with("List");
        let lines = if is_list && !duplicates.is_empty() { self.lines_of_items() } else { vec![] };
        let repeated = duplicates.into_iter().map(|text| self.repeated_key(text, &lines)).collect();
        let items = if is_list { value.remove_at(&["items"]) } else { None };
        match items {
            Some(Value::Array(items)) => {
                let object = |(i, item)| Object::new(typed_by(&value, item), Some(i), None);
                Ok((items.into_iter().enumerate().map(object).collect(), repeated))
            }
            items => {
                items.into_iter().for_each(|items| value.set_at(&["items"], items));
                Ok((vec![Object::new(value, None, json)], repeated))
            }
        }
    }

    /// The values of the document: the items of a list, or of an array, or the document itself.
    pub(crate) fn values(&self) -> Result<Vec<Value>, Undecodable> {
        let Decoded { mut value, .. } = match self.decode() {
            Ok((decoded, _)) => decoded,
            Err(error) => {
                let quoted = with_quoted_redactions(&self.text).and_then(|text| yaml::decode(&text).ok());
                quoted.ok_or(error)?
            }
        };
        // client-go encodes lists without their kind
        let kind = value.str_at(&["kind"]);
        let is_list = kind.ends_with("List") || kind.is_empty();
        let items = if is_list { value.remove_at(&["items"]) } else { None };
        match (items, value) {
            (Some(Value::Array(items)), list) => Ok(items.into_iter().map(|item| typed_by(&list, item)).collect()),
            (Some(_), _) => Ok(vec![]),
            (None, Value::Array(items)) => Ok(items),
            (None, value) => Ok(vec![value]),
        }
    }

    /// Decodes JSON as JSON and everything else as YAML. Returns whether it is JSON.
    fn decode(&self) -> Result<(Decoded, bool), Undecodable> {
        if self.text.trim_ascii_start().starts_with(b"{")
            && let Ok(decoded) = decode_strict(&self.text)
        {
            return Ok((decoded, true));
        }
        yaml::decode(&self.text).map(|decoded| (decoded, false)).map_err(|error| {
            let lines = self.text.trim_ascii_end().split(|byte| *byte == b'\n').count();
            let line = error.line.unwrap_or(1).min(lines) + self.lines_before;
            let templated = self.text.split(|byte| *byte == b'\n').position(|line| contains(line, b"{{"));
            if let Some(before) = templated {
                let line = before + 1 + self.lines_before;
                let why = "this is a Helm template, not YAML: render it first, as in \"helm template CHART | pintle validate -\"";
                return Undecodable { line, why: why.to_owned() };
            }
            // the line has another number in the input
            let text = wording::yaml_error(&YamlError { line: None, ..error });
            let why = text.strip_prefix("yaml: ").unwrap_or(&text);
            Undecodable { line, why: format!("this is not YAML: {why}") }
        })
    }

    /// A repeated key from the text of a decoder: a line and a text for YAML, a path for JSON.
    fn repeated_key(&self, text: String, lines_of_items: &[usize]) -> RepeatedKey {
        let parsed = text.strip_prefix("line ").and_then(|rest| rest.split_once(": "));
        if let Some((line, why)) = parsed.and_then(|(line, why)| Some((line.parse::<usize>().ok()?, why))) {
            let item = self.item_at(line, lines_of_items);
            return RepeatedKey { item, place: RepeatedPlace::Line(line + self.lines_before, why.to_owned()) };
        }
        let of_item = text.strip_prefix("items[").filter(|_| !lines_of_items.is_empty());
        let of_item = of_item.and_then(|rest| rest.split_once("].")).map(|(item, path)| (item.parse().ok(), path));
        let (item, path) = of_item.unwrap_or((None, &text));
        RepeatedKey { item, place: RepeatedPlace::Path(path.to_owned()) }
    }

    /// The item of a list that has a repeated key at a line of the document.
    fn item_at(&self, line: usize, lines_of_items: &[usize]) -> Option<usize> {
        let begun = lines_of_items.iter().take_while(|first| **first <= line + self.lines_before).count();
        let last = begun.checked_sub(1)?;
        let first = lines_of_items.iter().position(|other| *other == lines_of_items[last]).unwrap_or(last);
        // of several items on one line, each is decoded alone
        let has_repeated = |item: &usize| {
            let text = self.text_of_item(*item).map(|text| yaml::decode(text.as_bytes()));
            matches!(text, Some(Ok(decoded)) if !decoded.duplicates.is_empty())
        };
        (first..last).find(has_repeated).or(Some(last))
    }

    /// The text between the beginnings of an item and of the next one on the same line.
    fn text_of_item(&self, item: usize) -> Option<String> {
        let start = |index| self.locate(&[FieldStep::Field("items".to_owned()), FieldStep::Item(index)]);
        let (from, to) = (start(item)?.value, start(item + 1)?.value);
        let line = self.line(from.line)?;
        let text: String = line.chars().skip(from.column - 1).take(to.column.saturating_sub(from.column)).collect();
        Some(text.trim_end().trim_end_matches(',').to_owned())
    }

    /// The place of a field in the input. `None` if the document is not YAML.
    pub fn locate(&self, path: &[FieldStep]) -> Option<Located> {
        let mut located = Positions::of(&self.text).ok()?.locate(path);
        let before = self.lines_before;
        located.value.line += before;
        located.key = located.key.map(|key| Position { line: key.line + before, ..key });
        Some(located)
    }

    /// The lines at which the items of a list begin.
    pub fn lines_of_items(&self) -> Vec<usize> {
        let Ok(positions) = Positions::of(&self.text) else { return vec![] };
        let item = |index| positions.locate(&[FieldStep::Field("items".to_owned()), FieldStep::Item(index)]);
        let items = (0..).map(item).take_while(|located| located.depth == 2);
        items.map(|located| located.value.line + self.lines_before).collect()
    }

    /// Whether the document has the fields of an object of Kubernetes, other than the configuration of a tool.
    pub fn is_manifest(&self) -> bool {
        let begins = |key: &[u8]| self.text.split(|byte| *byte == b'\n').any(|line| line.starts_with(key));
        if begins(b"kind:") && begins(b"apiVersion:") && !self.mentions("kustomize.config.k8s.io") {
            return true;
        }
        let Ok((objects, _)) = self.objects() else { return true };
        let is_object = |object: &Object| {
            let (version, kind) = (object.value.str_at(&["apiVersion"]), object.value.str_at(&["kind"]));
            let has_type = !version.is_empty() || !kind.is_empty();
            has_type && !version.starts_with("kustomize.config.k8s.io/")
        };
        objects.iter().any(is_object)
    }

    /// A line of the input, counted from 1, if it is part of the document.
    pub fn line(&self, number: usize) -> Option<String> {
        let line = self.text.split(|byte| *byte == b'\n').nth(number.checked_sub(self.lines_before + 1)?)?;
        Some(String::from_utf8_lossy(line).trim_end_matches('\r').to_owned())
    }

    /// Whether the text contains a word, which is much cheaper than decoding its objects.
    pub fn mentions(&self, word: &str) -> bool {
        contains(&self.text, word.as_bytes())
    }
}

fn contains(text: &[u8], word: &[u8]) -> bool {
    memchr::memmem::find(text, word).is_some()
}

/// An item of a list with its type. The server sends the items of a list of one kind without it.
fn typed_by(list: &Value, mut item: Value) -> Value {
    let kind = list.str_at(&["kind"]).strip_suffix("List").filter(|kind| !kind.is_empty());
    if let (Some(kind), Value::Object(fields)) = (kind, &mut item) {
        for (name, of_list) in [("kind", kind), ("apiVersion", list.str_at(&["apiVersion"]))] {
            if !of_list.is_empty() && fields.get(name).is_none_or(Value::is_null) {
                fields.insert(name, Value::from(of_list));
            }
        }
    }
    item
}

#[cfg(test)]
mod tests {
    use super::*;

    fn documents(text: &str) -> Vec<Document> {
        let reader = Box::new(std::io::Cursor::new(text.to_owned()));
        Documents::new("a.yaml".into(), reader).collect::<Result<_, _>>().unwrap()
    }

    #[test]
    fn documents_and_their_lines() {
        for (text, want) in [
            ("", &[] as &[(&str, usize)]),
            ("# only a comment\n---\n---\n...\n", &[]),
            ("a: 1\n", &[("a: 1\n", 0)]),
            (
                "---\na: 1\n--- # b\nb: |\n  ---\n---x: 1\n",
                &[("---\na: 1\n", 0), ("--- # b\nb: |\n  ---\n---x: 1\n", 2)],
            ),
            ("# c\n---\r\na: 1\r\n--- {b: 1}", &[("---\r\na: 1\r\n", 1), ("--- {b: 1}", 3)]),
            ("{a: 1}\n---\n{b: 1}\n", &[("{a: 1}", 0), ("---\n{b: 1}\n", 1)]),
        ] {
            let found = documents(text);
            let found: Vec<(&str, usize)> = found
                .iter()
                .map(|document| (std::str::from_utf8(&document.text).unwrap(), document.lines_before))
                .collect();
            assert_eq!(found, want, "{text:?}");
        }
    }

    #[test]
    fn objects_are_sent_as_a_decoder_of_json_reads_them() {
        for (text, is_sendable) in [
            (
                "a: [1, 1.0, 1.5, -0.0, 1e3, 1e18, 1e19, 1e21, 12345678901234567890, 0x10, 1e-7]\nb: {c: ~, d: yes, e: '<&>', f: {}}",
                true,
            ),
            (&format!("a: {}", "b".repeat(DECODED_BYTES_MAX)), false),
            (&format!("a: [{}]", "[], ".repeat(DECODED_BYTES_MAX / 3)), false),
        ] {
            let object = documents(text)[0].objects().unwrap().0.remove(0);
            assert_eq!(object.is_sendable, is_sendable, "{}", &text[..text.len().min(20)]);
            if is_sendable {
                let encoded = documents(text)[0].objects().unwrap().0.remove(0).value.to_json();
                let original = yaml::decode(text.as_bytes()).unwrap().value;
                assert_eq!(original.to_json(), encoded);
                assert_eq!(*object.value, machinery::value::decode(encoded.as_bytes()).unwrap());
            }
        }
    }

    #[test]
    fn objects_of_documents() {
        let found = documents("kind: A\n---\nkind: List\nitems:\n- kind: B\n- kind: C\n---\n{\"kind\": \"D\"}");
        let objects = found.iter().flat_map(|document| document.objects().unwrap().0);
        let kinds: Vec<(String, Option<usize>)> =
            objects.map(|object| (object.value.str_at(&["kind"]).to_owned(), object.item)).collect();
        let typed = documents("apiVersion: v1\nkind: PodList\nitems: [{metadata: {name: a}}, {kind: X}]");
        let typed = typed[0].objects().unwrap().0;
        let types = typed.iter().map(|object| (object.value.str_at(&["apiVersion"]), object.value.str_at(&["kind"])));
        assert_eq!(types.collect::<Vec<_>>(), [("v1", "Pod"), ("v1", "X")]);
        let want = [("A", None), ("B", Some(0)), ("C", Some(1)), ("D", None)];
        assert_eq!(kinds, want.map(|(kind, item)| (kind.to_owned(), item)));
    }

    #[test]
    fn redacted_scalars_are_text() {
        let text = "kind: A\nip: ***HIDDEN***\nurls:\n- ***HIDDEN***:1 it's\n- tcp://***HIDDEN***:1\n";
        let document = &documents(text)[0];
        assert!(document.objects().is_err(), "a manifest with such a scalar is invalid");
        let [value] = &document.values().unwrap()[..] else { panic!("one value") };
        let want = r#"{"kind":"A","ip":"***HIDDEN***","urls":["***HIDDEN***:1 it's","tcp://***HIDDEN***:1"]}"#;
        assert_eq!(*value, machinery::value::decode(want.as_bytes()).unwrap());
    }

    #[test]
    fn problems_have_the_line_of_the_input() {
        for (text, line, why) in [
            ("a: 1\n---\nb: [\n", 3, "this is not YAML: did not find expected node content"),
            ("a: 1\n---\n- b\n", 2, "the document is not an object"),
            (
                "a: 1\n---\nb:\n  {{ .Values.x }}\n",
                4,
                "this is a Helm template, not YAML: render it first, as in \"helm template CHART | pintle validate -\"",
            ),
        ] {
            let error = documents(text)[1].objects().unwrap_err();
            assert_eq!(error, Undecodable { line, why: why.to_owned() }, "{text}");
        }
        let (_, duplicates) = documents("a: 1\n---\nkind: A\nb: 1\nb: 2\n")[1].objects().unwrap();
        let place = RepeatedPlace::Line(5, "key \"b\" already set in map".to_owned());
        assert_eq!(duplicates, [RepeatedKey { item: None, place }]);
    }

    #[test]
    fn repeated_keys_belong_to_the_item_that_has_them() {
        for (text, want) in [
            ("kind: List\nitems:\n- {a: 1}\n- b: 1\n  b: 2\n- {c: 1}\n", Some(1)),
            ("kind: List\nitems: [{a: 1, a: 2}, {b: 1}, {c: 1}]\n", Some(0)),
            ("kind: List\nitems: [{a: 1}, {b: [{x: 1, x: 2}]}, {c: 1}]\n", Some(1)),
            ("kind: List\nitems: [{a: 1}, {b: 1}, {c: 1, c: 2}]\n", Some(2)),
            ("{\"kind\": \"List\", \"items\": [{\"a\": 1}, {\"b\": 1, \"b\": 2}, {\"c\": 1}]}", Some(1)),
            ("{\"kind\": \"A\", \"items\": [{\"b\": 1, \"b\": 2}]}", None),
        ] {
            let (_, repeated) = documents(text)[0].objects().unwrap();
            assert_eq!(repeated.iter().map(|key| key.item).collect::<Vec<_>>(), [want], "{text}");
        }
    }

    #[test]
    fn fields_are_located_in_the_input() {
        let found = documents("a: 1\n---\nkind: A\nspec:\n  b: 1\n");
        let path = ["spec", "b"].map(|name| FieldStep::Field(name.to_owned()));
        let located = found[1].locate(&path).unwrap();
        assert_eq!((located.value.line, located.value.column), (5, 6));
        assert_eq!(found[1].line(5).as_deref(), Some("  b: 1"));
        assert_eq!(found[1].line(1), None);
    }
}
