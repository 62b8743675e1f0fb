//! LimitRange: whether the amounts of an item are consistent.

use std::collections::HashSet;

use machinery::Value;
use machinery::quantity::Quantity;

use crate::core::podspec;
use resource::builtin::checks::text;
use resource::builtin::defaults::set_default;
use schema::at::At;

/// Generates a name for a LimitRange without one.
pub fn prepare(range: &mut Value, old: Option<&Value>) {
    let is_named = ["name", "generateName"].iter().any(|field| !range.str_at(&["metadata", field]).is_empty());
    if old.is_none() && !is_named {
        let name = base::clock::uid(|| format!("a name in {}", range.str_at(&["metadata", "namespace"])));
        range.set_at(&["metadata", "name"], Value::from(name));
    }
}

pub fn validate(range: At) {
    let mut known = HashSet::new();
    for item in range.items_of("spec.limits") {
        item.field_or_empty("type").unique(&mut known);
        names(item);
        amounts(item);
    }
}

/// Validates the names of the resources that an item limits.
fn names(item: At) {
    let kind = item.text("type");
    let mut lists = vec!["max", "min"];
    match kind {
        "Pod" => {
            for list in ["default", "defaultRequest"] {
                if item.entries_of(list).next().is_some() {
                    item.field(list).forbidden("may not be specified when `type` is 'Pod'");
                }
            }
        }
        _ => lists.extend(["default", "defaultRequest"]),
    }
    lists.push("maxLimitRequestRatio");
    for (name, amount) in lists.iter().flat_map(|list| item.entries_of(list)) {
        match kind {
            "Container" | "Pod" => podspec::container_resource(name, amount),
            _ => podspec::resource_name(name, amount),
        }
    }
    if kind == "PersistentVolumeClaim" && !item.has("min.storage") && !item.has("max.storage") {
        let why = "either minimum or maximum storage value is required, but neither was provided";
        item.field("limits").required(why);
    }
}

type NamedList = (&'static str, &'static str);

/// Comparisons of amounts: the list at whose path an error is reported, the list whose amount it shows, and the
/// lists that must have the lesser and the greater amount, each with its name in errors. For Pods, only the first
/// applies.
const ORDERED: [(&str, &str, NamedList, NamedList); 6] = [
    ("min", "min", ("min", "min value"), ("max", "max value")),
    ("defaultRequest", "defaultRequest", ("min", "min value"), REQUEST),
    ("defaultRequest", "defaultRequest", REQUEST, ("max", "max value")),
    ("defaultRequest", "defaultRequest", REQUEST, ("default", "default limit value")),
    ("default", "min", ("min", "min value"), ("default", "default value")),
    ("default", "max", ("default", "default value"), ("max", "max value")),
];
const REQUEST: NamedList = ("defaultRequest", "default request value");

/// Checks the order of an item's amounts: minimum, default request, default limit, maximum.
fn amounts(item: At) {
    let lists = ["max", "min", "defaultRequest", "default", "maxLimitRequestRatio"];
    let mut known = HashSet::new();
    let names = lists.iter().flat_map(|list| item.entries_of(list)).map(|(name, _)| name);
    let has_defaults = item.text("type") != "Pod";
    for name in names.filter(|name| known.insert(*name)) {
        let amount = |list: &str| Quantity::of(item.value.at(&[list, name])?).ok();
        let compared = if has_defaults { &ORDERED[..] } else { &ORDERED[..1] };
        for (list, shown, (low, low_name), (high, high_name)) in compared {
            if let (Some(shown), Some(low), Some(high)) = (amount(shown), amount(low), amount(high))
                && low.compare(&high).is_gt()
            {
                let why = format!("{low_name} {low} is greater than {high_name} {high}");
                item.field(list).entry(name).shown_as_text(&shown.to_string()).invalid(why);
            }
        }
        let (request, default) = (amount("defaultRequest"), amount("default"));
        if let (Some(default), Some(request)) = (&default, request.as_ref().filter(|_| has_defaults))
            && !podspec::is_overcommitted(name)
            && default.compare(request).is_ne()
        {
            let why = format!("default value {default} must equal to defaultRequest value {request} in {name}");
            item.field("defaultRequest").entry(name).shown_as_text(&request.to_string()).invalid(why);
        }
        ratio(item.field("maxLimitRequestRatio").entry(name), amount("min"), amount("max"));
    }
}

fn ratio(at: At, min: Option<Quantity>, max: Option<Quantity>) {
    let Ok(ratio) = Quantity::of(at.value) else { return };
    let invalid = |why: String| at.shown_as_text(&ratio.to_string()).invalid(why);
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
    use machinery::{Release, json};

    use super::*;
    use schema::at::errors_of;

    #[test]
    fn amounts_of_an_item_are_in_order() {
        let texts = |item: Value| -> Vec<String> {
            let range = json!({"spec": {"limits": [item]}});
            errors_of(&range, None, Release::V1_37, validate).iter().map(ToString::to_string).collect()
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
