//! Amounts: an integer times a power of ten. Small integers take 64 bits, as in upstream's `int64Amount`.

use crate::limits::QUANTITY_DIGITS_APART_MAX;
use num_bigint::{BigInt, Sign};
use std::cmp::Ordering;

/// `value` times ten to the `power`.
#[derive(Clone, Debug)]
pub(super) enum Amount {
    Small { value: i64, power: i32 },
    Big { value: BigInt, power: i32 },
}

/// A power of ten as Go's `math.Pow10` computes it: the product or quotient of two powers that are exact.
fn power_of_ten(power: i32) -> f64 {
    let exact = |power: i32| format!("1e{power}").parse().unwrap_or(f64::NAN);
    match power {
        ..=-324 => 0.0,
        -323..=-1 => exact(power / 32 * 32) / exact(-(power % 32)),
        0..=308 => exact(power / 32 * 32) * exact(power % 32),
        309.. => f64::INFINITY,
    }
}

const MILLI: i32 = -3;

/// `value` times ten to the `power`, unless it overflows.
pub(super) fn raised(value: i64, power: u32) -> Option<i64> {
    if value == 0 { Some(0) } else { value.checked_mul(10i64.checked_pow(power)?) }
}

/// `value` times ten to the `power`, with the overflows of Go's `positiveScaleInt64`: some powers are one multiplication,
/// which wraps around; others are repeated multiplications, after which zero is left.
fn scaled_up(value: i64, power: u32) -> i64 {
    let overflowed = || match power {
        1 | 2 | 3 | 6 | 9 if value != i64::MIN => value.wrapping_mul(10i64.pow(power)),
        _ => 0,
    };
    raised(value, power).unwrap_or_else(overflowed)
}

/// The lowest 64 bits of an integer in two's complement.
fn low_bits(value: &BigInt) -> i64 {
    let low = value.magnitude().iter_u64_digits().next().unwrap_or_default().cast_signed();
    if value.sign() == Sign::Minus { low.wrapping_neg() } else { low }
}

/// Ten to the `power` as Go on amd64 converts it from a float to 64 bits. Powers that are too large become the smallest
/// integer.
fn power_as_integer(power: u32) -> i64 {
    10i64.checked_pow(power).unwrap_or(i64::MIN)
}

fn ten(power: u32) -> BigInt {
    BigInt::from(10).pow(power)
}

/// The quotient, rounded away from zero.
pub(super) fn divided_up(value: &BigInt, divisor: &BigInt) -> BigInt {
    let (quotient, rest) = (value / divisor, value % divisor);
    match rest.sign() {
        Sign::NoSign => quotient,
        Sign::Plus => quotient + 1,
        Sign::Minus => quotient - 1,
    }
}

impl Amount {
    /// The number of units of ten to the power `unit`, rounded away from zero. As in Go, a number that does not fit 64
    /// bits becomes its lowest 64 bits, or zero; see [`scaled_up`].
    pub(super) fn units(&self, unit: i32) -> i64 {
        match self {
            Amount::Small { value, power } => match power.saturating_sub(unit) {
                shift @ 0.. => scaled_up(*value, shift.unsigned_abs()),
                shift => match 10i64.checked_pow(shift.unsigned_abs()) {
                    Some(divisor) => value / divisor + (value % divisor).signum(),
                    None => value.signum(),
                },
            },
            Amount::Big { value, power } => match power.saturating_sub(unit) {
                shift @ 0.. => low_bits(value).wrapping_mul(power_as_integer(shift.unsigned_abs())),
                shift if u64::from(shift.unsigned_abs()) > value.bits() => self.signum(),
                shift => low_bits(&divided_up(value, &ten(shift.unsigned_abs()))),
            },
        }
    }

    pub(super) fn signum(&self) -> i64 {
        match self {
            Amount::Small { value, .. } => value.signum(),
            Amount::Big { value, .. } => match value.sign() {
                Sign::Minus => -1,
                Sign::NoSign => 0,
                Sign::Plus => 1,
            },
        }
    }

    pub(super) fn negated(&self) -> Amount {
        match self {
            Amount::Small { value, power } => Amount::Small { value: value.wrapping_neg(), power: *power },
            Amount::Big { value, power } => Amount::Big { value: -value, power: *power },
        }
    }

    pub(super) fn parts(&self) -> (BigInt, i32) {
        match self {
            Amount::Small { value, power } => (BigInt::from(*value), *power),
            Amount::Big { value, power } => (value.clone(), *power),
        }
    }

    /// The sum. If the exponents differ too much for an exact sum, it is the greater summand.
    pub(super) fn plus(&self, other: &Amount) -> Amount {
        if let (Amount::Small { value: a, power: p }, Amount::Small { value: b, power: q }) = (self, other)
            && let Some(sum) = small_sum((*a, *p), (*b, *q))
        {
            return sum;
        }
        match aligned(self, other) {
            Some((a, b, power)) => Amount::Big { value: a + b, power },
            None if self.magnitude() >= other.magnitude() => self.clone(),
            None => other.clone(),
        }
    }

    /// The difference. As in upstream, small amounts are negated and added, which overflows for the smallest 64-bit
    /// integer.
    pub(super) fn minus(&self, other: &Amount) -> Amount {
        if let (Amount::Small { value: a, power: p }, Amount::Small { value: b, power: q }) = (self, other)
            && let Some(sum) = small_sum((*a, *p), (b.wrapping_neg(), *q))
        {
            return sum;
        }
        let (value, power) = other.parts();
        self.plus(&Amount::Big { value: -value, power })
    }

    pub(super) fn is_multiple_of(&self, step: &Amount) -> bool {
        let rest = aligned(self, step).filter(|_| step.signum() != 0).map(|(a, b, _)| a % b);
        rest.is_some_and(|rest| rest.sign() == Sign::NoSign)
    }

    pub(super) fn compare(&self, other: &Amount) -> Ordering {
        let (sign, of_other) = (self.signum(), other.signum());
        if sign != of_other || sign == 0 {
            return sign.cmp(&of_other);
        }
        match aligned(self, other) {
            Some((a, b, _)) => a.cmp(&b),
            None => (self.magnitude() * sign).cmp(&(other.magnitude() * sign)),
        }
    }

    /// The power of ten of the first digit.
    fn magnitude(&self) -> i64 {
        let (value, power) = self.parts();
        value.magnitude().to_string().len() as i64 + i64::from(power)
    }

    pub(super) fn approximate(&self) -> f64 {
        let (base, power) = match self {
            Amount::Small { value, power } => (*value as f64, *power),
            // parsing the digits rounds in the same way as converting the integer
            Amount::Big { value, power } => (value.to_string().parse().unwrap_or(f64::NAN), *power),
        };
        if power == 0 { base } else { base * power_of_ten(power) }
    }

    /// The amount rounded away from zero to thousandths; `None` if it is a multiple of a thousandth already.
    pub(super) fn rounded_to_thousandths(&self) -> Option<Amount> {
        let (value, power) = self.parts();
        let finer = MILLI.saturating_sub(power).clamp(0, QUANTITY_DIGITS_APART_MAX as i32).unsigned_abs();
        let rounded = divided_up(&value, &ten(finer));
        (finer > 0 && &rounded * ten(finer) != value).then(|| match i64::try_from(&rounded) {
            Ok(value) => Amount::Small { value, power: MILLI },
            Err(_) => Amount::Big { value: rounded, power: MILLI },
        })
    }
}

/// The sum of two small amounts if it is small, at the smaller power of ten.
fn small_sum(a: (i64, i32), b: (i64, i32)) -> Option<Amount> {
    let (value, power) = match (a, b) {
        (amount, (0, _)) | ((0, _), amount) => amount,
        ((x, p), (y, q)) if p >= q => (raised(x, p.abs_diff(q))?.checked_add(y)?, q),
        ((x, p), (y, q)) => (raised(y, p.abs_diff(q))?.checked_add(x)?, p),
    };
    Some(Amount::Small { value, power })
}

/// Both integers scaled to the smaller power of ten, and that power. `None` if the powers differ by more than
/// [`QUANTITY_DIGITS_APART_MAX`].
fn aligned(a: &Amount, b: &Amount) -> Option<(BigInt, BigInt, i32)> {
    let ((x, p), (y, q)) = (a.parts(), b.parts());
    let apart = p.abs_diff(q);
    if p == q {
        return Some((x, y, p));
    }
    if apart > QUANTITY_DIGITS_APART_MAX {
        return None;
    }
    Some(if p > q { (x * ten(apart), y, q) } else { (x, y * ten(apart), p) })
}

#[cfg(test)]
mod tests {
    use crate::quantity::Quantity;

    /// Numbers of kube-apiserver's `MilliValue`, of which ResourceQuotas take the remainder by 1000.
    #[test]
    fn thousandths_beyond_64_bits_wrap_around() {
        let cases = [
            ("1e20", 0),
            ("12345678901234567", 12345678901234567i64.wrapping_mul(1000)),
            ("9P", 9_000_000_000_000_000_000),
            ("1Ei", (1i64 << 60).wrapping_mul(1000)),
            ("9223372036854775807", -1000),
            ("9223372036854775808", 0),
            ("100000000000000000000", 7766279631452241920i64.wrapping_mul(1000)),
            ("12345678901234567891E", 4_888_316_721_890_328_576),
            ("12345678901234567890E", 1_012_496_702_206_115_840),
            ("-12345678901234567", (-12345678901234567i64).wrapping_mul(1000)),
        ];
        for (text, want) in cases {
            assert_eq!(Quantity::parse(text).map(|quantity| quantity.thousandths()), Ok(want), "{text}");
        }
    }
}
