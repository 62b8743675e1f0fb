//! Checks for tests that do not run, notes about unfinished code, and calls that only certain files may make. What clippy can
//! check is in `clippy.toml`.

use super::Problem;
use super::source::{Source, line_of};

/// Notes about unfinished code; concatenated, so that this file passes the check.
const NOTES: [&str; 2] = [concat!("FIX", "ME"), concat!("XX", "X")];

/// The end of the write pipeline.
const STORED: &str = "crates/server/src/verbs/stored.rs";
/// Writes the RangeAllocation of node ports, which is not an API object: no client can read it.
const PORTS: &str = "crates/server/src/allocation/ports.rs";

/// Calls, and the only files that may make them.
const PLACES: [(&str, &[&str]); 2] = [("objects.put(", &[STORED, PORTS]), ("objects.delete(", &[STORED])];

pub fn check(source: &Source) -> Vec<Problem> {
    let mut problems = occurrences(source, &source.code, "#[ignore", "a test that does not run".to_owned());
    for (call, places) in PLACES.iter().filter(|(_, places)| !places.contains(&source.path.as_str())) {
        let what = format!("`{call}` may only be used in {}", places.join(" or "));
        problems.extend(occurrences(source, &source.production, call, what));
    }
    for (i, line) in source.text.lines().enumerate() {
        let words = |note: &&&str| line.split(|c: char| !c.is_alphanumeric()).any(|word| word == **note);
        problems
            .extend(NOTES.iter().filter(words).map(|note| Problem::new(&source.path, i + 1, format!("a note {note}"))));
    }
    problems
}

fn occurrences(source: &Source, code: &str, word: &str, what: String) -> Vec<Problem> {
    let starts = |at: &usize| !code[..*at].ends_with(|c: char| c.is_alphanumeric() || c == '_');
    let places = code.match_indices(word).map(|(at, _)| at).filter(starts);
    places.map(|at| Problem::new(&source.path, line_of(code, at), what.clone())).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_found_where_they_count() {
        let note = format!("// {}: later\n", NOTES[0]);
        let put = "async fn a() { context.objects.put(k).await }\n";
        let cases = [
            ("crates/x/src/a.rs", "#[ignore]\nfn a() {}\n", Some("1: a test that does not run".to_owned())),
            ("crates/x/src/a.rs", "// \"#[ignore]\"\n", None),
            ("crates/x/src/a.rs", &note, Some(format!("1: a note {}", NOTES[0]))),
            ("crates/x/src/a.rs", "// aXXXb\n", None),
            (STORED, put, None),
            ("crates/server/tests/it/main.rs", put, None),
            (
                "crates/server/src/verbs/watch.rs",
                put,
                Some(format!("1: `objects.put(` may only be used in {STORED} or {PORTS}")),
            ),
        ];
        for (path, text, want) in cases {
            let found = check(&Source::new(path, text.to_owned()));
            let shown: Vec<String> =
                found.iter().map(|problem| format!("{}: {}", problem.line, problem.what)).collect();
            assert_eq!(shown, want.into_iter().collect::<Vec<_>>(), "{path}: {text}");
        }
    }
}
