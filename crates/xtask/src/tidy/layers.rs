//! Checks that every room of a crate with layers is in the table of its crate, and imports only rooms of lower layers.

use std::collections::{BTreeMap, BTreeSet};

use super::source::{Source, line_of};
use super::{ARCHITECTURE, Problem, tables};

/// The crates whose rooms have layers.
const CRATES: [&str; 3] = ["base", "access", "server"];

/// A crate and its rooms: top-level modules, each with its main file.
struct Layered<'a> {
    krate: &'a str,
    /// The directory of its sources, with a slash at the end.
    folder: String,
    rooms: BTreeMap<String, String>,
}

impl<'a> Layered<'a> {
    fn read(krate: &'a str, sources: &[Source]) -> Layered<'a> {
        let folder = format!("crates/{krate}/src/");
        let mut rooms = BTreeMap::new();
        for source in sources {
            let Some(rest) = source.path.strip_prefix(&folder) else { continue };
            match rest.split_once('/') {
                Some((room, "mod.rs")) => drop(rooms.insert(room.to_owned(), source.path.clone())),
                // a missing main file is reported by `main_files`
                Some((room, _)) => drop(rooms.entry(room.to_owned()).or_insert(format!("{folder}{room}/mod.rs"))),
                None if rest == "lib.rs" => {}
                None => drop(rooms.insert(rest.trim_end_matches(".rs").to_owned(), source.path.clone())),
            }
        }
        Layered { krate, folder, rooms }
    }

    /// Checks the table against the tree, and the imports against the table.
    fn check(&self, document: &str, sources: &[Source]) -> Vec<Problem> {
        let mut problems = main_files(&self.rooms, sources);
        let header = ["layer", &format!("room of {}", self.krate), "may import", "holds"];
        let Some(rows) = tables::find(document, &header) else {
            let what = format!("there is no table with the header | {} |", header.join(" | "));
            problems.push(Problem::new(ARCHITECTURE, 1, what));
            return problems;
        };
        let mut layers: BTreeMap<String, u32> = BTreeMap::new();
        for row in &rows {
            let (Some(layer), Some(room)) = (row.cells.first(), row.cells.get(1)) else { continue };
            let room = room.trim_end_matches('/').trim_end_matches(".rs").to_owned();
            let mut say = |what: String| problems.push(Problem::new(ARCHITECTURE, row.line, what));
            let Ok(layer) = layer.parse::<u32>() else {
                say(format!("the layer of {room} is no number"));
                continue;
            };
            if row.cells.get(2).is_some_and(|cell| !is_all_below(cell, layer)) {
                say(format!("\"may import\" of {room} must name exactly the layers below layer {layer}"));
            }
            if !self.rooms.contains_key(&room) {
                say(format!("there is no room {room} in {}", self.folder));
            }
            if layers.insert(room.clone(), layer).is_some() {
                say(format!("room {room} is listed twice"));
            }
        }
        for (room, path) in self.rooms.iter().filter(|(room, _)| !layers.contains_key(*room)) {
            problems.push(Problem::new(path, 1, format!("room {room} is not in the layer table of {ARCHITECTURE}")));
        }
        problems.extend(sources.iter().flat_map(|source| self.imports_of(source, &layers)));
        problems
    }

    fn imports_of(&self, source: &Source, layers: &BTreeMap<String, u32>) -> Vec<Problem> {
        let Some(rest) = source.path.strip_prefix(&self.folder) else { return vec![] };
        let own = rest.split('/').next().unwrap_or_default().trim_end_matches(".rs");
        let Some(own_layer) = layers.get(own).filter(|_| own != "lib") else { return vec![] };
        let mut problems = vec![];
        for (line, room) in imports(&source.production, depth(rest)) {
            let mut say = |what: String| problems.push(Problem::new(&source.path, line, what));
            match layers.get(&room) {
                _ if room == own => {}
                _ if !self.rooms.contains_key(&room) => {
                    say(format!("{own} imports {room} of lib.rs, which is above every room"))
                }
                Some(layer) if layer < own_layer => {}
                Some(layer) if layer == own_layer => say(format!("{own} imports {room} of its own layer {layer}")),
                Some(layer) => say(format!("{own} (layer {own_layer}) imports {room} of layer {layer}")),
                None => {}
            }
        }
        problems
    }
}

/// The problems of all crates with layers, and the number of their rooms.
pub fn check(document: &str, sources: &[Source]) -> (Vec<Problem>, usize) {
    let crates: Vec<Layered> = CRATES.iter().map(|krate| Layered::read(krate, sources)).collect();
    let problems = crates.iter().flat_map(|layered| layered.check(document, sources)).collect();
    (problems, crates.iter().map(|layered| layered.rooms.len()).sum())
}

/// Whether a cell names the layers below `layer`: `-`, `0`, `0, 1`, `0 to 5` or words.
fn is_all_below(cell: &str, layer: u32) -> bool {
    let numbers = cell.split(|c: char| !c.is_ascii_digit()).filter_map(|digits| digits.parse::<u32>().ok());
    let numbers: Vec<u32> = numbers.collect();
    match (numbers.first(), numbers.last()) {
        (Some(first), Some(last)) => *first == 0 && *last + 1 == layer,
        _ => layer == 0 || cell != "-",
    }
}

/// Checks that each room has a main file that begins with a doc comment.
fn main_files(rooms: &BTreeMap<String, String>, sources: &[Source]) -> Vec<Problem> {
    let missing = |path: &String| match sources.iter().find(|source| source.path == *path) {
        Some(source) if source.text.starts_with("//!") => None,
        Some(_) => Some(Problem::new(path, 1, "the main file of a room must begin with `//!`")),
        None => Some(Problem::new(path, 1, "the room has no main file")),
    };
    rooms.values().filter_map(missing).collect()
}

/// The depth of a file's module below the root of its crate.
fn depth(rest: &str) -> usize {
    let folders = rest.split('/').count() - 1;
    if rest.ends_with("/mod.rs") { folders } else { folders + 1 }
}

/// The top-level modules that code names, by `crate::` or by `depth` times `super::`, with their lines.
fn imports(code: &str, depth: usize) -> BTreeSet<(usize, String)> {
    let mut found = BTreeSet::new();
    for root in ["crate::".to_owned(), "super::".repeat(depth)] {
        let mut from = 0;
        while let Some(at) = code[from..].find(&root).map(|at| from + at) {
            from = at + root.len();
            let before = code[..at].chars().next_back();
            let part_of_more = before.is_some_and(|c| c.is_alphanumeric() || matches!(c, '_' | ':'));
            // `pub(in crate::x)` counts too, but not `$crate::` in macros
            if part_of_more || before == Some('$') || code[from..].starts_with("super::") {
                continue;
            }
            let line = line_of(code, at);
            found.extend(heads(&code[from..]).into_iter().map(|name| (line, name)));
        }
    }
    found
}

/// The first segment of a path, or of each path in braces.
fn heads(path: &str) -> Vec<String> {
    let name = |text: &str| -> String { text.chars().take_while(|c| c.is_alphanumeric() || *c == '_').collect() };
    let Some(group) = path.trim_start().strip_prefix('{') else { return vec![name(path)] };
    let (mut depth, mut names, mut fresh) = (0, vec![], true);
    for (i, c) in group.char_indices() {
        match c {
            '{' => depth += 1,
            '}' if depth == 0 => break,
            '}' => depth -= 1,
            ',' if depth == 0 => fresh = true,
            c if fresh && !c.is_whitespace() => {
                names.push(name(&group[i..]));
                fresh = false;
            }
            _ => {}
        }
    }
    names.retain(|name| !name.is_empty() && name != "self");
    names
}

#[cfg(test)]
mod tests {
    use super::*;

    const SERVER: &str = "crates/server/src/";
    const DOCUMENT: &str = "| layer | room of server | may import | holds |\n| - | - | - | - |\n| 2 | `http/` | below | x |\n| 1 | `verbs/` | below | x |\n| 1 | `controllers/` | below | x |\n| 0 | `clock` | - | x |\n";

    fn problems(files: &[(&str, &str)]) -> Vec<String> {
        let base =
            [("http/mod.rs", ""), ("verbs/mod.rs", ""), ("controllers/mod.rs", ""), ("clock.rs", ""), ("lib.rs", "")];
        let text = |path: &str, default: &str| {
            let given = files.iter().find(|(p, _)| *p == path).map_or(default, |(_, text)| *text);
            format!("//! What it is.\n{given}")
        };
        let mut all: Vec<Source> =
            base.iter().map(|(path, code)| Source::new(&format!("{SERVER}{path}"), text(path, code))).collect();
        for (path, code) in files.iter().filter(|(path, _)| base.iter().all(|(p, _)| p != path)) {
            all.push(Source::new(&format!("{SERVER}{path}"), (*code).to_owned()));
        }
        Layered::read("server", &all).check(DOCUMENT, &all).iter().map(ToString::to_string).collect()
    }

    #[test]
    fn rooms_import_lower_layers_only() {
        let cases = [
            ("http/mod.rs", "use crate::{clock, verbs::{self, list}};", None),
            ("http/mod.rs", "use super::verbs;", None),
            ("verbs/mod.rs", "use crate::http::Edge;", Some("2: verbs (layer 1) imports http of layer 2")),
            (
                "verbs/mod.rs",
                "fn f() {\n crate::controllers::x() }",
                Some("3: verbs imports controllers of its own layer 1"),
            ),
            ("verbs/mod.rs", "use super::{clock, http};", Some("2: verbs (layer 1) imports http of layer 2")),
            ("clock.rs", "use crate::short;", Some("2: clock imports short of lib.rs, which is above every room")),
            ("verbs/list.rs", "use super::super::http;", Some("1: verbs (layer 1) imports http of layer 2")),
            ("verbs/list.rs", "use super::http;", None),
            ("verbs/mod.rs", "#[cfg(test)]\nmod tests { use crate::http; }\n// crate::http", None),
            ("lib.rs", "use crate::http;", None),
        ];
        for (path, code, want) in cases {
            let want: Vec<String> = want.iter().map(|want| format!("{SERVER}{path}:{want}")).collect();
            assert_eq!(problems(&[(path, code)]), want, "{code}");
        }
    }

    #[test]
    fn room_table_matches_tree() {
        let new = problems(&[("audit/mod.rs", "//! Audit.")]);
        assert_eq!(new, [format!("{SERVER}audit/mod.rs:1: room audit is not in the layer table of {ARCHITECTURE}")]);
        let silent = problems(&[("flow.rs", "use x;")]);
        assert!(silent[0].ends_with("the main file of a room must begin with `//!`"), "{silent:?}");
        assert!(is_all_below("0 to 5", 6) && is_all_below("-", 0) && is_all_below("below", 3));
        assert!(!is_all_below("0 to 5", 7) && !is_all_below("-", 1) && !is_all_below("1, 2", 3));
        let none = Layered::read("server", &[]);
        let gone = none.check(DOCUMENT, &[]);
        assert_eq!(gone[0], Problem::new(ARCHITECTURE, 3, format!("there is no room http in {SERVER}")));
        assert_eq!(none.check("", &[]).len(), 1);
    }
}
