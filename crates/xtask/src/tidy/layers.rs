//! Checks that the rooms of each crate, its top-level modules, have layers in ARCHITECTURE.md, and import only rooms of lower
//! layers and nothing of `lib.rs`, which is above them all.

use std::collections::{BTreeMap, BTreeSet};

use super::modules::{Modules, Use};
use super::source::Source;
use super::{ARCHITECTURE, Problem, tables};

/// The crates whose rooms have a row each, in a table that says what they hold.
const DESCRIBED: [&str; 3] = ["base", "access", "server"];

/// The table with a row for each of the other crates: its rooms, from the lowest layer to the highest.
const ORDERED: [&str; 2] = ["crate", "rooms, from the lowest layer: those of one layer between semicolons"];

/// A crate and its rooms, each with its main file.
struct Layered<'a> {
    krate: &'a str,
    /// The directory of its sources, with a slash at the end.
    folder: String,
    rooms: BTreeMap<String, String>,
}

/// The layer of each room.
type Layers = BTreeMap<String, usize>;

impl<'a> Layered<'a> {
    fn read(krate: &'a str, sources: &[Source]) -> Layered<'a> {
        let folder = format!("crates/{krate}/src/");
        let mut rooms = BTreeMap::new();
        for source in sources {
            let Some(rest) = source.path.strip_prefix(&folder) else { continue };
            match rest.split_once('/') {
                Some((room, "mod.rs")) => drop(rooms.insert(room.to_owned(), source.path.clone())),
                // a file of the folder `x/`: if the module is `x.rs` beside the folder, the last arm replaces this path
                Some((room, _)) => drop(rooms.entry(room.to_owned()).or_insert(format!("{folder}{room}/mod.rs"))),
                None if matches!(rest, "lib.rs" | "main.rs" | "tests.rs") => {}
                None => drop(rooms.insert(rest.trim_end_matches(".rs").to_owned(), source.path.clone())),
            }
        }
        Layered { krate, folder, rooms }
    }

    /// Checks the table against the tree, and the imports against the table.
    fn check(&self, document: &str, sources: &[Source]) -> Vec<Problem> {
        let mut problems = main_files(&self.rooms, sources);
        let layers = match self.is_described() {
            true => self.described(document, &mut problems),
            false => self.ordered(document, &mut problems),
        };
        for (room, path) in self.rooms.iter().filter(|(room, _)| !layers.contains_key(*room)) {
            problems.push(Problem::new(path, 1, format!("room {room} is not in the layer table of {ARCHITECTURE}")));
        }
        let modules = Modules::of_crate(self.krate, sources);
        problems.extend(modules.uses().filter_map(|used| self.import(&used, &layers)));
        problems
    }

    fn is_described(&self) -> bool {
        DESCRIBED.contains(&self.krate)
    }

    /// The layers of a table with a row for each room.
    fn described(&self, document: &str, problems: &mut Vec<Problem>) -> Layers {
        let header = ["layer", &format!("room of {}", self.krate), "may import", "holds"];
        let mut layers = Layers::new();
        for row in self.rows(document, &header, problems) {
            let (Some(layer), Some(room)) = (row.cells.first(), row.cells.get(1)) else { continue };
            let room = room.trim_end_matches('/').trim_end_matches(".rs");
            let Ok(layer) = layer.parse() else {
                problems.push(Problem::new(ARCHITECTURE, row.line, format!("the layer of {room} is not a number")));
                continue;
            };
            if row.cells.get(2).is_some_and(|cell| !is_all_below(cell, layer)) {
                let what = format!("\"may import\" of {room} must name exactly the layers below layer {layer}");
                problems.push(Problem::new(ARCHITECTURE, row.line, what));
            }
            self.list(&mut layers, room, layer, row.line, problems);
        }
        layers
    }

    /// The layers of the row of the crate in the common table.
    fn ordered(&self, document: &str, problems: &mut Vec<Problem>) -> Layers {
        let mut layers = Layers::new();
        let rows = self.rows(document, &ORDERED, problems);
        for row in rows.iter().filter(|row| row.cells.first().is_some_and(|name| name == self.krate)) {
            let all = row.cells.get(1).map(String::as_str).unwrap_or_default();
            for (layer, rooms) in all.split(';').enumerate() {
                tables::names(rooms).iter().for_each(|room| self.list(&mut layers, room, layer, row.line, problems));
            }
        }
        layers
    }

    fn rows(&self, document: &str, header: &[&str], problems: &mut Vec<Problem>) -> Vec<tables::TableRow> {
        tables::find(document, header).unwrap_or_else(|problem| {
            problems.push(problem);
            vec![]
        })
    }

    fn list(&self, layers: &mut Layers, room: &str, layer: usize, line: usize, problems: &mut Vec<Problem>) {
        if !self.rooms.contains_key(room) {
            problems.push(Problem::new(ARCHITECTURE, line, format!("there is no room {room} in {}", self.folder)));
        }
        if layers.insert(room.to_owned(), layer).is_some() {
            problems.push(Problem::new(ARCHITECTURE, line, format!("room {room} of {} is listed twice", self.krate)));
        }
    }

    /// The problem of an import, if it does not lead to a lower layer.
    fn import(&self, used: &Use, layers: &Layers) -> Option<Problem> {
        let own = used.from.first()?;
        let own_layer = layers.get(own)?;
        let what = match used.to.first() {
            Some(room) if room == own => return None,
            Some(room) => match layers.get(room)? {
                layer if layer < own_layer => return None,
                layer if layer == own_layer => format!("{own} imports {room} of its own layer {layer}"),
                layer => format!("{own} (layer {own_layer}) imports {room} of layer {layer}"),
            },
            None => {
                let name = used.named.path.iter().find(|name| !matches!(name.as_str(), "crate" | "super"))?;
                format!("{own} imports {name} of lib.rs, which is above every room")
            }
        };
        Some(Problem::new(&used.source.path, used.named.line, what))
    }
}

/// The problems of all crates, and the number of their rooms.
pub fn check(document: &str, sources: &[Source]) -> (Vec<Problem>, usize) {
    let crates: BTreeSet<&str> = sources.iter().map(Source::krate).collect();
    let crates: Vec<Layered> = crates.into_iter().map(|krate| Layered::read(krate, sources)).collect();
    let problems = crates.iter().flat_map(|layered| layered.check(document, sources)).collect();
    (problems, crates.iter().map(|layered| layered.rooms.len()).sum())
}

/// Whether a cell names the layers below `layer`: `-`, `0`, `0, 1`, `0 to 5` or words.
fn is_all_below(cell: &str, layer: usize) -> bool {
    let numbers = cell.split(|c: char| !c.is_ascii_digit()).filter_map(|digits| digits.parse::<usize>().ok());
    let numbers: Vec<usize> = numbers.collect();
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
