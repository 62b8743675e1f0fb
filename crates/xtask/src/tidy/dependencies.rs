//! Checks what is built in: licenses, versions beside each other, and sources of dependencies.
//!
//! cargo-deny does the same, but is compiled for longer than any crate of this workspace is.

use std::collections::{BTreeMap, BTreeSet};

use machinery::Value;

use super::Problem;

/// The licenses of dependencies, by their SPDX identifiers.
const LICENSES: [&str; 9] = [
    "Apache-2.0",
    "Apache-2.0 WITH LLVM-exception",
    "BSD-3-Clause",
    "BlueOak-1.0.0",
    "ISC",
    "MIT",
    "MPL-2.0",
    "Unicode-3.0",
    "Zlib",
];

/// The versions that may stand beside a newer one, and what still needs them.
const OLDER: [(&str, &str, &str); 5] = [
    ("base64", "0.22", "tonic"),
    ("cpufeatures", "0.2", "crypto_secretbox"),
    ("rand_core", "0.9", "imbl"),
    ("syn", "2", "macros of asn1-rs; at build time only"),
    ("untrusted", "0.7", "aws-lc-rs"),
];

const REGISTRY: &str = "registry+https://github.com/rust-lang/crates.io-index";
/// The file that the problems are of.
const LOCK: &str = "Cargo.lock";

/// Checks the packages of `cargo metadata` that are in `tree`, the lines of `cargo tree`: the lock file has more, such as those of
/// other platforms and of optional features.
pub fn check(metadata: &Value, tree: &str) -> Vec<Problem> {
    let built: BTreeSet<(&str, &str)> = tree.lines().filter_map(named).collect();
    let is_built = |of: &&Value| built.contains(&(of.str_at(&["name"]), of.str_at(&["version"])));
    let packages = metadata.items_at(&["packages"]).iter().filter(is_built);
    let (mut found, mut used) = (vec![], BTreeSet::new());
    let mut versions: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
    for package in packages {
        let (name, version) = (package.str_at(&["name"]), package.str_at(&["version"]));
        versions.entry(name).or_default().insert(version);
        let source = package.str_at(&["source"]);
        if !source.is_empty() && source != REGISTRY {
            found.push(format!("{name} comes from {source}"));
        }
        let license = package.str_at(&["license"]);
        match satisfied(license) {
            Some(licenses) => used.extend(licenses),
            None => found.push(format!("{name} has the license {license:?}, which is not in the list")),
        }
        let is_any = |of: &&Value| of.str_at(&["req"]) == "*" && of.get("path").is_none_or(Value::is_null);
        for dependency in package.items_at(&["dependencies"]).iter().filter(|of| source.is_empty() && is_any(of)) {
            found.push(format!("{name} takes any version of {}", dependency.str_at(&["name"])));
        }
    }
    found.extend(duplicates(&versions));
    let unused = LICENSES.iter().filter(|license| !used.contains(*license));
    found.extend(unused.map(|license| format!("no dependency has the license {license}, which is in the list")));
    found.iter().map(|what| Problem::new(LOCK, 1, what.as_str())).collect()
}

/// The name and the version in a line of `cargo tree`.
fn named(line: &str) -> Option<(&str, &str)> {
    let mut words = line.split(' ');
    Some((words.next()?, words.next()?.strip_prefix('v')?))
}

/// Packages in several versions that are not in the list, and entries of the list that nothing needs.
fn duplicates(versions: &BTreeMap<&str, BTreeSet<&str>>) -> Vec<String> {
    let is_listed = |name: &str, version: &str| {
        let mut entries = OLDER.iter().filter(|entry| entry.0 == name);
        entries.any(|entry| version.strip_prefix(entry.1).is_some_and(|rest| rest.starts_with('.')))
    };
    let mut found = vec![];
    for (name, all) in versions {
        let others: Vec<&str> = all.iter().copied().filter(|version| !is_listed(name, version)).collect();
        if others.len() > 1 {
            found.push(format!("{name} is built in several versions: {}", others.join(", ")));
        }
    }
    let is_needed = |name: &str| versions.get(name).is_some_and(|all| all.len() > 1);
    let unneeded = OLDER.iter().filter(|(name, ..)| !is_needed(name));
    found.extend(unneeded.map(|(name, version, _)| format!("{name} {version} does not stand beside a newer one")));
    found
}

/// The listed licenses that satisfy an SPDX expression; `None` if they do not.
fn satisfied(expression: &str) -> Option<Vec<&'static str>> {
    let expression = expression.trim();
    if let Some(inner) = enclosed(expression) {
        return satisfied(inner);
    }
    for separator in [" OR ", "/"] {
        let parts = split(expression, separator);
        if parts.len() > 1 {
            return parts.into_iter().find_map(satisfied);
        }
    }
    let parts = split(expression, " AND ");
    if parts.len() > 1 {
        return parts.into_iter().map(satisfied).try_fold(vec![], |mut all, licenses| {
            all.extend(licenses?);
            Some(all)
        });
    }
    let license = expression.trim_end_matches('+');
    LICENSES.iter().find(|known| **known == license).map(|known| vec![*known])
}

/// The text within the outer parentheses.
fn enclosed(expression: &str) -> Option<&str> {
    let inner = expression.strip_prefix('(')?.strip_suffix(')')?;
    let mut depth = 0_i32;
    let stays_inside = inner.chars().all(|letter| {
        depth += i32::from(letter == '(') - i32::from(letter == ')');
        depth >= 0
    });
    stays_inside.then_some(inner)
}

/// The parts between separators that are outside of parentheses.
fn split<'e>(expression: &'e str, separator: &str) -> Vec<&'e str> {
    let (mut parts, mut depth, mut begin) = (vec![], 0_i32, 0);
    for (at, letter) in expression.char_indices() {
        depth += i32::from(letter == '(') - i32::from(letter == ')');
        if depth == 0 && at >= begin && expression[at..].starts_with(separator) {
            parts.push(&expression[begin..at]);
            begin = at + separator.len();
        }
    }
    parts.push(&expression[begin..]);
    parts
}

#[cfg(test)]
mod tests {
    use machinery::json;

    use super::*;

    #[test]
    fn expressions_are_satisfied_by_listed_licenses() {
        for (expression, wanted) in [
            ("MIT", Some(vec!["MIT"])),
            ("GPL-3.0 OR MIT", Some(vec!["MIT"])),
            ("Apache-2.0 / MIT", Some(vec!["Apache-2.0"])),
            ("MPL-2.0+", Some(vec!["MPL-2.0"])),
            ("ISC AND (GPL-2.0 OR (MIT AND Zlib))", Some(vec!["ISC", "MIT", "Zlib"])),
            ("(MIT) AND (ISC)", Some(vec!["MIT", "ISC"])),
            ("MIT AND GPL-3.0", None),
            ("(MIT AND GPL-3.0) OR GPL-2.0", None),
            ("", None),
        ] {
            assert_eq!(satisfied(expression), wanted, "{expression}");
        }
    }

    #[test]
    fn packages_are_checked() {
        let package = |name: &str, version: &str, license: &str, source: &str| {
            let source = if source.is_empty() { Value::Null } else { Value::from(source) };
            json!({"name": name, "version": version, "license": license, "source": (source)})
        };
        let mut own = package("own", "0.1.0", "MIT", "");
        own.set_at(&["dependencies"], json!([{"name": "a", "req": "*"}, {"name": "p", "req": "*", "path": "/p"}]));
        let packages = [
            package("unreached", "1.0.0", "GPL-2.0", REGISTRY),
            own,
            package("a", "1.0.0", "MIT", REGISTRY),
            package("a", "2.0.0", "MIT", REGISTRY),
            package("b", "1.0.0", "GPL-3.0", REGISTRY),
            package("c", "1.0.0", "MIT", "git+https://example.com/c"),
            package("syn", "2.9.1", "MIT", REGISTRY),
            package("syn", "3.0.0", "MIT", REGISTRY),
        ];
        let line = |of: &Value| format!("{} v{} (a)\n", of.str_at(&["name"]), of.str_at(&["version"]));
        let tree: String = packages[1..].iter().map(line).collect();
        let packages: Value = packages.into_iter().collect();
        let found = check(&json!({"packages": (packages)}), &tree);
        let of = |text: &str| found.iter().filter(|problem| problem.what.contains(text)).count();
        for (text, count) in [
            ("a is built in several versions: 1.0.0, 2.0.0", 1),
            ("syn", 0),
            ("unreached", 0),
            ("b has the license \"GPL-3.0\"", 1),
            ("c comes from git+", 1),
            ("own takes any version of a", 1),
            ("any version of p", 0),
            ("base64 0.22 does not stand beside a newer one", 1),
            ("no dependency has the license Zlib", 1),
        ] {
            assert_eq!(of(text), count, "{text}: {found:?}");
        }
    }
}
