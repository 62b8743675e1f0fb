//! PodDisruptionBudgets.

use machinery::Value;

use resource::builtin::checks::selector_operators;
use schema::at::At;

pub fn validate_budget(at: At) {
    const SHARE: &str = "a valid percent string must be a numeric string followed by an ending '%' (e.g. '1%',  or '93%', regex used for validation is '[0-9]+%')";
    let spec = at.field("spec");
    selector_operators(spec.field("selector"));
    let amounts = [spec.field("minAvailable"), spec.field("maxUnavailable")];
    for amount in amounts {
        match amount.value {
            Value::Int(..0) => amount.invalid("must be greater than or equal to 0"),
            Value::String(share) if !is_share(share) => amount.invalid(SHARE),
            _ => {}
        }
    }
    for amount in amounts {
        let share = amount.as_text().strip_suffix('%').and_then(|share| share.parse::<u64>().ok());
        amount.invalid_if(share.is_some_and(|share| share > 100), "must not be greater than 100%");
    }
}

fn is_share(text: &str) -> bool {
    text.strip_suffix('%').is_some_and(|number| !number.is_empty() && number.chars().all(|c| c.is_ascii_digit()))
}
