//! Checks that the names of types are unique in their crate.

use std::collections::BTreeMap;

use super::Problem;
use super::source::{Source, line_of};

/// Reports structs, enums and traits with the name of another one in the crate.
pub fn check(sources: &[Source]) -> Vec<Problem> {
    let mut known: BTreeMap<(&str, String), &str> = BTreeMap::new();
    let mut problems = vec![];
    for source in sources.iter().filter(|source| source.in_src().is_some()) {
        for (name, line) in types(&source.production) {
            match known.get(&(source.krate(), name.clone())) {
                Some(other) => {
                    problems.push(Problem::new(&source.path, line, format!("{other} has a type {name} as well")));
                }
                None => drop(known.insert((source.krate(), name), &source.path)),
            }
        }
    }
    problems
}

/// The names of the types that code defines outside functions, with their lines.
fn types(code: &str) -> Vec<(String, usize)> {
    let mut found = vec![];
    for keyword in ["struct ", "enum ", "trait "] {
        for (at, _) in code.match_indices(keyword) {
            let before = &code[code[..at].rfind('\n').map_or(0, |end| end + 1)..at];
            let is_item = before.is_empty() || before.starts_with("pub");
            let name: String = code[at + keyword.len()..].chars().take_while(|c| c.is_alphanumeric()).collect();
            if is_item && !name.is_empty() {
                found.push((name, line_of(code, at)));
            }
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn types_of_a_crate_have_different_names() {
        let files = [
            ("crates/x/src/a.rs", "pub struct A;\nenum B {}\n"),
            ("crates/x/src/b.rs", "\npub(super) enum A {}\nfn f() {\n    struct B;\n}\ntrait C {}\n"),
            ("crates/x/src/c.rs", "#[cfg(test)]\nmod tests { struct A; }\n"),
            ("crates/y/src/a.rs", "struct A;\n"),
        ];
        let sources: Vec<Source> = files.iter().map(|(path, code)| Source::new(path, (*code).to_owned())).collect();
        let shown: Vec<String> = check(&sources).iter().map(ToString::to_string).collect();
        assert_eq!(shown, ["crates/x/src/b.rs:2: crates/x/src/a.rs has a type A as well"]);
    }
}
