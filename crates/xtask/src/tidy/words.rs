//! Checks for unfinished code and notes, trailing white space, and calls that only certain files may make.

use super::Problem;
use super::source::{Source, line_of};

/// Code that is unfinished or not run.
const UNDONE: [&str; 3] = ["todo!(", "unimplemented!(", "#[ignore"];
/// Notes about unfinished code; concatenated, so that this file passes the check.
const NOTES: [&str; 2] = [concat!("FIX", "ME"), concat!("XX", "X")];

const CLOCK: &str = "crates/base/src/clock.rs";
const TASK: &str = "crates/base/src/task.rs";
const SERVE: &str = "crates/cli/src/serve.rs";
/// Measures the validity of etcd's leases.
const LEASE: &str = "crates/store-etcd/src/lease.rs";
/// Spaces the lines of the log about etcd.
const TROUBLE: &str = "crates/store-etcd/src/trouble.rs";

/// The end of the write pipeline.
const STORED: &str = "crates/server/src/verbs/stored.rs";
/// Writes the RangeAllocation of node ports, which is not an API object: no client can read it.
const PORTS: &str = "crates/server/src/allocation/ports.rs";

/// Calls, and the only files that may make them.
const PLACES: [(&str, &[&str]); 12] = [
    ("objects.put(", &[STORED, PORTS]),
    ("objects.delete(", &[STORED]),
    ("SystemTime::now", &[CLOCK]),
    ("Instant::now", &[CLOCK, SERVE, LEASE, TROUBLE]),
    ("tokio::spawn", &[TASK]),
    ("task::spawn_blocking", &[TASK]),
    ("block_in_place", &[TASK]),
    ("Handle::current()", &[]),
    ("env::set_var", &[]),
    ("unbounded_channel", &[]),
    ("std::sync::mpsc::channel", &[]),
    ("UnboundedSender", &[]),
];

pub fn check(source: &Source) -> Vec<Problem> {
    let mut problems = lines(source);
    for word in UNDONE {
        problems.extend(occurrences(source, &source.code, word, format!("`{word}` is unfinished code")));
    }
    if source.krate() != "xtask" {
        for (call, places) in PLACES.iter().filter(|(_, places)| !places.contains(&source.path.as_str())) {
            let what = match places {
                [] => format!("`{call}` must not be used"),
                places => format!("`{call}` may only be used in {}", places.join(" or ")),
            };
            problems.extend(occurrences(source, &source.production, call, what));
        }
    }
    problems
}

fn occurrences(source: &Source, code: &str, word: &str, what: String) -> Vec<Problem> {
    let starts = |at: &usize| !code[..*at].ends_with(|c: char| c.is_alphanumeric() || c == '_');
    let places = code.match_indices(word).map(|(at, _)| at).filter(starts);
    places.map(|at| Problem::new(&source.path, line_of(code, at), what.clone())).collect()
}

fn lines(source: &Source) -> Vec<Problem> {
    let mut problems = vec![];
    for (i, line) in source.text.lines().enumerate() {
        let mut say = |what: &str| problems.push(Problem::new(&source.path, i + 1, what));
        if line.ends_with([' ', '\t', '\r']) {
            say("white space at the end of the line");
        }
        if line.contains('\t') {
            say("a tab");
        }
        let words = |note: &str| line.split(|c: char| !c.is_alphanumeric()).any(|word| word == note);
        NOTES.iter().filter(|note| words(note)).for_each(|note| say(&format!("a note {note}")));
    }
    problems
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(path: &str, text: &str) -> Vec<String> {
        check(&Source::new(path, text.to_owned())).iter().map(|p| format!("{}: {}", p.line, p.what)).collect()
    }

    #[test]
    fn unfinished_code_is_reported() {
        let path = "crates/x/src/a.rs";
        assert_eq!(shown(path, "fn a() {\n    todo!()\n}\n"), ["2: `todo!(` is unfinished code"]);
        assert_eq!(shown(path, "// todo!( in a comment, \"#[ignore]\"\n"), Vec::<String>::new());
        assert_eq!(shown(path, "let a = 1; \n"), ["1: white space at the end of the line"]);
        assert_eq!(shown(path, "\tx\n"), ["1: a tab"]);
        let note = format!("// {}: later\n", NOTES[0]);
        assert_eq!(shown(path, &note), [format!("1: a note {}", NOTES[0])]);
        assert!(shown(path, &format!("// a{}b\n", NOTES[1])).is_empty());
    }

    #[test]
    fn macro_calls_keep_their_positions() {
        let code = "fn a() { let _ = SystemTime::now(); }\n";
        assert!(shown(CLOCK, code).is_empty());
        assert!(shown("crates/xtask/src/a.rs", code).is_empty());
        assert!(shown("crates/x/tests/it/main.rs", code).is_empty());
        let elsewhere = shown("crates/server/src/verbs/watch.rs", code);
        assert_eq!(elsewhere, [format!("1: `SystemTime::now` may only be used in {CLOCK}")]);
        assert!(shown("crates/x/src/a.rs", "#[cfg(test)]\nmod tests { fn a() { tokio::spawn(x); } }\n").is_empty());
        assert_eq!(
            shown("crates/x/src/a.rs", "mpsc::unbounded_channel();\n"),
            ["1: `unbounded_channel` must not be used"]
        );
    }
}
