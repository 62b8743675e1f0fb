//! Logs of containers from a capture, selected as a kubelet selects them.

use bytes::Bytes;
use machinery::time::parse_rfc3339;

/// A log of a container.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LogOf<'a> {
    pub namespace: &'a str,
    pub pod: &'a str,
    pub container: &'a str,
    /// Of which run of the container.
    pub run: LogRun,
}

/// A run of a container.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LogRun {
    Current,
    Previous,
}

pub trait CapturedLogs: Send + Sync {
    /// Reads a log; `None` if it was not captured. Fails with a one-line message.
    fn read(&self, log: LogOf<'_>) -> Option<Result<Bytes, String>>;
}

/// Which lines are wanted, as the options of a request say.
#[derive(Clone, Copy, Debug, Default)]
pub struct Lines {
    pub last: Option<usize>,
    /// In seconds since the Unix epoch.
    pub since: Option<i64>,
    pub bytes_max: Option<usize>,
    pub times: Times,
}

/// Whether lines begin with their times.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Times {
    #[default]
    Hidden,
    Shown,
}

/// The time at the beginning of a line, and the rest. A kubelet writes nine digits of a fraction, which programs rarely do.
fn timed(line: &[u8]) -> Option<(i64, &[u8])> {
    let end = line.iter().take(40).position(|byte| *byte == b' ')?;
    let text = std::str::from_utf8(&line[..end]).ok()?;
    let fraction = text.split_once('.')?.1.bytes().take_while(u8::is_ascii_digit).count();
    let (seconds, _) = parse_rfc3339(text).filter(|_| fraction == 9)?;
    let rest = &line[end + 1..];
    // the files of a node also have the stream, and whether the line is complete
    let marks: [&[u8]; 4] = [b"stdout F ", b"stderr F ", b"stdout P ", b"stderr P "];
    Some((seconds, marks.iter().find_map(|mark| rest.strip_prefix(*mark)).unwrap_or(rest)))
}

/// The wanted lines of a log. If the capture has no times, all lines are as new as wanted.
pub fn select(log: &[u8], lines: Lines) -> Vec<u8> {
    let all = log.split_inclusive(|byte| *byte == b'\n');
    let mut known = None;
    let chosen = all.filter(|line| {
        known = timed(line).map(|(time, _)| time).or(known);
        lines.since.is_none_or(|since| known.is_none_or(|time| time >= since))
    });
    let chosen: Vec<&[u8]> = chosen.collect();
    let first = lines.last.map_or(0, |last| chosen.len().saturating_sub(last));
    let mut text = Vec::with_capacity(log.len());
    for line in &chosen[first..] {
        text.extend_from_slice(match lines.times {
            Times::Shown => line,
            Times::Hidden => timed(line).map_or(*line, |(_, rest)| rest),
        });
    }
    text.truncate(lines.bytes_max.unwrap_or(usize::MAX));
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_selected_as_by_a_kubelet() {
        let timed = "2024-05-01T10:00:00.000000000Z a\n2024-05-01T10:00:01.500000000Z b\n2024-05-01T10:00:02.000000000Z stdout F c\n";
        let own = "2024-05-01T10:00:00Z a\nb\n";
        let at = |text: &str| parse_rfc3339(text).map(|(seconds, _)| seconds);
        let all = Lines::default();
        for (log, lines, want) in [
            (timed, all, "a\nb\nc\n"),
            (timed, Lines { times: Times::Shown, last: Some(1), ..all }, "2024-05-01T10:00:02.000000000Z stdout F c\n"),
            (timed, Lines { last: Some(2), ..all }, "b\nc\n"),
            (timed, Lines { last: Some(0), ..all }, ""),
            (timed, Lines { since: at("2024-05-01T10:00:01Z"), ..all }, "b\nc\n"),
            (timed, Lines { bytes_max: Some(3), ..all }, "a\nb"),
            (own, all, own),
            (own, Lines { since: at("2025-05-01T10:00:01Z"), ..all }, own),
            ("no end", Lines { last: Some(5), ..all }, "no end"),
        ] {
            assert_eq!(String::from_utf8_lossy(&select(log.as_bytes(), lines)), want, "{log} {lines:?}");
        }
    }
}
