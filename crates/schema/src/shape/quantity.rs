//! Quantities: decimal numbers with a suffix, exact to a billionth, and their canonical form.

use machinery::Value;

const NANO: i128 = 1_000_000_000;
const WRONG_FORMAT: &str =
    "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'";
const WRONG_SUFFIX: &str = "unable to parse quantity's suffix";
const WRONG_NUMBER: &str = "unable to parse numeric part of quantity";

const DECIMAL: [(&str, i32); 10] =
    [("n", -9), ("u", -6), ("m", -3), ("", 0), ("k", 3), ("M", 6), ("G", 9), ("T", 12), ("P", 15), ("E", 18)];
const BINARY: [&str; 6] = ["Ki", "Mi", "Gi", "Ti", "Pi", "Ei"];

/// The family of suffixes that a quantity was written with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Form {
    Decimal,
    Binary,
    Exponent,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Quantity {
    /// Billionths.
    nano: i128,
    form: Form,
}

/// The canonical text of a quantity in a document: a number or a string.
pub fn canonical(value: &Value) -> Result<String, String> {
    let text = match value {
        Value::String(text) => text.trim().to_owned(),
        other => other.to_json(),
    };
    Quantity::parse(&text).map(|quantity| quantity.to_string()).map_err(str::to_owned)
}

/// The form, the power of ten and the power of 1024 that a suffix stands for.
fn suffix_of(suffix: &str) -> Option<(Form, i32, u32)> {
    if let Some((_, power)) = DECIMAL.iter().find(|(s, _)| *s == suffix) {
        return Some((Form::Decimal, *power, 0));
    }
    if let Some(at) = BINARY.iter().position(|s| *s == suffix) {
        return Some((Form::Binary, 0, at as u32 + 1));
    }
    let power: i32 = suffix.strip_prefix(['e', 'E'])?.parse().ok()?;
    Some((Form::Exponent, power, 0))
}

impl Quantity {
    /// Parses a quantity; the error is upstream's text.
    pub fn parse(text: &str) -> Result<Quantity, &'static str> {
        let rest = text.strip_prefix(['+', '-']).unwrap_or(text);
        let split = rest.bytes().take_while(|b| b.is_ascii_digit() || *b == b'.').count();
        let (number, suffix) = rest.split_at(split);
        let letters = suffix.bytes().take_while(|b| b"eEinumkKMGTP".contains(b)).count();
        let tail = suffix[letters..].strip_prefix(['-', '+']).unwrap_or(&suffix[letters..]);
        if rest.is_empty() || !tail.bytes().all(|b| b.is_ascii_digit()) || number.matches('.').count() > 1 {
            return Err(WRONG_FORMAT);
        }
        let (form, power, binary) = suffix_of(suffix).ok_or(WRONG_SUFFIX)?;
        if number.is_empty() {
            return Err(WRONG_NUMBER);
        }
        let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
        let magnitude = magnitude(whole, fraction, power, binary);
        Ok(Quantity { nano: if text.starts_with('-') { -magnitude } else { magnitude }, form })
    }

    pub fn is_negative(self) -> bool {
        self.nano < 0
    }

    /// The number of whole units.
    pub fn whole(self) -> i128 {
        self.nano / NANO
    }

    pub fn is_integer(self) -> bool {
        self.nano % NANO == 0
    }
}

/// Billionths, rounded up; what is beyond all that can be counted stays there.
fn magnitude(whole: &str, fraction: &str, power: i32, binary: u32) -> i128 {
    let shift = i64::from(power) + 9 - fraction.len() as i64;
    let digits = format!("{whole}{fraction}");
    let digits = digits.trim_start_matches('0');
    let cut = usize::try_from(-shift).unwrap_or(0);
    let factor = 1024i128.pow(binary);
    if binary > 0 && shift < 0 {
        let number: i128 = digits.parse().unwrap_or(i128::MAX);
        let divisor = 10i128.checked_pow(u32::try_from(cut).unwrap_or(u32::MAX)).unwrap_or(i128::MAX);
        return number.saturating_mul(factor).saturating_add(divisor - 1) / divisor;
    }
    let (kept, lost) = digits.split_at(digits.len().saturating_sub(cut));
    let number: i128 = if kept.is_empty() { 0 } else { kept.parse().unwrap_or(i128::MAX) };
    let number = number.saturating_add(i128::from(lost.bytes().any(|b| b != b'0')));
    let scale = u32::try_from(shift).ok().map_or(1, |shift| 10i128.checked_pow(shift).unwrap_or(i128::MAX));
    number.saturating_mul(if number == 0 { 1 } else { scale }).saturating_mul(factor)
}

impl std::fmt::Display for Quantity {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        if self.nano == 0 {
            return f.write_str("0");
        }
        if self.form == Form::Binary && self.nano.abs() >= 1024 * NANO {
            let up = i128::from(self.nano % NANO > 0) - i128::from(self.nano % NANO < 0);
            let mut value = self.nano / NANO + up;
            let mut power = 0;
            while value % 1024 == 0 && power < BINARY.len() {
                value /= 1024;
                power += 1;
            }
            let suffix = power.checked_sub(1).map_or("", |i| BINARY[i]);
            return write!(f, "{value}{suffix}");
        }
        let (mut value, mut power) = (self.nano, -9);
        while value % 1000 == 0 && power < 18 {
            value /= 1000;
            power += 3;
        }
        match DECIMAL.iter().find(|(_, p)| *p == power) {
            Some((suffix, _)) if self.form != Form::Exponent => write!(f, "{value}{suffix}"),
            _ if power == 0 => write!(f, "{value}"),
            _ => write!(f, "{value}e{power}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn canonical_forms() {
        let cases = [
            ("2", "2"),
            ("-1", "-1"),
            ("1500m", "1500m"),
            ("1000m", "1"),
            ("0.5", "500m"),
            ("2000", "2k"),
            ("1024Ki", "1Mi"),
            ("1.5Gi", "1536Mi"),
            ("0.5Ki", "512"),
            ("1e3", "1e3"),
            ("100E", "100E"),
            ("0.0000000001", "1n"),
            ("0Mi", "0"),
        ];
        for (text, want) in cases {
            assert_eq!(Quantity::parse(text).map(|q| q.to_string()).as_deref(), Ok(want), "{text}");
        }
        assert_eq!(Quantity::parse("many"), Err(WRONG_FORMAT));
        assert_eq!(Quantity::parse("1x"), Err(WRONG_FORMAT));
        assert_eq!(Quantity::parse("1KK"), Err(WRONG_SUFFIX));
        assert_eq!(Quantity::parse(""), Err(WRONG_FORMAT));
    }
}
