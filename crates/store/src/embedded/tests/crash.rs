//! After a crash the log has every acknowledged change, in order, and at most the incomplete write beyond them.

use super::for_each;
use super::model::{OPTIONS, Run};
use super::sim::Chance;
use crate::embedded::options::{Durability, Options};
use crate::embedded::writer::Failure;

/// Steps of a log between two starts.
const STEPS: usize = 40;

/// The steps of a store without branches, and of one with them.
const STEPS_OF_BOTH: [Step; 2] = [Run::step, Run::step_with_branches];

/// A random step of a run.
type Step = fn(&mut Run, &mut Chance) -> Result<(), Failure>;

/// Makes random steps until the machine stops at the file operation number `left`, and reopens the log from the disk.
/// Returns false if the steps ended before that.
fn crash(mut run: Run, step: Step, left: usize, seed: u64) -> (Run, bool) {
    let mut chance = Chance(seed);
    run.disk.stop_after(left, seed ^ 1);
    for _ in 0..STEPS {
        run.disk.set_out_of_descriptors(chance.below(4) == 0);
        let result = step(&mut run, &mut chance);
        if matches!(result, Err(Failure::Temporary(_))) && !run.disk.has_stopped() {
            // a checkpoint that could not be created
            continue;
        }
        if result.is_err() {
            assert!(run.disk.has_stopped());
            let after = run.disk.after_crash(&mut chance);
            let reopened = Run::open(after, run.acknowledged, run.incomplete, OPTIONS);
            return (reopened.unwrap_or_else(|error| panic!("seed {seed}, change {left}: {error}")), true);
        }
    }
    (run, false)
}

#[test]
fn crash_during_any_change_loses_no_acknowledged_write() {
    for step in STEPS_OF_BOTH {
        for_each(0..12, |seed| {
            let crashes = (0..).take_while(|left| crash(Run::create(), step, *left, seed).1).count();
            assert!(crashes > STEPS, "only {crashes} file operations");
        });
    }
}

#[test]
fn log_survives_repeated_crashes() {
    for_each(0..80, |seed| {
        let mut chance = Chance(seed);
        let mut run = Run::create();
        for life in 0..25 {
            let step = STEPS_OF_BOTH[seed as usize % 2];
            let (survivor, crashed) = crash(run, step, chance.below(120), seed * 1000 + life);
            run = match crashed {
                true => survivor,
                false => {
                    let after = survivor.disk.after_crash(&mut chance);
                    Run::open(after, survivor.acknowledged, vec![], OPTIONS).unwrap()
                }
            };
        }
        assert!(run.acknowledged.len() > 200, "{} changes", run.acknowledged.len());
    });
}

#[test]
fn crash_while_opening_a_log_loses_nothing() {
    for_each(0..60, |seed| {
        let mut chance = Chance(seed);
        let step = STEPS_OF_BOTH[seed as usize % 2];
        let (run, _) = crash(Run::create(), step, 30 + chance.below(60), seed);
        for left in 0.. {
            run.disk.stop_after(left, seed);
            let opened = Run::open(run.disk.clone(), run.acknowledged.clone(), vec![], OPTIONS).is_ok();
            let after = run.disk.after_crash(&mut chance);
            Run::open(after, run.acknowledged.clone(), vec![], OPTIONS).unwrap();
            if opened {
                break;
            }
        }
    });
}

#[test]
fn content_of_opened_log_is_durable() {
    for_each(0..100, |seed| {
        let mut chance = Chance(seed);
        let mut run = Run::create();
        run.disk.stop_after(20 + chance.below(60), seed);
        let step = STEPS_OF_BOTH[seed as usize % 2];
        while step(&mut run, &mut chance).is_ok() {}
        // the process restarts before the machine stops, and reads data that was never synced
        run.disk.stop_after(usize::MAX, seed);
        let seen = Run::open(run.disk, run.acknowledged, run.incomplete, OPTIONS).unwrap();
        Run::open(seen.disk.after_crash(&mut chance), seen.acknowledged, vec![], OPTIONS).unwrap();
    });
}

#[test]
fn crash_without_syncs_leaves_a_prefix() {
    for (durability, deferred) in [(Durability::None, false), (Durability::Sync, true)] {
        let options = Options { durability, ..OPTIONS };
        for_each(0..200, |seed| {
            let mut chance = Chance(seed);
            let run = Run::create();
            let mut run = Run::open(run.disk, vec![], vec![], options).unwrap();
            run.writer.sync_each(!deferred).unwrap();
            for _ in 0..STEPS {
                STEPS_OF_BOTH[seed as usize % 2](&mut run, &mut chance).unwrap();
            }
            let is_ended = deferred && chance.below(2) == 0;
            if is_ended {
                run.writer.sync_each(true).unwrap();
            }
            let synced = run.writer.synced() as usize;
            assert!(!is_ended || synced == run.acknowledged.len());
            let crashed = std::sync::Arc::new(run.disk.after_crash(&mut chance));
            let recovered = crate::embedded::Embedded::recover(crashed, options, vec![]).unwrap();
            let head = recovered.writer.head() as usize;
            assert!((synced..=run.acknowledged.len()).contains(&head), "{head} of {synced} synced changes");
            Run::of(run.disk, recovered, run.acknowledged[..head].to_vec()).compare();
        });
    }
}
