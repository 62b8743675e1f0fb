//! Measures the start of a store with branches: `cargo run --release -p pintle-store --example branches DIR [BRANCHES [KEYS]]` writes
//! a directory once, and opens it.

use std::path::PathBuf;
use std::time::Instant;

use bytes::Bytes;
use store::{BranchSource, Branching as _, Durability, Embedded, Expected, Options, Store as _, Write};

const VALUE_BYTES: usize = 500;

#[allow(clippy::disallowed_methods, reason = "a measurement")]
#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments = std::env::args().skip(1);
    let directory = PathBuf::from(arguments.next().ok_or("wanted a directory")?);
    let branches: usize = arguments.next().map_or(Ok(10_000), |count| count.parse())?;
    let keys: usize = arguments.next().map_or(Ok(100), |count| count.parse())?;
    let options = Options { durability: Durability::None, ..Options::default() };
    if !directory.exists() {
        let store = Embedded::open(&directory, "an example", options)?;
        let mut left = branches * keys;
        for branch in 0..branches {
            let id = format!("branch-{branch}");
            let branch = store.begin(id.as_bytes(), BranchSource::Nothing, b"").ok_or("no branch")?;
            for key in 0..keys {
                let value = Some(Bytes::from(vec![left as u8; VALUE_BYTES]));
                let write = Write { key: format!("key-{key}").into(), expected: Expected::Absent, value };
                branch.commit(write).await.map_err(|refused| format!("{refused:?}"))?;
                left -= 1;
            }
        }
    }
    for name in ["the log", "a checkpoint"] {
        let began = Instant::now();
        let store = Embedded::open(&directory, "an example", options)?;
        let (took, bytes) = (began.elapsed(), store.size().unwrap_or_default() >> 20);
        println!("opened {} branches from {name} of {bytes} MiB in {took:?}", store.branches().len());
        let began = Instant::now();
        store.compact(store.head().await?).await?;
        println!("compacted in {:?}", began.elapsed());
    }
    Ok(())
}
