//! Interrupts an evaluation at a deadline.
//!
//! `cargo run -p pintle-cel --example interrupt`

#![allow(clippy::disallowed_methods, reason = "an example may read the clock")]

use cel::{Environment, Program, interruptible};
use std::cell::Cell;
use std::time::{Duration, Instant};

thread_local! {
    static DEADLINE: Cell<Option<Instant>> = const { Cell::new(None) };
}

/// The interrupt, which the evaluation calls about once per millisecond.
fn is_over() -> bool {
    DEADLINE.get().is_some_and(|deadline| Instant::now() > deadline)
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let env = Environment::standard();
    let range = "lists.range(1000)";
    let checked = env.check(&format!("{range}.all(a, {range}.all(b, {range}.all(c, a + b + c >= 0)))"))?;
    let program = Program::new(&env, &checked)?;

    let begun = Instant::now();
    DEADLINE.set(Some(begun + Duration::from_millis(20)));
    let outcome = interruptible(is_over, || program.eval(&[], u64::MAX));
    match outcome.result {
        Err(error) if error.is_cancelled() => println!("ended after {:?}: {error}", begun.elapsed()),
        other => println!("not ended: {other:?}"),
    }
    Ok(())
}
