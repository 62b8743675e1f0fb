//! StorageVersions: the versions in which the servers of a cluster encode a resource.

use std::collections::{HashMap, HashSet};

use machinery::field::{FieldError, FieldPath};
use machinery::{Release, Value, names};

use super::checks::{is_set, list, text};
use crate::limits::REPEATED_BYTES_MAX;

/// The problems of a name, which is `GROUP.RESOURCE`.
pub fn name_problems(name: &str) -> Vec<String> {
    let Some((group, resource)) = name.rsplit_once('.') else {
        return vec!["name must be in the form of <group>.<resource>".to_owned()];
    };
    let group = names::dns1123_subdomain(group).into_iter().map(|why| format!("the group segment {why}"));
    group.chain(names::dns1035_label(resource).into_iter().map(|why| format!("the resource segment {why}"))).collect()
}

pub fn validate_status(object: &Value, _old: &Value, _release: Release) -> Vec<FieldError> {
    let (path, status) = (FieldPath::new("status"), object.get("status").unwrap_or(&Value::Null));
    let mut errors = vec![];
    let (mut seen, mut repeated_bytes) = (HashSet::new(), 0);
    for (i, server) in list(status, "storageVersions").iter().enumerate() {
        let path = path.child("storageVersions").index(i);
        let id = text(server, "apiServerID");
        if !seen.insert(id) {
            errors.push(FieldError::duplicate(&path.child("apiServerID"), &Value::from(id)));
        }
        server_errors(server, &path, &mut repeated_bytes, &mut errors);
    }
    errors.extend(common_version_error(status, &path));
    condition_errors(status, &path, &mut errors);
    errors
}

/// The errors of one server. Of `repeated_bytes`, the bytes of decodable versions that errors repeat, there is a bound.
fn server_errors(server: &Value, path: &FieldPath, repeated_bytes: &mut usize, errors: &mut Vec<FieldError>) {
    let (id, encoding) = (text(server, "apiServerID"), text(server, "encodingVersion"));
    let problems = names::dns1123_subdomain(id);
    errors.extend(problems.into_iter().map(|why| FieldError::invalid(&path.child("apiServerID"), &id.into(), why)));
    version_errors(encoding, &path.child("encodingVersion"), errors);
    let decodable = list(server, "decodableVersions");
    for (i, version) in decodable.iter().enumerate() {
        version_errors(version.as_str().unwrap_or_default(), &path.child("decodableVersions").index(i), errors);
    }
    let known: Vec<&str> = decodable.iter().filter_map(Value::as_str).collect();
    let is_decodable: HashSet<&str> = known.iter().copied().collect();
    if !is_decodable.contains(encoding) {
        let why = format!("decodableVersions must include encodingVersion {encoding}");
        let shown = server.get("decodableVersions").cloned().unwrap_or_default();
        errors.push(FieldError::invalid(&path.child("decodableVersions"), &shown, why));
    }
    let known = known.join(" ");
    for (i, version) in list(server, "servedVersions").iter().enumerate() {
        let (path, version) = (path.child("servedVersions").index(i), version.as_str().unwrap_or_default());
        version_errors(version, &path, errors);
        if !is_decodable.contains(version) && *repeated_bytes <= REPEATED_BYTES_MAX {
            *repeated_bytes += known.len();
            let why =
                format!("individual served version : {version} must be included in decodableVersions : [{known}]");
            errors.push(FieldError::invalid(&path, &version.into(), why));
        }
    }
}

fn version_errors(version: &str, path: &FieldPath, errors: &mut Vec<FieldError>) {
    let problems = version_problems(version);
    if !problems.is_empty() {
        errors.push(FieldError::invalid(path, &version.into(), problems.join(",")));
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

/// The version in which all servers encode is to be stated.
fn common_version_error(status: &Value, path: &FieldPath) -> Option<FieldError> {
    let servers = list(status, "storageVersions");
    let first = servers.first().map(|server| text(server, "encodingVersion"));
    let common = first.filter(|first| servers.iter().all(|server| text(server, "encodingVersion") == *first));
    let given = status.get("commonEncodingVersion").filter(|_| is_set(status, "commonEncodingVersion"));
    let path = path.child("commonEncodingVersion");
    match (common, given) {
        (None, Some(given)) => {
            let why = "should be nil if servers do not agree on the same encoding version, or if there is no server reporting the supported versions yet";
            Some(FieldError::invalid(&path, given, why))
        }
        (Some(common), None) => {
            let why = format!("the common encoding version is {common}");
            Some(FieldError::invalid(&path, &Value::Null, why))
        }
        (Some(common), Some(given)) if given.as_str() != Some(common) => {
            Some(FieldError::invalid(&path, given, format!("the actual common encoding version is {common}")))
        }
        _ => None,
    }
}

/// kube-apiserver leaves the name of the list out of the paths of these errors.
fn condition_errors(status: &Value, path: &FieldPath, errors: &mut Vec<FieldError>) {
    let mut places = HashMap::new();
    for (i, condition) in list(status, "conditions").iter().enumerate() {
        let path = path.index(i);
        let given = text(condition, "type");
        if let Some(same) = places.insert(given, i) {
            let why = format!("the type of the condition is not unique, it also appears in conditions[{same}]");
            errors.push(FieldError::invalid(&path.child("type"), &given.into(), why));
        }
        for name in ["type", "status"] {
            let value = text(condition, name);
            let problems = names::qualified_name(value);
            errors.extend(problems.into_iter().map(|why| FieldError::invalid(&path.child(name), &value.into(), why)));
        }
        for name in ["reason", "message"].into_iter().filter(|name| text(condition, name).is_empty()) {
            errors.push(FieldError::required(&path.child(name), ""));
        }
    }
}

#[cfg(test)]
mod tests {
    use machinery::json;

    use super::*;

    #[test]
    fn errors_of_many_versions_stay_small() {
        let versions = |prefix: &str| Value::Array((0..2_000).map(|i| Value::from(format!("{prefix}{i}"))).collect());
        let mut server = json!({"apiServerID": "a", "encodingVersion": "v0"});
        server.set_at(&["decodableVersions"], versions("v"));
        server.set_at(&["servedVersions"], versions("w"));
        let mut errors = vec![];
        server_errors(&server, &FieldPath::new("status"), &mut 0, &mut errors);
        let bytes: usize = errors.iter().map(|error| error.to_string().len()).sum();
        assert!(!errors.is_empty() && bytes < 2 * REPEATED_BYTES_MAX, "{bytes}");
    }
}
