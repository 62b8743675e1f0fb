//! Capacities of devices that several requests share, and the amounts that they may ask for.

use std::cmp::Ordering;

use machinery::field::{FieldError, FieldPath};
use machinery::quantity::Quantity;
use machinery::{Release, Value};

use super::super::checks::{is_oversized, is_set, list};
use super::fields::Errors;

const OPTIONS_MAX: usize = 10;

fn quantity(value: Option<&Value>) -> Option<Quantity> {
    value.filter(|value| !value.is_null()).and_then(|value| Quantity::of(value).ok())
}

fn invalid(path: &FieldPath, shown: &Quantity, why: impl Into<String>) -> FieldError {
    FieldError::invalid(path, &Value::from(shown.to_string()), why)
}

/// Validates the request policy of a capacity whose amount is `most`.
pub fn request_policy(most: Option<&Value>, policy: &Value, path: &FieldPath, release: Release, errors: &mut Errors) {
    let most = quantity(most).unwrap_or_else(|| Quantity::from_int(0));
    let default = quantity(policy.get("default"));
    let has_values = !list(policy, "validValues").is_empty();
    let missing = |what: &str| FieldError::required(&path.child("default"), format!("required when {what} is defined"));
    match (has_values, policy.get("validRange").filter(|range| !range.is_null()), default) {
        (true, Some(_), _) => {
            let why = "exactly one policy can be specified, cannot specify \"validValues\" and \"validRange\" at the same time";
            errors.push(FieldError::forbidden(path, why));
        }
        (true, None, None) => errors.push(missing("validValues")),
        (true, None, Some(default)) => values(policy, &default, &most, path, errors),
        (false, Some(_), None) => errors.push(missing("validRange")),
        (false, Some(range), Some(default)) => {
            let path = path.child("validRange");
            Bounds { default, most, path, is_fractional_allowed: release >= Release::V1_37 }.check(range, errors);
        }
        (false, None, _) => {}
    }
}

/// The amounts that may be requested must be different and in ascending order, and include the default.
fn values(policy: &Value, default: &Quantity, most: &Quantity, path: &FieldPath, errors: &mut Errors) {
    let inner = path.child("validValues");
    let options: Vec<Quantity> = list(policy, "validValues").iter().filter_map(|value| quantity(Some(value))).collect();
    for (i, pair) in options.windows(2).enumerate() {
        if pair[0].compare(&pair[1]) == Ordering::Greater {
            errors.push(invalid(&inner.index(i + 1), &pair[1], "values must be sorted in ascending order"));
        }
    }
    if !is_oversized(policy, "validValues", OPTIONS_MAX, path, errors) {
        for (i, option) in options.iter().enumerate() {
            if option.compare(most) == Ordering::Greater {
                let why = format!("option is larger than capacity value: {most}");
                errors.push(invalid(&inner.index(i), option, why));
            }
        }
        for (i, option) in options.iter().enumerate() {
            if options[..i].contains(option) {
                errors.push(FieldError::duplicate(&inner.index(i), &Value::from(option.to_string())));
            }
        }
    }
    if !options.contains(default) {
        errors.push(invalid(&inner, default, "default value is not valid according to the requestPolicy"));
    }
}

/// What the bounds of a range are compared with.
struct Bounds {
    default: Quantity,
    most: Quantity,
    path: FieldPath,
    is_fractional_allowed: bool,
}

impl Bounds {
    fn check(&self, range: &Value, errors: &mut Errors) {
        let of = |name: &str| if is_set(range, name) { quantity(range.get(name)) } else { None };
        let at = |name: &str| self.path.child(name);
        let exceeds = |a: &Quantity, b: &Quantity| a.compare(b) == Ordering::Greater;
        let (Bounds { default, most, .. }, max) = (self, of("max"));
        let Some(min) = of("min") else {
            return errors.push(FieldError::required(&at("min"), "required when validRange is defined"));
        };
        if exceeds(&min, most) {
            errors.push(invalid(&at("min"), &min, format!("min is larger than capacity value: {most}")));
        }
        if exceeds(&min, default) {
            errors.push(invalid(&at("default"), default, format!("default is less than min: {min}")));
        }
        if let Some(max) = &max {
            if exceeds(&min, max) {
                errors.push(invalid(&at("max"), &min, format!("min is larger than max: {max}")));
            }
            if exceeds(max, most) {
                errors.push(invalid(&at("max"), max, format!("max is larger than capacity value: {most}")));
            }
            if exceeds(default, max) {
                errors.push(invalid(&at("default"), default, format!("default is more than max: {max}")));
            }
        }
        self.step(&min, max.as_ref(), of("step").as_ref(), errors);
    }

    /// Checks that the default and the maximum are whole steps away from the minimum.
    fn step(&self, min: &Quantity, max: Option<&Quantity>, step: Option<&Quantity>, errors: &mut Errors) {
        let default = &self.default;
        let named = [("default", Some(default)), ("min", Some(min)), ("max", max), ("step", step)];
        let given = || named.iter().filter_map(|(name, quantity)| Some((self.path.child(name), (*quantity)?)));
        let is_fractional = self.is_fractional_allowed && given().any(|(_, quantity)| !quantity.is_whole());
        if is_fractional {
            let is_coarse = |quantity: &Quantity| quantity.clone().rounded_to_thousandths() == *quantity;
            let before = errors.len();
            for (path, quantity) in given().filter(|(_, quantity)| !is_coarse(quantity)) {
                errors.push(invalid(&path, quantity, "value cannot be represented as a milli value"));
            }
            if errors.len() > before {
                return;
            }
        }
        let (Some(step), path) = (step, self.path.child("step")) else { return };
        if step.signum() <= 0 {
            return errors.push(invalid(&path, step, "must be greater than zero"));
        }
        let (first, most) = (min.plus(step), &self.most);
        if first.compare(most) == Ordering::Greater {
            errors.push(invalid(&path, step, format!("one step {first} is larger than capacity value: {most}")));
        }
        let before = errors.len();
        if !is_fractional {
            given().for_each(|(path, quantity)| errors.extend(range_error(quantity, &path)));
        }
        if errors.len() > before {
            return;
        }
        for value in [Some(default), max].into_iter().flatten() {
            if !value.minus(min).is_multiple_of(step) {
                let why = format!("value is not a multiple of a given step ({step}) from ({min})");
                errors.push(invalid(&path, value, why));
            }
        }
    }
}

/// The error of an amount that is negative or does not fit 64 bits.
fn range_error(quantity: &Quantity, path: &FieldPath) -> Option<FieldError> {
    if quantity.signum() < 0 {
        return Some(invalid(path, quantity, "must be greater than or equal to 0"));
    }
    let is_large = quantity.compare(&Quantity::from_int(i64::MAX)) == Ordering::Greater;
    is_large.then(|| invalid(path, quantity, "must not be larger than 9223372036854775807"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use machinery::json;

    #[test]
    fn ranges_and_values() {
        let cases = [
            (json!({"default": "2", "validRange": {"min": "1", "max": "4", "step": "1"}}), ""),
            (json!({"default": "500m", "validRange": {"min": "250m", "step": "250m"}}), ""),
            (json!({"default": "2", "validRange": {"min": "1", "step": "2"}}), "value is not a multiple"),
            (json!({"default": "2", "validRange": {"min": "3"}}), "default is less than min: 3"),
            (json!({"default": "2", "validRange": {"min": "1", "step": "0"}}), "must be greater than zero"),
            (json!({"default": "2", "validRange": {"max": "1"}}), "required when validRange is defined"),
            (json!({"default": "1u", "validRange": {"min": "1u"}}), "value cannot be represented as a milli value"),
            (json!({"default": "2", "validValues": ["1", "2"]}), ""),
            (json!({"default": "3", "validValues": ["1", "2"]}), "default value is not valid"),
            (json!({"default": "1", "validValues": ["2", "1"]}), "values must be sorted in ascending order"),
            (json!({"default": "1", "validValues": ["1", "1000m"]}), "Duplicate value"),
            (json!({"validValues": ["1"]}), "required when validValues is defined"),
        ];
        for (policy, want) in cases {
            let mut errors = vec![];
            let most = Value::from("4");
            request_policy(Some(&most), &policy, &FieldPath::new("p"), Release::V1_37, &mut errors);
            match want {
                "" => assert_eq!(errors, [], "{policy:?}"),
                want => assert!(errors[0].to_string().contains(want), "{policy:?}: {errors:?}"),
            }
        }
    }
}
