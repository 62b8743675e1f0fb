//! The `fieldsV1` form of a [`FieldSet`]: a JSON object of path elements, `.` for the node itself.

use super::error::ManagedFieldsError;
use super::fieldpath::{FieldSet, PathElement, SetNode};
use crate::limits::{KNOWN_SET_BYTES_MAX, KNOWN_SETS_MAX};
use machinery::value::{DEPTH_MAX, decode, quote, write_json, write_json_string};
use machinery::{Text, Value};
use std::borrow::Cow;
use std::sync::{Arc, Mutex, PoisonError};

/// The largest integer that is exact as a float. Path elements are decoded as floats.
const EXACT_INTEGER_MAX: u64 = 1 << 53;

fn key_text(element: &PathElement) -> Text {
    let mut out = Vec::with_capacity(48);
    match element {
        PathElement::TypeField(name) => {
            return ["f:", name.as_str()].into_iter().collect();
        }
        PathElement::Key(fields) => {
            out.extend_from_slice(b"k:{");
            for (i, (name, value)) in fields.iter().enumerate() {
                if i > 0 {
                    out.push(b',');
                }
                write_json_string(name, &mut out);
                out.push(b':');
                write_json(value, &mut out);
            }
            out.push(b'}');
        }
        PathElement::Value(value) => {
            out.extend_from_slice(b"v:");
            write_json(value, &mut out);
        }
        PathElement::Index(i) => out.extend_from_slice(format!("i:{i}").as_bytes()),
    }
    Text::from(String::from_utf8_lossy(&out))
}

/// The JSON object of a set, which stays encoded.
pub fn encode(set: &FieldSet) -> Value {
    let mut out = Vec::with_capacity(256);
    write_node(set, false, &mut out);
    Value::Encoded(String::from_utf8(out).unwrap_or_default().into())
}

/// Writes the object of a node. A member with children has the key `.`; without children, the empty object says it.
fn write_node(children: &FieldSet, is_member: bool, out: &mut Vec<u8>) {
    out.push(b'{');
    if is_member && !children.is_empty() {
        out.extend_from_slice(b"\".\":{}");
    }
    let write_below = |SetNode { member, children }: &SetNode, out: &mut Vec<u8>| {
        out.push(b':');
        write_node(children, *member, out);
    };
    // the set is sorted by value, but the object by text, where `f:` comes first
    let (mut others, mut is_first) = (vec![], out.last() == Some(&b'{'));
    let mut separate = |out: &mut Vec<u8>| {
        if !std::mem::take(&mut is_first) {
            out.push(b',')
        }
    };
    for (element, node) in children.iter() {
        let PathElement::TypeField(name) = element else {
            others.push((key_text(element), node));
            continue;
        };
        separate(out);
        out.extend_from_slice(b"\"f");
        let quote = out.len();
        write_json_string(name, out);
        out[quote] = b':';
        write_below(node, out);
    }
    others.sort_by(|(a, _), (b, _)| a.as_str().cmp(b.as_str()));
    for (key, node) in others {
        separate(out);
        write_json_string(&key, out);
        write_below(node, out);
    }
    out.push(b'}');
}

/// Converts a number in a path element to a float, as upstream's decoder does. Large integers lose precision.
fn rounded(value: Value) -> Value {
    match value {
        Value::Int(i) if i.unsigned_abs() > EXACT_INTEGER_MAX => Value::Float(i as f64),
        other => other,
    }
}

/// Parses a key of `fieldsV1`; `None` if the kind of element is not known.
fn parse_key(key: &str) -> Result<Option<PathElement>, ManagedFieldsError> {
    let bytes = key.as_bytes();
    if bytes.len() < 2 {
        return Err("key must be 2 characters long:".into());
    }
    if bytes.get(1) != Some(&b':') {
        return Err(ManagedFieldsError(format!("missing colon: {key}")));
    }
    let rest = key.get(2..).unwrap_or_default();
    match bytes.first() {
        Some(b'f') => Ok(Some(PathElement::TypeField(rest.into()))),
        Some(b'v') => Ok(Some(PathElement::Value(Box::new(rounded(decode(rest.as_bytes())?))))),
        Some(b'k') => match decode(rest.as_bytes())? {
            Value::Object(map) => Ok(Some(PathElement::Key(map.into_iter().map(|(k, v)| (k, rounded(v))).collect()))),
            _ => Err(ManagedFieldsError(format!("expected object: {rest}"))),
        },
        Some(b'i') => match rest.parse() {
            Ok(i) => Ok(Some(PathElement::Index(i))),
            Err(_) => Err(ManagedFieldsError(format!("strconv.Atoi: parsing {}: invalid syntax", quote(rest)))),
        },
        _ => Ok(None),
    }
}

/// A set, which objects with equal sets share, with the text that it was decoded from if [`encode`] would write the same.
#[derive(Clone, Debug, Default)]
pub struct Fields {
    set: Arc<FieldSet>,
    text: Option<Text>,
    /// Whether it is known that no path is below a node that has become atomic.
    pub is_reconciled: bool,
}

impl Fields {
    /// Decodes the JSON object of a set.
    ///
    /// # Errors
    ///
    /// The value is not an object of objects, or one of its keys is malformed.
    pub fn parse(value: &Value) -> Result<Fields, ManagedFieldsError> {
        let Value::Encoded(text) = value else { return Ok(parse(value)?.into()) };
        let mut reader = FieldsReader { text, at: 0, is_normal: true };
        match reader.node(1) {
            Some(node) if reader.at == text.len() => {
                let text = reader.is_normal.then(|| text.clone());
                Ok(Fields { set: node.children.into(), text, is_reconciled: false })
            }
            // decoding a tree gives the error
            _ => Ok(parse(&Value::of_encoded(text))?.into()),
        }
    }

    /// The JSON object of the set.
    pub fn to_value(&self) -> Value {
        self.text.as_ref().map_or_else(|| encode(&self.set), |text| Value::Encoded(text.clone()))
    }

    /// The set, for changes, after which the text is not kept.
    pub fn to_mut(&mut self) -> &mut FieldSet {
        self.text = None;
        self.is_reconciled = false;
        Arc::make_mut(&mut self.set)
    }

    pub fn into_set(self) -> FieldSet {
        Arc::unwrap_or_clone(self.set)
    }
}

impl From<FieldSet> for Fields {
    fn from(set: FieldSet) -> Fields {
        Fields { set: set.into(), text: None, is_reconciled: false }
    }
}

impl std::ops::Deref for Fields {
    type Target = FieldSet;

    fn deref(&self) -> &FieldSet {
        &self.set
    }
}

/// The sets of one version of a resource that were decoded last, by their text. Most objects of a kind have the same fields from
/// the same managers, so that a write seldom has to decode a set.
#[derive(Debug, Default)]
pub(crate) struct KnownSets(Mutex<Vec<(Text, Fields)>>);

impl KnownSets {
    /// The set of a text, which `decode` returns if it is not known.
    pub fn get(
        &self,
        text: &Text,
        decode: impl FnOnce() -> Result<Fields, ManagedFieldsError>,
    ) -> Result<Fields, ManagedFieldsError> {
        let known = || self.0.lock().unwrap_or_else(PoisonError::into_inner);
        {
            let mut known = known();
            if let Some(at) = known.iter().position(|(other, _)| other == text) {
                // the last one is the first that has to go
                known[..=at].rotate_right(1);
                return Ok(known[0].1.clone());
            }
        }
        let fields = decode()?;
        if text.len() <= KNOWN_SET_BYTES_MAX {
            let mut known = known();
            known.truncate(KNOWN_SETS_MAX - 1);
            known.insert(0, (text.clone(), fields.clone()));
        }
        Ok(fields)
    }
}

/// Decodes compact JSON, without a tree of values between text and set. Its functions return `None` for anything else.
struct FieldsReader<'a> {
    text: &'a str,
    at: usize,
    /// Whether the text is the one that [`encode`] writes, as far as it has been read.
    is_normal: bool,
}

impl<'a> FieldsReader<'a> {
    fn is_next(&self, token: u8) -> bool {
        self.text.as_bytes().get(self.at) == Some(&token)
    }

    fn take(&mut self, token: u8) -> Option<()> {
        self.is_next(token).then(|| self.at += 1)
    }

    fn node(&mut self, depth: usize) -> Option<SetNode> {
        self.take(b'{').filter(|()| depth <= DEPTH_MAX)?;
        if self.take(b'}').is_some() {
            return Some(SetNode { member: true, children: FieldSet::new() });
        }
        let (mut children, mut member, mut before) = (vec![], false, Cow::Borrowed(""));
        loop {
            let key = self.key()?;
            // not if a key is repeated or out of order
            self.is_normal &= before < key;
            if key == "." {
                member = true;
                self.is_normal &= self.text[self.at..].starts_with("{}");
                self.node(depth + 1)?;
            } else {
                let element = parse_key(&key).ok()?;
                self.is_normal &= match &element {
                    Some(PathElement::TypeField(_)) => true,
                    Some(element) => key_text(element) == *key,
                    None => false,
                };
                let node = self.node(depth + 1)?;
                children.extend(element.map(|element| (element, node)));
            }
            before = key;
            if self.take(b'}').is_some() {
                break;
            }
            self.take(b',')?;
        }
        let count = children.len();
        let children: FieldSet = children.into_iter().collect();
        self.is_normal &= count > 0 && count == children.iter().len();
        Some(SetNode { member: member || children.is_empty(), children })
    }

    /// A key and the colon behind it.
    fn key(&mut self) -> Option<Cow<'a, str>> {
        let start = self.at;
        self.take(b'"')?;
        let mut has_escapes = false;
        while !self.is_next(b'"') {
            let is_escape = self.is_next(b'\\');
            has_escapes |= is_escape;
            self.at += if is_escape { 2 } else { 1 };
            self.text.as_bytes().get(self.at)?;
        }
        self.at += 1;
        let quoted = self.text.get(start..self.at)?;
        self.take(b':')?;
        if !has_escapes {
            return Some(Cow::Borrowed(&quoted[1..quoted.len() - 1]));
        }
        let Ok(Value::String(key)) = decode(quoted.as_bytes()) else { return None };
        let mut normal = Vec::with_capacity(quoted.len());
        write_json_string(&key, &mut normal);
        self.is_normal &= normal == quoted.as_bytes();
        Some(Cow::Owned(key.to_string()))
    }
}

/// As `Fields::parse`, for the set alone.
pub fn parse(value: &Value) -> Result<FieldSet, ManagedFieldsError> {
    match value {
        Value::Encoded(_) => Fields::parse(value).map(Fields::into_set),
        value => parse_node(value).map(|node| node.children),
    }
}

fn parse_node(value: &Value) -> Result<SetNode, ManagedFieldsError> {
    let Value::Object(map) = value else {
        return match value {
            Value::Null => Ok(SetNode { member: true, children: FieldSet::new() }),
            _ => Err("expected object".into()),
        };
    };
    let mut children = Vec::with_capacity(map.len());
    for (key, below) in map.iter().filter(|(key, _)| *key != ".") {
        if let Some(element) = parse_key(key)? {
            children.push((element, parse_node(below)?));
        }
    }
    let children: FieldSet = children.into_iter().collect();
    Ok(SetNode { member: map.contains_key(".") || children.is_empty(), children })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn roundtrip(fields: &Value) -> String {
        Fields::parse(fields).map_or_else(|e| e.to_string(), |fields| fields.to_value().to_json())
    }

    #[test]
    fn sets_read_and_write() {
        let normal = [
            "{}",
            r#"{"f:a":{}}"#,
            r#"{"f:a":{".":{},"f:b":{}},"f:c":{"f:d":{}}}"#,
            r#"{"f:l":{"i:0":{},"k:{\"a\":1,\"b\":\"x\"}":{".":{},"f:a":{}},"v:\"aA\"":{},"v:\"s\"":{},"v:10":{},"v:2":{}}}"#,
            r#"{"f:\\\u003c\u2028":{},"f:é":{}}"#,
        ];
        let other = [
            (r#"{"f:a":{".":{}}}"#, r#"{"f:a":{}}"#),
            (r#"{"f:a":{".":{"f:x":{}},"f:b":{}}}"#, r#"{"f:a":{".":{},"f:b":{}}}"#),
            (r#"{"f:b":{},"f:a":{}}"#, r#"{"f:a":{},"f:b":{}}"#),
            (r#"{"f:a": {}}"#, r#"{"f:a":{}}"#),
            (r#"{"f:a":null}"#, r#"{"f:a":{}}"#),
            (r#"{"f:\u0061":{}}"#, r#"{"f:a":{}}"#),
            (r#"{"f:a":{"x:b":{}}}"#, r#"{"f:a":{}}"#),
            (r#"{"f:a":{"k:{\"b\":1,\"a\":2}":{}}}"#, r#"{"f:a":{"k:{\"a\":2,\"b\":1}":{}}}"#),
            (r#"{"f:a":{"v:1":{},"v:1.0":{"f:b":{}}}}"#, r#"{"f:a":{"v:1":{".":{},"f:b":{}}}}"#),
            (r#"{"f:a":{"v:9007199254740993":{}}}"#, r#"{"f:a":{"v:9007199254740992":{}}}"#),
            (r#"{"fa":{}}"#, "missing colon: fa"),
            (r#"{"f":{}}"#, "key must be 2 characters long:"),
            (r#"{"f:a":{"f:b":1}}"#, "expected object"),
        ];
        let cases = normal.map(|text| (text, text, true)).into_iter();
        for (text, want, is_normal) in cases.chain(other.map(|(text, want)| (text, want, false))) {
            let (tree, encoded) = (Value::of_encoded(text), Value::Encoded(text.into()));
            assert_eq!([roundtrip(&tree), roundtrip(&encoded)], [want, want], "{text}");
            let kept = Fields::parse(&encoded).is_ok_and(|fields| fields.text.is_some());
            assert_eq!(kept, is_normal, "{text}");
        }
    }
}
