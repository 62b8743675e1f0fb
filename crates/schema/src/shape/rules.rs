//! Defaults and simple rules of Go types, which are data: `rules.txt`.

use std::collections::HashMap;
use std::sync::{LazyLock, OnceLock};

use machinery::field::{FieldError, FieldPath};
use machinery::types::{Container, GoBase};
use machinery::{Map, Value};

use super::{Field, Print, Shape, Struct};

static TEXT: &str = include_str!("rules.txt");

/// A requirement of a field.
#[derive(Clone, Debug, Default)]
pub struct Rules {
    /// The value of a field that is not set.
    pub default: Option<Value>,
    /// The detail of the error if the field is empty.
    pub required: Option<&'static str>,
    /// The supported values; any if there are none.
    pub values: Vec<&'static str>,
    pub range: Option<NumberRange>,
    /// Named checks, and which values they are made of.
    pub checks: Vec<(&'static str, Checked)>,
    /// The union that the field belongs to, and its place in it.
    pub union: Option<(&'static Union, usize)>,
    /// What the error of a union calls the field, if that is another name; empty if the field may stand beside others.
    pub beside: Option<&'static str>,
    /// Whether updates may not change the field.
    pub is_immutable: bool,
    /// Whether the error of such an update shows null instead of the value.
    pub is_unshown: bool,
    /// Whether updates do not check the value.
    pub is_checked_once: bool,
    /// Whether the rules of what is below the field do not hold.
    pub is_unchecked: bool,
    /// The feature gate without which the field is dropped; empty if it is always dropped.
    pub gate: Option<&'static str>,
}

/// The numbers that a field may have.
#[derive(Clone, Debug)]
pub struct NumberRange {
    pub min: i64,
    pub max: i64,
    /// The detail of the error of other numbers.
    pub detail: String,
}

/// The values that a check is made of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Checked {
    /// Those that are not empty.
    NonEmpty,
    /// Those that are given, if they are empty as well.
    Given,
    /// All; null if the field is absent.
    All,
}

/// A struct of which one field is to be set.
#[derive(Debug)]
pub struct Union {
    /// The kind of the fields, as errors name it.
    pub what: &'static str,
    pub names: Vec<&'static str>,
}

/// A check of a value, which is null if it is absent.
pub type Check = fn(&Value, &FieldPath, &mut Vec<FieldError>);

/// The rules of a struct, which are parsed at their first use.
#[derive(Default)]
struct StructRules {
    /// Lines of the table with their numbers.
    lines: Vec<(usize, &'static str)>,
    parsed: OnceLock<Vec<(&'static str, Rules)>>,
}

/// The rules of a field, if it has any.
///
/// # Panics
///
/// The table has an error; a test parses all of it.
pub(super) fn of_field(go_struct: &'static str, field: &'static str) -> Option<&'static Rules> {
    static STRUCTS: LazyLock<HashMap<&'static str, StructRules>> = LazyLock::new(|| index(TEXT));
    let rules = STRUCTS.get(go_struct)?;
    let parsed = rules.parsed.get_or_init(|| parse(go_struct, &rules.lines).unwrap_or_else(|why| panic!("{why}")));
    parsed.iter().find(|(name, _)| *name == field).map(|(_, rules)| rules)
}

/// The names of all checks that the table makes.
pub fn check_names() -> impl Iterator<Item = &'static str> {
    let lines = TEXT.lines().filter_map(|line| line.split_once(" check"));
    lines.filter_map(|(_, rest)| rest.split_once(' ').map(|(_, name)| name))
}

/// The lines of a table by their structs.
fn index(text: &'static str) -> HashMap<&'static str, StructRules> {
    let mut all: HashMap<&'static str, StructRules> = HashMap::new();
    for (i, line) in text.lines().enumerate().filter(|(_, line)| !line.starts_with('#')) {
        let go_struct = line.split(' ').next().unwrap_or_default();
        all.entry(go_struct).or_default().lines.push((i + 1, line));
    }
    all
}

/// The rules of a struct, or the first error of its lines.
fn parse(go_struct: &str, lines: &[(usize, &'static str)]) -> Result<Vec<(&'static str, Rules)>, String> {
    let mut all: Vec<(&'static str, Rules)> = vec![];
    let known = field_names(go_struct);
    for (number, line) in lines {
        let error = |why: &str| format!("rules.txt:{number}: {why}: {line}");
        let [_, fields, rule] = line.splitn(3, ' ').collect::<Vec<_>>()[..] else {
            return Err(error("no struct, field and rule"));
        };
        let known = known.as_ref().ok_or_else(|| error("unknown struct"))?;
        let names: Vec<&'static str> = fields.split(',').collect();
        let union: Option<&'static Union> =
            rule.strip_prefix("union ").map(|what| &*Box::leak(Box::new(Union { what, names: names.clone() })));
        for (i, field) in names.into_iter().enumerate() {
            if !known.contains(&field) {
                return Err(error("unknown field"));
            }
            let at = all.iter().position(|(name, _)| *name == field).unwrap_or_else(|| {
                all.push((field, Rules::default()));
                all.len() - 1
            });
            let Some((_, rules)) = all.get_mut(at) else { continue };
            match union {
                Some(union) => rules.union = Some((union, i)),
                None => add(rules, rule).map_err(|why| error(&why))?,
            }
        }
    }
    all.shrink_to_fit();
    Ok(all)
}

/// The fields of a struct, with those of structs that it embeds.
fn field_names(go_struct: &str) -> Option<Vec<&'static str>> {
    let mut names = vec![];
    for field in &machinery::types::go_struct(go_struct)?.fields {
        match (field.go_type.container, field.go_type.base) {
            (Container::Embedded, GoBase::Struct(inner)) => names.extend(field_names(inner)?),
            _ => names.push(field.name),
        }
    }
    Some(names)
}

fn add(rules: &mut Rules, rule: &'static str) -> Result<(), String> {
    let (word, rest) = rule.split_once(' ').unwrap_or((rule, ""));
    let numbers = || rest.split(' ').map(|text| text.parse::<i64>().map_err(|_| "no number".to_owned()));
    let numbers = || numbers().collect::<Result<Vec<_>, _>>();
    let checked = |checked| if rest.is_empty() { Err("no check".to_owned()) } else { Ok((rest, checked)) };
    match (word, rest) {
        ("=", _) => rules.default = Some(machinery::value::decode(rest.as_bytes()).map_err(|_| "no JSON")?),
        ("required", _) => rules.required = Some(rest),
        ("in", _) if !rest.is_empty() => rules.values = rest.split(',').collect(),
        ("min", _) => {
            let [min] = numbers()?[..] else { return Err("not one number".to_owned()) };
            let detail = format!("must be greater than or equal to {min}");
            rules.range = Some(NumberRange { min, max: i64::MAX, detail });
        }
        ("positive", "") => {
            rules.range = Some(NumberRange { min: 1, max: i64::MAX, detail: "must be greater than zero".to_owned() });
        }
        ("range", _) => {
            let [min, max] = numbers()?[..] else { return Err("not two numbers".to_owned()) };
            let detail = format!("must be between {min} and {max}, inclusive");
            rules.range = Some(NumberRange { min, max, detail });
        }
        ("check", _) => rules.checks.push(checked(Checked::NonEmpty)?),
        ("check?", _) => rules.checks.push(checked(Checked::Given)?),
        ("check!", _) => rules.checks.push(checked(Checked::All)?),
        ("beside", _) => rules.beside = Some(rest),
        ("immutable", "" | "unshown") => (rules.is_immutable, rules.is_unshown) = (true, rest == "unshown"),
        ("once", "") => rules.is_checked_once = true,
        ("unchecked", "") => rules.is_unchecked = true,
        ("gated", _) => rules.gate = Some(rest),
        _ => return Err("unknown rule".to_owned()),
    }
    Ok(())
}

/// Drops the fields of features whose gates are not on, unless the old object has them.
pub fn drop_gated(value: &mut Value, old: Option<&Value>, shape: &'static Struct, is_on: &dyn Fn(&str) -> bool) {
    let Some(object) = value.as_object_mut() else { return };
    for field in shape.fields {
        let old = old.and_then(|old| old.get(field.name)).filter(|value| !value.is_null());
        let gate = field.rules.and_then(|rules| rules.gate);
        if gate.is_some_and(|gate| !is_on(gate)) && old.is_none() {
            match field.print {
                // shown as null
                Print::OrNull if object.get(field.name).is_some() => drop(object.insert(field.name, Value::Null)),
                _ => drop(object.remove(field.name)),
            }
        }
        match (&field.shape, object.get_mut(field.name)) {
            (Shape::Struct(inner), Some(value)) => drop_gated(value, old, inner, is_on),
            (Shape::List(_, Shape::Struct(inner)), Some(Value::Array(items))) => {
                let before = |i: usize| old.and_then(Value::as_array).and_then(|old| old.get(i));
                items.iter_mut().enumerate().for_each(|(i, item)| drop_gated(item, before(i), inner, is_on));
            }
            _ => {}
        }
    }
}

/// Sets the defaults of fields that are not set, except those of features whose gates are not on.
pub fn set_defaults(value: &mut Value, shape: &'static Struct, is_on: &dyn Fn(&str) -> bool) {
    let Some(object) = value.as_object_mut() else { return };
    for field in shape.fields {
        let is_gated = field.rules.and_then(|rules| rules.gate).is_some_and(|gate| !is_on(gate));
        let default = field.rules.filter(|_| !is_gated).and_then(|rules| rules.default.as_ref());
        if let Some(default) = default
            && is_unset(object.get(field.name), field)
        {
            object.insert(field.name, default.clone());
        }
        if let Some(inner) = object.get_mut(field.name) {
            visit_mut(inner, &field.shape, is_on);
        }
    }
}

fn visit_mut(value: &mut Value, shape: &'static Shape, is_on: &dyn Fn(&str) -> bool) {
    match (shape, value) {
        (Shape::Struct(inner), value) => set_defaults(value, inner, is_on),
        (Shape::List(_, item), Value::Array(items)) => items.iter_mut().for_each(|value| visit_mut(value, item, is_on)),
        (Shape::Map(_, item), Value::Object(map)) => {
            map.iter_mut().for_each(|(_, value)| visit_mut(value, item, is_on));
        }
        _ => {}
    }
}

fn is_pointer(field: &Field) -> bool {
    matches!(field.print, Print::Given | Print::OrNull)
}

/// A pointer is not set if it is absent; other fields if they are empty.
fn is_unset(value: Option<&Value>, field: &Field) -> bool {
    match value {
        None | Some(Value::Null) => true,
        Some(Value::String(text)) => !is_pointer(field) && text.is_empty(),
        Some(Value::Int(0)) => !is_pointer(field),
        Some(Value::Array(items)) => items.is_empty(),
        Some(_) => false,
    }
}

/// Finds the errors of fields whose rules an object violates.
pub struct RuleErrors<'a> {
    /// Whether the object replaces another one.
    pub is_update: bool,
    /// Whether to check the status, and not the rest.
    pub of_status: bool,
    /// The checks by name.
    pub checks: fn(&str) -> Check,
    pub errors: &'a mut Vec<FieldError>,
}

impl RuleErrors<'_> {
    /// Checks an object, and what it changes of `old`.
    pub fn of(&mut self, value: &Value, old: Option<&Value>, shape: &'static Struct, parent: &FieldPath) {
        let Some(object) = value.as_object() else { return };
        // the status has an endpoint of its own
        let (is_root, of_status) = (parent.as_str().is_empty(), self.of_status);
        for field in shape.fields.iter().filter(|field| !is_root || (field.name == "status") == of_status) {
            let (value, path) = (object.get(field.name).filter(|value| !value.is_null()), parent.child(field.name));
            let old = old.and_then(|old| old.get(field.name)).filter(|value| !value.is_null());
            if let Some(rules) = field.rules {
                let union = rules.union.map(|(union, _)| union);
                let union = union.filter(|union| rules.beside != Some("") && is_superfluous(object, field.name, union));
                if let Some(union) = union {
                    let why = format!("may not specify more than 1 {} type", union.what);
                    let shown = rules.beside.map_or_else(|| path.clone(), |name| parent.child(name));
                    self.errors.push(FieldError::forbidden(&shown, why));
                    continue;
                }
                if !self.is_update || !rules.is_checked_once {
                    self.field(value, rules, field, &path);
                }
                if self.is_update && rules.is_immutable && !super::same(value, old, field) {
                    self.immutable(value, rules, field, &path);
                }
            }
            let is_skipped = |rules: &Rules| rules.is_unchecked || self.is_update && rules.is_checked_once;
            let is_checked = !field.rules.is_some_and(is_skipped);
            if let Some(inner) = value.filter(|_| is_checked) {
                self.visit(inner, old, &field.shape, &path);
            }
        }
        if !is_root {
            self.empty_union(object, shape, parent);
        }
    }

    /// The error of the change of an immutable field.
    fn immutable(&mut self, value: Option<&Value>, rules: &Rules, field: &Field, path: &FieldPath) {
        let is_text = matches!(field.shape, Shape::Text(_)) && !is_pointer(field);
        let shown = match value {
            _ if rules.is_unshown => Value::Null,
            Some(value) => value.clone(),
            None if is_text => Value::from(""),
            None => Value::Null,
        };
        let mut error = FieldError::invalid(path, &shown, "field is immutable");
        if let (Shape::Struct(inner), Value::Object(_)) = (&field.shape, &shown)
            && inner.name.ends_with("LabelSelector")
        {
            error.value = machinery::types::published_json(&shown, "meta.v1.LabelSelector");
        }
        self.errors.push(error);
    }

    /// The error of a union of which no field is set.
    fn empty_union(&mut self, object: &Map, shape: &'static Struct, path: &FieldPath) {
        let union = shape.fields.iter().find_map(|field| field.rules?.union).map(|(union, _)| union);
        if let Some(union) = union.filter(|union| !union.names.iter().any(|name| is_set(object, name))) {
            self.errors.push(FieldError::required(path, format!("must specify a {} type", union.what)));
        }
    }

    fn visit(&mut self, value: &Value, old: Option<&Value>, shape: &'static Shape, path: &FieldPath) {
        match (shape, value) {
            (Shape::Struct(inner), value) => self.of(value, old, inner, path),
            (Shape::List(_, item), Value::Array(items)) => {
                items.iter().enumerate().for_each(|(i, value)| self.visit(value, None, item, &path.index(i)));
            }
            (Shape::Map(_, item), Value::Object(map)) => {
                Map::iter(map).for_each(|(key, value)| self.visit(value, None, item, &path.key(key)));
            }
            _ => {}
        }
    }

    fn field(&mut self, value: Option<&Value>, rules: &Rules, field: &Field, path: &FieldPath) {
        let is_empty = match value {
            None => true,
            Some(Value::String(text)) => text.is_empty(),
            Some(Value::Int(0)) => !is_pointer(field),
            Some(Value::Array(items)) => items.is_empty(),
            Some(Value::Object(map)) => map.is_empty(),
            Some(_) => false,
        };
        let is_missing = is_empty && rules.required.is_some();
        if let Some(detail) = rules.required.filter(|_| is_missing) {
            self.errors.push(FieldError::required(path, detail));
        }
        let number = value.and_then(Value::as_int).or((field.print == Print::Always).then_some(0));
        if let (Some(range), Some(number), false) = (&rules.range, number, is_missing)
            && !(range.min..=range.max).contains(&number)
        {
            self.errors.push(FieldError::invalid(path, &Value::Int(number), &range.detail));
        }
        if let Some(text) = value.and_then(Value::as_str)
            && !rules.values.is_empty()
            && !rules.values.contains(&text)
            && !(text.is_empty() && (rules.required.is_some() || field.print == Print::NonEmpty))
        {
            let mut error = FieldError::not_supported(path, &Value::from(text), &rules.values);
            if matches!(field.shape, Shape::Text(name) if name != "string") {
                // Go prints values of its own string types as JSON
                error.value = machinery::types::internal_json(&Value::from(text), "string", false);
            }
            self.errors.push(error);
        }
        for (name, checked) in &rules.checks {
            let is_checked = match checked {
                Checked::NonEmpty => !is_empty,
                Checked::Given => value.is_some(),
                Checked::All => true,
            };
            if is_checked {
                (self.checks)(name)(value.unwrap_or(&Value::Null), path, self.errors);
            }
        }
    }
}

fn is_set(object: &Map, name: &str) -> bool {
    object.get(name).is_some_and(|value| !value.is_null())
}

/// Whether a field of a union is set, and another one before it.
fn is_superfluous(object: &Map, name: &str, union: &Union) -> bool {
    let first = union.names.iter().find(|name| is_set(object, name));
    is_set(object, name) && first.is_some_and(|first| *first != name)
}

#[cfg(test)]
mod tests {
    use machinery::json;

    use super::*;
    use crate::shape::named;

    /// The errors of a table.
    fn problems(text: &'static str) -> Vec<String> {
        index(text).iter().filter_map(|(name, rules)| parse(name, &rules.lines).err()).collect()
    }

    #[test]
    fn every_line_has_a_meaning() {
        assert_eq!(problems(TEXT), [""; 0]);
        for (line, want) in [
            ("core.v1.Zog name required", "unknown struct"),
            ("core.v1.EnvVar zog required", "unknown field"),
            ("core.v1.EnvVar name,zog required", "unknown field"),
            ("core.v1.EnvVar name", "no struct, field and rule"),
            ("core.v1.EnvVar name requird", "unknown rule"),
            ("core.v1.EnvVar name immutable shown", "unknown rule"),
            ("core.v1.EnvVar name once more", "unknown rule"),
            ("core.v1.EnvVar name unionvolume", "unknown rule"),
            ("core.v1.EnvVar name in", "unknown rule"),
            ("core.v1.EnvVar name check", "no check"),
            ("core.v1.EnvVar name = {", "no JSON"),
            ("core.v1.EnvVar name min", "no number"),
            ("core.v1.EnvVar name min 1 2", "not one number"),
            ("core.v1.EnvVar name range 1", "not two numbers"),
        ] {
            let text: &'static str = format!("# a comment\n{line}").leak();
            assert_eq!(problems(text), [format!("rules.txt:2: {want}: {line}")]);
        }
    }

    #[test]
    fn gates_drop_fields_and_their_defaults() {
        let group = |preemption: Value| json!({"spec": {"preemptionPolicy": (preemption)}});
        let shape = named("scheduling.v1beta1.PodGroup");
        for (is_on, want) in [(true, Some("PreemptLowerPriority")), (false, None)] {
            let mut defaulted = json!({"spec": {}});
            set_defaults(&mut defaulted, shape, &|_| is_on);
            assert_eq!(defaulted.at(&["spec", "preemptionPolicy"]).and_then(Value::as_str), want);
            let mut given = group(Value::from("Never"));
            drop_gated(&mut given, None, shape, &|_| is_on);
            assert_eq!(given.at(&["spec", "preemptionPolicy"]).is_some(), is_on);
        }
        let mut given = group(Value::from("Never"));
        drop_gated(&mut given, Some(&group(Value::from("Never"))), shape, &|_| false);
        assert_eq!(given, group(Value::from("Never")));
    }

    #[test]
    fn defaults_apply_at_every_depth() {
        let mut job = json!({"spec": {"template": {"spec": {"containers": [{"name": "a", "livenessProbe": {}}]}}}});
        set_defaults(&mut job, named("apps.v1.ReplicaSet"), &|_| false);
        assert_eq!(job.at(&["spec", "replicas"]), Some(&json!(1)));
        let spec = job.at(&["spec", "template", "spec"]).unwrap();
        assert_eq!(spec.str_at(&["dnsPolicy"]), "ClusterFirst");
        let container = &spec.get("containers").and_then(Value::as_array).unwrap()[0];
        assert_eq!(container.at(&["livenessProbe", "periodSeconds"]), Some(&json!(10)));
    }

    #[test]
    fn violations_are_reported_at_their_position() {
        let pod = json!({"spec": {"restartPolicy": "Often", "containers": [{"env": [{"value": "x"}]}]}});
        let mut errors = vec![];
        let mut rules =
            RuleErrors { is_update: false, of_status: false, checks: |_| |_, _, _| {}, errors: &mut errors };
        rules.of(&pod, None, named("core.v1.Pod"), &FieldPath::root());
        let texts: Vec<String> = errors.iter().map(ToString::to_string).collect();
        assert_eq!(
            texts,
            [
                "spec.containers[0].env[0].name: Required value",
                "spec.restartPolicy: Unsupported value: \"Often\": supported values: \"Always\", \"OnFailure\", \"Never\""
            ]
        );
    }
}
