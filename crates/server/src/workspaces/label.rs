//! The label of a branch in the log of the store, which describes its workspace.

use futures_util::FutureExt as _;
use machinery::{Release, Value, json};
use store::{Revision, Store};

use super::definition::Spec;

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
    /// See [`Origin::has_workspaces`].
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
        let flag = |name: &str| label.get(name) == Some(&Value::Bool(true));
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

/// The revision of a source that is to be forked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WantedRevision {
    /// The newest revision. If a revision is given, the fork fails unless it is still the newest.
    Newest(Option<Revision>),
    Earlier(Revision),
}

/// Determines which revision of a source to fork. Fails with a one-line message.
pub fn wanted_revision(name: &str, source: &dyn Store, spec: &Spec) -> Result<WantedRevision, String> {
    let Ok(wanted) = spec.revision.parse::<Revision>() else { return Ok(WantedRevision::Newest(None)) };
    match source.head().now_or_never() {
        Some(Ok(revision)) if wanted > revision || wanted < revision && spec.of_origin => {
            Err(format!("workspace {name:?} is at resourceVersion {revision}, not at {wanted}"))
        }
        Some(Ok(revision)) if wanted < revision => Ok(WantedRevision::Earlier(wanted)),
        _ => Ok(WantedRevision::Newest(Some(wanted))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_branch_begins_at_the_newest_revision_or_an_earlier_one() {
        let source = store::Memory::with(store::Snapshot { revision: 7, entries: vec![] });
        let wanted = |revision: &str, of_origin: bool| {
            let spec = Spec { revision: revision.to_owned(), of_origin, ..Spec::default() };
            wanted_revision("a", &source, &spec)
        };
        use WantedRevision::{Earlier, Newest};
        for of_origin in [true, false] {
            assert_eq!(wanted("", of_origin), Ok(Newest(None)));
            assert_eq!(wanted("7", of_origin), Ok(Newest(Some(7))));
            assert_eq!(wanted("8", of_origin).unwrap_err(), "workspace \"a\" is at resourceVersion 7, not at 8");
        }
        assert_eq!(wanted("6", false), Ok(Earlier(6)));
        assert_eq!(wanted("6", true).unwrap_err(), "workspace \"a\" is at resourceVersion 7, not at 6");
    }

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
