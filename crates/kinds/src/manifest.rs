//! Built-in kinds in files: their objects are decoded strictly, defaulted and validated as new ones, without a server.

use base::request::FeatureGates;
use machinery::types::go_struct;
use machinery::value::Decoded;
use machinery::{Value, status};
use schema::shape;

use crate::catalogue::CATALOGUE;
use crate::limits;
use resource::builtin::BuiltIn;
use resource::{Document, Strict, group_version, type_text, typed_version, unknown_kind};

/// The kinds that a document may contain: some kinds of a group, in version `v1`.
#[derive(Clone, Copy)]
pub struct ManifestKinds {
    pub group: &'static str,
    pub kinds: &'static [&'static str],
}

/// A valid object of a document.
#[derive(Debug)]
pub struct ManifestObject {
    pub row: &'static BuiltIn,
    pub value: Value,
}

/// The objects of a document: one, or those of a list of its kind, or all of a `List`, in their order. The error names
/// no file.
pub fn manifest_objects(
    document: &Document,
    kinds: ManifestKinds,
    gates: &FeatureGates,
) -> Result<Vec<ManifestObject>, String> {
    let decoded = document.decode();
    if let Some(why) = document.type_error(&decoded) {
        return Err(why);
    }
    let Decoded { value, duplicates } = decoded.unwrap_or_default();
    let reader = Reader { document, kinds, gates };
    let mut strict = Strict::of(duplicates);
    // lists may contain lists, to any depth
    let mut pending = vec![(value, false)];
    let mut found = vec![];
    while let Some((value, in_list)) = pending.pop() {
        let failed = |why| if in_list { format!("failed to decode list item: {why}") } else { why };
        let strict = std::mem::take(&mut strict);
        match reader.type_of(&value, in_list).map_err(failed)? {
            Type::List => {
                let items = reader.list_items(value, strict).map_err(failed)?;
                pending.extend(items.into_iter().rev().map(|item| (item, true)));
            }
            Type::Kind { row, list } => {
                for value in reader.typed(value, row, list, strict).map_err(failed)? {
                    found.push(reader.valid(value, row)?);
                }
            }
            Type::Other(name) => return Err(format!("unsupported resource type *{name}")),
        }
    }
    Ok(found)
}

/// The type of a document or an item.
enum Type {
    /// A list of objects of any kind.
    List,
    /// One object, or a list of them.
    Kind { row: &'static BuiltIn, list: bool },
    /// Another type, by its name in Go.
    Other(String),
}

struct Reader<'a> {
    document: &'a Document,
    kinds: ManifestKinds,
    gates: &'a FeatureGates,
}

impl Reader<'_> {
    fn type_of(&self, value: &Value, in_list: bool) -> Result<Type, String> {
        let (api_version, kind) = (typed_version(value), type_text(value, "kind"));
        let missing = |field| {
            let text =
                if in_list { value.to_json() } else { String::from_utf8_lossy(self.document.bytes()).into_owned() };
            let beginning: String = text.chars().take(limits::MANIFEST_EXCERPT_MAX).collect();
            format!("Object '{field}' is missing in '{beginning}'")
        };
        if kind.is_empty() {
            return Err(missing("Kind"));
        }
        if api_version.is_empty() {
            return Err(missing("apiVersion"));
        }
        let ManifestKinds { group, kinds } = self.kinds;
        let name = kind.strip_suffix("List").filter(|name| !name.is_empty()).unwrap_or(kind);
        let (of_group, version) = api_version.split_once('/').unwrap_or(("", &api_version));
        if kind == "List" {
            return Ok(Type::List);
        }
        if api_version == group_version(group, "v1")
            && kinds.contains(&name)
            && let Some(row) = CATALOGUE.row_of(&api_version, name)
        {
            return Ok(Type::Kind { row, list: name != kind });
        }
        match kind == "Status" || of_group == group && CATALOGUE.is_known(&api_version, kind) {
            true => Ok(Type::Other(format!("{version}.{kind}"))),
            false => Err(unknown_kind(kind, &api_version)),
        }
    }

    /// The error for duplicate and unknown fields, which are both refused.
    fn refuse(&self, mut strict: Strict, unknown: Vec<String>) -> Result<(), String> {
        strict.extend_typed(unknown);
        strict.in_order(self.document).error(self.document.format).map_or(Ok(()), Err)
    }

    fn list_items(&self, list: Value, strict: Strict) -> Result<Vec<Value>, String> {
        let Value::Object(mut fields) = list else { return Ok(vec![]) };
        let names = fields.keys().filter(|name| !["apiVersion", "kind", "metadata", "items"].contains(&name.as_str()));
        self.refuse(strict, names.map(ToString::to_string).collect())?;
        match fields.remove("items") {
            Some(Value::Array(items)) => Ok(items),
            None | Some(Value::Null) => Ok(vec![]),
            Some(other) => Err(format!(
                "json: cannot unmarshal {} into Go struct field List.items of type []runtime.RawExtension",
                other.json_type()
            )),
        }
    }

    /// The objects of a kind, with defaults.
    fn typed(&self, value: Value, row: &'static BuiltIn, list: bool, strict: Strict) -> Result<Vec<Value>, String> {
        let structure = match list {
            false => row.structure(),
            true => {
                let name = format!("{}.{}.{}List", row.go_package(), row.version, row.kind);
                go_struct(&name).map(|go| shape::named(go.name)).ok_or(format!("{name} is unknown"))?
            }
        };
        let mut read = shape::read_request(&value, structure);
        if let Some(why) = read.error {
            return Err(why);
        }
        self.refuse(strict, read.unknown)?;
        let mut objects = match list {
            false => vec![read.value],
            true => match read.value.get_mut("items").map(std::mem::take) {
                Some(Value::Array(items)) => items,
                _ => vec![],
            },
        };
        for object in &mut objects {
            object.set_at(&["kind"], Value::from(row.kind));
            object.set_at(&["apiVersion"], Value::from(row.api_version));
            row.set_defaults(object, self.gates);
            (row.behaviour.default)(object);
        }
        Ok(objects)
    }

    fn valid(&self, value: Value, row: &'static BuiltIn) -> Result<ManifestObject, String> {
        let errors = row.errors_of_new(&value, self.gates.release());
        if errors.is_empty() {
            return Ok(ManifestObject { row, value });
        }
        let name = machinery::value::quote(value.str_at(&["metadata", "name"]));
        Err(format!("{} {name}: {}", row.kind, status::aggregate(&errors)))
    }
}
