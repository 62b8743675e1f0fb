//! How the scheme of kube-apiserver names types.

use machinery::Text;
use machinery::value::quote;

/// Go's error for a type that is not registered in the scheme. A version with an empty group is shown without the
/// slash.
pub fn unknown_kind(kind: &str, api_version: &str) -> String {
    let (kind, version) = (quote(kind), quote(api_version.strip_prefix('/').unwrap_or(api_version)));
    format!("no kind {kind} is registered for version {version} in scheme \"pkg/runtime/scheme.go:111\"")
}

/// `group/version`, or just the version in the core group.
pub fn group_version(group: &str, version: &str) -> Text {
    if group.is_empty() { Text::from(version) } else { [group, "/", version].into_iter().collect() }
}
