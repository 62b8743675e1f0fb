//! Quantities: parsing, canonical form, and arithmetic of two.

use crate::{Difference, Random};
use machinery::quantity::Quantity;
use machinery::{Value, json};

const NUMBER_PARTS: &[&str] = &[
    "0", "00", "1", "5", "7", "8", "12", "24", "16", "100", "1000", "999999999", "1024", "9223372036854775807",
    "123456789012345678",
];
const SUFFIXES: &[&str] = &[
    "", "", "", "n", "u", "m", "k", "M", "G", "T", "P", "E", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei", "e3", "E2", "e-3",
    "e-9", "e-12", "e30", "E+5", "e", "e+", "mm", "K", "ki", "x", " ", "e1x", "i", "-", "e99999999999999999999",
];

/// A random text, which is mostly a valid quantity.
pub fn text(random: &mut Random) -> String {
    let sign = ["", "", "", "-", "+", "+-"][random.below(6)];
    let whole = random.join(NUMBER_PARTS, 2);
    let whole = if random.below(12) == 0 { "" } else { whole.as_str() };
    let fraction = match random.below(4) {
        0 => format!(".{}", random.join(NUMBER_PARTS, 2)),
        1 if random.below(6) == 0 => ".".to_owned(),
        _ => String::new(),
    };
    format!("{sign}{whole}{fraction}{}", SUFFIXES[random.below(SUFFIXES.len())])
}

/// Our result in the form of `main.go`'s response.
fn said(text: &str, others: &[String]) -> Value {
    let quantity = match Quantity::parse(text) {
        Ok(quantity) => quantity,
        Err(error) => return Value::from(error),
    };
    let reported = |quantity: &Quantity| json!(format!("{:x}", quantity.approximate().to_bits()));
    let whole = quantity.as_integer();
    let mut said = vec![
        json!(quantity.to_string()),
        Value::Int(whole.unwrap_or(0)),
        Value::Bool(whole.is_some()),
        reported(&quantity),
        Value::Int(quantity.signum()),
    ];
    if quantity.approximate() > 0.0 && quantity.approximate() < 1e9 {
        said.push(Value::Bool(quantity.is_whole()));
    }
    for other in others.iter().filter_map(|other| Quantity::parse(other).ok()) {
        let (sum, difference) = (quantity.plus(&other), quantity.minus(&other));
        said.push(Value::Int(quantity.compare(&other) as i64));
        said.extend([json!(sum.to_string()), reported(&sum), json!(difference.to_string()), reported(&difference)]);
    }
    Value::Array(said)
}

pub fn compare(text: &str, others: &[String], response: &Value) -> Difference {
    let said = said(text, others);
    (said != *response).then(|| format!("with {others:?}: {} instead of {}", said.to_json(), response.to_json()))
}
