//! LimitRange: whether the amounts of an item are consistent.

use std::collections::HashSet;

use machinery::field::{FieldError, FieldPath};
use machinery::quantity::Quantity;
use machinery::{Map, Release, Value};

use super::checks::{items, text};
use super::defaults::set_default;
use super::podspec;

type Errors = Vec<FieldError>;

/// Generates a name for a LimitRange without one.
pub fn prepare(range: &mut Value, old: Option<&Value>) {
    let is_named = ["name", "generateName"].iter().any(|field| !range.str_at(&["metadata", field]).is_empty());
    if old.is_none() && !is_named {
        range.set_at(&["metadata", "name"], Value::from(base::clock::uuid()));
    }
}

pub fn validate(range: &Value, _old: Option<&Value>, _release: Release) -> Vec<FieldError> {
    let (mut errors, mut known) = (vec![], HashSet::new());
    for (path, item) in items(range.get("spec").unwrap_or(&Value::Null), "limits", &FieldPath::new("spec")) {
        let kind = text(item, "type");
        if !known.insert(kind) {
            errors.push(FieldError::duplicate(&path.child("type"), &Value::from(kind)));
        }
        names(item, &path, &mut errors);
        amounts(item, &path, &mut errors);
    }
    errors
}

/// Validates the names of the resources that an item limits.
fn names(item: &Value, path: &FieldPath, errors: &mut Errors) {
    let kind = text(item, "type");
    let given = |list: &str| item.get(list).and_then(Value::as_object).filter(|list| !list.is_empty());
    let mut lists = vec!["max", "min"];
    match kind {
        "Pod" => {
            for list in ["default", "defaultRequest"].into_iter().filter(|list| given(list).is_some()) {
                let why = "may not be specified when `type` is 'Pod'";
                errors.push(FieldError::forbidden(&path.child(list), why));
            }
        }
        _ => lists.extend(["default", "defaultRequest"]),
    }
    lists.push("maxLimitRequestRatio");
    for list in lists {
        for (name, _) in given(list).into_iter().flat_map(Map::iter) {
            let path = path.child(list).key(name);
            match kind {
                "Container" | "Pod" => {
                    crate::builtin::at::at_path(&Value::Null, &path, errors, |at| podspec::container_resource(name, at))
                }
                _ => crate::builtin::at::at_path(&Value::Null, &path, errors, |at| podspec::resource_name(name, at)),
            }
        }
    }
    let limits_storage = |list: &str| given(list).is_some_and(|list| list.get("storage").is_some());
    if kind == "PersistentVolumeClaim" && !limits_storage("min") && !limits_storage("max") {
        let why = "either minimum or maximum storage value is required, but neither was provided";
        errors.push(FieldError::required(&path.child("limits"), why));
    }
}

type Named = (&'static str, &'static str);

/// Comparisons of amounts of a resource: the list that an error names, that whose amount it shows, and the lists of the
/// lesser and the greater amount with what errors call them. Pods have only the first.
const ORDERED: [(&str, &str, Named, Named); 6] = [
    ("min", "min", ("min", "min value"), ("max", "max value")),
    ("defaultRequest", "defaultRequest", ("min", "min value"), REQUEST),
    ("defaultRequest", "defaultRequest", REQUEST, ("max", "max value")),
    ("defaultRequest", "defaultRequest", REQUEST, ("default", "default limit value")),
    ("default", "min", ("min", "min value"), ("default", "default value")),
    ("default", "max", ("default", "default value"), ("max", "max value")),
];
const REQUEST: Named = ("defaultRequest", "default request value");

/// Checks the order of an item's amounts: minimum, default request, default limit, maximum.
fn amounts(item: &Value, path: &FieldPath, errors: &mut Errors) {
    let given = |list: &str| item.get(list).and_then(Value::as_object);
    let lists = ["max", "min", "defaultRequest", "default", "maxLimitRequestRatio"];
    let names = lists.into_iter().filter_map(given).flat_map(Map::iter).map(|(name, _)| name.as_str());
    let mut known = HashSet::new();
    let resources = names.filter(|name| known.insert(*name));
    let has_defaults = text(item, "type") != "Pod";
    for name in resources {
        let amount = |list: &str| given(list)?.get(name).and_then(|amount| Quantity::of(amount).ok());
        let compared = if has_defaults { &ORDERED[..] } else { &ORDERED[..1] };
        for (list, shown, (low, low_name), (high, high_name)) in compared {
            if let (Some(shown), Some(low), Some(high)) = (amount(shown), amount(low), amount(high))
                && low.compare(&high).is_gt()
            {
                let why = format!("{low_name} {low} is greater than {high_name} {high}");
                errors.push(FieldError::invalid(&path.child(list).key(name), &Value::from(shown.to_string()), why));
            }
        }
        let (request, default) = (amount("defaultRequest"), amount("default"));
        if let (Some(default), Some(request)) = (&default, request.as_ref().filter(|_| has_defaults))
            && !podspec::is_overcommitted(name)
            && default.compare(request).is_ne()
        {
            let why = format!("default value {default} must equal to defaultRequest value {request} in {name}");
            let path = path.child("defaultRequest").key(name);
            errors.push(FieldError::invalid(&path, &Value::from(request.to_string()), why));
        }
        ratio(
            amount("maxLimitRequestRatio"),
            amount("min"),
            amount("max"),
            &path.child("maxLimitRequestRatio").key(name),
            errors,
        );
    }
}

fn ratio(ratio: Option<Quantity>, min: Option<Quantity>, max: Option<Quantity>, path: &FieldPath, errors: &mut Errors) {
    let Some(ratio) = ratio else { return };
    let mut invalid = |why: String| errors.push(FieldError::invalid(path, &Value::from(ratio.to_string()), why));
    if ratio.compare(&Quantity::from_int(1)).is_lt() {
        invalid(format!("ratio {ratio} is less than 1"));
    }
    if let (Some(min), Some(max)) = (min, max) {
        let most = most_ratio(&ratio, &min, &max);
        if most.ratio > most.limit {
            invalid(format!("ratio {ratio} is greater than max/min = {}", shown(most.limit)));
        }
    }
}

/// A ratio and its limit, as kube-apiserver compares them.
struct Compared {
    ratio: f64,
    limit: f64,
}

/// The largest possible ratio. Amounts are compared in thousandths, or in whole numbers if one is too large for that.
fn most_ratio(ratio: &Quantity, min: &Quantity, max: &Quantity) -> Compared {
    const THOUSANDTHS_MAX: i64 = i64::MAX / 1000;
    let amounts = [ratio, min, max];
    match amounts.iter().all(|amount| amount.units() < THOUSANDTHS_MAX) {
        true => {
            let [ratio, min, max] = amounts.map(|amount| amount.thousandths() as f64);
            Compared { ratio: ratio / 1000.0, limit: max / min }
        }
        false => {
            let [ratio, min, max] = amounts.map(|amount| amount.units() as f64);
            Compared { ratio, limit: max / min }
        }
    }
}

/// A number with six decimals, as Go prints it.
fn shown(number: f64) -> String {
    match number {
        f64::INFINITY => "+Inf".to_owned(),
        f64::NEG_INFINITY => "-Inf".to_owned(),
        number => format!("{number:.6}"),
    }
}

/// Completes the amounts of containers: the default limit from the maximum, and the default request from the default
/// limit or else the minimum.
pub fn default(range: &mut Value) {
    let limits = range.get_mut("spec").and_then(|spec| spec.get_mut("limits")).and_then(Value::as_array_mut);
    for item in limits.into_iter().flatten().filter(|item| text(item, "type") == "Container") {
        fill(item, "default", "max");
        fill(item, "defaultRequest", "default");
        fill(item, "defaultRequest", "min");
    }
}

/// Adds the amounts of the list `by` for resources that the list `name` lacks.
fn fill(item: &mut Value, name: &str, by: &str) {
    let given = item.get(by).and_then(Value::as_object).cloned().unwrap_or_default();
    given.iter().for_each(|(resource, amount)| set_default(item, &[name, resource], amount.clone()));
}

#[cfg(test)]
mod tests {
    use machinery::json;

    use super::*;

    #[test]
    fn amounts_of_an_item_are_in_order() {
        let texts = |item: Value| -> Vec<String> {
            let range = json!({"spec": {"limits": [item]}});
            validate(&range, None, Release::V1_37).iter().map(ToString::to_string).collect()
        };
        let below = json!({"type": "Container", "default": {"cpu": "1"}, "min": {"cpu": "2"}});
        assert_eq!(
            texts(below),
            [r#"spec.limits[0].default[cpu]: Invalid value: "2": min value 2 is greater than default value 1"#]
        );
        let amounts = |ratio: &str| json!({"type": "Pod", "max": {"cpu": "2"}, "min": {"cpu": "1"}, "maxLimitRequestRatio": {"cpu": ratio}});
        assert_eq!(texts(amounts("2")), Vec::<String>::new());
        assert_eq!(
            texts(amounts("3")),
            [
                r#"spec.limits[0].maxLimitRequestRatio[cpu]: Invalid value: "3": ratio 3 is greater than max/min = 2.000000"#
            ]
        );
    }
}
