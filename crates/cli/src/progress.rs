//! Progress of long commands on stderr: a bar on a terminal, otherwise a line every few seconds.

use std::io::IsTerminal as _;
use std::time::Duration;

use base::clock;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use server::transfer::TransferProgress;

use crate::count::counted;
use crate::{limits, logs};

const TEMPLATE: &str = "{msg} {wide_bar} {human_pos} of {human_len} objects, {per_sec}, {eta} left";

/// Shows the progress of one command. The bar disappears when this is dropped.
pub struct Meter {
    /// The past participle of what is done.
    verb: &'static str,
    started: tokio::time::Instant,
    printed: Duration,
    /// The bar, if stderr is a terminal.
    bar: Option<ProgressBar>,
}

impl Meter {
    pub fn start(verb: &'static str) -> Meter {
        let bar = std::io::stderr().is_terminal().then(|| {
            let style = ProgressStyle::with_template(TEMPLATE).unwrap_or_else(|_| ProgressStyle::default_bar());
            let bar = ProgressBar::with_draw_target(None, ProgressDrawTarget::stderr());
            bar.with_style(style).with_message(verb)
        });
        Meter { verb, started: clock::instant(), printed: Duration::ZERO, bar }
    }

    pub fn show(&mut self, done: TransferProgress) {
        if let Some(bar) = &self.bar {
            bar.set_length(done.of as u64);
            bar.set_position(done.objects as u64);
            return;
        }
        let elapsed = self.started.elapsed();
        if elapsed.saturating_sub(self.printed) >= limits::PROGRESS_INTERVAL {
            self.printed = elapsed;
            logs::print_error(&line(self.verb, done, elapsed));
        }
    }
}

impl Drop for Meter {
    fn drop(&mut self) {
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
        }
    }
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
