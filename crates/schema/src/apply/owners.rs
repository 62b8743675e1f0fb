//! Decoded `metadata.managedFields`: owners with their paths, versions and times.

use super::error::ManagedFieldsError;
use super::fieldpath::FieldSet;
use super::fields_v1::Fields;
use super::typed::reconcile;
use super::types::TypeSchema;
use super::versions::Versions;
pub use crate::limits::UPDATE_ENTRIES_MAX;
use machinery::time::{parse_rfc3339, rfc3339};
use machinery::value::quote;
use machinery::{Map, Text, Value, json};
use std::cmp::Ordering;
use std::collections::HashMap;

machinery::text_enum! {
    #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
    pub(crate) enum Operation {
        Apply = "Apply",
        Update = "Update",
    }
}

/// The owner of an entry. An applier is the same owner in every version, so its `api_version` is empty.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Identity {
    pub manager: Text,
    pub operation: Operation,
    pub api_version: Text,
    pub subresource: Text,
}

impl Identity {
    pub fn new(manager: &str, operation: Operation, api_version: &str, subresource: &str) -> Identity {
        let api_version = if operation == Operation::Apply { "" } else { api_version };
        Identity {
            manager: manager.into(),
            operation,
            api_version: api_version.into(),
            subresource: subresource.into(),
        }
    }

    /// The identity as JSON, the text by which upstream sorts managers.
    fn text(&self) -> String {
        let mut text = String::from("{");
        let operation = Text::new_static(self.operation.as_str());
        let fields = [
            ("manager", &self.manager),
            ("operation", &operation),
            ("apiVersion", &self.api_version),
            ("subresource", &self.subresource),
        ];
        for (name, value) in fields.into_iter().filter(|(_, v)| !v.is_empty()) {
            if text.len() > 1 {
                text.push(',');
            }
            text.push_str(&format!("\"{name}\":{}", Value::from(value).to_json()));
        }
        text.push('}');
        text
    }

    pub fn compare(&self, other: &Identity) -> Ordering {
        self.text().cmp(&other.text())
    }

    /// The owner as the message of a conflict names it.
    pub fn print(&self) -> String {
        let mut text = quote(&self.manager);
        if !self.subresource.is_empty() {
            text.push_str(&format!(" with subresource {}", quote(&self.subresource)));
        }
        if self.operation == Operation::Update {
            text.push_str(&format!(" using {}", self.api_version));
        }
        text
    }
}

/// One entry of managedFields.
#[derive(Clone, Debug)]
pub(crate) struct Owner {
    pub identity: Identity,
    /// The version in which the paths are given.
    pub version: Text,
    /// Seconds since the epoch.
    pub time: Option<i64>,
    pub set: Fields,
}

/// All entries, in no particular order.
#[derive(Clone, Debug, Default)]
pub(crate) struct Owners(pub Vec<Owner>);

/// Whether the owners have changed since they were decoded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ownership {
    Same,
    Changed,
}

fn text_of(entry: &Map, field: &'static str) -> Result<Text, ManagedFieldsError> {
    match entry.get(field) {
        None | Some(Value::Null) => Ok(Text::default()),
        Some(Value::String(text)) => Ok(text.clone()),
        Some(_) => Err(ManagedFieldsError(format!("{field} must be a string"))),
    }
}

fn parse_entry(index: usize, entry: &Value, versions: Option<&dyn Versions>) -> Result<Owner, ManagedFieldsError> {
    let entry = entry.as_object().ok_or("entry must be an object")?;
    let operation = match text_of(entry, "operation")?.as_str() {
        "Apply" => Operation::Apply,
        "Update" => Operation::Update,
        _ => return Err("operation must be `Apply` or `Update`".into()),
    };
    let version = text_of(entry, "apiVersion")?;
    if version.is_empty() {
        return Err("apiVersion must not be empty".into());
    }
    match text_of(entry, "fieldsType")?.as_str() {
        "FieldsV1" => {}
        "" => return Err(ManagedFieldsError(format!("missing fieldsType in managed fields entry {index}"))),
        other => {
            return Err(ManagedFieldsError(format!(
                "invalid fieldsType {} in managed fields entry {index}",
                quote(other)
            )));
        }
    }
    let time = match text_of(entry, "time")?.as_str() {
        "" => None,
        text => Some(parse_rfc3339(text).ok_or("time must be a time")?.0),
    };
    let set = match entry.get("fieldsV1") {
        None | Some(Value::Null) => Fields::default(),
        Some(fields) => parse_set(fields, versions.and_then(|versions| versions.types(&version)))?,
    };
    let (manager, subresource) = (text_of(entry, "manager")?, text_of(entry, "subresource")?);
    Ok(Owner { identity: Identity::new(&manager, operation, &version, &subresource), version, time, set })
}

/// Decodes a set, which is given in the version of `types`.
fn parse_set(fields: &Value, types: Option<&TypeSchema>) -> Result<Fields, ManagedFieldsError> {
    let (Value::Encoded(text), Some(types)) = (fields, types) else { return Fields::parse(fields) };
    types.known_sets().get(text, || {
        let mut set = Fields::parse(fields)?;
        set.is_reconciled = reconcile(types, &set).is_none();
        Ok(set)
    })
}

/// Whether the list in a request resets managedFields, as a list of one empty entry does.
pub(crate) fn is_reset(list: Option<&Value>) -> bool {
    const KNOWN: [&str; 7] = ["apiVersion", "fieldsType", "fieldsV1", "manager", "operation", "subresource", "time"];
    match list.and_then(Value::as_array) {
        Some([Value::Object(entry)]) => {
            let empty = |v: &Value| v.is_null() || v.as_str() == Some("");
            entry.iter().all(|(name, value)| !KNOWN.contains(&name.as_str()) || empty(value))
        }
        _ => false,
    }
}

impl Owners {
    /// Decodes the list. Fails if any entry cannot be decoded. `versions` are those that the entries may be given in.
    pub fn parse(list: Option<&Value>, versions: Option<&dyn Versions>) -> Result<Owners, ManagedFieldsError> {
        let entries = list.and_then(Value::as_array).unwrap_or_default();
        let mut owners = UniqueOwners::default();
        for (i, entry) in entries.iter().enumerate() {
            owners.insert(parse_entry(i, entry, versions)?);
        }
        Ok(owners.into_owners())
    }

    /// Whether every entry of the decoded list was kept. If one owner has two entries, only the later one is.
    pub fn are_all_of(&self, list: &Value) -> bool {
        list.as_array().is_none_or(|entries| entries.len() == self.0.len())
    }

    pub fn get(&self, identity: &Identity) -> Option<&Owner> {
        self.0.iter().find(|o| o.identity == *identity)
    }

    pub fn get_mut(&mut self, identity: &Identity) -> Option<&mut Owner> {
        self.0.iter_mut().find(|o| o.identity == *identity)
    }

    pub fn take(&mut self, identity: &Identity) -> Option<Owner> {
        let at = self.0.iter().position(|o| o.identity == *identity)?;
        Some(self.0.swap_remove(at))
    }

    /// The list in its stored form; `None` if there are no entries.
    pub fn into_value(mut self) -> Option<Value> {
        if self.0.is_empty() {
            return None;
        }
        self.0.sort_by(|a, b| {
            let (x, y) = (&a.identity, &b.identity);
            x.operation
                .cmp(&y.operation)
                .then(a.time.unwrap_or_default().cmp(&b.time.unwrap_or_default()))
                .then_with(|| x.manager.as_str().cmp(y.manager.as_str()))
                .then_with(|| a.version.as_str().cmp(b.version.as_str()))
                .then_with(|| x.subresource.as_str().cmp(y.subresource.as_str()))
        });
        Some(self.0.iter().map(Owner::to_value).collect())
    }

    /// Merges the oldest entries of updates if there are too many. Returns whether there were. Times have a precision
    /// of seconds, so that among the entries of one second the writer's counts as the newest.
    pub fn cap(&mut self, writer: &Identity) -> bool {
        let mut oldest: Vec<&Owner> = self.0.iter().filter(|o| o.identity.operation == Operation::Update).collect();
        let surplus = oldest.len().saturating_sub(UPDATE_ENTRIES_MAX);
        if surplus == 0 {
            return false;
        }
        oldest.sort_by_cached_key(|owner| {
            let time = owner.time.unwrap_or_default();
            (time, owner.identity == *writer, owner.identity.text())
        });
        let oldest: Vec<Identity> = oldest.into_iter().map(|owner| owner.identity.clone()).collect();
        let mut owners = UniqueOwners::from(std::mem::take(self));
        owners.merge_oldest(oldest, surplus);
        *self = owners.into_owners();
        true
    }
}

/// Up to this number of entries, a linear search is faster than an index.
const SEARCHED_ENTRIES_MAX: usize = 16;

/// Entries that can be looked up by their identity.
#[derive(Default)]
pub(crate) struct UniqueOwners {
    /// The entries; `None` in place of entries that were taken.
    entries: Vec<Option<Owner>>,
    /// The positions of all entries by identity; empty while there are few.
    index: HashMap<Identity, usize>,
}

impl From<Owners> for UniqueOwners {
    fn from(owners: Owners) -> UniqueOwners {
        let mut unique = UniqueOwners::default();
        owners.0.into_iter().for_each(|owner| unique.insert(owner));
        unique
    }
}

impl UniqueOwners {
    /// Adds an entry. It replaces an entry with the same identity.
    pub fn insert(&mut self, owner: Owner) {
        if let Some(entry) = self.get_mut(&owner.identity) {
            *entry = owner;
            return;
        }
        self.entries.push(Some(owner));
        let indexed = match self.entries.len() {
            ..=SEARCHED_ENTRIES_MAX => return,
            _ if self.index.is_empty() => 0,
            length => length - 1,
        };
        for (at, entry) in self.entries.iter().enumerate().skip(indexed) {
            if let Some(owner) = entry {
                self.index.insert(owner.identity.clone(), at);
            }
        }
    }

    fn position(&self, identity: &Identity) -> Option<usize> {
        if self.entries.len() > SEARCHED_ENTRIES_MAX {
            return self.index.get(identity).copied();
        }
        self.entries.iter().position(|entry| entry.as_ref().is_some_and(|owner| owner.identity == *identity))
    }

    fn get_mut(&mut self, identity: &Identity) -> Option<&mut Owner> {
        let at = self.position(identity)?;
        self.entries.get_mut(at)?.as_mut()
    }

    pub fn take(&mut self, identity: &Identity) -> Option<Owner> {
        let at = self.position(identity)?;
        self.index.remove(identity);
        self.entries.get_mut(at)?.take()
    }

    pub fn into_owners(self) -> Owners {
        Owners(self.entries.into_iter().flatten().collect())
    }

    /// Merges `surplus` of the `oldest` entries into the entry `ancient-changes` of their version. The oldest entry of
    /// a version becomes that entry.
    fn merge_oldest(&mut self, oldest: Vec<Identity>, surplus: usize) {
        let mut merged_count = 0;
        let mut first_of: HashMap<Text, Identity> = HashMap::new();
        let mut merged_sets: HashMap<Text, Vec<FieldSet>> = HashMap::new();
        for identity in oldest {
            if merged_count == surplus {
                break;
            }
            let version = identity.api_version.clone();
            let Some(first) = first_of.get(&version) else {
                first_of.insert(version, identity);
                continue;
            };
            let ancient = Identity::new("ancient-changes", Operation::Update, &version, "");
            if self.position(&ancient).is_none()
                && let Some(owner) = self.take(first)
            {
                self.insert(Owner { identity: ancient.clone(), ..owner });
            }
            let merged = self.take(&identity);
            match (merged, self.get_mut(&ancient)) {
                (Some(merged), Some(owner)) => {
                    owner.time = merged.time;
                    merged_sets.entry(version).or_default().push(merged.set.into_set());
                }
                // as in upstream, an entry that would be merged into itself is removed
                (Some(_), None) => drop(merged_sets.remove(&version)),
                (None, _) => {}
            }
            merged_count += 1;
        }
        for (version, mut sets) in merged_sets {
            let ancient = Identity::new("ancient-changes", Operation::Update, &version, "");
            if let Some(owner) = self.get_mut(&ancient) {
                sets.push(std::mem::take(&mut owner.set).into_set());
                owner.set = FieldSet::union_of(sets).into();
            }
        }
    }
}

impl Owner {
    fn to_value(&self) -> Value {
        let mut entry = json!({
            "apiVersion": (self.version.clone()),
            "fieldsType": "FieldsV1",
            "fieldsV1": (self.set.to_value()),
            "operation": (self.identity.operation.as_str()),
        });
        if let Value::Object(map) = &mut entry {
            if !self.identity.manager.is_empty() {
                map.insert("manager", Value::from(&self.identity.manager));
            }
            if !self.identity.subresource.is_empty() {
                map.insert("subresource", Value::from(&self.identity.subresource));
            }
            if let Some(time) = self.time {
                map.insert("time", Value::from(rfc3339(time)));
            }
        }
        entry
    }
}

#[cfg(test)]
mod tests {
    use super::super::fields_v1;
    use super::*;

    #[test]
    fn oldest_updates_are_merged() {
        let mut owners = Owners::default();
        for i in 0..13 {
            let identity = Identity::new(&format!("u{i:02}"), Operation::Update, "v1", "");
            let name = format!("f{i:02}");
            let set = FieldSet::of_fields(&[&[name.as_str()]]);
            owners.0.push(Owner { identity, version: "v1".into(), time: Some(i), set: set.into() });
        }
        assert!(owners.cap(&Identity::new("nobody", Operation::Update, "v1", "")));
        assert_eq!(owners.0.len(), UPDATE_ENTRIES_MAX);
        let bucket = Identity::new("ancient-changes", Operation::Update, "v1", "");
        let bucket = owners.get(&bucket).expect("a bucket");
        assert_eq!(bucket.set.paths(), [".f00", ".f01", ".f02", ".f03"]);
        assert_eq!(bucket.time, Some(3));
    }

    #[test]
    fn lists_of_one_empty_entry_reset_managed_fields() {
        let cases = [
            (json!([{}]), true),
            (json!([{"manager": ""}]), true),
            (json!([{"manager": "m"}]), false),
            (json!([{}, {}]), false),
            (json!([]), false),
        ];
        for (list, want) in cases {
            assert_eq!(is_reset(Some(&list)), want, "{list}");
        }
    }

    /// This was quadratic: each entry was compared with all earlier ones, and paths were inserted one by one.
    #[test]
    fn many_entries_are_read_in_linear_time() {
        let entry = |manager: usize| json!({"manager": (format!("m{manager}")), "operation": "Update", "apiVersion": "v1", "fieldsType": "FieldsV1"});
        let mut owners = Owners::parse(Some(&(0..30_000).map(entry).collect()), None).unwrap();
        assert_eq!(owners.0.len(), 30_000);
        assert!(owners.cap(&Identity::new("m1", Operation::Update, "v1", "")));
        assert_eq!(owners.0.len(), UPDATE_ENTRIES_MAX);
        let fields = (0..300_000).map(|i| (format!("i:{i}").into(), Value::object()));
        let set = fields_v1::parse(&Value::Object(fields.collect())).unwrap();
        assert_eq!(set.iter().len(), 300_000);
        assert!(set.iter().is_sorted_by(|(a, _), (b, _)| a < b));
    }
}
