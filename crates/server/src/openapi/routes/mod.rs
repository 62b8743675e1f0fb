//! The routes that OpenAPI documents describe, and the path items made from them.
//!
//! A [`PathOperation`] is independent of the version of OpenAPI. `resource.rs` has those of resources, and
//! `fixed.rs` those that belong to no resource; `items.rs` converts routes to path items.

mod fixed;
mod items;
mod resource;

pub use fixed::of_document;
pub use items::items;
pub use resource::routes as of_resource;

use super::schema::Kind;
use super::standard;

/// An operation of a path, independent of the version of OpenAPI.
pub struct PathOperation {
    pub path: String,
    /// The method in lower case.
    pub method: &'static str,
    /// `operationId`
    pub id: String,
    pub tag: String,
    /// Empty if there is none.
    pub description: String,
    /// `x-kubernetes-action`, and group, version and kind.
    pub action: Option<(&'static str, Kind)>,
    /// Query and path parameters.
    pub parameters: Vec<Parameter>,
    /// The schema of the request body.
    pub body: Option<String>,
    /// Media types of the request body.
    pub consumes: Vec<&'static str>,
    /// Media types of successful responses.
    pub produces: Vec<&'static str>,
    /// The type of successful responses; `None` if that is not published.
    pub response: Option<Content>,
    /// Codes and descriptions of successful responses.
    pub codes: &'static [(&'static str, &'static str)],
}

/// The content of a response.
#[derive(Clone)]
pub enum Content {
    /// An object of the named schema.
    Schema(String),
    Text,
}

/// A parameter of the query or the path.
#[derive(Clone, PartialEq)]
pub enum Parameter {
    /// One of `data/parameters.json`.
    Named(&'static str),
    /// The name of an object of a kind.
    Name(String),
    /// A field of options: its name, its type in JSON, and the name of the shared parameter in v2.
    Option(&'static str, &'static str, Option<&'static str>),
}

const OK: (&str, &str) = ("200", "OK");
const CREATED: (&str, &str) = ("201", "Created");
const ACCEPTED: (&str, &str) = ("202", "Accepted");

const WATCH_PARAMETERS: [&str; 2] = ["allowWatchBookmarks", "watch"];
const LIST_PARAMETERS: [&str; 11] = [
    "allowWatchBookmarks",
    "continue",
    "fieldSelector",
    "labelSelector",
    "limit",
    "resourceVersion",
    "resourceVersionMatch",
    "sendInitialEvents",
    standard::SHARD_SELECTOR,
    "timeoutSeconds",
    "watch",
];
const WRITE_PARAMETERS: [&str; 3] = ["dryRun", "fieldManager", "fieldValidation"];
const PATCH_PARAMETERS: [&str; 4] = ["dryRun", "fieldManager-patch", "fieldValidation", "force"];
const DELETE_PARAMETERS: [&str; 5] = [
    "dryRun",
    "gracePeriodSeconds",
    "ignoreStoreReadErrorWithClusterBreakingPotential",
    "orphanDependents",
    "propagationPolicy",
];

/// How the documents name a group and version.
struct GroupNames {
    /// The path of the group version: `/api/v1`, `/apis/<group>/<version>`.
    base: String,
    /// Group and version as part of each `operationId`.
    prefix: String,
    /// Group and version as the tag of operations.
    tag: String,
}

impl GroupNames {
    fn new(group: &str, version: &str) -> GroupNames {
        let base = match group {
            "" => format!("/api/{version}"),
            group => format!("/apis/{group}/{version}"),
        };
        let group = short_group(group);
        let prefix = format!("{}{}", capital_identifier(group), capital_identifier(version));
        // a version may have dashes
        let tag = format!("{}_{}", identifier(group), identifier(version));
        GroupNames { base, prefix, tag }
    }
}

/// The group as it is part of identifiers.
fn short_group(group: &str) -> &str {
    match group {
        "" => "core",
        group => group.strip_suffix(".k8s.io").unwrap_or(group),
    }
}

/// As [`identifier`], with a capital.
fn capital_identifier(text: &str) -> String {
    capital(&identifier(text))
}

fn capital(text: &str) -> String {
    let mut rest = text.chars();
    rest.next().into_iter().flat_map(char::to_uppercase).chain(rest).collect()
}

/// Converts a text to camel case, without punctuation. The first letter stays as it is.
fn identifier(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut upper = false;
    for c in text.chars() {
        match c.is_alphanumeric() {
            true if upper => out.extend(c.to_uppercase()),
            true => out.push(c),
            false => {}
        }
        upper = !c.is_alphanumeric();
    }
    out
}

/// The indefinite article of a noun, between spaces; a single space for plurals.
fn article(noun: &str) -> &'static str {
    let plural = noun.ends_with('s') && !noun.ends_with("ss");
    match noun.chars().next().map(|c| c.to_ascii_lowercase()) {
        _ if plural => " ",
        Some('a' | 'e' | 'i' | 'o' | 'u') => " an ",
        _ => " a ",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn operation_ids_are_camel_case() {
        assert_eq!(capital_identifier("read-openapi.example.com"), "ReadOpenapiExampleCom");
        assert_eq!(identifier("read-openapi.example.com"), "readOpenapiExampleCom");
        assert_eq!(capital_identifier("v1alpha1"), "V1alpha1");
        assert_eq!(GroupNames::new("f7.example", "v1-2").tag, "f7Example_v12");
        for (noun, expected) in [("Kite", " a "), ("Event", " an "), ("Endpoints", " "), ("Class", " a "), ("", " a ")]
        {
            assert_eq!(article(noun), expected, "{noun}");
        }
    }
}
