//! Capacities of devices that several requests share, and the amounts that they may ask for.

use machinery::Release;
use machinery::quantity::Quantity;

use schema::at::At;

const OPTIONS_MAX: usize = 10;

fn quantity(at: At) -> Option<Quantity> {
    Quantity::of(at.value).ok().filter(|_| at.is_given())
}

fn invalid(at: At, shown: &Quantity, why: impl Into<String>) {
    at.shown_as_text(&shown.to_string()).invalid(why);
}

pub fn request_policy(capacity: At) {
    let most = quantity(capacity.field("value")).unwrap_or_else(|| Quantity::from_int(0));
    let policy = capacity.field("requestPolicy");
    let (default, range) = (policy.field("default"), policy.field("validRange"));
    match (!policy.list("validValues").is_empty(), range.is_given(), quantity(default)) {
        (true, true, _) => policy.forbidden(
            "exactly one policy can be specified, cannot specify \"validValues\" and \"validRange\" at the same time",
        ),
        (true, false, None) => default.required("required when validValues is defined"),
        (true, false, Some(default)) => values(policy, &default, &most),
        (false, true, None) => default.required("required when validRange is defined"),
        (false, true, Some(default)) => Bounds { default, most, range }.check(),
        (false, false, _) => {}
    }
}

/// The amounts that may be requested must be different and in ascending order, and include the default.
fn values(policy: At, default: &Quantity, most: &Quantity) {
    let all = policy.field("validValues");
    let options: Vec<Quantity> = all.items().filter_map(quantity).collect();
    for (i, pair) in options.windows(2).enumerate().filter(|(_, pair)| pair[0].compare(&pair[1]).is_gt()) {
        invalid(all.item(i + 1), &pair[1], "values must be sorted in ascending order");
    }
    if all.max_items(OPTIONS_MAX) {
        for (i, option) in options.iter().enumerate().filter(|(_, option)| option.compare(most).is_gt()) {
            invalid(all.item(i), option, format!("option is larger than capacity value: {most}"));
        }
        for (i, option) in options.iter().enumerate().filter(|(i, option)| options[..*i].contains(option)) {
            all.item(i).shown_as_text(&option.to_string()).duplicate();
        }
    }
    if !options.contains(default) {
        invalid(all, default, "default value is not valid according to the requestPolicy");
    }
}

/// The quantity that the bounds of a range are compared with.
struct Bounds<'p, 'v> {
    default: Quantity,
    most: Quantity,
    range: At<'p, 'v>,
}

impl Bounds<'_, '_> {
    fn check(&self) {
        let exceeds = |a: &Quantity, b: &Quantity| a.compare(b).is_gt();
        let Bounds { default, most, range } = self;
        let [default_at, min_at, max_at] = ["default", "min", "max"].map(|name| range.field(name));
        let max = quantity(max_at);
        let Some(min) = quantity(min_at) else { return min_at.required("required when validRange is defined") };
        if exceeds(&min, most) {
            invalid(min_at, &min, format!("min is larger than capacity value: {most}"));
        }
        if exceeds(&min, default) {
            invalid(default_at, default, format!("default is less than min: {min}"));
        }
        if let Some(max) = &max {
            if exceeds(&min, max) {
                invalid(max_at, &min, format!("min is larger than max: {max}"));
            }
            if exceeds(max, most) {
                invalid(max_at, max, format!("max is larger than capacity value: {most}"));
            }
            if exceeds(default, max) {
                invalid(default_at, default, format!("default is more than max: {max}"));
            }
        }
        self.step(&min, max.as_ref(), quantity(range.field("step")).as_ref());
    }

    /// Checks that the default and the maximum are whole steps away from the minimum.
    fn step(&self, min: &Quantity, max: Option<&Quantity>, step: Option<&Quantity>) {
        let Bounds { default, most, range } = self;
        let named = [("default", Some(default)), ("min", Some(min)), ("max", max), ("step", step)];
        let given = || named.iter().filter_map(|(name, quantity)| Some((*name, (*quantity)?)));
        let is_fractional_allowed = range.release() >= Release::V1_37;
        let is_fractional = is_fractional_allowed && given().any(|(_, quantity)| !quantity.is_whole());
        let before = range.count();
        if is_fractional {
            let is_coarse = |quantity: &Quantity| quantity.clone().rounded_to_thousandths() == *quantity;
            for (name, quantity) in given().filter(|(_, quantity)| !is_coarse(quantity)) {
                invalid(range.field(name), quantity, "value cannot be represented as a milli value");
            }
            if range.count() > before {
                return;
            }
        }
        let (Some(step), at) = (step, range.field("step")) else { return };
        if step.signum() <= 0 {
            return invalid(at, step, "must be greater than zero");
        }
        let first = min.plus(step);
        if first.compare(most).is_gt() {
            invalid(at, step, format!("one step {first} is larger than capacity value: {most}"));
        }
        let before = range.count();
        if !is_fractional {
            given().for_each(|(name, quantity)| in_64_bits(quantity, range.field(name)));
        }
        if range.count() > before {
            return;
        }
        for value in [Some(default), max].into_iter().flatten() {
            if !value.minus(min).is_multiple_of(step) {
                invalid(at, value, format!("value is not a multiple of a given step ({step}) from ({min})"));
            }
        }
    }
}

/// Reports an amount that is negative or does not fit 64 bits.
fn in_64_bits(quantity: &Quantity, at: At) {
    if quantity.signum() < 0 {
        invalid(at, quantity, "must be greater than or equal to 0");
    } else if quantity.compare(&Quantity::from_int(i64::MAX)).is_gt() {
        invalid(at, quantity, "must not be larger than 9223372036854775807");
    }
}

#[cfg(test)]
mod tests {
    use machinery::json;

    use super::*;
    use schema::at::errors_of;

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
            let capacity = json!({"value": "4", "requestPolicy": (policy.clone())});
            let errors = errors_of(&capacity, None, Release::V1_37, request_policy);
            match want {
                "" => assert_eq!(errors, [], "{policy:?}"),
                want => assert!(errors[0].to_string().contains(want), "{policy:?}: {errors:?}"),
            }
        }
    }
}
