//! The rules of `declared.txt`: what kube-apiserver computes from the tags of its types.

use std::collections::{HashMap, HashSet};
use std::sync::LazyLock;

use machinery::field::{FieldError, FieldPath};
use machinery::types::{Container, GoBase, GoField, GoStruct, Printed, go_struct, published_json};
use machinery::{Map, Value};

use super::formats::{self, Format};

static TEXT: &str = include_str!("declared.txt");

/// The rules of a field.
#[derive(Debug, Default)]
struct Rules {
    is_required: bool,
    items_max: Option<usize>,
    formats: Vec<Format>,
    keys: Option<Format>,
    values: Vec<&'static str>,
    bytes_max: Option<usize>,
    length_max: Option<usize>,
    /// The keys of items of which no two are equal; the items themselves, if there are none.
    unique: Option<Vec<&'static str>>,
    min: Option<i64>,
    max: Option<i64>,
    is_immutable: bool,
    is_set_once: bool,
    /// Whether updates may set the field, or remove it.
    is_fixed: Fixed,
    /// Whether updates may not decrease the number.
    is_monotonic: bool,
    /// The fields of the union that the field belongs to.
    union: Option<Vec<&'static str>>,
}

/// What updates may not do with a field, or with the items of a list.
#[derive(Debug, Default)]
struct Fixed {
    no_set: bool,
    no_unset: bool,
    no_items: bool,
}

type Table = HashMap<(&'static str, &'static str), Rules>;

static RULES: LazyLock<Table> = LazyLock::new(|| parse(TEXT).unwrap_or_else(|why| panic!("{why}")));

/// The field that stands for the name of an object.
const NAME: &str = "metadata.name";

/// The rules of a table, or its first error.
fn parse(text: &'static str) -> Result<Table, String> {
    let mut all = Table::new();
    for (i, line) in text.lines().enumerate().filter(|(_, line)| !line.starts_with('#')) {
        let error = |why: &str| format!("declared.txt:{}: {why}: {line}", i + 1);
        let [structs, fields, rule] = line.splitn(3, ' ').collect::<Vec<_>>()[..] else {
            return Err(error("no struct, field and rule"));
        };
        for name in structs.split(',') {
            let of = go_struct(name).ok_or_else(|| error("unknown struct"))?;
            for field in fields.split(',') {
                if field != NAME && !of.fields.iter().any(|known| known.name == field) {
                    return Err(error("unknown field"));
                }
                add(all.entry((name, field)).or_default(), rule, fields).ok_or_else(|| error("unknown rule"))?;
            }
        }
    }
    Ok(all)
}

/// Adds a rule; nothing if it is none.
fn add(rules: &mut Rules, rule: &'static str, fields: &'static str) -> Option<()> {
    let (word, rest) = rule.split_once(' ').unwrap_or((rule, ""));
    let names = |text: &'static str| text.split(',').filter(|name| !name.is_empty()).collect();
    match (word, rest) {
        ("required", "") => rules.is_required = true,
        ("items", _) => rules.items_max = Some(rest.parse().ok()?),
        ("format", _) => rules.formats.push(formats::named(rest)?),
        ("keys", _) => rules.keys = Some(formats::named(rest)?),
        ("in", _) if !rest.is_empty() => rules.values = names(rest),
        ("bytes", _) => rules.bytes_max = Some(rest.parse().ok()?),
        ("length", _) => rules.length_max = Some(rest.parse().ok()?),
        ("unique", _) => rules.unique = Some(names(rest)),
        ("min", _) => rules.min = Some(rest.parse().ok()?),
        ("max", _) => rules.max = Some(rest.parse().ok()?),
        ("immutable", "") => rules.is_immutable = true,
        ("once", "") => rules.is_set_once = true,
        ("no-set", "") => rules.is_fixed.no_set = true,
        ("no-unset", "") => rules.is_fixed.no_unset = true,
        ("no-items", "") => rules.is_fixed.no_items = true,
        ("monotonic", "") => rules.is_monotonic = true,
        ("union", "") => rules.union = Some(names(fields)),
        _ => return None,
    }
    Some(())
}

/// The rules of a field. Those of `resource.v1beta1` are those of v1, and a few of its own.
fn rules_of(name: &'static str, field: &'static str) -> Option<&'static Rules> {
    let stable = || {
        let name = go_struct(&format!("resource.v1.{}", name.strip_prefix("resource.v1beta1.")?))?.name;
        RULES.get(&(name, field))
    };
    RULES.get(&(name, field)).or_else(stable)
}

/// The errors of an object whose Go type is `name`, and of what it changes of `old`.
pub fn errors(object: &Value, old: Option<&Value>, name: &str) -> Vec<FieldError> {
    let mut found = Found { is_update: old.is_some(), errors: vec![] };
    if let Some(of) = go_struct(name) {
        found.structure(object, old, of, &FieldPath::root());
    }
    found.errors
}

/// The errors that were found.
struct Found {
    is_update: bool,
    errors: Vec<FieldError>,
}

impl Found {
    fn structure(&mut self, value: &Value, old: Option<&Value>, of: &'static GoStruct, path: &FieldPath) {
        let union = of.fields.iter().find_map(|field| rules_of(of.name, field.name)?.union.as_ref());
        if let Some(names) = union {
            self.errors.extend(union_error(value, old, names, path));
        }
        let name = [value, old.unwrap_or(&Value::Null)].map(|object| object.str_at(&["metadata", "name"]));
        if let Some(rules) = rules_of(of.name, NAME)
            && (rules.is_required || !name[0].is_empty())
            && (old.is_none() || name[0] != name[1])
        {
            let path = path.child("metadata").child("name");
            rules.formats.iter().for_each(|format| self.errors.extend(format(name[0], &path)));
        }
        for declared in &of.fields {
            if let (Container::Embedded, GoBase::Struct(inner)) = (declared.go_type.container, declared.go_type.base) {
                if let Some(inner) = go_struct(inner) {
                    self.structure(value, old, inner, path);
                }
                continue;
            }
            let given = value.get(declared.name).filter(|value| !value.is_null());
            let before = old.and_then(|old| old.get(declared.name)).filter(|value| !value.is_null());
            if old.is_none() || given != before && !is_same(of, declared, given, before) {
                let rules = rules_of(of.name, declared.name);
                self.field(given, before, declared, rules, &path.child(declared.name));
            }
        }
    }

    /// Checks a field that is new or was changed.
    fn field(
        &mut self,
        given: Option<&Value>,
        before: Option<&Value>,
        declared: &'static GoField,
        rules: Option<&Rules>,
        path: &FieldPath,
    ) {
        let found = self.errors.len();
        if let Some(rules) = rules {
            self.short(given, before, declared, rules, path);
        }
        if self.errors.len() > found {
            return;
        }
        let nothing = Value::object();
        // the fields of a struct that is no pointer are checked even if none is given
        let is_plain_struct = matches!(declared.go_type.base, GoBase::Struct(_))
            && declared.go_type.container == Container::None
            && !is_pointer(declared);
        let given = given.or_else(|| is_plain_struct.then_some(&nothing));
        let Some(given) = given.filter(|given| is_plain_struct || is_pointer(declared) || !is_empty(given)) else {
            return;
        };
        if let Some(rules) = rules {
            scalar(given, before.filter(|_| self.is_update), rules, path, &mut self.errors);
            if let Some(keys) = &rules.unique {
                repeated(given, keys, declared, path, &mut self.errors);
            }
            let is_new = |key: &str| before.is_none_or(|before| before.get(key).is_none());
            let map = given.as_object().into_iter().flat_map(Map::iter);
            let keys = map.filter_map(|(key, _)| Some((rules.keys?, key))).filter(|(_, key)| is_new(key));
            keys.for_each(|(format, key)| self.errors.extend(format(key, path)));
        }
        self.inner(given, before, declared, rules, path);
    }

    /// Checks the structs in a field.
    fn inner(
        &mut self,
        given: &Value,
        before: Option<&Value>,
        declared: &'static GoField,
        rules: Option<&Rules>,
        path: &FieldPath,
    ) {
        let GoBase::Struct(name) = declared.go_type.base else { return };
        let Some(of) = go_struct(name) else { return };
        match (declared.go_type.container, given) {
            (Container::List, Value::Array(items)) => {
                let keys = rules.and_then(|rules| rules.unique.as_deref()).unwrap_or_default();
                for (i, item) in items.iter().enumerate() {
                    let old = before.and_then(|before| same_item(before, item, keys));
                    if old.is_none_or(|old| old != item) {
                        self.structure(item, old, of, &path.index(i));
                    }
                }
            }
            (Container::Map, Value::Object(map)) => {
                for (key, item) in Map::iter(map) {
                    let old = before.and_then(|before| before.get(key));
                    if old.is_none_or(|old| old != item) {
                        self.structure(item, old, of, &path.key(key));
                    }
                }
            }
            (Container::None, value) => self.structure(value, before, of, path),
            _ => {}
        }
    }

    /// The rules whose errors end the validation of a field.
    fn short(
        &mut self,
        given: Option<&Value>,
        before: Option<&Value>,
        declared: &GoField,
        rules: &Rules,
        path: &FieldPath,
    ) {
        let is_set = |value: Option<&Value>| value.is_some_and(|value| is_pointer(declared) || !is_empty(value));
        let (is_given, was_given) = (is_set(given), is_set(before));
        let mut fixed = |is_broken: bool, why: &str| {
            if is_broken && self.is_update {
                self.errors.push(FieldError::invalid(path, &Value::Null, why));
            }
        };
        fixed(rules.is_immutable, "field is immutable");
        fixed(rules.is_set_once && is_given && was_given, "field cannot be modified once set");
        fixed(rules.is_fixed.no_set && is_given && !was_given, "field cannot be set once created");
        fixed(rules.is_fixed.no_unset && was_given && !is_given, "field cannot be cleared once set");
        let is_zero = |value: &Value| is_empty(value) || *value == Value::Int(0);
        if rules.is_required && given.is_none_or(|given| !is_pointer(declared) && is_zero(given)) {
            self.errors.push(FieldError::required(path, ""));
        }
        let count = given.and_then(Value::as_array).map_or(0, <[Value]>::len);
        if let Some(most) = rules.items_max.filter(|most| count > *most) {
            self.errors.push(FieldError::too_many(path, count, most));
        }
        if rules.is_fixed.no_items && self.is_update {
            self.fixed_items([given, before], rules.unique.as_deref().unwrap_or_default(), path);
        }
    }

    /// Items of a list that updates may neither add nor remove: first those that are given, then those before.
    fn fixed_items(&mut self, lists: [Option<&Value>; 2], keys: &[&str], path: &FieldPath) {
        let nothing = Value::Array(vec![]);
        let [given, before] = lists.map(|list| list.unwrap_or(&nothing));
        for (i, item) in given.as_array().unwrap_or_default().iter().enumerate() {
            if same_item(before, item, keys).is_none() {
                self.errors.push(FieldError::forbidden(&path.index(i), "item may not be added"));
            }
        }
        for item in before.as_array().unwrap_or_default() {
            if same_item(given, item, keys).is_none() {
                self.errors.push(FieldError::forbidden(path, "item may not be removed"));
            }
        }
    }
}

/// Whether a value has only empty lists and maps that another one has not.
fn is_same(of: &GoStruct, declared: &GoField, given: Option<&Value>, before: Option<&Value>) -> bool {
    let field = schema::shape::named(of.name).fields.iter().find(|field| field.name == declared.name);
    field.is_some_and(|field| schema::shape::same(given, before, field))
}

/// The item of a list with the same keys.
fn same_item<'a>(list: &'a Value, item: &Value, keys: &[&str]) -> Option<&'a Value> {
    let same = |other: &&Value| !keys.is_empty() && keys.iter().all(|key| other.get(key) == item.get(key));
    list.as_array().unwrap_or_default().iter().find(same)
}

fn is_pointer(declared: &GoField) -> bool {
    matches!(declared.printed, Printed::Set | Printed::SetOrNull)
}

fn scalar(given: &Value, before: Option<&Value>, rules: &Rules, path: &FieldPath, errors: &mut Vec<FieldError>) {
    if let Some(number) = given.as_int() {
        for (bound, is_met, word) in [
            (rules.min, number >= rules.min.unwrap_or(number), "greater"),
            (rules.max, number <= rules.max.unwrap_or(number), "less"),
        ] {
            if let Some(bound) = bound.filter(|_| !is_met) {
                errors.push(FieldError::invalid(path, given, format!("must be {word} than or equal to {bound}")));
            }
        }
        let least = before.and_then(Value::as_int).filter(|before| rules.is_monotonic && number < *before);
        if let Some(least) = least {
            errors.push(FieldError::invalid(path, given, format!("may not be decreased from {least}")));
        }
    }
    let Some(text) = given.as_str() else { return };
    rules.formats.iter().for_each(|format| errors.extend(format(text, path)));
    if let Some(most) = rules.length_max.filter(|most| text.chars().count() > *most) {
        let mut error = FieldError::too_long(path, most);
        error.detail = format!("may not be more than {most} characters");
        errors.push(error);
    }
    if let Some(most) = rules.bytes_max.filter(|most| text.len() > *most) {
        errors.push(FieldError::too_long(path, most));
    }
    if !rules.values.is_empty() && !rules.values.contains(&text) {
        errors.push(FieldError::not_supported(path, given, &rules.values));
    }
}

fn is_empty(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::String(text) => text.is_empty(),
        Value::Array(items) => items.is_empty(),
        Value::Object(map) => map.is_empty(),
        _ => false,
    }
}

/// The items of a list that are there already, or have keys that are.
fn repeated(list: &Value, keys: &[&str], declared: &GoField, path: &FieldPath, errors: &mut Vec<FieldError>) {
    let mut seen = HashSet::new();
    for (i, item) in list.as_array().unwrap_or_default().iter().enumerate() {
        let key = match keys {
            [] => item.to_json(),
            keys => {
                keys.iter().map(|key| item.get(key).unwrap_or(&Value::Null).to_json()).collect::<Vec<_>>().join(",")
            }
        };
        if !seen.insert(key) {
            let error = FieldError::duplicate(&path.index(i), item);
            errors.push(match declared.go_type.base {
                GoBase::Struct(name) => FieldError { value: published_json(item, name), ..error },
                _ => error,
            });
        }
    }
}

fn union_error(value: &Value, old: Option<&Value>, names: &[&str], path: &FieldPath) -> Option<FieldError> {
    let is_set = |field: &Value| !field.is_null() && field.as_array().is_none_or(|items| !items.is_empty());
    let set = |object: &Value| -> Vec<bool> { names.iter().map(|name| object.get(name).is_some_and(is_set)).collect() };
    let given = set(value);
    if old.is_some_and(|old| set(old) == given) {
        return None;
    }
    let quoted = names.iter().map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", ");
    let found: Vec<&str> = names.iter().zip(&given).filter_map(|(name, is_set)| is_set.then_some(*name)).collect();
    match found[..] {
        [] => Some(FieldError::invalid(path, &Value::from(""), format!("must specify one of: {quoted}"))),
        [_] => None,
        _ => {
            let shown = Value::from(format!("{{{}}}", found.join(", ")));
            Some(FieldError::invalid(path, &shown, format!("must specify exactly one of: {quoted}")))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use machinery::json;

    #[test]
    fn every_line_has_a_meaning() {
        assert_eq!(parse(TEXT).err(), None);
        for (line, want) in [
            ("resource.v1.Zog name required", "unknown struct"),
            ("resource.v1.Device,resource.v1.Zog name required", "unknown struct"),
            ("resource.v1.Device zog required", "unknown field"),
            ("resource.v1.Device name", "no struct, field and rule"),
            ("resource.v1.Device name requird", "unknown rule"),
            ("resource.v1.Device name required here", "unknown rule"),
            ("resource.v1.Device name format zog", "unknown rule"),
            ("resource.v1.Device name keys zog", "unknown rule"),
            ("resource.v1.Device name in", "unknown rule"),
            ("resource.v1.Device consumesCounters items few", "unknown rule"),
        ] {
            let text: &'static str = format!("# a comment\n{line}").leak();
            assert_eq!(parse(text).err(), Some(format!("declared.txt:2: {want}: {line}")));
        }
    }

    #[test]
    fn errors_of_new_and_changed_fields() {
        let of = |request: Value| json!({"spec": {"devices": {"requests": [request]}}});
        let sub = |name: &str, class: &str| json!({"name": (name), "deviceClassName": (class)});
        let two = of(json!({"name": "a", "firstAvailable": [(sub("b", "c")), (sub("b", "C"))]}));
        let texts = |new: &Value, old: Option<&Value>| -> Vec<String> {
            errors(new, old, "resource.v1.ResourceClaim").iter().map(ToString::to_string).collect()
        };
        let found = texts(&two, None);
        assert!(found[0].starts_with("spec.devices.requests[0].firstAvailable[1]: Duplicate value: {\"name\":\"b\""));
        assert!(
            found[1].starts_with("spec.devices.requests[0].firstAvailable[1].deviceClassName: Invalid value: \"C\"")
        );
        assert_eq!(found.len(), 2);
        assert_eq!(texts(&two, Some(&two)), [""; 0]);
        let changed = of(json!({"name": ""}));
        assert_eq!(texts(&changed, Some(&two)), ["spec: Invalid value: null: field is immutable"]);
    }

    #[test]
    fn one_member_of_a_union_is_set() {
        let slice = |attribute: Value| json!({"spec": {"devices": [{"attributes": {"a": (attribute)}}]}});
        let texts = |attribute: Value| -> Vec<String> {
            let found = errors(&slice(attribute), None, "resource.v1.ResourceSlice");
            found.iter().map(ToString::to_string).collect()
        };
        assert_eq!(texts(json!({"int": 1})), [""; 0]);
        let head = "spec.devices[0].attributes[a]: Invalid value: ";
        assert!(texts(json!({}))[0].starts_with(&format!("{head}\"\": must specify one of: `int`, `bool`")));
        let both = texts(json!({"int": 1, "bool": true}));
        assert!(both[0].starts_with(&format!("{head}\"{{int, bool}}\": must specify exactly one of: `int`")));
    }
}
