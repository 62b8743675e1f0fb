//! Kubernetes quantities: decimal numbers with a suffix, exact to a billionth.

use crate::value::{Error, Opaque, Result, Val};

/// A quantity.
#[derive(Clone, Copy, Debug)]
pub struct Quantity {
    /// Billionths.
    nano: i128,
    /// The number and the power of ten that upstream keeps small quantities as; only such can be integers.
    small: Option<(i64, i32)>,
}

impl PartialEq for Quantity {
    fn eq(&self, other: &Quantity) -> bool {
        self.nano == other.nano
    }
}

const NANO: i128 = 1_000_000_000;
/// The greatest magnitude, in billionths: far beyond what upstream keeps exactly.
const MAGNITUDE_MAX: i128 = 10i128.pow(38);

const WRONG_FORMAT: &str =
    "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'";
const WRONG_SUFFIX: &str = "unable to parse quantity's suffix";
const WRONG_NUMBER: &str = "unable to parse numeric part of quantity";

enum Scale {
    Decimal(i32),
    Binary(u32),
}

fn scale(suffix: &str) -> Option<Scale> {
    let power = |letters: &str| letters.find(suffix.chars().next()?).map(|at| at as u32 + 1);
    Some(match suffix {
        "" => Scale::Decimal(0),
        "n" => Scale::Decimal(-9),
        "u" => Scale::Decimal(-6),
        "m" => Scale::Decimal(-3),
        "k" => Scale::Decimal(3),
        "Ki" => Scale::Binary(1),
        "M" | "G" | "T" | "P" | "E" => Scale::Decimal(3 * (power("MGTPE")? as i32 + 1)),
        "Mi" | "Gi" | "Ti" | "Pi" | "Ei" => Scale::Binary(power("MGTPE")? + 1),
        _ => {
            let digits = suffix.strip_prefix(['e', 'E'])?;
            Scale::Decimal(digits.parse().ok().filter(|n: &i32| n.abs() < 1_000_000)?)
        }
    })
}

impl Quantity {
    /// Parses a quantity; the error is upstream's text.
    pub fn parse(text: &str) -> std::result::Result<Quantity, &'static str> {
        let (negative, rest) = match text.as_bytes().first() {
            None => return Err(WRONG_FORMAT),
            Some(b'-') => (true, &text[1..]),
            Some(b'+') => (false, &text[1..]),
            Some(_) => (false, text),
        };
        let split = rest.bytes().take_while(|b| b.is_ascii_digit() || *b == b'.').count();
        let (number, suffix) = rest.split_at(split);
        let letters = suffix.bytes().take_while(|b| b"eEinumkKMGTP".contains(b)).count();
        let tail = suffix[letters..].strip_prefix(['-', '+']).unwrap_or(&suffix[letters..]);
        if !tail.bytes().all(|b| b.is_ascii_digit()) || number.matches('.').count() > 1 {
            return Err(WRONG_FORMAT);
        }
        let scale = scale(suffix).ok_or(WRONG_SUFFIX)?;
        let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
        if whole.is_empty() && fraction.is_empty() {
            return match (number, suffix) {
                ("", "") => Err(WRONG_FORMAT),
                ("", _) => Err(WRONG_NUMBER),
                _ => Ok(Quantity { nano: 0, small: Some((0, 0)) }),
            };
        }
        let magnitude = magnitude(whole, fraction, &scale);
        let small = small(whole.trim_start_matches('0'), fraction, &scale);
        if negative {
            return Ok(Quantity { nano: -magnitude, small: small.map(|(value, power)| (-value, power)) });
        }
        Ok(Quantity { nano: magnitude, small })
    }

    fn as_integer(self) -> Option<i64> {
        let (value, power) = self.small?;
        if power < 0 { None } else { value.checked_mul(10i64.checked_pow(power as u32)?) }
    }

    fn plus(self, other: Quantity) -> Quantity {
        let small = match (self.small, other.small) {
            (Some(a), Some(b)) => small_sum(a, b),
            _ => None,
        };
        Quantity { nano: self.nano.saturating_add(other.nano), small }
    }

    fn negated(self) -> Quantity {
        Quantity { nano: -self.nano, small: self.small.map(|(value, power)| (value.saturating_neg(), power)) }
    }
}

/// The sum of two small quantities if it is small, at the smaller power of ten.
fn small_sum(a: (i64, i32), b: (i64, i32)) -> Option<(i64, i32)> {
    match (a, b) {
        ((0, _), other) | (other, (0, _)) => Some(other),
        ((x, p), (y, q)) if p >= q => {
            let x = x.checked_mul(10i64.checked_pow((p - q) as u32)?)?;
            Some((x.checked_add(y)?, q))
        }
        _ => small_sum(b, a),
    }
}

/// What upstream keeps as a number and a power of ten: up to 18 digits, fewer with binary suffixes.
fn small(whole: &str, fraction: &str, scale: &Scale) -> Option<(i64, i32)> {
    let digits = whole.len() + fraction.len();
    let (factor, power) = match scale {
        Scale::Decimal(power) if digits <= 18 => (1, power - fraction.len() as i32),
        Scale::Binary(power) if fraction.is_empty() => {
            let used = digits + (power * 10) as usize * 3 / 10 + 1;
            if used > 15 {
                return None;
            }
            (1i64 << (10 * power), 0)
        }
        _ => return None,
    };
    if power < -9 {
        return None;
    }
    let number = format!("{whole}{fraction}");
    let value: i64 = if number.is_empty() { 0 } else { number.parse().ok()? };
    Some((value.checked_mul(factor)?, power))
}

/// Billionths, rounded up, at most `MAGNITUDE_MAX`.
fn magnitude(whole: &str, fraction: &str, scale: &Scale) -> i128 {
    let mut digits: i128 = 0;
    // The power of ten that the digits stand before.
    let mut exponent: i32 = 9 - fraction.len().min(1_000_000) as i32;
    let mut inexact = false;
    for digit in whole.bytes().chain(fraction.bytes()) {
        if digits < 10i128.pow(27) {
            digits = digits * 10 + i128::from(digit - b'0');
        } else {
            inexact |= digit != b'0';
            exponent += 1;
        }
    }
    let most = MAGNITUDE_MAX;
    if digits == 0 {
        return i128::from(inexact);
    }
    match scale {
        Scale::Decimal(power) => exponent += power,
        Scale::Binary(power) => {
            for _ in 0..*power {
                digits = match digits.checked_mul(1024) {
                    Some(product) => product,
                    None => return most,
                };
            }
        }
    }
    while exponent > 0 {
        digits = match digits.checked_mul(10) {
            Some(product) if product <= most => product,
            _ => return most,
        };
        exponent -= 1;
    }
    while exponent < 0 && digits > 0 {
        inexact |= digits % 10 != 0;
        digits /= 10;
        exponent += 1;
    }
    (digits + i128::from(inexact)).min(most)
}

fn get(value: Option<&Val<'_>>) -> Result<Quantity> {
    match value {
        Some(Val::Opaque(opaque)) => match &**opaque {
            Opaque::Quantity(quantity) => Ok(*quantity),
            _ => Err(Error::overload()),
        },
        _ => Err(Error::overload()),
    }
}

fn made<'a>(quantity: Quantity) -> Val<'a> {
    Val::opaque(Opaque::Quantity(quantity))
}

pub fn quantity<'a>(args: &[Val<'a>]) -> Result<Val<'a>> {
    let [Val::String(text)] = args else { return Err(Error::overload()) };
    Quantity::parse(text).map(made).map_err(Error::new)
}

pub fn is_quantity<'a>(args: &[Val<'a>]) -> Result<Val<'a>> {
    let [Val::String(text)] = args else { return Err(Error::overload()) };
    Ok(Val::Bool(Quantity::parse(text).is_ok()))
}

pub fn is_integer<'a>(args: &[Val<'a>]) -> Result<Val<'a>> {
    Ok(Val::Bool(get(args.first())?.as_integer().is_some()))
}

pub fn as_integer<'a>(args: &[Val<'a>]) -> Result<Val<'a>> {
    let integer = get(args.first())?.as_integer();
    integer.map(Val::Int).ok_or_else(|| Error::new("cannot convert value to integer"))
}

pub fn as_float<'a>(args: &[Val<'a>]) -> Result<Val<'a>> {
    let quantity = get(args.first())?;
    let text = format!("{}e-9", quantity.nano);
    Ok(Val::Double(text.parse().unwrap_or(f64::NAN)))
}

pub fn sign<'a>(args: &[Val<'a>]) -> Result<Val<'a>> {
    Ok(Val::Int(get(args.first())?.nano.signum() as i64))
}

fn other(args: &[Val<'_>]) -> Result<Quantity> {
    match args.get(1) {
        Some(Val::Int(i)) => Ok(Quantity { nano: i128::from(*i) * NANO, small: Some((*i, 0)) }),
        value => get(value),
    }
}

pub fn add<'a>(args: &[Val<'a>]) -> Result<Val<'a>> {
    Ok(made(get(args.first())?.plus(other(args)?)))
}

pub fn sub<'a>(args: &[Val<'a>]) -> Result<Val<'a>> {
    Ok(made(get(args.first())?.plus(other(args)?.negated())))
}

fn order(args: &[Val<'_>]) -> Result<std::cmp::Ordering> {
    Ok(get(args.first())?.nano.cmp(&get(args.get(1))?.nano))
}

pub fn is_less_than<'a>(args: &[Val<'a>]) -> Result<Val<'a>> {
    order(args).map(|order| Val::Bool(order.is_lt()))
}

pub fn is_greater_than<'a>(args: &[Val<'a>]) -> Result<Val<'a>> {
    order(args).map(|order| Val::Bool(order.is_gt()))
}

pub fn compare_to<'a>(args: &[Val<'a>]) -> Result<Val<'a>> {
    order(args).map(|order| Val::Int(order as i64))
}
