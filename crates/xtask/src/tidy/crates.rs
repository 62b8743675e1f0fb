//! Checks that every crate is in the crate table of ARCHITECTURE.md, with its dependencies.

use std::collections::BTreeMap;

use machinery::Value;

use super::{ARCHITECTURE, Problem, tables};

const HEADER: [&str; 3] = ["crate", "depends on", "holds"];

/// Crates by the name of their directory, each with the workspace crates in its `[dependencies]`, sorted. Dependencies of tests and
/// build scripts do not count.
pub type Crates = BTreeMap<String, Vec<String>>;

/// The crates of the workspace in `cargo metadata`.
pub fn of(metadata: &Value) -> Crates {
    let name = |directory: &str| directory.rsplit('/').next().unwrap_or_default().to_owned();
    let mut crates = Crates::new();
    for package in metadata.items_at(&["packages"]) {
        // in cargo metadata, the kind of a normal dependency is null
        let normal = |dependency: &&Value| dependency.get("kind").is_none_or(Value::is_null);
        let local = |dependency: &Value| dependency.get("path").and_then(Value::as_str).map(name);
        let mut names: Vec<String> =
            package.items_at(&["dependencies"]).iter().filter(normal).filter_map(local).collect();
        names.sort();
        names.dedup();
        let directory = package.str_at(&["manifest_path"]).trim_end_matches("/Cargo.toml");
        if directory.rsplit('/').nth(1) == Some("crates") {
            crates.insert(name(directory), names);
        }
    }
    crates
}

/// Checks the table against the manifests.
pub fn check(document: &str, crates: &Crates) -> Vec<Problem> {
    let rows = match tables::find(document, &HEADER) {
        Ok(rows) => rows,
        Err(problem) => return vec![problem],
    };
    let mut problems = vec![];
    let mut listed = vec![];
    for row in &rows {
        let (Some(name), Some(cell)) = (row.cells.first(), row.cells.get(1)) else { continue };
        listed.push(name);
        let mut named = tables::names(cell);
        named.sort();
        match crates.get(name) {
            None => problems.push(Problem::new(ARCHITECTURE, row.line, format!("there is no crate {name}"))),
            Some(found) if *found != named => {
                let found = if found.is_empty() { "no crate".to_owned() } else { found.join(", ") };
                problems.push(Problem::new(
                    ARCHITECTURE,
                    row.line,
                    format!("the row of {name} should list as dependencies: {found}"),
                ));
            }
            Some(_) => {}
        }
    }
    for name in crates.keys().filter(|name| !listed.contains(name)) {
        let path = format!("crates/{name}/Cargo.toml");
        problems.push(Problem::new(&path, 1, format!("crate {name} is not in the crate table of {ARCHITECTURE}")));
    }
    problems
}

#[cfg(test)]
mod tests {
    use machinery::json;

    use super::*;

    #[test]
    fn dependencies_are_read_from_metadata() {
        let metadata = json!({"packages": [{"manifest_path": "/w/crates/x/Cargo.toml", "dependencies": [
            {"name": "pintle-cel", "kind": null, "path": "/w/crates/cel"}, {"name": "bytes", "kind": null},
            {"name": "pintle-store", "kind": "dev", "path": "/w/crates/store"}
        ]}]});
        assert_eq!(of(&metadata), Crates::from([("x".to_owned(), vec!["cel".to_owned()])]));
    }

    #[test]
    fn crate_table_matches_manifests() {
        let crates: Crates =
            [("cel".to_owned(), vec![]), ("schema".to_owned(), vec!["cel".to_owned(), "machinery".to_owned()])].into();
        let table = |rows: &str| format!("| crate | depends on | holds |\n| - | - | - |\n{rows}");
        let shown =
            |rows: &str| -> Vec<String> { check(&table(rows), &crates).iter().map(ToString::to_string).collect() };
        assert!(shown("| `cel` | - | x |\n| `schema` | machinery, cel | x |\n").is_empty());
        assert_eq!(
            shown("| cel | - | x |\n| schema | cel | x |\n"),
            ["ARCHITECTURE.md:4: the row of schema should list as dependencies: cel, machinery"]
        );
        let missing = shown("| cel | - | x |\n| etcd | - | x |\n");
        assert_eq!(missing.len(), 2, "{missing:?}");
    }
}
