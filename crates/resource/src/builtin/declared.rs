//! The rules of `declared.txt`: what kube-apiserver computes from the tags of its types.

use std::collections::{HashMap, HashSet};
use std::sync::LazyLock;

use machinery::field::{FieldError, FieldPath};
use machinery::types::{Container, GoBase, GoField, GoStruct, go_struct, published_json};
use machinery::{Map, Value, names};

static TEXT: &str = include_str!("declared.txt");

/// The rules of a field.
#[derive(Debug, Default)]
struct Rules {
    is_required: bool,
    items_max: Option<usize>,
    format: Option<Format>,
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
    /// The fields of the union that the field belongs to.
    union: Option<Vec<&'static str>>,
}

/// The errors of a text that does not have a format.
type Format = fn(&str, &FieldPath) -> Vec<FieldError>;

static RULES: LazyLock<HashMap<(&str, &str), Rules>> = LazyLock::new(|| {
    let mut all: HashMap<(&'static str, &'static str), Rules> = HashMap::new();
    for line in TEXT.lines().filter(|line| !line.starts_with('#')) {
        let [structs, fields, rule] = line.splitn(3, ' ').collect::<Vec<_>>()[..] else { continue };
        for (name, field) in structs.split(',').flat_map(|name| fields.split(',').map(move |field| (name, field))) {
            add(all.entry((name, field)).or_default(), rule, fields);
        }
    }
    all
});

fn add(rules: &mut Rules, rule: &'static str, fields: &'static str) {
    let (word, rest) = rule.split_once(' ').unwrap_or((rule, ""));
    let names = |text: &'static str| text.split(',').filter(|name| !name.is_empty()).collect();
    match word {
        "required" => rules.is_required = true,
        "items" => rules.items_max = rest.parse().ok(),
        "format" => rules.format = format(rest),
        "keys" => rules.keys = format(rest),
        "in" => rules.values = names(rest),
        "bytes" => rules.bytes_max = rest.parse().ok(),
        "length" => rules.length_max = rest.parse().ok(),
        "unique" => rules.unique = Some(names(rest)),
        "min" => rules.min = rest.parse().ok(),
        "max" => rules.max = rest.parse().ok(),
        "immutable" => rules.is_immutable = true,
        "once" => rules.is_set_once = true,
        "union" => rules.union = Some(names(fields)),
        _ => {}
    }
}

/// The errors of an object whose Go type is `name`, and of what it changes of `old`.
pub fn errors(object: &Value, old: Option<&Value>, name: &str) -> Vec<FieldError> {
    let mut errors = vec![];
    if let Some(of) = go_struct(name) {
        structure(object, old, of, &FieldPath::root(), &mut errors);
    }
    errors
}

fn structure(
    value: &Value,
    old: Option<&Value>,
    of: &'static GoStruct,
    path: &FieldPath,
    errors: &mut Vec<FieldError>,
) {
    let union = of.fields.iter().find_map(|field| RULES.get(&(of.name, field.name))?.union.as_ref());
    if let Some(names) = union {
        errors.extend(union_error(value, old, names, path));
    }
    let name = [value, old.unwrap_or(&Value::Null)].map(|object| object.str_at(&["metadata", "name"]));
    if let Some(format) = RULES.get(&(of.name, "metadata.name")).and_then(|rules| rules.format)
        && !name[0].is_empty()
        && (old.is_none() || name[0] != name[1])
    {
        errors.extend(format(name[0], &path.child("metadata").child("name")));
    }
    for declared in &of.fields {
        if let (Container::Embedded, GoBase::Struct(inner)) = (declared.go_type.container, declared.go_type.base) {
            if let Some(inner) = go_struct(inner) {
                structure(value, old, inner, path, errors);
            }
            continue;
        }
        let given = value.get(declared.name).filter(|value| !value.is_null());
        let before = old.and_then(|old| old.get(declared.name)).filter(|value| !value.is_null());
        if old.is_none() || given != before {
            let rules = RULES.get(&(of.name, declared.name));
            field(given, before, old.is_some(), declared, rules, &path.child(declared.name), errors);
        }
    }
}

/// Checks a field that is new or was changed.
fn field(
    given: Option<&Value>,
    before: Option<&Value>,
    is_update: bool,
    declared: &'static GoField,
    rules: Option<&Rules>,
    path: &FieldPath,
    errors: &mut Vec<FieldError>,
) {
    let found = errors.len();
    if let Some(rules) = rules {
        short(given, before, is_update, rules, path, errors);
    }
    let Some(given) = given.filter(|given| errors.len() == found && !is_empty(given)) else { return };
    if let Some(rules) = rules {
        scalar(given, rules, path, errors);
        if let Some(keys) = &rules.unique {
            repeated(given, keys, declared, path, errors);
        }
        let is_new = |key: &str| before.is_none_or(|before| before.get(key).is_none());
        let map = given.as_object().into_iter().flat_map(Map::iter);
        let keys = map.filter_map(|(key, _)| Some((rules.keys?, key))).filter(|(_, key)| is_new(key));
        keys.for_each(|(format, key)| errors.extend(format(key, path)));
    }
    let GoBase::Struct(name) = declared.go_type.base else { return };
    let Some(of) = go_struct(name) else { return };
    match (declared.go_type.container, given) {
        (Container::List, Value::Array(items)) => {
            let keys = rules.and_then(|rules| rules.unique.as_ref());
            let old = before.and_then(Value::as_array).unwrap_or_default();
            for (i, item) in items.iter().enumerate() {
                let same = |old: &&Value| keys.is_some_and(|keys| keys.iter().all(|key| old.get(key) == item.get(key)));
                let old = old.iter().find(same);
                if old.is_none_or(|old| old != item) {
                    structure(item, old, of, &path.index(i), errors);
                }
            }
        }
        (Container::Map, Value::Object(map)) => {
            for (key, item) in Map::iter(map) {
                let old = before.and_then(|before| before.get(key));
                if old.is_none_or(|old| old != item) {
                    structure(item, old, of, &path.key(key), errors);
                }
            }
        }
        (Container::None, value) => structure(value, before, of, path, errors),
        _ => {}
    }
}

/// The rules whose errors end the validation of a field.
fn short(
    given: Option<&Value>,
    before: Option<&Value>,
    is_update: bool,
    rules: &Rules,
    path: &FieldPath,
    errors: &mut Vec<FieldError>,
) {
    if rules.is_immutable && is_update {
        errors.push(FieldError::invalid(path, &Value::Null, "field is immutable"));
    }
    if rules.is_set_once && is_update && given.is_some() && before.is_some() {
        errors.push(FieldError::invalid(path, &Value::Null, "field cannot be modified once set"));
    }
    if rules.is_required && given.is_none_or(is_empty) {
        errors.push(FieldError::required(path, ""));
    }
    let count = given.and_then(Value::as_array).map_or(0, <[Value]>::len);
    if let Some(most) = rules.items_max.filter(|most| count > *most) {
        errors.push(FieldError::too_many(path, count, most));
    }
}

fn scalar(given: &Value, rules: &Rules, path: &FieldPath, errors: &mut Vec<FieldError>) {
    if let Some(number) = given.as_int() {
        for (bound, is_met, word) in [
            (rules.min, number >= rules.min.unwrap_or(number), "greater"),
            (rules.max, number <= rules.max.unwrap_or(number), "less"),
        ] {
            if let Some(bound) = bound.filter(|_| !is_met) {
                errors.push(FieldError::invalid(path, given, format!("must be {word} than or equal to {bound}")));
            }
        }
    }
    let Some(text) = given.as_str() else { return };
    if let Some(format) = rules.format {
        errors.extend(format(text, path));
    }
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
    let set = |object: &Value| -> Vec<bool> {
        names.iter().map(|name| object.get(name).is_some_and(|field| !field.is_null())).collect()
    };
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

fn format(name: &str) -> Option<Format> {
    Some(match name {
        "short-name" => |text, path| invalid(text, path, in_bytes(names::dns1123_label(text))),
        "long-name" => |text, path| invalid(text, path, in_bytes(names::dns1123_subdomain(text))),
        "long-name-caseless" => |text, path| invalid(text, path, caseless(text)),
        "label-key" => |text, path| invalid(text, path, names::qualified_name(text)),
        "uuid" => |text, path| {
            let why = "must be a lowercase UUID in 8-4-4-4-12 format";
            if super::devices::is_uuid(text) { vec![] } else { invalid(text, path, vec![why.to_owned()]) }
        },
        "pool-name" => pool_name,
        "extended-resource-name" => |text, path| invalid(text, path, extended_resource_name(text)),
        "fully-qualified-name" => fully_qualified_name,
        _ => return None,
    })
}

fn invalid(text: &str, path: &FieldPath, problems: Vec<String>) -> Vec<FieldError> {
    problems.into_iter().map(|why| FieldError::invalid(path, &Value::from(text), why)).collect()
}

/// Formats count bytes where the rules that are written by hand say characters.
fn in_bytes(problems: Vec<String>) -> Vec<String> {
    problems
        .into_iter()
        .map(|why| {
            why.replace(" characters", " bytes").replacen(
                "lower case alphanumeric bytes",
                "lower case alphanumeric characters",
                1,
            )
        })
        .collect()
}

/// The problems of a subdomain whose letters may be of either case.
pub fn caseless(text: &str) -> Vec<String> {
    const CASELESS: &str = "an RFC 1123 subdomain must consist of alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character (e.g. 'Example.com', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')";
    let shown = |why: String| {
        let is_long = why.starts_with("must be no more");
        if is_long { "must be no more than 253 bytes".to_owned() } else { CASELESS.to_owned() }
    };
    names::dns1123_subdomain(&text.to_ascii_lowercase()).into_iter().map(shown).collect()
}

fn pool_name(text: &str, path: &FieldPath) -> Vec<FieldError> {
    const BYTES_MAX: usize = 253;
    let mut errors = vec![];
    if text.len() > BYTES_MAX {
        errors.push(FieldError::too_long(path, BYTES_MAX));
    }
    for (i, part) in text.split('/').enumerate() {
        let prefixed = |why: String| format!("segment {i}: {why}");
        if part.is_empty() {
            errors.extend(invalid(text, path, vec![prefixed("must not be empty".to_owned())]));
        } else {
            let problems = in_bytes(names::dns1123_subdomain(part));
            errors.extend(invalid(part, path, problems.into_iter().map(prefixed).collect()));
        }
    }
    errors
}

fn extended_resource_name(text: &str) -> Vec<String> {
    const OWN: &str = "kubernetes.io/";
    const REQUESTS: &str = "requests.";
    let mut problems = vec![];
    if !text.contains('/') {
        problems.push("a name must be a domain-prefixed path, such as 'example.com/my-prop'".to_owned());
    } else if text.contains(OWN) {
        problems.push(format!("must not have {OWN:?} domain"));
    }
    if text.starts_with(REQUESTS) {
        problems.push(format!("must not have {REQUESTS:?} prefix"));
    }
    // a quota names it with this prefix
    problems.extend(
        names::qualified_name(&format!("{REQUESTS}{text}"))
            .into_iter()
            .map(|why| why.replace("253 characters", "253 bytes")),
    );
    problems
}

fn fully_qualified_name(text: &str, path: &FieldPath) -> Vec<FieldError> {
    const DOMAIN_BYTES_MAX: usize = 63;
    let mut errors = vec![];
    let missing = |why: &str| invalid("", path, vec![why.to_owned()]);
    match text.split('/').collect::<Vec<_>>()[..] {
        [own] => super::devices::identifier(own, path, &mut errors),
        [domain, own] => {
            if domain.is_empty() {
                errors.extend(missing("prefix must not be empty"));
            } else {
                if domain.len() > DOMAIN_BYTES_MAX {
                    errors.push(FieldError::too_long(path, DOMAIN_BYTES_MAX));
                }
                let problems = in_bytes(names::dns1123_subdomain(domain)).into_iter();
                errors.extend(invalid(domain, path, problems.map(|why| format!("prefix: {why}")).collect()));
            }
            match own {
                "" => errors.extend(missing("name must not be empty")),
                _ => super::devices::identifier(own, path, &mut errors),
            }
        }
        // upstream accepts more parts
        _ => {}
    }
    if !text.contains('/') {
        let why = "a fully qualified name must be a domain and a name separated by a slash";
        errors.extend(invalid(text, path, vec![why.to_owned()]));
    }
    errors
}

#[cfg(test)]
mod tests {
    use super::*;
    use machinery::json;

    #[test]
    fn every_line_names_a_field_and_a_rule() {
        for line in TEXT.lines().filter(|line| !line.starts_with('#')) {
            let parts: Vec<&str> = line.splitn(3, ' ').collect();
            for name in parts[0].split(',') {
                let of = go_struct(name).unwrap_or_else(|| panic!("{line}"));
                let is_known = |field: &str| of.fields.iter().any(|known| known.name == field);
                assert!(parts[1] == "metadata.name" || parts[1].split(',').all(is_known), "{line}");
            }
            let mut rules = Rules::default();
            add(&mut rules, Box::leak(parts[2].to_owned().into_boxed_str()), "a");
            assert_ne!(format!("{rules:?}"), format!("{:?}", Rules::default()), "{line}");
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
