//! Parsing and formatting of quantities.

use super::amount::{Amount, divided_up};
use super::{Form, Quantity};
use num_bigint::BigInt;
use std::fmt;

const WRONG_FORMAT: &str =
    "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'";
const WRONG_SUFFIX: &str = "unable to parse quantity's suffix";
const WRONG_NUMBER: &str = "unable to parse numeric part of quantity";

const DECIMAL: [(&str, i32); 10] =
    [("n", -9), ("u", -6), ("m", -3), ("", 0), ("k", 3), ("M", 6), ("G", 9), ("T", 12), ("P", 15), ("E", 18)];
const BINARY: [&str; 6] = ["Ki", "Mi", "Gi", "Ti", "Pi", "Ei"];
/// The maximum number of digits of a small amount.
const DIGITS_MAX: usize = 18;
/// How many digits of a long amount are kept. Further digits are rounded up, so that they cost no time.
const DIGITS_KEPT: usize = 1024;
/// The smallest power of ten that is kept.
const NANO: i32 = -9;

/// The meaning of a suffix: the form, and a power of ten or of two.
type Suffix = (Form, i32);

/// The parts of a text that has the form of a quantity.
struct Parts<'a> {
    negative: bool,
    /// The digits before the point, without leading zeros; "0" if nothing else is left.
    whole: &'a str,
    fraction: &'a str,
    suffix: &'a str,
}

impl Quantity {
    /// Parses a quantity; the error is upstream's text.
    pub fn parse(text: &str) -> Result<Quantity, &'static str> {
        let parts = parts(text)?;
        let (form, power) = suffix_of(parts.suffix).ok_or(WRONG_SUFFIX)?;
        if let Some(small) = small(&parts, (form, power), text)? {
            return Ok(small);
        }
        if !text[..text.len() - parts.suffix.len()].contains(|c: char| c.is_ascii_digit()) {
            return Err(WRONG_NUMBER);
        }
        let (value, places) = number(&parts)?;
        let value = if form == Form::Binary { value << power.unsigned_abs() } else { value };
        let power = if form == Form::Binary { 0 } else { power };
        let amount = kept(value, power.saturating_add(places), form);
        let form = if form == Form::Binary && amount.magnitude_below_one() { Form::Decimal } else { form };
        Ok(Quantity { amount: if parts.negative { amount.negated() } else { amount }, form, text: None })
    }
}

fn parts(text: &str) -> Result<Parts<'_>, &'static str> {
    if text.is_empty() {
        return Err(WRONG_FORMAT);
    }
    let unsigned = text.strip_prefix(['+', '-']).unwrap_or(text);
    let significant = unsigned.trim_start_matches('0');
    let digits = |text: &str| text.bytes().take_while(u8::is_ascii_digit).count();
    let (whole, rest) = significant.split_at(digits(significant));
    let after = rest.strip_prefix('.');
    let (fraction, suffix) = after.map_or(("", rest), |after| after.split_at(digits(after)));
    let letters = suffix.bytes().take_while(|b| b"eEinumkKMGTP".contains(b)).count();
    let tail = suffix[letters..].strip_prefix(['-', '+']).unwrap_or(&suffix[letters..]);
    if !tail.bytes().all(|b| b.is_ascii_digit()) {
        return Err(WRONG_FORMAT);
    }
    let whole = if whole.is_empty() { "0" } else { whole };
    Ok(Parts { negative: text.starts_with('-'), whole, fraction, suffix })
}

fn suffix_of(suffix: &str) -> Option<Suffix> {
    if let Some((_, power)) = DECIMAL.iter().find(|(s, _)| *s == suffix) {
        return Some((Form::Decimal, *power));
    }
    if let Some(at) = BINARY.iter().position(|s| *s == suffix) {
        return Some((Form::Binary, 10 * (at as i32 + 1)));
    }
    let power: i64 = suffix.strip_prefix(['e', 'E'])?.parse().ok()?;
    // as in upstream, the power is parsed as 64 bits and truncated to 32
    Some((Form::Exponent, power as i32))
}

/// The quantity if its amount fits 64 bits: up to 18 digits, or fewer with binary suffixes.
fn small(parts: &Parts<'_>, (form, power): Suffix, text: &str) -> Result<Option<Quantity>, &'static str> {
    let digits = parts.whole.len() + parts.fraction.len();
    let (factor, power, fits) = match form {
        Form::Binary => (1i64 << power, 0, parts.fraction.is_empty() && digits + power as usize * 3 / 10 < 15),
        _ => (1, power.wrapping_sub(parts.fraction.len() as i32), digits <= DIGITS_MAX),
    };
    if !fits || power < NANO {
        return Ok(None);
    }
    let shifted = format!("{}{}", parts.whole, parts.fraction);
    let number: i64 = shifted.parse().map_err(|_| WRONG_NUMBER)?;
    let Some(value) = number.checked_mul(factor) else { return Ok(None) };
    let is_canonical = match form {
        Form::Binary => number & 7 != 0,
        _ => text == "0" || (power % 3 == 0 && !shifted.ends_with("000") && !shifted.starts_with('0')),
    };
    let value = if parts.negative { -value } else { value };
    Ok(Some(Quantity { amount: Amount::Small { value, power }, form, text: is_canonical.then(|| text.to_owned()) }))
}

/// The digits as an integer and a power of ten. Digits after the first [`DIGITS_KEPT`] are rounded up.
fn number(parts: &Parts<'_>) -> Result<(BigInt, i32), &'static str> {
    let digits = format!("{}{}", parts.whole, parts.fraction);
    let digits = digits.trim_start_matches('0');
    let (digits, rest) = digits.split_at(digits.len().min(DIGITS_KEPT));
    let value: BigInt = if digits.is_empty() { "0" } else { digits }.parse().map_err(|_| WRONG_NUMBER)?;
    let up = i32::from(rest.contains(|digit| digit != '0'));
    Ok((value + up, rest.len() as i32 - parts.fraction.len() as i32))
}

/// The amount rounded up to billionths. Amounts with a binary suffix are capped at the greatest 64-bit integer.
fn kept(value: BigInt, power: i32, form: Form) -> Amount {
    if value == BigInt::ZERO {
        return Amount::Big { value, power };
    }
    let finer = NANO.saturating_sub(power);
    if finer > 0 && finer as usize > value.magnitude().to_string().len() {
        return Amount::Big { value: BigInt::from(1), power: NANO };
    }
    let (value, power) = match u32::try_from(finer) {
        Ok(finer) => (divided_up(&value, &BigInt::from(10).pow(finer)), NANO),
        // a scale that the exponent of a float can still have
        Err(_) if finer >= -400 => (value * BigInt::from(10).pow(finer.unsigned_abs()), NANO),
        Err(_) => (value, power),
    };
    let amount = Amount::Big { value, power };
    let most = Amount::Small { value: i64::MAX, power: 0 };
    if form == Form::Binary && amount.compare(&most).is_gt() {
        return Amount::Big { value: BigInt::from(i64::MAX), power: 0 };
    }
    amount
}

impl Amount {
    fn magnitude_below_one(&self) -> bool {
        self.compare(&Amount::Small { value: 1, power: 0 }).is_lt() && self.signum() > 0
    }
}

impl fmt::Display for Quantity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(text) = &self.text {
            return f.write_str(text);
        }
        if self.signum() == 0 {
            return f.write_str("0");
        }
        if self.form == Form::Binary
            && let Some((value, suffix)) = self.amount.binary()
        {
            return write!(f, "{value}{suffix}");
        }
        let (value, power) = self.amount.canonical();
        match DECIMAL.iter().find(|(_, p)| *p == power) {
            Some((suffix, _)) if self.form != Form::Exponent => write!(f, "{value}{suffix}"),
            _ if power == 0 || self.form != Form::Exponent => write!(f, "{value}"),
            _ => write!(f, "{value}e{power}"),
        }
    }
}

impl Amount {
    /// The shortest integer whose power of ten is a multiple of three.
    fn canonical(&self) -> (BigInt, i32) {
        let (value, power) = self.parts();
        let digits = value.to_string();
        let zeros = digits.len() - digits.trim_end_matches('0').len();
        let power_of_first = power.saturating_add(zeros as i32);
        let filled = power_of_first.rem_euclid(3);
        let value: BigInt = digits[..digits.len() - zeros].parse().unwrap_or_default();
        (value * BigInt::from(10).pow(filled.unsigned_abs()), power_of_first.saturating_sub(filled))
    }

    /// The integer with the suffix of the greatest power of 1024 that divides the amount. `None` for amounts that are
    /// not whole, or less than 1024: they are written with decimal suffixes.
    fn binary(&self) -> Option<(BigInt, &'static str)> {
        let unit = Amount::Small { value: 1024, power: 0 };
        if self.compare(&unit).is_lt() && self.compare(&unit.negated()).is_gt() {
            return None;
        }
        let (value, power) = self.parts();
        if power > DIGITS_KEPT as i32 {
            return None;
        }
        let mut value = match u32::try_from(power) {
            Ok(power) => value * BigInt::from(10).pow(power),
            Err(_) => {
                let divisor = BigInt::from(10).pow(power.unsigned_abs());
                if &value % &divisor != BigInt::ZERO {
                    return None;
                }
                value / divisor
            }
        };
        let mut times = 0;
        while &value % 1024 == BigInt::ZERO {
            value /= 1024;
            times += 1;
        }
        // there are no larger suffixes
        Some((value, if times == 0 { "" } else { BINARY.get(times - 1).copied().unwrap_or("") }))
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
            ("5E3", "5E3"),
            ("0005", "0005"),
            ("+5", "+5"),
            ("100E", "100E"),
            ("1000E", "1"),
            ("0.0000000001", "1n"),
            ("0Mi", "0"),
            ("0", "0"),
            (".5", "500m"),
            ("1.", "1."),
            ("1e1000000000", "10e999999999"),
            ("123456789012345678901", "123456789012345678901"),
            ("1000Ei", "9223372036854775807"),
            ("0.00000000000000000000000000001", "1n"),
        ];
        for (text, want) in cases {
            assert_eq!(Quantity::parse(text).map(|q| q.to_string()).as_deref(), Ok(want), "{text}");
        }
    }

    #[test]
    fn long_texts_cost_linear_time() {
        let long = "9".repeat(3 << 20);
        let whole = Quantity::parse(&long).expect("a quantity");
        let fraction = Quantity::parse(&format!("0.{long}")).expect("a quantity");
        assert_eq!(fraction.to_string(), "1");
        assert!(whole.compare(&fraction).is_gt() && whole.plus(&fraction).compare(&whole).is_ge());
        let far = Quantity::parse("1e1000000000").expect("a quantity");
        assert_eq!(far.minus(&fraction).to_string(), "10e999999999");
    }

    #[test]
    fn rejects_invalid_quantities() {
        let cases = [
            ("", WRONG_FORMAT),
            ("many", WRONG_FORMAT),
            ("1x", WRONG_FORMAT),
            ("1.2.3", WRONG_FORMAT),
            ("1KK", WRONG_SUFFIX),
            ("1e", WRONG_SUFFIX),
        ];
        for (text, want) in cases {
            assert_eq!(Quantity::parse(text).err(), Some(want), "{text}");
        }
    }
}
