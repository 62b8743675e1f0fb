//! Checks that the modules of a directory do not import each other in a cycle.
//!
//! A directory counts as one module of its parent directory. A module and the modules below it may import each other.

use std::collections::{BTreeMap, BTreeSet};

use super::Problem;
use super::paths::{self, Named};
use super::source::Source;

/// The path of a module relative to the root of its crate, whose path is empty.
type Module = Vec<String>;

/// The modules of a crate with the paths that each uses.
struct Modules<'a> {
    modules: BTreeMap<Module, (&'a Source, Vec<Named>)>,
}

/// An import of one module of a directory by another.
struct Arrow<'a> {
    source: &'a Source,
    named: Named,
}

/// The modules of one directory, each with those that it imports.
type Folder<'a> = BTreeMap<String, BTreeMap<String, Arrow<'a>>>;

pub fn check(sources: &[Source]) -> Vec<Problem> {
    let crates: BTreeSet<&str> = sources.iter().map(Source::krate).collect();
    crates.into_iter().flat_map(|krate| check_crate(krate, sources)).collect()
}

fn check_crate(krate: &str, sources: &[Source]) -> Vec<Problem> {
    let of_crate = sources.iter().filter(|source| source.krate() == krate);
    let modules = of_crate.filter_map(|source| Some((module(source)?, (source, paths::read(&source.production)))));
    let modules = Modules { modules: modules.collect() };
    let mut problems = vec![];
    for (path, folder) in modules.folders() {
        let mut done = BTreeSet::new();
        for start in folder.keys() {
            follow(&folder, &mut vec![start], &mut done, &mut |cycle| {
                problems.push(problem(&path, &folder, cycle));
            });
        }
    }
    problems
}

/// The module of a file in `src`.
fn module(source: &Source) -> Option<Module> {
    let mut path: Module = source.in_src()?.trim_end_matches(".rs").split('/').map(str::to_owned).collect();
    if path.last().is_some_and(|name| name == "mod") || path == ["lib"] || path == ["main"] {
        path.pop();
    }
    Some(path)
}

impl<'a> Modules<'a> {
    /// The imports between the modules of each directory.
    fn folders(&self) -> BTreeMap<Module, Folder<'a>> {
        let mut folders: BTreeMap<Module, Folder> = BTreeMap::new();
        for (from, (source, named)) in &self.modules {
            for named in named {
                let Some(to) = self.resolve(from, &named.path, from, 0) else { continue };
                let common = from.iter().zip(&to).take_while(|(a, b)| a == b).count();
                let (Some(one), Some(other)) = (from.get(common), to.get(common)) else { continue };
                let folder = folders.entry(from[..common].to_vec()).or_default();
                let arrows = folder.entry(one.clone()).or_default();
                arrows.entry(other.clone()).or_insert_with(|| Arrow { source, named: named.clone() });
            }
        }
        folders
    }

    /// The module that defines the item `path` as used in module `at`; `None` for items of other crates. Reexports are followed,
    /// except those of the module `importer`.
    fn resolve(&self, at: &Module, path: &[String], importer: &Module, depth: usize) -> Option<Module> {
        /// Maximum number of reexports that are followed.
        const DEPTH_MAX: usize = 16;
        let (mut module, mut rest) = match path.first()?.as_str() {
            "crate" => (vec![], &path[1..]),
            "self" => (at.clone(), &path[1..]),
            "super" => {
                let up = path.iter().take_while(|name| *name == "super").count();
                (at[..at.len().checked_sub(up)?].to_vec(), &path[up..])
            }
            first => {
                let is_child = self.modules.contains_key(&[at.as_slice(), &[first.to_owned()]].concat());
                if !is_child {
                    let imported = self.import(at, first).filter(|import| import.first() != path.first())?;
                    return self.resolve(at, &[imported, &path[1..]].concat(), importer, depth + 1);
                }
                (at.clone(), path)
            }
        };
        while let Some(name) = rest.first() {
            let below = [module.as_slice(), std::slice::from_ref(name)].concat();
            if self.modules.contains_key(&below) {
                (module, rest) = (below, &rest[1..]);
                continue;
            }
            if depth < DEPTH_MAX
                && module != *importer
                && let Some(import) = self.import(&module, name)
            {
                return self.resolve(&module, &[import, &rest[1..]].concat(), importer, depth + 1);
            }
            break;
        }
        self.modules.contains_key(&module).then_some(module)
    }

    /// The path that a module imports under a name.
    fn import(&self, module: &Module, name: &str) -> Option<&[String]> {
        let (_, named) = self.modules.get(module)?;
        named.iter().find(|named| named.alias.as_deref() == Some(name)).map(|named| named.path.as_slice())
    }
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
