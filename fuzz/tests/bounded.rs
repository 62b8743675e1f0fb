//! Runs every target on a fixed set of inputs.

use fuzz::targets::ALL;
use fuzz::{Inputs, run};

const INPUTS: usize = 3_000;

#[test]
fn all_inputs_pass() {
    let mut failures = vec![];
    for target in ALL {
        let mut inputs = Inputs::new(target, 1);
        failures.extend((0..INPUTS).filter_map(|_| run(target, &inputs.next_input()).err()).take(1));
    }
    assert!(failures.is_empty(), "{}", failures.join("\n"));
}
