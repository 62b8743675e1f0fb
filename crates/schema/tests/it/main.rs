//! Replays recorded exchanges with a real kube-apiserver against this crate, without a server: definitions are decoded,
//! prepared and validated; objects are pruned, defaulted and validated; causes and stored values are compared.
//!
//! Requests that need a server are skipped: authentication, conflicts, apply, tables, watches. Their responses only feed the
//! state.

mod beta;
mod compare;
mod exchange;
mod laws;
mod patch;
mod state;
mod view;

use std::path::PathBuf;

use exchange::Transcript;
use machinery::Release;
use state::State;

/// Values may be nested 10,000 levels deep. The threads of the server have stacks of this size, too.
const STACK_BYTES: usize = 64 << 20;

fn replay(prefix: &'static str) {
    let thread = std::thread::Builder::new().stack_size(STACK_BYTES).spawn(move || replay_all(prefix));
    thread.expect("a thread").join().expect("all recordings are met");
}

/// The recordings of a release.
fn recorded(release: Release) -> impl Iterator<Item = (Release, PathBuf)> {
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join(format!("../../tests/transcripts/recorded/{release}"));
    let entries = std::fs::read_dir(&folder).expect("the recorded transcripts");
    let mut files: Vec<_> = entries.filter_map(|e| e.ok().map(|e| e.path())).collect();
    files.sort();
    files.into_iter().map(move |file| (release, file))
}

fn replay_all(prefix: &str) {
    let only = std::env::var("TRANSCRIPT").unwrap_or_default();
    let (mut checked, mut failures) = (0, vec![]);
    for (release, file) in [Release::V1_35, Release::V1_37].into_iter().flat_map(recorded) {
        let name = file.file_stem().and_then(|s| s.to_str()).unwrap_or_default().to_owned();
        if !name.starts_with(prefix) || !name.contains(&only) {
            continue;
        }
        let transcript = Transcript::read(&file, release);
        let mut state = State::default();
        for step in &transcript.steps {
            match state.play(step) {
                Some(Ok(())) => checked += 1,
                Some(Err(difference)) => failures.push(format!("{release} {name} {}: {difference}", step.id)),
                None => {}
            }
        }
    }
    assert!(failures.is_empty(), "{checked} passed, {} failed:\n{}", failures.len(), failures.join("\n"));
    println!("{prefix}: {checked} passed");
}

#[test]
fn schema_transcripts() {
    replay("schema-");
}

#[test]
fn crd_transcripts() {
    replay("crd-");
}
