//! The modules of a crate, and which of them defines what a path names.

use std::collections::BTreeMap;

use super::paths::{self, Named};
use super::source::Source;

/// The path of a module relative to the root of its crate, whose path is empty.
pub type Module = Vec<String>;

/// The modules of a crate with the paths that each uses.
pub struct Modules<'a> {
    modules: BTreeMap<Module, (&'a Source, Vec<Named>)>,
}

/// A path in a module, resolved.
pub struct Use<'a> {
    pub source: &'a Source,
    pub named: &'a Named,
    pub from: &'a Module,
    pub to: Module,
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
    pub fn of_crate(krate: &str, sources: &'a [Source]) -> Modules<'a> {
        let of_crate = sources.iter().filter(|source| source.krate() == krate);
        let read = |source: &'a Source| Some((module(source)?, (source, paths::read(&source.production))));
        Modules { modules: of_crate.filter_map(read).collect() }
    }

    /// Every path in the code: where it stands, and the module that defines what it names; the root has an empty path.
    pub fn uses(&self) -> impl Iterator<Item = Use<'_>> {
        self.modules.iter().flat_map(move |(from, (source, named))| {
            named.iter().filter_map(move |named| {
                Some(Use { source, named, from, to: self.resolve(from, &named.path, from, 0)? })
            })
        })
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
