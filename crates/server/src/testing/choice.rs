//! Which requests and events a fault hits: pure functions of its seed, of what is matched, and of how often that has been
//! matched before. So the decisions about one object do not depend on the order in which a client handles its objects.

use std::time::Duration;

use machinery::Value;

/// Which of the matching requests or events are hit.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Choice {
    pub nth: Option<u64>,
    pub every: Option<u64>,
    /// With `every`, the number of hits in a row.
    pub burst: u64,
    pub percent: Option<f64>,
    pub seed: u64,
}

impl Choice {
    /// Reads the `when` of a fault, which its schema has validated.
    pub fn read(when: &Value) -> Choice {
        let number = |name: &str| when.get(name).and_then(Value::as_int).and_then(|number| u64::try_from(number).ok());
        let percent = match when.get("percent") {
            Some(Value::Float(percent)) => Some(*percent),
            // at most 100, so that a float holds it exactly
            Some(Value::Int(percent)) => Some(*percent as f64),
            _ => None,
        };
        Choice {
            nth: number("nth"),
            every: number("every"),
            burst: number("burst").unwrap_or(1),
            percent,
            seed: number("seed").unwrap_or_default(),
        }
    }

    pub fn hits(&self, at: Match) -> bool {
        let ordinal = at.ordinal;
        if let Some(nth) = self.nth {
            return ordinal == nth;
        }
        if let Some(every) = self.every.filter(|every| *every > 0) {
            // a burst ends with every n-th match, so that the first requests of a client succeed
            return (ordinal + self.burst.max(1) - 1) % every < self.burst.max(1)
                && ordinal + self.burst.max(1) > every;
        }
        match self.percent {
            Some(percent) => share(self.seed, at) * 100.0 < percent,
            None => true,
        }
    }

    /// The part of `most` that is added to the delay of a match.
    pub fn jitter(&self, at: Match, most: Duration) -> Duration {
        most.mul_f64(share(self.seed.wrapping_add(1) ^ JITTER, at))
    }
}

/// A request or event that has matched.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Match {
    /// The hash of its verb, resource and object.
    pub subject: u64,
    /// Its number among those of the client with this subject. The first is 1.
    pub ordinal: u64,
}

/// A hash of texts, the same in every process (FNV-1a).
pub fn hash_of<'a>(texts: impl IntoIterator<Item = &'a str>) -> u64 {
    let mut hash = 0xcbf2_9ce4_8422_2325_u64;
    let mut add = |byte: u8| hash = (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
    for text in texts {
        text.bytes().for_each(&mut add);
        // no text has this byte, which separates them
        add(0xff);
    }
    hash
}

/// Makes the jitter independent of whether a match is hit.
const JITTER: u64 = 0x6a69_7474_6572;

/// A number from 0 up to 1, which the seed and the match determine.
fn share(seed: u64, at: Match) -> f64 {
    // the 53 bits of a float's mantissa
    (mixed(mixed(mixed(seed) ^ at.subject) ^ at.ordinal) >> 11) as f64 / (1_u64 << 53) as f64
}

/// The mix of splitmix64, in which each bit of the input changes half of the bits of the output.
pub fn mixed(number: u64) -> u64 {
    let mut z = number.wrapping_add(0x9e37_79b9_7f4a_7c15);
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

#[cfg(test)]
mod tests {
    use machinery::json;

    use super::*;

    fn hit(when: Value, most: u64) -> Vec<u64> {
        let choice = Choice::read(&when);
        (1..=most).filter(|ordinal| choice.hits(Match { subject: 3, ordinal: *ordinal })).collect()
    }

    #[test]
    fn matches_are_hit_by_their_ordinals() {
        let cases = [
            (json!({}), vec![1, 2, 3, 4, 5, 6, 7, 8]),
            (json!({"nth": 3}), vec![3]),
            (json!({"every": 3}), vec![3, 6]),
            (json!({"every": 4, "burst": 2}), vec![3, 4, 7, 8]),
            (json!({"every": 1}), vec![1, 2, 3, 4, 5, 6, 7, 8]),
            (json!({"percent": 0}), vec![]),
            (json!({"percent": 100}), vec![1, 2, 3, 4, 5, 6, 7, 8]),
        ];
        for (when, wanted) in cases {
            assert_eq!(hit(when.clone(), 8), wanted, "{}", when.to_json());
        }
    }

    #[test]
    fn share_is_near_its_percentage_and_depends_on_the_seed() {
        let of = |seed: i64, percent: f64| hit(json!({"percent": percent, "seed": seed}), 10_000);
        for percent in [1.0, 12.5, 50.0, 99.0] {
            let share = of(7, percent).len() as f64 / 100.0;
            assert!((share - percent).abs() < 2.0, "{share} % instead of {percent} %");
        }
        assert_ne!(of(1, 50.0), of(2, 50.0));
        let choice = Choice::read(&json!({"percent": 20}));
        let names: Vec<String> = (0..10_000).map(|number| format!("p{number}")).collect();
        let hits =
            names.iter().filter(|name| choice.hits(Match { subject: hash_of([name.as_str()]), ordinal: 1 })).count();
        assert!((1_800..2_200).contains(&hits), "{hits} of ten thousand objects");
        assert_ne!(hash_of(["a", "bc"]), hash_of(["ab", "c"]));
    }
}
