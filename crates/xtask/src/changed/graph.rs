//! The crates of the workspace, and those above each.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use client::{Context as _, Result};
use machinery::Value;

use crate::workspace;

/// A crate of the workspace.
#[derive(Default)]
struct Member {
    package: String,
    /// The directories of the crates that it depends on, also for tests and build scripts.
    dependencies: BTreeSet<String>,
}

/// The crates by their directory below the root.
pub struct Graph(BTreeMap<String, Member>);

impl Graph {
    pub fn read(root: &Path) -> Result<Graph> {
        let metadata = workspace::cargo(root, &["metadata", "--format-version", "1", "--no-deps"])?;
        let decoded = machinery::value::decode(metadata.as_bytes());
        let metadata = decoded.context("cannot decode the output of cargo metadata")?;
        Ok(Graph::of(&metadata))
    }

    fn of(metadata: &Value) -> Graph {
        let root = format!("{}/", metadata.str_at(&["workspace_root"]));
        let below_root = |path: &str| path.strip_prefix(&root).unwrap_or(path).to_owned();
        let member = |package: &Value| {
            let paths = package.items_at(&["dependencies"]).iter().filter_map(|found| found.get("path")?.as_str());
            let (name, dependencies) = (package.str_at(&["name"]).to_owned(), paths.map(below_root).collect());
            let directory = package.str_at(&["manifest_path"]).trim_end_matches("/Cargo.toml");
            (below_root(directory), Member { package: name, dependencies })
        };
        Graph(metadata.items_at(&["packages"]).iter().map(member).collect())
    }

    /// The directory of the crate that has a file.
    pub fn crate_of(&self, path: &str) -> Option<String> {
        self.0.keys().find(|directory| path.strip_prefix(*directory).is_some_and(|rest| rest.starts_with('/'))).cloned()
    }

    /// The packages of crates, and of all that depend on one of them.
    pub fn with_those_above(&self, crates: &BTreeSet<String>) -> BTreeSet<String> {
        let mut found = crates.clone();
        loop {
            let above = self.0.iter().filter(|(_, member)| !member.dependencies.is_disjoint(&found));
            let more: Vec<String> = above.map(|(name, _)| name.clone()).filter(|name| !found.contains(name)).collect();
            if more.is_empty() {
                return found.iter().filter_map(|name| Some(self.0.get(name)?.package.clone())).collect();
            }
            found.extend(more);
        }
    }
}

#[cfg(test)]
mod tests {
    use machinery::json;

    use super::*;

    #[test]
    fn crates_above_are_those_that_depend_on_it() {
        let graph = Graph::of(&json!({"workspace_root": "/w", "packages": [
            {"name": "p-a", "manifest_path": "/w/crates/a/Cargo.toml", "dependencies": [{"name": "bytes"}]},
            {"name": "p-b", "manifest_path": "/w/crates/b/Cargo.toml", "dependencies": [{"kind": "dev", "path": "/w/crates/a"}]},
            {"name": "c", "manifest_path": "/w/c/Cargo.toml", "dependencies": [{"path": "/w/crates/b"}]}]}));
        for (path, packages) in [
            ("crates/a/src/lib.rs", vec!["c", "p-a", "p-b"]),
            ("crates/b/Cargo.toml", vec!["c", "p-b"]),
            ("c/src/main.rs", vec!["c"]),
            ("crates/ab/x", vec![]),
        ] {
            let found = graph.with_those_above(&graph.crate_of(path).into_iter().collect());
            assert_eq!(found.iter().collect::<Vec<_>>(), packages, "{path}");
        }
    }
}
