//! Checks that every crate is in the crate table of ARCHITECTURE.md, with its dependencies.

use std::collections::BTreeMap;
use std::path::Path;

use super::{ARCHITECTURE, Problem, tables};

const HEADER: [&str; 3] = ["crate", "depends on", "holds"];

/// Crates by the name of their directory, each with the workspace crates that it depends on, sorted.
pub type Crates = BTreeMap<String, Vec<String>>;

/// Reads the manifests.
pub fn read(root: &Path) -> Result<Crates, String> {
    let manifest =
        |path: &Path| std::fs::read_to_string(path).map_err(|error| format!("cannot read {}: {error}", path.display()));
    let workspace = manifest(&root.join("Cargo.toml"))?;
    let local: BTreeMap<String, String> = paths(&workspace, "workspace.dependencies").into_iter().collect();
    let mut crates = Crates::new();
    let failed = |error: std::io::Error| format!("cannot read crates: {error}");
    for entry in std::fs::read_dir(root.join("crates")).map_err(failed)? {
        let entry = entry.map_err(failed)?;
        let path = entry.path().join("Cargo.toml");
        if path.exists() {
            let name = entry.file_name().to_string_lossy().into_owned();
            crates.insert(name, depends_on(&manifest(&path)?, &local));
        }
    }
    Ok(crates)
}

/// Keys and values of one section of a manifest; the key of `a.b = c` is `a`.
fn entries<'a>(manifest: &'a str, section: &str) -> Vec<(&'a str, &'a str)> {
    let header = format!("[{section}]");
    let lines = manifest.lines().map(str::trim).skip_while(|line| *line != header).skip(1);
    let lines = lines.take_while(|line| !line.starts_with('['));
    let entry = |line: &'a str| {
        let (key, value) = line.split_once('=')?;
        Some((key.split('.').next()?.trim().trim_matches('"'), value.trim()))
    };
    lines.filter(|line| !line.starts_with('#')).filter_map(entry).collect()
}

/// The path dependencies of a section: their keys and directories.
fn paths(manifest: &str, section: &str) -> Vec<(String, String)> {
    let folder = |value: &str| {
        let (_, rest) = value.split_once("path = \"")?;
        rest.split('"').next()?.rsplit('/').next().map(str::to_owned)
    };
    entries(manifest, section).into_iter().filter_map(|(key, value)| Some((key.to_owned(), folder(value)?))).collect()
}

/// The crates of the workspace among the dependencies of a manifest.
fn depends_on(manifest: &str, local: &BTreeMap<String, String>) -> Vec<String> {
    let mut names: Vec<String> = paths(manifest, "dependencies").into_iter().map(|(_, folder)| folder).collect();
    names.extend(entries(manifest, "dependencies").into_iter().filter_map(|(key, _)| local.get(key).cloned()));
    names.sort();
    names.dedup();
    names
}

/// Checks the table against the manifests.
pub fn check(document: &str, crates: &Crates) -> Vec<Problem> {
    let Some(rows) = tables::find(document, &HEADER) else {
        let what = format!("there is no table with the header | {} |", HEADER.join(" | "));
        return vec![Problem::new(ARCHITECTURE, 1, what)];
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
                problems.push(Problem::new(ARCHITECTURE, row.line, format!("{name} depends on {found}")));
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
    use super::*;

    #[test]
    fn dependencies_are_read_from_manifests() {
        let workspace =
            "[workspace.dependencies]\ncel = { path = \"crates/cel\", package = \"pintle-cel\" }\nbytes = \"1\"\n";
        let local = paths(workspace, "workspace.dependencies").into_iter().collect();
        let manifest = "[package]\nname = \"x\"\n[dependencies]\ncel.workspace = true\nbytes.workspace = true\nother = { path = \"../other\" }\n[dev-dependencies]\nstore.workspace = true\n";
        assert_eq!(depends_on(manifest, &local), ["cel", "other"]);
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
            ["ARCHITECTURE.md:4: schema depends on cel, machinery"]
        );
        let missing = shown("| cel | - | x |\n| etcd | - | x |\n");
        assert_eq!(missing.len(), 2, "{missing:?}");
    }
}
