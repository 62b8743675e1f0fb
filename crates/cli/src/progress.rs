//! Progress of long commands on stderr: a line that is written again and again on a terminal, otherwise one every few seconds.

use std::io::{IsTerminal as _, Write as _};
use std::time::Duration;

use base::clock;
use server::transfer::TransferProgress;

use crate::count::counted;
use crate::{limits, logs};

/// Removes what a terminal shows in the line of its cursor, which is then at the beginning.
const CLEAR: &str = "\r\x1b[K";
/// A terminal cuts lines off that are longer than it is wide, since only its last line could be removed again.
const WITHOUT_WRAP: &str = "\x1b[?7l";
const WITH_WRAP: &str = "\x1b[?7h";

/// Shows the progress of one command. On a terminal, the line disappears when this is dropped.
pub struct Meter {
    /// The past participle of what is done.
    verb: &'static str,
    started: tokio::time::Instant,
    /// When the last line was printed; on a terminal, the first one is at once.
    printed: Option<Duration>,
    is_terminal: bool,
}

impl Meter {
    pub fn start(verb: &'static str) -> Meter {
        let is_terminal = std::io::stderr().is_terminal();
        let printed = (!is_terminal).then_some(Duration::ZERO);
        Meter { verb, started: clock::instant(), printed, is_terminal }
    }

    pub fn show(&mut self, done: TransferProgress) {
        let elapsed = self.started.elapsed();
        let interval = if self.is_terminal { limits::REDRAW_INTERVAL } else { limits::PROGRESS_INTERVAL };
        if self.printed.is_some_and(|printed| elapsed.saturating_sub(printed) < interval) {
            return;
        }
        self.printed = Some(elapsed);
        let line = line(self.verb, done, elapsed);
        if self.is_terminal { redraw(&line) } else { logs::print_error(&line) }
    }
}

impl Drop for Meter {
    fn drop(&mut self) {
        if self.is_terminal {
            redraw("");
        }
    }
}

/// Replaces the line of the terminal. A terminal that is gone ends no command.
fn redraw(line: &str) {
    let _ = std::io::stderr().write_all(format!("{CLEAR}{WITHOUT_WRAP}{line}{WITH_WRAP}").as_bytes());
}

/// One line: how much is done, the rate, and the time that the rest takes at that rate.
fn line(verb: &str, TransferProgress { objects, of, .. }: TransferProgress, elapsed: Duration) -> String {
    let millis = elapsed.as_millis().max(1);
    let (done, rest) = (objects as u128, of.saturating_sub(objects) as u128);
    let seconds = (rest * millis).div_ceil(done.max(1) * 1000);
    format!("{verb} {objects} of {}, {} per second, {seconds} s left", counted(of, "object"), done * 1000 / millis)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn line_has_rate_and_remaining_time() {
        for (objects, of, millis, want) in [
            (50_000, 100_000, 4_000, "exported 50000 of 100000 objects, 12500 per second, 4 s left"),
            (1, 3, 1_500, "exported 1 of 3 objects, 0 per second, 3 s left"),
            (0, 3, 0, "exported 0 of 3 objects, 0 per second, 1 s left"),
            (3, 3, 1, "exported 3 of 3 objects, 3000 per second, 0 s left"),
        ] {
            let done = TransferProgress { objects, of, revision: 1 };
            assert_eq!(line("exported", done, Duration::from_millis(millis)), want);
        }
    }
}
