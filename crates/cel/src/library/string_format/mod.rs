//! The `format` function: the clauses of its format strings, and how they print values.

mod latest;

use super::standard::plain;
use crate::limits::PRECISION_MAX;
use crate::value::{Error, Result, Val, time};
use crate::work;
use machinery::value::{quote, shortest};

/// A clause of a format string, such as `%.2f`.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Clause {
    pub verb: char,
    pub precision: Option<usize>,
}

/// A part of a format string: literal text or a clause.
#[derive(Debug)]
pub(crate) enum FormatPart<'t> {
    Text(&'t str),
    Clause(Clause),
}

/// Calls `each` for each part of a format string, with the number of clauses before it, and returns the number of all
/// clauses. Fails at a malformed clause, at a clause for which `args` arguments are too few, or when `each` fails.
pub(crate) fn parts<'t>(
    text: &'t str,
    args: usize,
    mut each: impl FnMut(FormatPart<'t>, usize) -> std::result::Result<(), String>,
) -> std::result::Result<usize, String> {
    let mut rest = text;
    let mut index = 0;
    while !rest.is_empty() {
        let Some(at) = rest.find('%') else {
            each(FormatPart::Text(rest), index)?;
            break;
        };
        if at > 0 {
            each(FormatPart::Text(&rest[..at]), index)?;
        }
        rest = &rest[at + 1..];
        if let Some(after) = rest.strip_prefix('%') {
            each(FormatPart::Text("%"), index)?;
            rest = after;
            continue;
        }
        if rest.is_empty() {
            return Err("unexpected end of string".to_owned());
        }
        if index >= args {
            return Err(format!("index {index} out of range"));
        }
        let (clause, after) = clause(rest).map_err(|e| format!("could not parse formatting clause: {e}"))?;
        each(FormatPart::Clause(clause), index)?;
        rest = after;
        index += 1;
    }
    Ok(index)
}

fn clause(text: &str) -> std::result::Result<(Clause, &str), String> {
    let mut rest = text;
    let mut precision = None;
    if let Some(after) = rest.strip_prefix('.') {
        let length = after.bytes().take_while(u8::is_ascii_digit).count();
        if length == after.len() {
            return Err("error while parsing precision: could not find end of precision specifier".to_owned());
        }
        let digits = &after[..length];
        precision = Some(digits.parse::<usize>().map_err(|_| {
            let why = if digits.is_empty() { "invalid syntax" } else { "value out of range" };
            let number = format!("strconv.Atoi: parsing {}: {why}", quote(digits));
            format!("error while parsing precision: error while converting precision to integer: {number}")
        })?);
        rest = &after[length..];
    }
    match rest.chars().next() {
        Some(verb @ ('s' | 'd' | 'f' | 'e' | 'b' | 'x' | 'X' | 'o')) => Ok((Clause { verb, precision }, &rest[1..])),
        Some(other) => Err(format!("unrecognized formatting clause \"{other}\"")),
        None => Err("unexpected end of string".to_owned()),
    }
}

/// The message for an argument whose type, here called `name`, the clause does not take.
pub(crate) fn wrong_type(verb: char, name: &str) -> String {
    let text = match verb {
        's' => {
            "string clause can only be used on strings, bools, bytes, ints, doubles, maps, lists, types, durations, and timestamps"
        }
        'd' => "decimal clause can only be used on integers",
        'f' => "fixed-point clause can only be used on doubles",
        'e' => "scientific clause can only be used on doubles",
        'b' => "only integers and bools can be formatted as binary",
        'x' | 'X' => "only integers, byte buffers, and strings can be formatted as hex",
        _ => "octal clause can only be used on integers",
    };
    format!("error during formatting: {text}, was given {name}")
}

/// `format` of version 2 of cel-go's strings extension, which Kubernetes uses.
pub fn format<'a>(args: &[Val<'a>]) -> Result<Val<'a>> {
    format_by(args, print)
}

/// `format` of the latest version of the extension, which neither groups digits nor raises exponents nor quotes values.
pub fn format_latest<'a>(args: &[Val<'a>]) -> Result<Val<'a>> {
    format_by(args, latest::print)
}

fn format_by<'a>(args: &[Val<'a>], print: fn(Clause, &Val<'_>) -> Option<String>) -> Result<Val<'a>> {
    let [Val::String(text), Val::List(list)] = args else { return Err(Error::overload()) };
    let mut out = String::new();
    parts(text, list.len(), |part, index| {
        match part {
            FormatPart::Text(text) => out.push_str(text),
            FormatPart::Clause(clause) => {
                let arg = list.get(index).unwrap_or_else(|| Err(Error::overload()));
                let arg = arg.map_err(|e| e.text().to_owned())?;
                let shown = print(clause, &arg).ok_or_else(|| refusal(clause.verb, &arg))?;
                out.push_str(&shown);
            }
        }
        Ok(())
    })
    .map_err(Error::new)?;
    Ok(Val::string(out))
}

/// The message for an argument that `print` has returned nothing for.
fn refusal(verb: char, arg: &Val<'_>) -> String {
    match (verb, arg) {
        // only bytes that are not UTF-8 get here
        ('s', Val::Bytes(_)) => {
            let why = quote("invalid UTF-8 in bytes, cannot convert to string");
            format!("error during formatting: could not convert argument {why} to string")
        }
        _ => wrong_type(verb, &arg.type_of().runtime_name()),
    }
}

fn print(clause: Clause, value: &Val<'_>) -> Option<String> {
    Some(match (clause.verb, value) {
        ('s', value) => text(value)?,
        ('d', Val::Int(_) | Val::Uint(_)) => plain(value),
        ('f', value) => fixed(unsigned_zero(float(value)?), clause.precision.unwrap_or(6).min(PRECISION_MAX)),
        ('e', value) => scientific(unsigned_zero(float(value)?), clause.precision.unwrap_or(6).min(PRECISION_MAX)),
        ('b', Val::Bool(b)) => if *b { "1" } else { "0" }.to_owned(),
        ('b', value) => signed(value, |n| format!("{n:b}"))?,
        ('o', value) => signed(value, |n| format!("{n:o}"))?,
        ('x' | 'X', value) => {
            let hex: String = match value {
                Val::String(s) => s.bytes().map(|b| format!("{b:02x}")).collect(),
                Val::Bytes(bytes) => bytes.iter().map(|b| format!("{b:02x}")).collect(),
                value => signed(value, |n| format!("{n:x}"))?,
            };
            if clause.verb == 'X' { hex.to_ascii_uppercase() } else { hex }
        }
        _ => return None,
    })
}

fn signed(value: &Val<'_>, show: fn(u64) -> String) -> Option<String> {
    match value {
        Val::Int(i) if *i < 0 => Some(format!("-{}", show(i.unsigned_abs()))),
        Val::Int(i) => Some(show(*i as u64)),
        Val::Uint(u) => Some(show(*u)),
        _ => None,
    }
}

/// A double, or a string that names one without digits, such as `NaN`.
fn float(value: &Val<'_>) -> Option<f64> {
    match value {
        Val::Double(d) => Some(*d),
        Val::String(s) => match &**s {
            "NaN" => Some(f64::NAN),
            "Infinity" => Some(f64::INFINITY),
            "-Infinity" => Some(f64::NEG_INFINITY),
            _ => None,
        },
        _ => None,
    }
}

/// Drops the sign of a negative zero, as upstream's localized number formatting does.
fn unsigned_zero(d: f64) -> f64 {
    if d == 0.0 { 0.0 } else { d }
}

/// Numbers without digits, as upstream's localized number formatting prints them.
fn special(d: f64) -> Option<&'static str> {
    if d.is_nan() {
        Some("NaN")
    } else if d == f64::INFINITY {
        Some("∞")
    } else if d == f64::NEG_INFINITY {
        Some("-∞")
    } else {
        None
    }
}

/// Groups digits by three: upstream formats numbers for an English reader.
fn fixed(d: f64, precision: usize) -> String {
    if let Some(name) = special(d) {
        return name.to_owned();
    }
    let text = format!("{d:.precision$}");
    let (sign, text) = text.strip_prefix('-').map_or(("", text.as_str()), |rest| ("-", rest));
    let (whole, fraction) = text.split_once('.').map_or((text, None), |(w, f)| (w, Some(f)));
    let mut out = sign.to_owned();
    for (i, c) in whole.chars().enumerate() {
        if i > 0 && (whole.len() - i) % 3 == 0 {
            out.push(',');
        }
        out.push(c);
    }
    if let Some(fraction) = fraction {
        out.push('.');
        out.push_str(fraction);
    }
    out
}

/// Always six decimals: upstream passes the precision as the width, so it only adds blanks.
fn scientific(d: f64, width: usize) -> String {
    let text = match special(d) {
        Some(name) => name.to_owned(),
        None => {
            let text = format!("{d:.6e}");
            let (mantissa, exponent) = text.split_once('e').unwrap_or((&text, "0"));
            let (sign, digits) = exponent.strip_prefix('-').map_or(("", exponent), |rest| ("⁻", rest));
            const RAISED: [char; 10] = ['⁰', '¹', '²', '³', '⁴', '⁵', '⁶', '⁷', '⁸', '⁹'];
            let raised: String =
                format!("{digits:0>2}").bytes().filter_map(|b| RAISED.get(usize::from(b - b'0'))).collect();
            format!("{mantissa}×10{sign}{raised}")
        }
    };
    let missing = width.saturating_sub(text.chars().count());
    format!("{}{text}", " ".repeat(missing))
}

/// The length of a string or of bytes; 0 for other values.
fn bytes(value: &Val<'_>) -> usize {
    match value {
        Val::String(text) => text.len(),
        Val::Bytes(bytes) => bytes.len(),
        _ => 0,
    }
}

/// `%s` of a value; `None` if it has no text, or if printing it would take too much work.
fn text(value: &Val<'_>) -> Option<String> {
    work::step(1)?;
    work::make(bytes(value))?;
    Some(match value {
        Val::Null => "null".to_owned(),
        Val::Double(d) => shortest::float(*d),
        Val::Bool(_) | Val::Int(_) | Val::Uint(_) | Val::String(_) => plain(value),
        Val::Bytes(bytes) => std::str::from_utf8(bytes).ok()?.to_owned(),
        Val::Duration(d) => time::duration_text(*d),
        Val::Timestamp(t) => time::timestamp_text(*t),
        Val::Type(t) => t.runtime_name().to_string(),
        Val::List(list) => {
            let items: Option<Vec<String>> = list.iter().map(|item| nested(&item.ok()?)).collect();
            format!("[{}]", items?.join(", "))
        }
        Val::Map(map) => {
            let mut entries = vec![];
            for key in map.keys() {
                let value = nested(&map.get(&key)?.ok()?)?;
                let name = plain(&key);
                entries.push((if matches!(key, Val::String(_)) { quote(&name) } else { name }, value));
            }
            // as upstream, entries are in the order of their printed keys, quotes included
            entries.sort();
            let entries: Vec<String> = entries.into_iter().map(|(key, value)| format!("{key}:{value}")).collect();
            format!("{{{}}}", entries.join(", "))
        }
        Val::Optional(_) | Val::Opaque(_) | Val::Authorization(_) | Val::Preserved(_) => return None,
    })
}

/// `%s` of a value inside a list or map, where texts are quoted and doubles have six decimals.
fn nested(value: &Val<'_>) -> Option<String> {
    work::step(1)?;
    work::make(bytes(value))?;
    Some(match value {
        Val::String(s) => quote(s),
        Val::Bytes(bytes) => format!("b{}", quote(std::str::from_utf8(bytes).ok()?)),
        Val::Double(d) if special(*d).is_some() => quote(&shortest::float(*d)),
        Val::Double(d) => format!("{d:.6}"),
        Val::Duration(d) => format!("duration({})", quote(&time::duration_text(*d))),
        Val::Timestamp(t) => format!("timestamp({})", quote(&time::timestamp_text(*t))),
        other => text(other)?,
    })
}
