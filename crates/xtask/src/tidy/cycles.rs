//! Checks that the modules of a directory do not import each other in a cycle.
//!
//! A directory counts as one module of its parent directory. A module and the modules below it may import each other.

use std::collections::{BTreeMap, BTreeSet};

use super::Problem;
use super::modules::{Module, Modules, Use};
use super::paths::Named;
use super::source::Source;

/// An import of one module of a directory by another.
struct Arrow<'a> {
    source: &'a Source,
    named: &'a Named,
}

/// The modules of one directory, each with those that it imports.
type Folder<'a> = BTreeMap<String, BTreeMap<String, Arrow<'a>>>;

pub fn check(sources: &[Source]) -> Vec<Problem> {
    let crates: BTreeSet<&str> = sources.iter().map(Source::krate).collect();
    crates.into_iter().flat_map(|krate| check_crate(krate, sources)).collect()
}

fn check_crate(krate: &str, sources: &[Source]) -> Vec<Problem> {
    let modules = Modules::of_crate(krate, sources);
    let mut problems = vec![];
    for (path, folder) in folders(&modules) {
        let mut done = BTreeSet::new();
        for start in folder.keys() {
            follow(&folder, &mut vec![start], &mut done, &mut |cycle| {
                problems.push(problem(&path, &folder, cycle));
            });
        }
    }
    problems
}

/// The imports between the modules of each directory.
fn folders<'a>(modules: &'a Modules<'a>) -> BTreeMap<Module, Folder<'a>> {
    let mut folders: BTreeMap<Module, Folder> = BTreeMap::new();
    for Use { source, named, from, to } in modules.uses() {
        let common = from.iter().zip(&to).take_while(|(a, b)| a == b).count();
        let (Some(one), Some(other)) = (from.get(common), to.get(common)) else { continue };
        let folder = folders.entry(from[..common].to_vec()).or_default();
        folder.entry(one.clone()).or_default().entry(other.clone()).or_insert(Arrow { source, named });
    }
    folders
}

/// Depth-first search along imports; reports every cycle.
fn follow<'f>(
    folder: &'f Folder,
    way: &mut Vec<&'f String>,
    done: &mut BTreeSet<&'f String>,
    report: &mut impl FnMut(&[&String]),
) {
    let Some(last) = way.last().copied() else { return };
    for next in folder.get(last).into_iter().flat_map(BTreeMap::keys) {
        if let Some(from) = way.iter().position(|module| *module == next) {
            report(&way[from..]);
        } else if !done.contains(next) {
            way.push(next);
            follow(folder, way, done, report);
            way.pop();
        }
    }
    done.insert(last);
}

fn problem(path: &[String], folder: &Folder, cycle: &[&String]) -> Problem {
    let next = |i: usize| cycle[(i + 1) % cycle.len()];
    let arrows: Vec<&Arrow> =
        cycle.iter().enumerate().filter_map(|(i, from)| folder.get(*from)?.get(next(i))).collect();
    let shown = |arrow: &&Arrow| {
        let (file, named) = (arrow.source.in_src().unwrap_or_default(), arrow.named.path.join("::"));
        format!("{file} imports {named}")
    };
    let shown: Vec<String> = arrows.iter().map(shown).collect();
    let (file, line) = arrows.first().map_or(("", 1), |arrow| (arrow.source.path.as_str(), arrow.named.line));
    let below = if path.is_empty() { String::new() } else { format!(" of {}", path.join("::")) };
    Problem::new(file, line, format!("modules{below} import each other: {}", shown.join(", ")))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn problems(files: &[(&str, &str)]) -> Vec<String> {
        let sources = files.iter().map(|(path, code)| Source::new(&format!("crates/x/src/{path}"), (*code).to_owned()));
        check(&sources.collect::<Vec<_>>()).iter().map(ToString::to_string).collect()
    }

    #[test]
    fn folder_modules_import_in_one_direction() {
        let a = "crates/x/src/a.rs:1: modules import each other: a.rs imports";
        type Files = &'static [(&'static str, &'static str)];
        let cases: [(Files, Option<String>); 8] = [
            (&[("lib.rs", "mod a; mod b;"), ("a.rs", "use crate::b::B;"), ("b.rs", "struct B;")], None),
            (
                &[("a.rs", "use crate::b::B;"), ("b.rs", "fn f() { crate::a::g() }")],
                Some(format!("{a} crate::b::B, b.rs imports crate::a::g")),
            ),
            // over a module that hands a name on
            (
                &[
                    ("lib.rs", "pub use b::{self, B};"),
                    ("a.rs", "use crate::B;"),
                    ("b.rs", "use super::a;\nfn f() { a::g() }"),
                ],
                Some(format!("{a} crate::B, b.rs imports super::a")),
            ),
            // a module and those below it
            (&[("a/mod.rs", "mod c; use c::C;"), ("a/c.rs", "use super::A;")], None),
            // a folder is one module
            (
                &[
                    ("lib.rs", "mod a; mod b;"),
                    ("a/mod.rs", "mod c; mod d;"),
                    ("a/c.rs", "use crate::b::B;"),
                    ("a/d.rs", "struct D;"),
                    ("b.rs", "use crate::a::d::D;")],
                Some("crates/x/src/a/c.rs:1: modules import each other: a/c.rs imports crate::b::B, b.rs imports crate::a::d::D".to_owned()),
            ),
            (
                &[("a.rs", "use crate::b;"), ("b.rs", "use crate::c;"), ("c.rs", "\n\nuse crate::a;")],
                Some(format!("{a} crate::b, b.rs imports crate::c, c.rs imports crate::a")),
            ),
            (&[("a.rs", "use crate::b;"), ("b.rs", "#[cfg(test)]\nmod tests { use crate::a; }")], None),
            (&[("a.rs", "use ::b::C;"), ("b.rs", "use super::a;")], None),
        ];
        for (files, want) in cases {
            assert_eq!(problems(files), want.into_iter().collect::<Vec<_>>(), "{files:?}");
        }
    }
}
