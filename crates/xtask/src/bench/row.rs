//! A row of the table, and its target.

use std::time::Duration;

use super::load::Samples;

/// The target of a measurement.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Goal {
    /// Requests per second.
    Rate(f64),
    /// The median duration of a request.
    Median(Duration),
    /// The total duration.
    Total(Duration),
    Memory(u64),
    /// The total duration, and the 99th percentile of other clients' requests meanwhile.
    Beside(Duration, Duration),
    /// All events delivered, and the 99th percentile of their delay.
    Delivered(Duration),
}

/// A measured row.
#[derive(Clone, Debug)]
pub struct Row {
    pub what: String,
    pub samples: Samples,
    /// The server's processor time per request.
    pub processor: Option<Duration>,
    pub memory: Option<u64>,
    /// The share of deliveries that arrived.
    pub delivered: Option<f64>,
    /// Remarks.
    pub note: String,
    pub goal: Goal,
}

impl Row {
    pub fn new(what: impl Into<String>, samples: Samples, goal: Goal) -> Row {
        let what = what.into();
        Row { what, samples, processor: None, memory: None, delivered: None, note: String::new(), goal }
    }

    pub fn reached(&self) -> bool {
        match self.goal {
            Goal::Rate(rate) => self.samples.rate() >= rate,
            Goal::Median(time) => self.samples.quantile(0.5) <= time,
            Goal::Total(time) => self.samples.wall <= time,
            Goal::Beside(time, others) => self.samples.wall <= time && self.samples.quantile(0.99) <= others,
            Goal::Memory(bytes) => self.memory.is_some_and(|memory| memory <= bytes),
            Goal::Delivered(time) => self.delivered == Some(1.0) && self.samples.quantile(0.99) <= time,
        }
    }

    /// The measured value that is compared with the target; larger is better.
    fn speed(&self) -> f64 {
        let per_second = |time: Duration| 1.0 / time.as_secs_f64().max(1e-9);
        match self.goal {
            Goal::Rate(_) => self.samples.rate(),
            Goal::Median(_) => per_second(self.samples.quantile(0.5)),
            Goal::Total(_) | Goal::Beside(..) => per_second(self.samples.wall),
            Goal::Memory(_) => self.memory.map_or(0.0, |memory| 1.0 / memory.max(1) as f64),
            Goal::Delivered(_) => per_second(self.samples.quantile(0.99)),
        }
    }

    /// The factor by which this is better than `other`.
    pub fn ratio(&self, other: &Row) -> f64 {
        self.speed() / other.speed()
    }

    /// Requests per second, if there are enough of them for a meaningful rate.
    pub fn rate(&self) -> Option<f64> {
        matches!(self.goal, Goal::Rate(_)).then(|| self.samples.rate())
    }
}

impl std::fmt::Display for Goal {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Goal::Rate(rate) => write!(f, "{rate:.0}/s"),
            Goal::Median(time) | Goal::Total(time) => write!(f, "{}", time_text(*time)),
            Goal::Beside(time, others) => write!(f, "{}, others' p99 {}", time_text(*time), time_text(*others)),
            Goal::Memory(bytes) => write!(f, "{}", memory_text(*bytes)),
            Goal::Delivered(time) => write!(f, "100%, p99 {}", time_text(*time)),
        }
    }
}

/// A duration with three digits in a suitable unit.
pub fn time_text(time: Duration) -> String {
    let micros = time.as_secs_f64() * 1e6;
    match micros {
        m if m < 1000.0 => format!("{m:.0} µs"),
        m if m < 10_000.0 => format!("{:.2} ms", m / 1e3),
        m if m < 1_000_000.0 => format!("{:.0} ms", m / 1e3),
        m => format!("{:.2} s", m / 1e6),
    }
}

pub fn memory_text(bytes: u64) -> String {
    match bytes {
        b if b < 1 << 20 => format!("{:.0} KiB", b as f64 / 1024.0),
        b => format!("{:.0} MiB", b as f64 / 1_048_576.0),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn goals_are_compared_with_their_measures() {
        let samples = Samples::new(vec![Duration::from_millis(2); 10], Duration::from_millis(20));
        let row = |goal| Row::new("x", samples.clone(), goal);
        assert!(row(Goal::Rate(500.0)).reached() && !row(Goal::Rate(501.0)).reached());
        assert!(row(Goal::Median(Duration::from_millis(2))).reached());
        assert!(!row(Goal::Total(Duration::from_millis(19))).reached());
        assert!(!row(Goal::Memory(1)).reached(), "unknown memory reaches nothing");
        assert!(!row(Goal::Delivered(Duration::from_secs(1))).reached(), "nothing is known to be delivered");
        let slower =
            Row::new("x", Samples::new(vec![Duration::from_millis(4)], Duration::from_millis(4)), Goal::Rate(1.0));
        assert_eq!(row(Goal::Rate(1.0)).ratio(&slower), 2.0);
    }

    #[test]
    fn times_print_with_fitting_unit() {
        let texts = [40, 1_500, 47_000, 2_340_000].map(|micros| time_text(Duration::from_micros(micros)));
        assert_eq!(texts, ["40 µs", "1.50 ms", "47 ms", "2.34 s"]);
        assert_eq!((memory_text(20 << 20), memory_text(2048)), ("20 MiB".to_owned(), "2 KiB".to_owned()));
    }
}
