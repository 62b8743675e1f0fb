//! Checks the memory that inputs of each kind need. `fuzz --budget` also measures their time.

use fuzz::budget::{Cost, Recipe, SUBJECTS, Subject};
use peak_alloc::PeakAlloc;

#[global_allocator]
static MEMORY: PeakAlloc = PeakAlloc;

const INPUT_BYTES: usize = 100_000;
const STACK_BYTES: usize = 256 << 20;

fn cost(subject: &Subject, input: &[u8]) -> Cost {
    let before = MEMORY.current_usage();
    MEMORY.reset_peak_usage();
    (subject.run)(input);
    let bytes = MEMORY.peak_usage().saturating_sub(before);
    Cost { input: input.len(), bytes, time: std::time::Duration::ZERO }
}

#[test]
fn no_input_takes_more_memory_than_its_size_allows() {
    let measure = || {
        let mut exceeded = vec![];
        for subject in SUBJECTS {
            for recipe in Recipe::plain(subject) {
                let cost = cost(subject, &recipe.input(INPUT_BYTES));
                exceeded
                    .extend(subject.exceeded(cost, cost).map(|excess| format!("{}: {excess}: {recipe}", subject.name)));
            }
        }
        assert!(exceeded.is_empty(), "{}", exceeded.join("\n"));
    };
    std::thread::Builder::new().stack_size(STACK_BYTES).spawn(measure).expect("a thread").join().expect("budgets hold");
}
