//! Converts nodes to a value: expands aliases and merges, resolves the types of scalars, and detects duplicate keys.

pub use crate::limits::ALIASED_BYTES_MAX;
use crate::limits::{
    ALIASED_NODES_FEW, ALIASED_NODES_MANY, ALIASED_NODES_MIN, ALIASED_OF_NODES_MIN, ALIASED_SHARE_FEW,
    ALIASED_SHARE_MANY,
};
use std::collections::HashSet;
use std::slice::Iter;

use super::compose::{Content, Document, Id, YamlNode};
use super::error::{YamlError, YamlProblem};
use super::resolve::{Scalar, key_text, tagged, untagged};
use crate::value::{Decoded, Map, Text, Value, quote, shortest};

/// Values may nest this deep, as in JSON.
const DEPTH_MAX: usize = crate::value::DEPTH_MAX;

/// In mappings of up to this many fields, duplicate keys are found by a linear search.
const LINEAR_SEARCH_MAX: usize = 16;
/// Expands a document. Duplicate keys are reported as `line 5: key "a" already set in map`.
pub fn expand(document: &Document) -> Result<Decoded, YamlError> {
    let mut expander = Expander { nodes: &document.nodes, counted: 1, ..Expander::default() };
    expander.enter(document.root)?;
    while !expander.stack.is_empty() {
        expander.advance()?;
    }
    if let Some(error) = expander.unsupported {
        return Err(error);
    }
    let value = expander.root.map(Item::into_value).unwrap_or_default();
    if expander.has_non_finite {
        check_finite(&value)?;
    }
    Ok(Decoded { value, duplicates: expander.duplicates })
}

/// A node that has been expanded.
enum Item {
    Scalar(Scalar),
    Collection(Value),
}

impl Item {
    fn into_value(self) -> Value {
        match self {
            Item::Scalar(scalar) => scalar.into_value(),
            Item::Collection(value) => value,
        }
    }
}

/// A node that is being expanded.
enum Frame<'a> {
    Sequence {
        rest: Iter<'a, Id>,
        items: Vec<Value>,
    },
    Mapping {
        rest: Iter<'a, Id>,
        key: Option<Scalar>,
        /// The line of the next value.
        line: usize,
        target: Target,
    },
    /// The mappings that `<<: [a, b]` merges into a mapping on the stack, in reverse order, so that the first one wins.
    Merges {
        rest: Iter<'a, Id>,
        into: usize,
    },
    Alias(Id),
}

/// The destination of the fields of a mapping.
enum Target {
    Own(MappingFields),
    /// The mapping at this index of the stack.
    Merge(usize),
}

/// The fields of a mapping in their order. If keys are equal, the last one counts.
#[derive(Default)]
struct MappingFields {
    entries: Vec<(Text, Value)>,
    keys: Vec<Key>,
    /// The keys; empty while there are few.
    known: HashSet<Key>,
    /// The error of the last key that JSON cannot express.
    unsupported: Option<YamlError>,
}

/// A key as Go compares keys. Keys of different types differ even if their JSON names are equal.
#[derive(Clone, PartialEq, Eq, Hash)]
enum Key {
    Null,
    Bool(bool),
    Int(i64),
    Uint(u64),
    Float(u64),
    Text(Text),
}

impl Key {
    fn of(scalar: &Scalar) -> Key {
        match scalar {
            Scalar::Null => Key::Null,
            Scalar::Bool(b) => Key::Bool(*b),
            Scalar::Int(i) => Key::Int(*i),
            Scalar::Uint(u) => Key::Uint(*u),
            // positive and negative zero are equal
            Scalar::Float(f) => Key::Float((f + 0.0).to_bits()),
            Scalar::Text(text) => Key::Text(text.clone()),
        }
    }
}

impl MappingFields {
    /// Adds a key; returns false if the mapping already has it.
    fn add_key(&mut self, key: Key) -> bool {
        if self.keys.len() < LINEAR_SEARCH_MAX {
            let is_new = !self.keys.contains(&key);
            if is_new {
                self.keys.push(key);
            }
            return is_new;
        }
        if self.known.is_empty() {
            self.known.extend(self.keys.iter().cloned());
        }
        self.known.insert(key)
    }
}

#[derive(Default)]
struct Expander<'a> {
    nodes: &'a [YamlNode],
    stack: Vec<Frame<'a>>,
    root: Option<Item>,
    /// The aliases that are being expanded.
    active: HashSet<Id>,
    /// The nodes so far, and those of them that are in expanded aliases.
    counted: usize,
    aliased: usize,
    aliased_bytes: usize,
    duplicates: Vec<String>,
    /// The error of the first key that JSON cannot express. Any other error takes precedence.
    unsupported: Option<YamlError>,
    /// Whether some number is infinite or NaN.
    has_non_finite: bool,
    /// Whether a collection that serves as a key is being expanded. Only its text is needed, for the error.
    in_key: bool,
}

impl<'a> Expander<'a> {
    fn node(&self, id: Id) -> &'a YamlNode {
        &self.nodes[id as usize]
    }

    /// Counts a node, and its bytes if it is in an expanded alias. Returns an error if the limits of aliases are
    /// exceeded.
    fn count(&mut self, node: &YamlNode) -> Result<(), YamlError> {
        self.counted += 1;
        if self.active.is_empty() {
            return Ok(());
        }
        self.aliased += 1;
        self.aliased_bytes += size_of::<Value>();
        if let Content::Scalar { text, .. } = &node.content {
            self.aliased_bytes += text.len();
        }
        let span = (ALIASED_NODES_MANY - ALIASED_NODES_FEW) as f64;
        let beyond = self.counted.clamp(ALIASED_NODES_FEW, ALIASED_NODES_MANY) - ALIASED_NODES_FEW;
        let allowed = ALIASED_SHARE_FEW - (ALIASED_SHARE_FEW - ALIASED_SHARE_MANY) * (beyond as f64 / span);
        let share = self.aliased as f64 / self.counted as f64;
        let has_too_many = self.aliased > ALIASED_NODES_MIN && self.counted > ALIASED_OF_NODES_MIN && share > allowed;
        if has_too_many || self.aliased_bytes > ALIASED_BYTES_MAX {
            return Err(YamlError::at(
                node.place.line as usize,
                YamlProblem::Document("document contains excessive aliasing".to_owned()),
            ));
        }
        Ok(())
    }

    fn push(&mut self, frame: Frame<'a>, opening: char) -> Result<(), YamlError> {
        // an alias has a frame of its own
        if self.stack.len() - self.active.len().min(self.stack.len()) >= DEPTH_MAX {
            return Err(YamlError::new(YamlProblem::TooDeep(opening)));
        }
        self.stack.push(frame);
        Ok(())
    }

    /// Starts to expand a node. A scalar is complete at once.
    fn enter(&mut self, id: Id) -> Result<(), YamlError> {
        let node = self.node(id);
        self.count(node)?;
        match &node.content {
            Content::Alias { target, .. } => {
                let target = *target;
                self.enter_alias(id, node)?;
                self.enter(target)
            }
            Content::Scalar { text, tag, is_implicit } => {
                let scalar = match tag {
                    Some(tag) => {
                        tagged(text, tag).map_err(|problem| YamlError::at(node.place.line as usize, problem))?
                    }
                    None if *is_implicit => untagged(text),
                    None => Scalar::Text(text.clone()),
                };
                self.deliver(Item::Scalar(scalar))
            }
            Content::Sequence(children) => {
                self.push(Frame::Sequence { rest: children.iter(), items: Vec::with_capacity(children.len()) }, '[')
            }
            Content::Mapping(children) => {
                let target = Target::Own(MappingFields::default());
                self.push(Frame::Mapping { rest: children.iter(), key: None, line: 0, target }, '{')
            }
        }
    }

    fn enter_alias(&mut self, id: Id, node: &YamlNode) -> Result<(), YamlError> {
        if !self.active.insert(id) {
            let Content::Alias { name, .. } = &node.content else { return Ok(()) };
            let why = format!("anchor '{name}' value contains itself");
            return Err(YamlError::at(node.place.line as usize, YamlProblem::Document(why)));
        }
        self.stack.push(Frame::Alias(id));
        Ok(())
    }

    /// Continues with the node on top of the stack.
    fn advance(&mut self) -> Result<(), YamlError> {
        let place = self.stack.len() - 1;
        match self.stack.last_mut() {
            Some(Frame::Sequence { rest, .. }) => match rest.next() {
                Some(id) => self.enter(*id),
                None => self.finish(),
            },
            Some(Frame::Mapping { rest, key, line, target }) => {
                let Some(&id) = rest.next() else { return self.finish() };
                if key.is_some() {
                    *line = self.nodes[id as usize].place.line as usize;
                    return self.enter(id);
                }
                if !is_merge(&self.nodes[id as usize]) {
                    self.enter(id)?;
                    self.in_key |= self.stack.len() > place + 1;
                    return Ok(());
                }
                let into = match target {
                    Target::Own(_) => place,
                    Target::Merge(into) => *into,
                };
                let merged = rest.next().copied();
                merged.map_or(Ok(()), |merged| self.merge(merged, into))
            }
            Some(Frame::Merges { rest, into }) => {
                let into = *into;
                match rest.next_back() {
                    Some(&id) if self.is_mapping(id) => self.merge(id, into),
                    Some(_) => Err(no_mapping()),
                    None => self.finish(),
                }
            }
            Some(Frame::Alias(_)) | None => self.finish(),
        }
    }

    /// Whether a node is a mapping, or an alias of one.
    fn is_mapping(&self, id: Id) -> bool {
        match &self.node(id).content {
            Content::Mapping(_) => true,
            Content::Alias { target, .. } => matches!(self.node(*target).content, Content::Mapping(_)),
            _ => false,
        }
    }

    /// Starts to merge a node into the mapping at the index `into` of the stack.
    fn merge(&mut self, id: Id, into: usize) -> Result<(), YamlError> {
        let node = self.node(id);
        if let Content::Sequence(children) = &node.content {
            return self.push(Frame::Merges { rest: children.iter(), into }, '[');
        }
        if !self.is_mapping(id) {
            return Err(no_mapping());
        }
        self.count(node)?;
        let mut mapping = node;
        if let Content::Alias { target, .. } = &node.content {
            self.enter_alias(id, node)?;
            mapping = self.node(*target);
            self.count(mapping)?;
        }
        let Content::Mapping(children) = &mapping.content else { return Ok(()) };
        self.push(Frame::Mapping { rest: children.iter(), key: None, line: 0, target: Target::Merge(into) }, '{')
    }

    /// Completes the node on top of the stack.
    fn finish(&mut self) -> Result<(), YamlError> {
        match self.stack.pop() {
            Some(Frame::Sequence { items, .. }) => self.deliver(Item::Collection(Value::Array(items))),
            Some(Frame::Mapping { target: Target::Own(fields), .. }) => {
                if self.unsupported.is_none() {
                    self.unsupported = fields.unsupported;
                }
                let map = Map::from_entries(fields.entries, |_| {});
                self.deliver(Item::Collection(Value::Object(map)))
            }
            Some(Frame::Alias(id)) => {
                self.active.remove(&id);
                Ok(())
            }
            Some(Frame::Mapping { .. } | Frame::Merges { .. }) | None => Ok(()),
        }
    }

    /// Adds a completed node to the collection on top of the stack, or sets the root.
    fn deliver(&mut self, item: Item) -> Result<(), YamlError> {
        while let Some(Frame::Alias(id)) = self.stack.last() {
            self.active.remove(id);
            self.stack.pop();
        }
        if let Item::Scalar(Scalar::Float(f)) = &item {
            self.has_non_finite |= !f.is_finite();
        }
        match self.stack.last_mut() {
            Some(Frame::Sequence { items, .. }) => items.push(item.into_value()),
            Some(Frame::Mapping { key: key @ None, .. }) => match item {
                Item::Scalar(scalar) => *key = Some(scalar),
                Item::Collection(value) => {
                    return Err(YamlError::new(YamlProblem::Document(format!("invalid map key: {}", go_key(&value)))));
                }
            },
            Some(Frame::Mapping { key, line, target, .. }) => {
                let (key, line) = (key.take().unwrap_or(Scalar::Null), *line);
                let into = match target {
                    Target::Own(_) => self.stack.len() - 1,
                    Target::Merge(into) => *into,
                };
                self.put(into, &key, item, line);
            }
            _ => self.root = Some(item),
        }
        Ok(())
    }

    /// Adds a field to the mapping at the index `into` of the stack.
    fn put(&mut self, into: usize, key: &Scalar, item: Item, line: usize) {
        let Some(Frame::Mapping { target: Target::Own(fields), .. }) = self.stack.get_mut(into) else { return };
        let is_comparable = !matches!(key, Scalar::Float(f) if f.is_nan());
        if is_comparable && !fields.add_key(Key::of(key)) {
            self.duplicates.push(format!("line {}: key {} already set in map", line + 1, go_scalar(key)));
        }
        if self.in_key {
            let name = if *key == Scalar::Null { GO_NIL.to_owned() } else { go_scalar(key) };
            fields.entries.push((name.into(), item.into_value()));
            return;
        }
        match key_text(key) {
            Some(name) => fields.entries.push((name, item.into_value())),
            None => {
                let value = go_item(item);
                let problem = match key {
                    Scalar::Null => format!("unsupported map key of type: %!s(<nil>), key: <nil>, value: {value}"),
                    key => format!("unsupported map key of type: uint64, key: {}, value: {value}", go_scalar(key)),
                };
                fields.unsupported = Some(YamlError::at(line, YamlProblem::Conversion(problem)));
            }
        }
    }
}

/// Whether a key is `<<`, without quotes.
fn is_merge(node: &YamlNode) -> bool {
    match &node.content {
        Content::Scalar { text, tag, is_implicit } if text == "<<" => {
            *is_implicit || tag.as_deref() == Some("tag:yaml.org,2002:merge")
        }
        _ => false,
    }
}

fn no_mapping() -> YamlError {
    YamlError::new(YamlProblem::Document("map merge requires map or sequence of maps as the value".to_owned()))
}

/// Returns an error if a number is infinite or NaN, which JSON cannot express.
fn check_finite(value: &Value) -> Result<(), YamlError> {
    let mut open = vec![value];
    while let Some(value) = open.pop() {
        match value {
            Value::Float(f) if !f.is_finite() => {
                return Err(YamlError::new(YamlProblem::Conversion(format!(
                    "json: unsupported value: {}",
                    shortest::float(*f)
                ))));
            }
            Value::Array(items) => open.extend(items.iter().rev()),
            Value::Object(map) => open.extend(map.values().rev()),
            _ => {}
        }
    }
    Ok(())
}

/// `%#v` of nil inside a collection.
const GO_NIL: &str = "interface {}(nil)";

/// `%#v` of a scalar.
fn go_scalar(scalar: &Scalar) -> String {
    match scalar {
        Scalar::Null => "<nil>".to_owned(),
        Scalar::Text(text) => quote(text),
        Scalar::Bool(b) => b.to_string(),
        Scalar::Int(i) => i.to_string(),
        Scalar::Uint(u) => format!("{u:#x}"),
        Scalar::Float(f) => shortest::float(*f),
    }
}

fn go_item(item: Item) -> String {
    match item {
        Item::Scalar(scalar) => go_scalar(&scalar),
        Item::Collection(value) => go_source(&value),
    }
}

/// `%#v` of a value that go-yaml has decoded.
fn go_source(value: &Value) -> String {
    go_syntax(value, &|name| quote(name))
}

/// As [`go_source`], for a collection that serves as a key. Its own keys are already in Go syntax.
fn go_key(value: &Value) -> String {
    go_syntax(value, &|name| name.to_owned())
}

fn go_syntax(value: &Value, name: &dyn Fn(&str) -> String) -> String {
    match value {
        Value::Null => GO_NIL.to_owned(),
        Value::String(text) => quote(text),
        Value::Array(items) => {
            format!(
                "[]interface {{}}{{{}}}",
                items.iter().map(|item| go_syntax(item, name)).collect::<Vec<_>>().join(", ")
            )
        }
        Value::Object(map) => {
            let fields: Vec<String> = map.iter().map(|(k, v)| format!("{}:{}", name(k), go_syntax(v, name))).collect();
            format!("map[interface {{}}]interface {{}}{{{}}}", fields.join(", "))
        }
        Value::Float(f) => shortest::float(*f),
        other => other.to_json(),
    }
}
