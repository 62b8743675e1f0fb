//! Decoding a tree as a typed object.

use crate::limits::TYPE_ERRORS_MAX;
use base64::Engine as _;
use machinery::quantity::Quantity;
use machinery::value::{PATHS_BYTES_MAX, Paths};
use machinery::{Map, Text, Value};

use super::error::{Conversion, TypeError, TypeProblem, first_error};
use super::{Field, Print, Shape, Struct};

/// Result of reading: the normalised object, the paths of unknown fields in the order in which they stand in the
/// (sorted) tree, and the type error that counts.
#[derive(Debug, Default)]
pub struct Read {
    pub value: Value,
    pub unknown: Vec<String>,
    pub error: Option<String>,
    /// All type errors, in the order of the (sorted) tree.
    pub errors: Vec<TypeError>,
}

/// Converts the numbers of a tree as Go's converter from trees to structs does: whole floats to integers, and integers
/// to their lowest 32 bits where the field has no more. What decodes itself stays.
pub fn convert_numbers(value: &mut Value, shape: &'static Struct) {
    convert_in(value, shape, OutOfRangeFloat::Least);
}

/// Converts the whole floats of a tree as writing it as JSON and reading that does: those that are no 64-bit integer stay.
pub fn convert_whole_numbers(value: &mut Value, shape: &'static Struct) {
    convert_in(value, shape, OutOfRangeFloat::Kept);
}

/// The conversion of a whole float beyond the range of 64-bit integers.
#[derive(Clone, Copy, PartialEq, Eq)]
enum OutOfRangeFloat {
    /// The least integer, as the instruction does that Go uses.
    Least,
    Kept,
}

fn convert_in(value: &mut Value, shape: &'static Struct, beyond: OutOfRangeFloat) {
    let Some(map) = value.as_object_mut() else { return };
    for (name, value) in map.iter_mut() {
        if let Some(field) = find(shape, name).and_then(|i| shape.fields.get(i)) {
            convert_number(value, &field.shape, beyond);
        }
    }
}

fn convert_number(value: &mut Value, shape: &'static Shape, beyond: OutOfRangeFloat) {
    match (shape, value) {
        (Shape::Int32 | Shape::Int64, value) => {
            if let Value::Float(float) = *value
                && float.fract() == 0.0
            {
                let fits = (i64::MIN as f64..i64::MAX as f64).contains(&float);
                match (fits, beyond) {
                    (true, _) => *value = Value::Int(float as i64),
                    (false, OutOfRangeFloat::Least) => *value = Value::Int(i64::MIN),
                    (false, OutOfRangeFloat::Kept) => {}
                }
            }
            if let (Shape::Int32, Value::Int(number), OutOfRangeFloat::Least) = (shape, &mut *value, beyond) {
                *number = i64::from(*number as i32);
            }
        }
        (Shape::Struct(inner), value) => convert_in(value, inner, beyond),
        (Shape::List(_, item), Value::Array(items)) => {
            items.iter_mut().for_each(|value| convert_number(value, item, beyond))
        }
        (Shape::Map(_, item), Value::Object(map)) => {
            map.iter_mut().for_each(|(_, value)| convert_number(value, item, beyond))
        }
        _ => {}
    }
}

/// Reads `value` as `shape`.
pub fn read(value: &Value, shape: &'static Struct) -> Read {
    Reader::new(Some(Paths::default()), Empty::AsPrinted).read(value, shape)
}

/// As [`read`], after a round through storage, which does not distinguish empty lists and maps from absent ones.
pub fn read_stored(value: &Value, shape: &'static Struct) -> Value {
    Reader::new(None, Empty::Forgotten).read(value, shape).value
}

/// As [`read`], but what the typed object holds and its JSON doesn't show stays visible, because validation sees it: empty
/// lists and maps, and as null `items` that are neither a schema nor a list of them.
pub fn read_request(value: &Value, shape: &'static Struct) -> Read {
    Reader::new(Some(Paths::default()), Empty::Kept).read(value, shape)
}

/// How empty lists and maps are treated.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Empty {
    AsPrinted,
    Kept,
    Forgotten,
}

struct Reader {
    /// `None` where kube-apiserver decodes without looking for unknown fields.
    unknown: Option<Paths>,
    errors: Vec<TypeError>,
    /// Bytes of their paths, and which sorts there are.
    error_bytes: usize,
    has_ending: bool,
    has_other: bool,
    /// The names of the fields around, for type errors.
    fields: Vec<&'static Field>,
    structs: Vec<&'static str>,
    /// The struct around what decodes itself: errors in there are reported as its own.
    /// With the number of `fields` down to what decodes itself.
    outer: Option<(&'static str, usize)>,
    path: String,
    empty: Empty,
}

/// The object with no field set.
fn zero(shape: &Struct) -> Value {
    let member = |field: &Field| Some((Text::from(field.name), printed(field, None, Empty::AsPrinted)?));
    Value::Object(shape.fields.iter().filter_map(member).collect())
}

/// The absent fields that are printed nevertheless.
fn absent(fields: &[Field], out: &mut Vec<(Text, Value)>) {
    let always = fields.iter().filter(|field| field.print == Print::Always);
    out.extend(always.map(|field| (Text::new_static(field.name), zero_value(&field.shape))));
    let nulls = fields.iter().filter(|field| field.print == Print::OrNull);
    out.extend(nulls.map(|field| (Text::new_static(field.name), Value::Null)));
}

fn zero_value(shape: &Shape) -> Value {
    match shape {
        Shape::Text(_) => Value::from(""),
        Shape::Bool => Value::Bool(false),
        Shape::Int32 | Shape::Int64 | Shape::Float => Value::Int(0),
        Shape::Struct(inner) => zero(inner),
        Shape::Quantity => Value::from("0"),
        _ => Value::Null,
    }
}

/// A field as it is printed, if it is.
fn printed(field: &Field, value: Option<Value>, empty: Empty) -> Option<Value> {
    let container = |v: &Value| matches!(v, Value::Array(_) | Value::Object(_));
    match (field.print, value) {
        (Print::Always, None) => Some(zero_value(&field.shape)),
        (Print::OrNull, None) => Some(Value::Null),
        (Print::NonEmpty, Some(value)) if is_empty(&value) && !(empty == Empty::Kept && container(&value)) => None,
        (Print::Always, Some(Value::Array(items))) if items.is_empty() && empty == Empty::Forgotten => {
            Some(Value::Null)
        }
        (_, value) => value,
    }
}

fn is_empty(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::Bool(b) => !b,
        Value::Int(i) => *i == 0,
        Value::Float(f) => *f == 0.0,
        Value::String(s) => s.is_empty(),
        Value::Array(items) => items.is_empty(),
        Value::Object(map) => map.is_empty(),
    }
}

/// The number as its literal most likely stood in the document: a float without a fraction had one written.
fn literal(value: &Value) -> String {
    match value {
        Value::Float(f) if f.fract() == 0.0 && f.abs() < 9e18 => format!("{f}.0"),
        Value::Float(f) if f.fract() == 0.0 && f.abs() < 1e21 => format!("{f:.0}"),
        other => other.to_json(),
    }
}

impl Reader {
    fn new(unknown: Option<Paths>, empty: Empty) -> Reader {
        Reader {
            unknown,
            errors: vec![],
            error_bytes: 0,
            has_ending: false,
            has_other: false,
            fields: vec![],
            structs: vec![],
            outer: None,
            path: String::new(),
            empty,
        }
    }

    fn read(mut self, value: &Value, shape: &'static Struct) -> Read {
        let value = self.structure(value, shape).unwrap_or_else(|| zero(shape));
        let error = first_error(&self.errors, None);
        Read { value, unknown: self.unknown.unwrap_or_default().into_list(), error, errors: self.errors }
    }

    /// The error of a type that decodes itself.
    fn fail(&mut self, message: String) {
        self.add_error(TypeProblem::Rejected(message.into()), Conversion::Same, true);
    }

    /// Adds an error. Those beyond [`TYPE_ERRORS_MAX`] and [`PATHS_BYTES_MAX`] are left out, but for the first of each sort:
    /// one is reported.
    fn add_error(&mut self, problem: TypeProblem, conversion: Conversion, ends: bool) {
        self.error_bytes += self.path.len();
        let is_full = self.errors.len() >= TYPE_ERRORS_MAX || self.error_bytes > PATHS_BYTES_MAX;
        let has_any = if ends { &mut self.has_ending } else { &mut self.has_other };
        if std::mem::replace(has_any, true) && is_full {
            return;
        }
        // errors of one map or list have one problem, and share its texts
        let problem = match self.errors.last() {
            Some(last) if last.problem == problem => last.problem.clone(),
            _ => problem,
        };
        self.errors.push(TypeError { path: self.path.clone(), problem, conversion, ends });
    }

    /// A value of another Go type than `go`, which is of this sort.
    fn mismatch(&mut self, value: &Value, go: &str, sort: &str) {
        self.mismatched(value, go, conversion(value, go, sort), false);
    }

    /// The same inside of a type that decodes itself.
    fn own_mismatch(&mut self, value: &Value, go: &str) {
        self.mismatched(value, go, Conversion::Decoding, true);
    }

    fn mismatched(&mut self, value: &Value, go: &str, conversion: Conversion, ends: bool) {
        let found = match value {
            Value::Int(_) | Value::Float(_) if matches!(go, "int32" | "int64" | "uint8") => {
                format!("number {}", literal(value)).into()
            }
            other => Text::new_static(other.json_type()),
        };
        let joined = |name: &str, fields: &[&Field]| {
            let path: Vec<String> = fields.iter().map(|f| format!("{}{}", f.embedded, f.name)).collect();
            if path.is_empty() { Text::default() } else { format!("{name}.{}", path.join(".")).into() }
        };
        let field = match self.outer.as_ref().map(|(name, _)| name).or(self.structs.last()) {
            Some(name) => joined(name, &self.fields),
            None => Text::default(),
        };
        let conversion = match self.outer {
            Some((name, depth)) => Conversion::DecodingField(joined(name, &self.fields[depth..])),
            None => conversion,
        };
        self.add_error(TypeProblem::Mismatch { found, field, wanted: go.into() }, conversion, ends);
    }

    fn structure(&mut self, value: &Value, shape: &'static Struct) -> Option<Value> {
        let map = match value {
            Value::Null => return None,
            Value::Object(map) => map,
            other => {
                self.mismatch(other, &format!("v1.{}", shape.name), "struct");
                return None;
            }
        };
        self.structs.push(shape.name);
        // both are sorted by name; most fields of a large struct are not given
        let mut left = shape.fields;
        let mut out = Vec::with_capacity(map.len());
        for (key, inner) in map.iter() {
            let before = left.partition_point(|field| field.name < key.as_str());
            absent(&left[..before], &mut out);
            left = &left[before..];
            let Some((field, rest)) = left.split_first().filter(|(field, _)| field.name == key.as_str()) else {
                self.unknown(key);
                continue;
            };
            left = rest;
            let read = if inner.is_null() { None } else { self.member(field, inner) };
            if let Some(value) = printed(field, read, self.empty) {
                out.push((key.clone(), value));
            }
        }
        absent(left, &mut out);
        self.structs.pop();
        Some(Value::Object(Map::from_entries(out, |_| {})))
    }

    fn member(&mut self, field: &'static Field, value: &Value) -> Option<Value> {
        let length = self.path.len();
        self.fields.push(field);
        self.down(field.name);
        let read = self.value(value, &field.shape);
        self.path.truncate(length);
        self.fields.pop();
        read
    }

    fn unknown(&mut self, key: &str) {
        if let Some(unknown) = &mut self.unknown {
            let path = &self.path;
            unknown.add(|| if path.is_empty() { key.to_owned() } else { format!("{path}.{key}") });
        }
    }

    fn down(&mut self, name: &str) {
        if !self.path.is_empty() {
            self.path.push('.');
        }
        self.path.push_str(name);
    }

    /// Reads inside of something that decodes itself: unknown fields stay untold, and an error ends decoding.
    fn apart(&mut self, value: &Value, shape: &'static Struct) -> Option<Value> {
        let outer = self.outer.or(self.structs.last().map(|name| (*name, self.fields.len())));
        let (unknown, start) = (self.unknown.take(), self.errors.len());
        let before = std::mem::replace(&mut self.outer, outer);
        let read = self.structure(value, shape);
        (self.unknown, self.outer) = (unknown, before);
        if self.errors[start..].iter().any(|error| error.ends) {
            let inner = self.errors.split_off(start);
            self.errors.extend(inner.into_iter().filter(|error| error.ends));
        }
        self.errors[start..].iter_mut().for_each(|error| error.ends = true);
        read
    }

    fn value(&mut self, value: &Value, shape: &'static Shape) -> Option<Value> {
        match shape {
            Shape::Any => Some(value.clone()),
            Shape::IntOrString if value.as_str().is_some() => Some(value.clone()),
            Shape::IntOrString => {
                let read = self.scalar(value, &Shape::Int32);
                if let (None, Some(error)) = (&read, self.errors.last_mut()) {
                    // it decodes itself
                    (error.conversion, error.ends) = (Conversion::Decoding, true);
                }
                read
            }
            Shape::Struct(inner) => self.structure(value, inner),
            Shape::List(go, item) => self.list(value, go, item),
            Shape::Map(go, item) => self.map(value, go, item),
            Shape::OrBool(inner) => match value {
                Value::Bool(_) => Some(value.clone()),
                Value::Object(_) => self.apart(value, inner),
                _ => {
                    self.fail("boolean or JSON schema expected".to_owned());
                    None
                }
            },
            Shape::OrList(inner) => match value {
                Value::Object(_) => self.apart(value, inner),
                Value::Array(items) if !items.is_empty() => {
                    Some(items.iter().map(|item| self.apart(item, inner).unwrap_or_else(|| zero(inner))).collect())
                }
                Value::Array(_) if self.empty == Empty::Kept => Some(value.clone()),
                _ if self.empty == Empty::Kept => Some(Value::Null),
                _ => None,
            },
            Shape::OrTexts(inner) => Some(match value {
                Value::Object(_) => self.apart(value, inner).unwrap_or_default(),
                Value::Array(items) => items.iter().map(|item| self.text(item)).collect(),
                _ => Value::Null,
            }),
            scalar => self.scalar(value, scalar),
        }
    }

    fn scalar(&mut self, value: &Value, shape: &Shape) -> Option<Value> {
        match (shape, value) {
            (Shape::Text(_), Value::String(_)) | (Shape::Bool, Value::Bool(_)) | (Shape::Int64, Value::Int(_)) => {
                Some(value.clone())
            }
            (Shape::Int32, Value::Int(i)) if i32::try_from(*i).is_ok() => Some(value.clone()),
            (Shape::Float, Value::Int(i)) => Some(float(*i as f64)),
            (Shape::Float, Value::Float(f)) => Some(float(*f)),
            (Shape::Bytes, Value::String(text)) => self.bytes(text),
            (Shape::Bytes, Value::Array(items)) => self.byte_list(items),
            (Shape::Time, Value::String(text)) => self.result(super::normal_time(text)),
            (Shape::MicroTime, Value::String(text)) => self.result(super::normal_micro_time(text)),
            (Shape::Quantity, value) => {
                self.result(Quantity::of(value).map(|q| Some(q.to_string())).map_err(str::to_owned))
            }
            (Shape::Time | Shape::MicroTime, other) => {
                self.own_mismatch(other, "string");
                None
            }
            (shape, other) => {
                let (go, sort) = go_type(shape);
                self.mismatch(other, go, sort);
                None
            }
        }
    }

    fn result(&mut self, read: Result<Option<String>, String>) -> Option<Value> {
        match read {
            Ok(text) => text.map(Value::from),
            Err(error) => {
                self.fail(error);
                None
            }
        }
    }

    /// An item of a list of texts inside of something that decodes itself.
    fn text(&mut self, item: &Value) -> Value {
        match item {
            Value::String(_) => item.clone(),
            Value::Null => Value::from(""),
            other => {
                self.own_mismatch(other, "string");
                Value::Null
            }
        }
    }

    /// Bytes may be given as a list of numbers too.
    fn byte_list(&mut self, items: &[Value]) -> Option<Value> {
        let mut bytes = Vec::with_capacity(items.len());
        for item in items {
            match item {
                Value::Null => bytes.push(0),
                Value::Int(i) if u8::try_from(*i).is_ok() => bytes.push(*i as u8),
                other => self.mismatch(other, "uint8", "uint8"),
            }
        }
        Some(Value::from(base64::engine::general_purpose::STANDARD.encode(bytes)))
    }

    fn bytes(&mut self, text: &Text) -> Option<Value> {
        let clean: String = text.chars().filter(|c| !matches!(c, '\n' | '\r')).collect();
        match base64_error(&clean) {
            None => Some(Value::from(clean)),
            Some(at) => {
                self.add_error(TypeProblem::InvalidBase64 { at }, Conversion::Decoding, false);
                None
            }
        }
    }

    fn list(&mut self, value: &Value, go: &str, item: &'static Shape) -> Option<Value> {
        let Value::Array(items) = value else {
            self.mismatch(value, go, "slice");
            return None;
        };
        let length = self.path.len();
        let mut out = Vec::with_capacity(items.len());
        for (i, inner) in items.iter().enumerate() {
            self.path.push_str(&format!("[{i}]"));
            let read = if inner.is_null() { None } else { self.value(inner, item) };
            self.path.truncate(length);
            out.push(read.unwrap_or_else(|| zero_value(item)));
        }
        Some(Value::Array(out))
    }

    fn map(&mut self, value: &Value, go: &str, item: &'static Shape) -> Option<Value> {
        let Value::Object(map) = value else {
            self.mismatch(value, go, "map");
            return None;
        };
        let length = self.path.len();
        let mut out = vec![];
        for (key, inner) in map.iter() {
            self.down(key);
            let mut read = if inner.is_null() { None } else { self.value(inner, item) };
            self.path.truncate(length);
            if go == RESOURCE_LIST {
                read = read.map(in_thousandths);
            }
            let none = || match item {
                Shape::Bytes if self.empty == Empty::Forgotten => Value::from(""),
                _ => zero_value(item),
            };
            out.push((key.clone(), read.unwrap_or_else(none)));
        }
        Some(Value::Object(out.into_iter().collect()))
    }
}

/// The type whose quantities have no parts smaller than a thousandth.
const RESOURCE_LIST: &str = "v1.ResourceList";

fn in_thousandths(quantity: Value) -> Value {
    match Quantity::of(&quantity) {
        Ok(read) => Value::from(read.rounded_to_thousandths().to_string()),
        Err(_) => quantity,
    }
}

/// Whether kube-apiserver notices that the field at `path` (as strict decoding prints it) comes twice: only known
/// fields are looked at, and not inside of what decodes itself.
pub fn sees_duplicate(path: &str, shape: &'static Struct) -> bool {
    let (name, rest) = path.split_once(['.', '[']).map_or((path, None), |(name, rest)| (name, Some(rest)));
    let Some(field) = find(shape, name).and_then(|i| shape.fields.get(i)) else { return false };
    match rest {
        None => true,
        Some(rest) => sees_duplicate_below(rest, &field.shape),
    }
}

/// `rest` follows a dot or an opening bracket.
fn sees_duplicate_below(rest: &str, shape: &'static Shape) -> bool {
    match shape {
        Shape::Struct(inner) => sees_duplicate(rest, inner),
        Shape::List(_, item) => match rest.split_once(']') {
            Some((_, after)) => after.strip_prefix('.').is_some_and(|after| sees_duplicate_below(after, item)),
            None => false,
        },
        Shape::Map(_, Shape::Struct(item)) => {
            // Keys may have dots in them: the first known field of the struct ends the key.
            let after = rest.match_indices('.').map(|(i, _)| &rest[i + 1..]);
            let known = |after: &&str| find(item, after.split(['.', '[']).next().unwrap_or_default()).is_some();
            after.into_iter().find(known).is_none_or(|after| sees_duplicate(after, item))
        }
        Shape::Map(..) => true,
        _ => false,
    }
}

fn find(shape: &Struct, name: &str) -> Option<usize> {
    shape.fields.binary_search_by(|f| f.name.cmp(name)).ok()
}

/// The Go type of a scalar, and of which sort that is.
fn go_type(shape: &Shape) -> (&'static str, &'static str) {
    match shape {
        Shape::Text(go) => (go, "string"),
        Shape::Bool => ("bool", "bool"),
        Shape::Int32 => ("int32", "int32"),
        Shape::Int64 => ("int64", "int64"),
        Shape::Float => ("float64", "float64"),
        Shape::Bytes => ("[]uint8", "slice"),
        _ => ("string", "string"),
    }
}

/// The error of the conversion of a value to a Go type of this sort. Go converts numbers to each other and whole ones to
/// texts, and nothing else.
fn conversion(value: &Value, go: &str, sort: &str) -> Conversion {
    let found = match value {
        Value::Int(_) => "int64",
        Value::Float(_) => "float64",
        Value::Array(_) => "slice",
        Value::Object(_) => "map",
        other => other.json_type(),
    };
    let to = |what| Conversion::To { what, wanted: go.into() };
    match (sort, value) {
        ("map" | "slice", _) => Conversion::Other(format!("cannot restore {sort} from {found}").into()),
        ("struct", _) => Conversion::Other(format!("cannot restore struct from: {found}").into()),
        (sort, Value::Int(_)) if sort != "bool" => to("cannot convert int64 to "),
        (sort, Value::Float(_)) if !matches!(sort, "bool" | "string") => to("cannot convert float64 to "),
        _ => Conversion::Other(format!("unrecognized type: {sort}").into()),
    }
}

/// A float as it is after a round trip through JSON.
fn float(f: f64) -> Value {
    if f.fract() == 0.0 && f.abs() < 9e15 && !(f == 0.0 && f.is_sign_negative()) {
        return Value::Int(f as i64);
    }
    Value::Float(f)
}

/// Where standard base64 with padding breaks, as Go's decoder counts.
fn base64_error(text: &str) -> Option<usize> {
    let bytes = text.as_bytes();
    let valid = |b: u8| b.is_ascii_alphanumeric() || b == b'+' || b == b'/';
    let data = bytes.iter().take_while(|b| valid(**b)).count();
    let padding = &bytes[data..];
    let want: &[u8] = match data % 4 {
        0 => b"",
        2 => b"==",
        3 => b"=",
        _ => return Some(if padding.is_empty() { data - data % 4 } else { data }),
    };
    if padding == want {
        return None;
    }
    if padding.is_empty() {
        return Some(data - data % 4);
    }
    let same = padding.iter().zip(want).take_while(|(a, b)| a == b).count();
    Some(data + same)
}

#[cfg(test)]
mod tests {
    use super::super::OBJECT_META;
    use super::*;
    use machinery::value::decode;

    fn check(input: &str, value: &str, unknown: &[&str], error: Option<&str>) {
        let read = read(&decode(input.as_bytes()).unwrap(), &OBJECT_META);
        assert_eq!(read.error.as_deref(), error, "{input}");
        if error.is_none() {
            assert_eq!(read.value.to_json(), value, "{input}");
        }
        assert_eq!(read.unknown, unknown, "{input}");
    }

    /// As Go's decoder: the first in the document, unless one ends decoding.
    #[test]
    fn first_type_error_is_reported() {
        let reported = |text: &str| {
            let read = read(&decode(text.as_bytes()).unwrap(), &OBJECT_META);
            let order = machinery::value::key_order(text.as_bytes());
            let error = first_error(&read.errors, Some(&order)).unwrap();
            error.split("ObjectMeta.").last().unwrap_or_default().to_owned()
        };
        for (text, want) in [
            (r#"{"name": 1, "generation": "x"}"#, "name of type string"),
            (r#"{"generation": "x", "name": 1}"#, "generation of type int64"),
            (r#"{"name": 1, "creationTimestamp": 2}"#, "creationTimestamp of type string"),
            (
                r#"{"ownerReferences": [{"uid": 1}, 2]}"#,
                "json: cannot unmarshal number into Go struct field OwnerReference.ownerReferences.uid of type types.UID",
            ),
        ] {
            assert_eq!(reported(text), want, "{text}");
        }
    }

    /// Each error of a list was sought among all keys and all items before it.
    #[test]
    fn type_errors_of_long_lists_are_bounded() {
        let text = format!(r#"{{"name": "a", "finalizers": [{}1], "labels": 2}}"#, "1,".repeat(200_000));
        let read = read(&decode(text.as_bytes()).unwrap(), &OBJECT_META);
        assert_eq!(read.errors.len(), TYPE_ERRORS_MAX);
        let error = first_error(&read.errors, Some(&machinery::value::key_order(text.as_bytes())));
        let want = "json: cannot unmarshal number into Go struct field ObjectMeta.finalizers of type string";
        assert_eq!(error.as_deref(), Some(want));
    }

    #[test]
    fn duplicate_fields_are_reported_like_upstream() {
        let cases = [
            ("spec.scope", true),
            ("metadata.labels.a.b/c", true),
            ("spec.versions[0].name", true),
            ("spec.versions[0].schema.openAPIV3Schema.properties.spec.type", true),
            ("spec.versions[0].schema.openAPIV3Schema.properties.a", true),
            ("spec.versions[0].schema.openAPIV3Schema.properties.a.items.type", false),
            ("spec.versions[0].schema.openAPIV3Schema.default.x", false),
            ("spec.bogus", false),
        ];
        for (path, want) in cases {
            assert_eq!(sees_duplicate(path, &crate::shape::DEFINITION), want, "{path}");
        }
    }

    /// A type that decodes itself reports its errors as those of the struct around it.
    #[test]
    fn errors_in_custom_decoders_have_full_paths() {
        let reported =
            |schema: &str| read(&decode(schema.as_bytes()).unwrap(), &crate::shape::VALIDATION).error.unwrap();
        for (schema, want) in [
            (
                r#"{"items": {"type": 1}}"#,
                "number into Go struct field JSONSchemaProps.openAPIV3Schema.items.type of type string",
            ),
            (
                r#"{"items": [1]}"#,
                "number into Go struct field JSONSchemaProps.openAPIV3Schema.items of type v1.JSONSchemaProps",
            ),
            (
                r#"{"not": {"additionalProperties": {"x-kubernetes-validations": [{"rule": []}]}}}"#,
                "array into Go struct field JSONSchemaProps.openAPIV3Schema.not.additionalProperties.x-kubernetes-validations.rule of type string",
            ),
            (
                r#"{"dependencies": {"a": [true]}}"#,
                "bool into Go struct field JSONSchemaProps.openAPIV3Schema.dependencies of type string",
            ),
        ] {
            let error = reported(&format!(r#"{{"openAPIV3Schema": {schema}}}"#));
            assert_eq!(error, format!("json: cannot unmarshal {want}"), "{schema}");
        }
        assert_eq!(reported(r#"{"openAPIV3Schema": {"additionalProperties": 1}}"#), "boolean or JSON schema expected");
    }

    #[test]
    fn custom_decoders_report_inner_paths() {
        for (schema, want) in [
            (r#"{"type": 1}"#, "cannot convert int64 to string"),
            (
                r#"{"items": {"properties": {"a": {"pattern": 1}}}}"#,
                "json: cannot unmarshal number into Go struct field JSONSchemaProps.properties.pattern of type string",
            ),
            (
                r#"{"items": {"properties": {"a": {"items": {"properties": {"b": 1.5}}}}}}"#,
                "json: cannot unmarshal number into Go struct field JSONSchemaProps.properties.items.properties of type v1.JSONSchemaProps",
            ),
        ] {
            let value = decode(format!(r#"{{"openAPIV3Schema": {schema}}}"#).as_bytes()).unwrap();
            let found = crate::shape::first_conversion_error(&read(&value, &crate::shape::VALIDATION).errors);
            assert_eq!(found.as_deref(), Some(want), "{schema}");
        }
    }

    #[test]
    fn bytes_decode_from_list_of_numbers() {
        let client = |bundle: &str| {
            let text = format!(
                r#"{{"spec": {{"conversion": {{"strategy": "", "webhook": {{"clientConfig": {{"caBundle": {bundle}}}}}}}}}}}"#
            );
            read(&decode(text.as_bytes()).unwrap(), &crate::shape::DEFINITION)
        };
        let bundle = ["spec", "conversion", "webhook", "clientConfig", "caBundle"];
        assert_eq!(client("[104, 105, null]").value.str_at(&bundle), "aGkA");
        assert_eq!(client("[]").value.at(&bundle), None);
        for (given, what) in
            [("[256]", "number 256"), ("[1.5]", "number 1.5"), (r#"["x"]"#, "string"), ("[{}]", "object")]
        {
            let error = client(given).error.unwrap_or_default();
            assert!(
                error.starts_with(&format!("json: cannot unmarshal {what} into")) && error.ends_with("of type uint8"),
                "{error}"
            );
        }
    }

    #[test]
    fn metadata_is_read() {
        check(r#"{"name":"a","labels":{"a":"b"}}"#, r#"{"labels":{"a":"b"},"name":"a"}"#, &[], None);
        check(r#"{"name":null,"creationTimestamp":null,"bogus":1}"#, "{}", &["bogus"], None);
        check("null", "{}", &[], None);
        check(
            r#"{"ownerReferences":[{"name":"x","q":1}]}"#,
            r#"{"ownerReferences":[{"apiVersion":"","kind":"","name":"x","uid":""}]}"#,
            &["ownerReferences[0].q"],
            None,
        );
        check(
            r#"{"zz":1,"ownerReferences":[{"name":"x","q":1}],"aa":2}"#,
            r#"{"ownerReferences":[{"apiVersion":"","kind":"","name":"x","uid":""}]}"#,
            &["aa", "ownerReferences[0].q", "zz"],
            None,
        );
        check(r#""x""#, "", &[], Some("json: cannot unmarshal string into Go value of type v1.ObjectMeta"));
        check(
            r#"{"labels":{"a":1}}"#,
            "",
            &[],
            Some("json: cannot unmarshal number into Go struct field ObjectMeta.labels of type string"),
        );
    }
}
