//! StorageVersions: the versions in which the servers of a cluster encode a resource.

use std::collections::{HashMap, HashSet};

use machinery::names;

use crate::limits::REPEATED_BYTES_MAX;
use resource::builtin::checks::text;
use schema::at::At;

/// The problems of a name, which is `GROUP.RESOURCE`.
pub fn name_problems(name: &str) -> Vec<String> {
    let Some((group, resource)) = name.rsplit_once('.') else {
        return vec!["name must be in the form of <group>.<resource>".to_owned()];
    };
    let group = names::dns1123_subdomain(group).into_iter().map(|why| format!("the group segment {why}"));
    group.chain(names::dns1035_label(resource).into_iter().map(|why| format!("the resource segment {why}"))).collect()
}

pub fn validate_status(at: At) {
    let (status, mut seen, mut repeated_bytes) = (at.field("status"), HashSet::new(), 0);
    for server in status.items_of("storageVersions") {
        server.field_or_empty("apiServerID").unique(&mut seen);
        check_server(server, &mut repeated_bytes);
    }
    common_version(status);
    conditions(status);
}

/// Validates what one server reports. `repeated_bytes` counts the bytes of decodable versions that errors repeat,
/// up to a bound.
fn check_server(server: At, repeated_bytes: &mut usize) {
    let (encoding, decodable) = (server.field("encodingVersion"), server.field("decodableVersions"));
    server.field("apiServerID").check_text(names::dns1123_subdomain);
    version(encoding);
    decodable.items().for_each(version);
    let known: Vec<&str> = decodable.items().map(|version| version.as_text()).collect();
    let is_decodable: HashSet<&str> = known.iter().copied().collect();
    if !is_decodable.contains(encoding.as_text()) {
        decodable.invalid(format!("decodableVersions must include encodingVersion {}", encoding.as_text()));
    }
    let known = known.join(" ");
    for served in server.items_of("servedVersions") {
        version(served);
        if !is_decodable.contains(served.as_text()) && *repeated_bytes <= REPEATED_BYTES_MAX {
            *repeated_bytes += known.len();
            served.invalid(format!(
                "individual served version : {} must be included in decodableVersions : [{known}]",
                served.as_text()
            ));
        }
    }
}

fn version(at: At) {
    let problems = version_problems(at.as_text());
    if !problems.is_empty() {
        at.or_empty().invalid(problems.join(","));
    }
}

/// The problems of an `apiVersion`: a label, after a subdomain and a slash if it has a group.
fn version_problems(api_version: &str) -> Vec<String> {
    const EMPTY: &str = "must be non-empty";
    const FORM: &str = "an apiVersion is a DNS-1035 label, which must consist of lower case alphanumeric characters or '-', start with an alphabetic character, and end with an alphanumeric character (e.g. 'my-name',  or 'abc-123', regex used for validation is '[a-z]([-a-z0-9]*[a-z0-9])?') with an optional DNS subdomain prefix and '/' (e.g. 'example.com/MyVersion')";
    let parts: Vec<&str> = api_version.split('/').collect();
    let (group, version) = match parts[..] {
        [version] => (None, version),
        [group, version] => (Some(group), version),
        _ => return vec![FORM.to_owned()],
    };
    let of = |part: &str, text: &str, problems: fn(&str) -> Vec<String>| -> Vec<String> {
        let found = if text.is_empty() { vec![EMPTY.to_owned()] } else { problems(text) };
        found.into_iter().map(|why| format!("{part} part: {why}")).collect()
    };
    let mut all = group.map_or_else(Vec::new, |group| of("group", group, names::dns1123_subdomain));
    all.extend(of("version", version, names::dns1035_label));
    all
}

/// Requires the version in which all servers encode, if they agree.
fn common_version(status: At) {
    let servers = status.list("storageVersions");
    let first = servers.first().map(|server| text(server, "encodingVersion"));
    let common = first.filter(|first| servers.iter().all(|server| text(server, "encodingVersion") == *first));
    let at = status.field("commonEncodingVersion");
    match common {
        None if at.is_given() => at.invalid("should be nil if servers do not agree on the same encoding version, or if there is no server reporting the supported versions yet"),
        Some(common) if !at.is_given() => at.invalid(format!("the common encoding version is {common}")),
        Some(common) if at.as_text() != common => {
            at.invalid(format!("the actual common encoding version is {common}"));
        }
        _ => {}
    }
}

/// kube-apiserver leaves the name of the list out of the paths of these errors.
fn conditions(status: At) {
    let mut places = HashMap::new();
    for (i, given) in status.list("conditions").iter().enumerate() {
        let place = status.item(i);
        let condition = place.with_value(given);
        let kind = condition.field_or_empty("type");
        if let Some(same) = places.insert(kind.as_text(), i) {
            kind.invalid(format!("the type of the condition is not unique, it also appears in conditions[{same}]"));
        }
        kind.check_text(names::qualified_name);
        condition.field("status").check_text(names::qualified_name);
        condition.field("reason").require_text("");
        condition.field("message").require_text("");
    }
}

#[cfg(test)]
mod tests {
    use machinery::{Release, Value, json};

    use super::*;
    use schema::at::errors_of;

    #[test]
    fn errors_of_many_versions_stay_small() {
        let versions = |prefix: &str| Value::Array((0..2_000).map(|i| Value::from(format!("{prefix}{i}"))).collect());
        let mut server = json!({"apiServerID": "a", "encodingVersion": "v0"});
        server.set_at(&["decodableVersions"], versions("v"));
        server.set_at(&["servedVersions"], versions("w"));
        let errors = errors_of(&server, None, Release::NEWEST, |at| check_server(at, &mut 0));
        let bytes: usize = errors.iter().map(|error| error.to_string().len()).sum();
        assert!(!errors.is_empty() && bytes < 2 * REPEATED_BYTES_MAX, "{bytes}");
    }
}
