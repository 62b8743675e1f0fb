//! APIs that Kubernetes no longer serves, with what has replaced them.

/// A line for each: API version, kinds (`*` for all), the release that removed them, and the successor (`-` if there is none).
const REMOVED: &str = include_str!("removed.txt");

fn removed() -> impl Iterator<Item = [&'static str; 4]> {
    REMOVED.lines().filter_map(|line| line.split(' ').collect::<Vec<_>>().try_into().ok())
}

/// A hint about an API that has been removed.
pub fn hint(api_version: &str, kind: &str) -> Option<String> {
    let has = |kinds: &str| kinds == "*" || kinds.split(',').any(|known| known == kind);
    let [_, _, release, successor] = removed().find(|[version, kinds, ..]| *version == api_version && has(kinds))?;
    Some(match successor {
        "-" => format!("Kubernetes {release} removed it without a successor"),
        successor => format!("Kubernetes {release} removed it; use {successor}"),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::{Engine, Options};

    #[tokio::test]
    async fn successors_are_served_and_removed_versions_are_not() {
        let engine = Engine::start(&Options::default()).await.unwrap();
        assert_eq!(removed().count(), REMOVED.lines().count());
        for [version, kinds, _, successor] in removed() {
            for kind in kinds.split(',').filter(|kind| *kind != "*") {
                assert!(engine.mapping(version, kind).is_none(), "{version} {kind}");
                assert!(successor == "-" || engine.mapping(successor, kind).is_some(), "{successor} {kind}");
            }
        }
        assert_eq!(
            hint("policy/v1beta1", "PodSecurityPolicy").as_deref(),
            Some("Kubernetes 1.25 removed it without a successor")
        );
        assert_eq!(hint("apps/v1beta1", "Deployment").as_deref(), Some("Kubernetes 1.16 removed it; use apps/v1"));
        assert_eq!(hint("apps/v1", "Deployment"), None);
    }
}
