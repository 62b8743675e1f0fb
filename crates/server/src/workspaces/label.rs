//! The label of a branch in the log of the store, which describes its workspace.

use machinery::{Release, Value, json};

/// Prefix of the ids of empty APIs. No uid begins with it.
const PRISTINE: &str = "pristine ";

/// Whether a branch with this id holds an empty API.
pub fn is_pristine(id: &[u8]) -> bool {
    id.starts_with(PRISTINE.as_bytes())
}

/// The id of the branch that holds the empty API of a release. It contains the version of the server, because another
/// version creates other objects.
pub fn pristine_id(release: Release) -> String {
    format!("{PRISTINE}{release} {}", env!("CARGO_PKG_VERSION"))
}

/// The description of a workspace in the log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Label {
    /// The release that the workspace emulates; `None` if it has not begun and emulates the server's release.
    pub release: Option<Release>,
    /// Whether the branch may contain Workspace objects, as a fork of `default` does.
    pub has_workspaces: bool,
    /// Whether the branch has content. An empty workspace gets its content when it is first used.
    pub has_begun: bool,
    /// The `spec.reset` of the last reset.
    pub reset: String,
}

impl Label {
    pub fn encode(&self) -> Vec<u8> {
        let release = self.release.map(|release| release.to_string()).unwrap_or_default();
        let (release, reset) = (Value::from(release), Value::from(self.reset.as_str()));
        json!({"release": release, "hasWorkspaces": (self.has_workspaces), "hasBegun": (self.has_begun), "reset": reset})
            .to_json()
            .into_bytes()
    }

    /// `None` if a later version of the server has written it.
    pub fn decode(label: &[u8]) -> Option<Label> {
        let label = machinery::value::decode(label).ok()?;
        let flag = |name: &str| label.is_true_at(&[name]);
        let release = match label.get("release")?.as_str()? {
            "" => None,
            release => Some(release.parse().ok()?),
        };
        Some(Label {
            release,
            has_workspaces: flag("hasWorkspaces"),
            has_begun: flag("hasBegun"),
            reset: label.str_at(&["reset"]).to_owned(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labels_are_decoded_as_they_were_encoded() {
        for release in [Some(Release::V1_36), None] {
            let label = Label { release, has_workspaces: true, has_begun: false, reset: "a\"b".to_owned() };
            assert_eq!(Label::decode(&label.encode()), Some(label));
        }
        for other in ["", "{}", "{\"release\": \"9.9\"}"] {
            assert_eq!(Label::decode(other.as_bytes()), None);
        }
    }
}
