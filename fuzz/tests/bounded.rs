//! Every target on inputs that are always the same.

use fuzz::targets::ALL;
use fuzz::{Inputs, run};

const INPUTS: usize = 3_000;

#[test]
fn no_input_breaks_a_promise() {
    let mut broken = vec![];
    for target in ALL {
        let mut inputs = Inputs::new(target, 1);
        broken.extend((0..INPUTS).filter_map(|_| run(target, &inputs.next_input()).err()).take(1));
    }
    assert!(broken.is_empty(), "{}", broken.join("\n"));
}
