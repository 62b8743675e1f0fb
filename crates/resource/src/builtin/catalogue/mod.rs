//! What each kind does with its objects, in the order of `kinds.txt`: the functions that neither its facts there nor
//! the tables of rules describe. A kind without an entry needs no functions.

mod access;
mod core;
mod platform;
mod workloads;

use machinery::{Release, names};

use super::behaviour::Behaviour;

static NONE: Behaviour = Behaviour::NONE;

fn entries() -> impl Iterator<Item = &'static Behaviour> {
    [core::KINDS, workloads::KINDS, access::KINDS, platform::KINDS].into_iter().flatten()
}

/// The behaviour of a version of a kind: its own, or that of the kind.
pub fn behaviour_of(group: &str, api_version: &str, kind: &str) -> &'static Behaviour {
    let of_kind = |entry: &'static Behaviour| Some((entry.of.strip_suffix(kind)?.strip_suffix('/')?, entry));
    let found = |wanted: &str| entries().filter_map(of_kind).find(|(of, _)| *of == wanted).map(|(_, entry)| entry);
    found(api_version).or_else(|| found(group)).unwrap_or(&NONE)
}

/// Any name: declarative validation, or the kind itself, checks it.
fn any_name(_name: &str, _release: Release) -> Vec<String> {
    vec![]
}

/// A name that is a segment of a path.
fn path_segment(name: &str, _release: Release) -> Vec<String> {
    names::path_segment(name)
}

/// A name that declarative validation checks since 1.37. It does not check `generateName`.
fn declared_name(name: &str, release: Release) -> Vec<String> {
    if release >= Release::V1_37 { vec![] } else { names::dns1123_subdomain(name) }
}

#[cfg(test)]
mod tests {
    use super::super::table::rows;
    use super::*;

    #[test]
    fn every_entry_is_that_of_a_kind() {
        let posted = rows().iter().flat_map(|row| &row.subresources).filter_map(|own| match own.endpoint {
            super::super::OwnEndpoint::Posted(row) => Some(row),
            _ => None,
        });
        let used: Vec<&str> = rows().iter().chain(posted).map(|row| row.behaviour.of).collect();
        for entry in entries() {
            assert!(used.contains(&entry.of), "{}", entry.of);
        }
    }

    #[test]
    fn entries_agree_with_the_facts() {
        for row in rows() {
            let verbs = match (row.behaviour.review, row.behaviour.further.computed) {
                (Some(_), _) => "create",
                (_, Some(_)) => "get,list",
                _ if row.kind == "Namespace" => row.verbs,
                _ => "",
            };
            assert_eq!(row.verbs, verbs, "{}", row.kind);
            for (part, _) in row.behaviour.parts {
                assert!(row.own_subresource(part).is_some(), "{} {part}", row.kind);
            }
        }
    }
}
