//! The shortest decimal digits that parse as the same double. Ties between two candidates go to the even digit, as in
//! Go.
/// Below this value no tie occurs: half of the last digit is not a double.
const HALVES_FROM: f64 = (1u64 << 49) as f64;
/// The maximum number of digits of a whole double after the first one.
const DIGITS_MAX: usize = 309;

/// `1.5e15`: digits and an exponent.
pub fn scientific(f: f64) -> String {
    let text = format!("{f:e}");
    if f.is_finite() && f.abs() >= HALVES_FROM { even_candidate(f, &text).unwrap_or(text) } else { text }
}

/// `1500000000000000`: digits without an exponent.
pub fn decimal(f: f64) -> String {
    if !f.is_finite() || f.abs() < HALVES_FROM {
        return format!("{f}");
    }
    let text = scientific(f);
    let (mantissa, exponent) = text.split_once('e').unwrap_or((&text, "0"));
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    let places = exponent.parse().unwrap_or(0);
    if fraction.len() > places {
        let (more, fraction) = fraction.split_at(places);
        return format!("{whole}{more}.{fraction}");
    }
    format!("{whole}{fraction:0<places$}")
}

/// `%v` of a float64: shortest digits, an exponent below 1e-4 and from 1e6 on.
pub fn float(f: f64) -> String {
    float_below(f, 1e6)
}

/// As [`float`], with an exponent from `limit` on.
pub fn float_below(f: f64, limit: f64) -> String {
    if f.is_nan() {
        return "NaN".to_owned();
    }
    if f.is_infinite() {
        return if f > 0.0 { "+Inf" } else { "-Inf" }.to_owned();
    }
    if f == 0.0 || (1e-4..limit).contains(&f.abs()) { decimal(f) } else { with_exponent(&scientific(f)) }
}

/// As [`float`], of a float32.
pub fn float32(f: f32) -> String {
    let size = f.abs();
    if !f.is_finite() {
        return float(f.into());
    }
    if f == 0.0 || (1e-4..1e6).contains(&size) { format!("{f}") } else { with_exponent(&format!("{f:e}")) }
}

/// An exponent with its sign and at least two digits.
pub fn with_exponent(text: &str) -> String {
    let (digits, exponent) = text.split_once('e').unwrap_or((text, "0"));
    let (sign, exponent) = exponent.strip_prefix('-').map_or(('+', exponent), |e| ('-', e));
    format!("{digits}e{sign}{exponent:0>2}")
}

/// The candidate below `text`, if `f` is exactly halfway between the two and the last digit of the candidate is even.
fn even_candidate(f: f64, text: &str) -> Option<String> {
    let (mantissa, exponent) = text.split_once('e')?;
    let exact = format!("{f:.DIGITS_MAX$e}");
    let (below, rest) = exact.strip_suffix(&format!("e{exponent}"))?.split_at(mantissa.len());
    let is_half = rest.trim_start_matches('.').trim_end_matches('0') == "5";
    let is_even = below.ends_with(['0', '2', '4', '6', '8']);
    if !is_half || !is_even {
        return None;
    }
    let digits = below.trim_end_matches('0').trim_end_matches('.');
    let shown = format!("{}e{exponent}", if below.contains('.') { digits } else { below });
    (shown.parse() == Ok(f)).then_some(shown)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ties_round_to_even() {
        let cases = [
            ("1600012345678901.25", "1.6000123456789012e15", "1600012345678901.2"),
            ("1600012345678901.75", "1.6000123456789018e15", "1600012345678901.8"),
            ("-1600012345678901.25", "-1.6000123456789012e15", "-1600012345678901.2"),
            ("1125899906842625.25", "1.1258999068426252e15", "1125899906842625.2"),
            ("1e15", "1e15", "1000000000000000"),
            ("9007199254740993.0", "9.007199254740992e15", "9007199254740992"),
            ("1e22", "1e22", "10000000000000000000000"),
            ("0.1", "1e-1", "0.1"),
        ];
        for (text, with_exponent, without) in cases {
            let f = text.parse().expect("a double");
            assert_eq!((scientific(f).as_str(), decimal(f).as_str()), (with_exponent, without));
        }
    }
}
