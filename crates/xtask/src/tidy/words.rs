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

/// Guards against requests without authorization: the type of an authorized request, the right to make one without
/// an authorizer, and the functions that use this right.
const AUTHORIZATION: &str = "crates/access/src/authorization/mod.rs";
const AUTHORIZER: &str = "crates/access/src/authorization/authorizer.rs";
const ASSEMBLY: &str = "crates/server/src/assembly.rs";
const AS_SERVER: &str = "crates/server/src/verbs/as_server.rs";
const VERBS: &str = "crates/server/src/verbs/";
const CONTROLLERS: &str = "crates/server/src/controllers/";
const PROGRESS: &str = "crates/server/src/progress/";
/// The status of faults and gates, and that of workspaces.
const TESTING: &str = "crates/server/src/testing/controller.rs";
const WORKSPACES: &str = "crates/server/src/workspaces/manager.rs";

/// Code, and the only files and folders that may contain it. Those that handle requests of clients are in `http`.
const PLACES: [(&str, &[&str]); 10] = [
    ("objects.put(", &[STORED, PORTS]),
    ("objects.delete(", &[STORED]),
    ("_witness", &[AUTHORIZATION]),
    ("Loopback(", &[AUTHORIZATION, AUTHORIZER]),
    ("Authorizer::new(", &[ASSEMBLY]),
    ("loopback.request(", &[AS_SERVER]),
    ("server_request(", &[VERBS]),
    ("controller_request(", &[AS_SERVER]),
    ("as_server(", &[VERBS, CONTROLLERS, PROGRESS, TESTING, WORKSPACES]),
    ("as_user(", &[AS_SERVER, CONTROLLERS, PROGRESS]),
];

fn is_in(source: &Source, places: &[&str]) -> bool {
    places.iter().any(|place| source.path.starts_with(place))
}

pub fn check(source: &Source) -> Vec<Problem> {
    let mut problems = occurrences(source, &source.code, "#[ignore", "a test that does not run".to_owned());
    for (call, places) in PLACES.iter().filter(|(_, places)| !is_in(source, places)) {
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

/// Reports guarded code that does not occur at its place: it has been renamed, so that its check would find
/// nothing.
pub fn check_places(sources: &[Source]) -> Vec<Problem> {
    let is_found = |call: &str, place: &str| {
        let mut there = sources.iter().filter(|source| source.path.starts_with(place));
        there.any(|source| source.production.contains(call))
    };
    let pairs = PLACES.iter().flat_map(|(call, places)| places.iter().map(move |place| (*call, *place)));
    let gone = pairs.filter(|(call, place)| !is_found(call, place));
    gone.map(|(call, place)| Problem::new(place, 1, format!("does not contain `{call}`, which tidy protects")))
        .collect()
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
    fn what_is_protected_must_exist() {
        let closed = |call: &str| if call.ends_with('(') { format!("{call});") } else { format!("{call};") };
        let all: String = PLACES.iter().map(|(call, _)| closed(call)).collect();
        let source = |path: &str, code: &str| Source::new(&format!("{path}a.rs"), code.to_owned());
        let places = PLACES.iter().flat_map(|(_, places)| places.iter());
        let sources: Vec<Source> = places.map(|place| source(place, &format!("fn a() {{ {all} }}"))).collect();
        assert_eq!(check_places(&sources), []);
        assert_eq!(check_places(&[]).len(), PLACES.iter().map(|(_, places)| places.len()).sum::<usize>());
    }

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
            (
                "crates/server/src/http/handler.rs",
                "fn a() { context.server_request(pods) }\n",
                Some(format!("1: `server_request(` may only be used in {VERBS}")),
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
