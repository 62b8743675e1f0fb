//! Gives free memory back to the operating system, also while the server idles.
//!
//! The allocator keeps the pages that a thread has filled for that thread. It looks for empty ones only once in some thousand
//! allocations, which an idle thread never makes. Its function for this is `unsafe` to call, so each thread makes these allocations.

use std::hint::black_box;

use crate::limits;

/// Has each of the `threads` of the runtime look for empty pages, again and again.
pub fn start(threads: usize) {
    base::task::spawn("free memory", async move {
        loop {
            tokio::time::sleep(limits::FREE_MEMORY_INTERVAL).await;
            look(threads).await;
            // pages are given back once they have been empty for this time
            tokio::time::sleep(limits::FREE_MEMORY_DELAY).await;
            look(threads).await;
        }
    });
}

async fn look(threads: usize) {
    // idle threads take one each while this one is busy with its own
    let all: Vec<_> =
        (0..threads).map(|_| base::task::spawn("free memory of a thread", async { allocate() })).collect();
    for one in all {
        let _ = one.await;
    }
}

fn allocate() {
    for _ in 0..limits::FREE_MEMORY_ALLOCATIONS {
        drop(black_box(Vec::<u8>::with_capacity(limits::FREE_MEMORY_ALLOCATION_BYTES)));
    }
}
