//! Resolution of scalars: the types of YAML 1.1 as go-yaml v2 implements them.

use super::error::YamlProblem;
use crate::value::{Text, Value, float_text, lossy, shortest};

const TAG_PREFIX: &str = "tag:yaml.org,2002:";

/// A scalar with its Go type.
#[derive(Clone, Debug, PartialEq)]
pub enum Scalar {
    Null,
    Bool(bool),
    Int(i64),
    /// An integer that is too large for [`Scalar::Int`].
    Uint(u64),
    /// A float, which may be infinite or NaN.
    Float(f64),
    Text(Text),
}

impl Scalar {
    /// The value after a round trip through JSON, which turns a float without a fraction into an integer.
    pub fn into_value(self) -> Value {
        match self {
            Scalar::Null => Value::Null,
            Scalar::Bool(b) => Value::Bool(b),
            Scalar::Int(i) => Value::Int(i),
            Scalar::Uint(u) => Value::Float(u as f64),
            Scalar::Float(f) => through_json(f),
            Scalar::Text(text) => Value::String(text),
        }
    }

    fn short_tag(&self) -> &'static str {
        match self {
            Scalar::Null => "null",
            Scalar::Bool(_) => "bool",
            Scalar::Int(_) | Scalar::Uint(_) => "int",
            Scalar::Float(_) => "float",
            Scalar::Text(_) => "str",
        }
    }
}

/// The number that Go's JSON decoder reads from what its encoder writes for `f`.
fn through_json(f: f64) -> Value {
    if f.is_finite() && f.fract() == 0.0 && f.abs() < 1e21 {
        return float_text(f).parse().map_or(Value::Float(f), Value::Int);
    }
    Value::Float(f)
}

/// Changes the floats of a value that was decoded as JSON to the numbers that decoding as YAML would return.
pub fn reread(value: &mut Value) {
    match value {
        Value::Float(f) => *value = through_json(*f),
        Value::Array(items) => items.iter_mut().for_each(reread),
        Value::Object(map) => map.values_mut().for_each(reread),
        _ => {}
    }
}

/// Resolves a scalar with a tag. A tag of an unknown type makes it a string.
pub fn tagged(text: &Text, tag: &str) -> Result<Scalar, YamlProblem> {
    let name = tag.strip_prefix(TAG_PREFIX).unwrap_or_default();
    let found = match name {
        "binary" => return binary(text),
        "null" | "bool" | "int" | "float" => untagged(text),
        "timestamp" if timestamp::is_valid(text) => return Ok(Scalar::Text(text.clone())),
        "timestamp" => untagged(text),
        _ => return Ok(Scalar::Text(text.clone())),
    };
    match found {
        Scalar::Int(i) if name == "float" => Ok(Scalar::Float(i as f64)),
        found if found.short_tag() == name => Ok(found),
        found => {
            let why = format!("cannot decode !!{} `{text}` as a !!{name}", found.short_tag());
            Err(YamlProblem::Document(why))
        }
    }
}

fn binary(text: &str) -> Result<Scalar, YamlProblem> {
    use base64::Engine as _;
    use base64::engine::{GeneralPurpose, GeneralPurposeConfig};
    let lenient = GeneralPurposeConfig::new().with_decode_allow_trailing_bits(true);
    let bytes = GeneralPurpose::new(&base64::alphabet::STANDARD, lenient).decode(text.replace(['\n', '\r'], ""));
    let bytes = bytes.map_err(|_| YamlProblem::Document("!!binary value contains invalid base64 data".to_owned()))?;
    Ok(Scalar::Text(lossy(&bytes).into()))
}

/// Resolves a scalar without quotes and without a tag.
pub fn untagged(text: &Text) -> Scalar {
    match text.as_str() {
        "" | "~" | "null" | "Null" | "NULL" => return Scalar::Null,
        "true" | "True" | "TRUE" | "yes" | "Yes" | "YES" | "on" | "On" | "ON" | "y" | "Y" => return Scalar::Bool(true),
        "false" | "False" | "FALSE" | "no" | "No" | "NO" | "off" | "Off" | "OFF" | "n" | "N" => {
            return Scalar::Bool(false);
        }
        ".inf" | ".Inf" | ".INF" | "+.inf" | "+.Inf" | "+.INF" => return Scalar::Float(f64::INFINITY),
        "-.inf" | "-.Inf" | "-.INF" => return Scalar::Float(f64::NEG_INFINITY),
        ".nan" | ".NaN" | ".NAN" => return Scalar::Float(f64::NAN),
        _ => {}
    }
    let found = match text.as_bytes()[0] {
        b'.' => fraction(text),
        b'0'..=b'9' | b'+' | b'-' => number(&text.replace('_', "")),
        _ => None,
    };
    found.unwrap_or_else(|| Scalar::Text(text.clone()))
}

/// A float such as `.5`. Underscores are allowed between digits only, as in Go's literals.
fn fraction(text: &str) -> Option<Scalar> {
    let bytes = text.as_bytes();
    let is_digit = |at: Option<usize>| at.and_then(|at| bytes.get(at)).is_some_and(u8::is_ascii_digit);
    let is_separator = |at: usize| is_digit(at.checked_sub(1)) && is_digit(Some(at + 1));
    if bytes.iter().enumerate().any(|(at, byte)| *byte == b'_' && !is_separator(at)) {
        return None;
    }
    float(&text.replace('_', ""))
}

fn number(plain: &str) -> Option<Scalar> {
    integer(plain).or_else(|| float(plain)).or_else(|| {
        // Go's integer parser rejects a sign after the prefix
        let digits = plain.strip_prefix("0b").filter(|digits| digits.starts_with(['+', '-']))?;
        i64::from_str_radix(digits, 2).ok().map(Scalar::Int)
    })
}

/// A float of decimal digits with an optional point and exponent; `None` if it overflows.
fn float(plain: &str) -> Option<Scalar> {
    let body = plain.strip_prefix(['+', '-']).unwrap_or(plain);
    let (mantissa, exponent) = body.split_once(['e', 'E']).unwrap_or((body, "0"));
    let exponent = exponent.strip_prefix(['+', '-']).unwrap_or(exponent);
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    let is_digits = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
    if (whole.is_empty() && fraction.is_empty()) || exponent.is_empty() {
        return None;
    }
    if !is_digits(whole) || !is_digits(fraction) || !is_digits(exponent) {
        return None;
    }
    plain.parse::<f64>().ok().filter(|f| f.is_finite()).map(Scalar::Float)
}

/// Integers in the notations of Go's literals.
fn integer(plain: &str) -> Option<Scalar> {
    let (sign, body) = match plain.as_bytes().first()? {
        b'-' => ("-", &plain[1..]),
        b'+' => ("+", &plain[1..]),
        _ => ("", plain),
    };
    let lower = body.get(..2).unwrap_or_default().to_ascii_lowercase();
    let (radix, digits) = match lower.as_str() {
        "0x" => (16, &body[2..]),
        "0o" => (8, &body[2..]),
        "0b" => (2, &body[2..]),
        _ if body.len() > 1 && body.starts_with('0') => (8, &body[1..]),
        _ => (10, body),
    };
    if digits.is_empty() || !digits.bytes().all(|byte| char::from(byte).is_digit(radix)) {
        return None;
    }
    let magnitude = u64::from_str_radix(digits, radix).ok()?;
    let signed = if sign == "-" { -i128::from(magnitude) } else { i128::from(magnitude) };
    match i64::try_from(signed) {
        Ok(i) => Some(Scalar::Int(i)),
        // an unsigned 64-bit integer, for which Go's parser does not accept a sign
        Err(_) => sign.is_empty().then_some(Scalar::Uint(magnitude)),
    }
}

/// The JSON form of a key. `None` for null and for integers that do not fit a signed 64-bit integer.
pub fn key_text(key: &Scalar) -> Option<Text> {
    Some(match key {
        Scalar::Text(text) => text.clone(),
        Scalar::Bool(b) => if *b { "true" } else { "false" }.into(),
        Scalar::Int(i) => i.to_string().into(),
        Scalar::Float(f) if f.is_nan() => ".nan".into(),
        Scalar::Float(f) => match shortest::float32(*f as f32).as_str() {
            "+Inf" => ".inf".into(),
            "-Inf" => "-.inf".into(),
            text => text.into(),
        },
        Scalar::Null | Scalar::Uint(_) => return None,
    })
}

pub mod timestamp {
    //! The formats of YAML 1.1 timestamps that go-yaml v2 knows.

    pub fn is_valid(text: &str) -> bool {
        let mut rest = text;
        parse(&mut rest).is_some() && rest.is_empty()
    }

    /// Consumes one to `most` digits; `None` if their number is greater than `bound`.
    fn number(rest: &mut &str, most: usize, bound: u32) -> Option<u32> {
        let digits = rest.bytes().take(most).take_while(u8::is_ascii_digit).count();
        let number = rest.get(..digits)?.parse().ok()?;
        *rest = rest.get(digits..)?;
        (number <= bound).then_some(number)
    }

    fn literal(rest: &mut &str, literal: &str) -> Option<()> {
        *rest = rest.strip_prefix(literal)?;
        Some(())
    }

    fn parse(rest: &mut &str) -> Option<()> {
        if rest.bytes().take_while(u8::is_ascii_digit).count() != 4 {
            return None;
        }
        let year = number(rest, 4, 9999)?;
        literal(rest, "-")?;
        let month = number(rest, 2, 12)?;
        literal(rest, "-")?;
        let day = number(rest, 2, 31)?;
        crate::time::days_from_civil(year.into(), month.into(), day.into())?;
        if rest.is_empty() {
            return Some(());
        }
        let has_zone = literal(rest, "T").or_else(|| literal(rest, "t")).is_some();
        if !has_zone {
            literal(rest, " ")?;
        }
        time(rest)?;
        if has_zone { zone(rest) } else { Some(()) }
    }

    fn time(rest: &mut &str) -> Option<()> {
        number(rest, 2, 23)?;
        literal(rest, ":")?;
        number(rest, 2, 59)?;
        literal(rest, ":")?;
        number(rest, 2, 59)?;
        if let Some(fraction) = rest.strip_prefix(['.', ',']) {
            let digits = fraction.bytes().take_while(u8::is_ascii_digit).count();
            *rest = fraction.get(digits..).filter(|_| digits > 0)?;
        }
        Some(())
    }

    fn zone(rest: &mut &str) -> Option<()> {
        if literal(rest, "Z").is_some() {
            return Some(());
        }
        *rest = rest.strip_prefix(['+', '-'])?;
        let digits = rest.as_bytes();
        let two = |at: usize| digits.get(at..at + 2).is_some_and(|two| two.iter().all(u8::is_ascii_digit));
        if !two(0) || digits.get(2) != Some(&b':') || !two(3) {
            return None;
        }
        number(rest, 2, 24)?;
        literal(rest, ":")?;
        number(rest, 2, 60).map(drop)
    }
}
