//! The messages of built-in kinds: field numbers, JSON names and types, which are facts of the Kubernetes API.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Mutex, OnceLock, PoisonError};

use crate::types::{Container, GoBase, GoField, Printed, go_struct};

/// The type of a field.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FieldKind {
    Text,
    Bool,
    Int,
    Double,
    Bytes,
    Message(&'static str),
}

/// The cardinality of a field.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Count {
    One,
    Many,
    /// A map from text.
    Map,
    /// An embedded message, whose fields are in JSON those of the message around it.
    Inline,
}

#[derive(Clone, Copy, Debug)]
pub struct MessageField {
    pub number: u32,
    pub name: &'static str,
    pub kind: FieldKind,
    pub count: Count,
    /// Whether it is written even if it is empty: in Go, it is neither a pointer nor a list, a map or bytes.
    pub is_always: bool,
    /// Whether JSON omits it if it is empty (`omitempty`).
    pub is_omitted: bool,
}

type Messages = HashMap<&'static str, Vec<MessageField>>;

static TEXT: &str = include_str!("messages.txt");

/// The fields of a message such as `core.v1.ConfigMap`, by number.
pub fn message(name: &str) -> Option<&'static [MessageField]> {
    static MESSAGES: OnceLock<Messages> = OnceLock::new();
    MESSAGES.get_or_init(parse).get(name).map(Vec::as_slice).or_else(|| of_go_struct(name))
}

/// The fields of a message in the table of Go types, by number. A message is converted when it is first used.
fn of_go_struct(name: &str) -> Option<&'static [MessageField]> {
    static CONVERTED: Mutex<BTreeMap<&'static str, &'static [MessageField]>> = Mutex::new(BTreeMap::new());
    let converted = || CONVERTED.lock().unwrap_or_else(PoisonError::into_inner);
    let known = converted().get(name).copied();
    if known.is_some() {
        return known;
    }
    let found = go_struct(name)?;
    let mut fields: Vec<MessageField> = found.fields.iter().map(of_go_field).collect();
    fields.sort_by_key(|field| field.number);
    let fields: &'static [MessageField] = fields.leak();
    Some(converted().entry(found.name).or_insert(fields))
}

fn of_go_field(field: &'static GoField) -> MessageField {
    let count = match field.go_type.container {
        Container::None => Count::One,
        Container::List => Count::Many,
        Container::Map | Container::MapOfLists => Count::Map,
        Container::Embedded => Count::Inline,
    };
    let kind = match field.go_type.base {
        GoBase::Text => FieldKind::Text,
        GoBase::Bool => FieldKind::Bool,
        GoBase::Int32 | GoBase::Int64 => FieldKind::Int,
        GoBase::Double => FieldKind::Double,
        GoBase::Bytes => FieldKind::Bytes,
        GoBase::Struct("certificates.v1.ExtraValue") => FieldKind::Message("authentication.v1.ExtraValue"),
        GoBase::Struct(name) => FieldKind::Message(name),
    };
    let is_value = !matches!(field.printed, Printed::Set | Printed::SetOrNull) && field.go_type.base != GoBase::Bytes;
    MessageField {
        number: field.number,
        name: field.name,
        kind,
        count,
        is_always: is_value && count == Count::One,
        is_omitted: field.printed == Printed::NonEmpty,
    }
}

fn parse() -> Messages {
    let mut messages = Messages::new();
    let mut current = "";
    for line in TEXT.lines().filter(|line| !line.starts_with('#')) {
        match line.strip_prefix(' ') {
            None => {
                current = line;
                messages.insert(line, vec![]);
            }
            Some(field) => {
                if let (Some(field), Some(fields)) = (parse_field(field), messages.get_mut(current)) {
                    fields.push(field);
                }
            }
        }
    }
    messages
}

fn parse_field(line: &'static str) -> Option<MessageField> {
    let mut parts = line.split(' ');
    let (number, name, kind) = (parts.next()?.parse().ok()?, parts.next()?, parts.next()?);
    let counts = [("[]", Count::Many), ("{}", Count::Map), ("^", Count::Inline)];
    let found = counts.into_iter().find_map(|(mark, count)| Some((count, kind.strip_prefix(mark)?)));
    let (count, kind) = found.unwrap_or((Count::One, kind));
    let kind = match kind {
        "string" => FieldKind::Text,
        "bool" => FieldKind::Bool,
        "int32" | "int64" | "uint32" | "uint64" => FieldKind::Int,
        "double" => FieldKind::Double,
        "bytes" => FieldKind::Bytes,
        message => FieldKind::Message(message),
    };
    Some(MessageField { number, name, kind, count, is_always: false, is_omitted: false })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn referenced_messages_exist() {
        for (name, fields) in parse() {
            for field in &fields {
                if let FieldKind::Message(inner) = field.kind {
                    assert!(message(inner).is_some(), "{name}.{} is a {inner}", field.name);
                }
            }
        }
    }
}
