//! The decoded objects of a store at one revision, which a fork of the store takes over instead of decoding them again.

use std::collections::HashMap;
use std::sync::Arc;

use machinery::Text;

use super::event::{Event, EventKind};
use super::state::{CollectionState, Root};
use super::stored::Stored;

/// Decoded objects at one revision, by group and plural; they share everything with those that they were taken from.
pub struct Frozen(pub(super) HashMap<(Text, Text), CollectionState>);

/// The facts of a store before it is opened.
#[derive(Default)]
pub struct Known {
    /// Its objects, if they have been decoded already.
    pub objects: Option<Frozen>,
    /// Objects of which the observer knows already. It is notified of what differs from them.
    pub observed: Option<Frozen>,
}

impl Frozen {
    /// The objects of a collection.
    pub(super) fn root(&self, id: &(Text, Text)) -> Root {
        self.0.get(id).map(|state| state.root.clone()).unwrap_or_default()
    }
}

/// The events that lead from one state of a collection to another.
pub(super) fn events_between(before: &Root, now: &Root) -> Vec<Event> {
    let is_same = |old: &Arc<Stored>, new: &Arc<Stored>| {
        Arc::ptr_eq(old, new) || (old.revision == new.revision && old.body.bytes == new.body.bytes)
    };
    let of = |kind, path: &Text, object: &Arc<Stored>, previous| Event {
        revision: object.revision,
        kind,
        path: path.clone(),
        object: object.clone(),
        previous,
    };
    let gone = before.iter().filter(|(path, _)| !now.contains_key(*path));
    let gone = gone.map(|(path, old)| of(EventKind::Deleted, path, old, Some(old.clone())));
    let written = now.iter().filter_map(|(path, new)| match before.get(path) {
        None => Some(of(EventKind::Added, path, new, None)),
        Some(old) if is_same(old, new) => None,
        Some(old) => Some(of(EventKind::Modified, path, new, Some(old.clone()))),
    });
    gone.chain(written).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Body, Meta};
    use machinery::json;

    fn root(objects: &[(&str, u64)]) -> Root {
        let object = |(name, revision): &(&str, u64)| {
            let value = json!({"metadata": {"name": (name.to_string())}});
            (Text::from(*name), Arc::new(Stored::new(*revision, Body::encode(&value), Meta::of(&value))))
        };
        objects.iter().map(object).collect()
    }

    #[test]
    fn events_are_what_differs() {
        let before = root(&[("deleted", 1), ("same", 2), ("written", 3)]);
        let now = root(&[("created", 5), ("same", 2), ("written", 4)]);
        let events = events_between(&before, &now);
        let found: Vec<_> =
            events.iter().map(|e| (e.kind, e.path.as_str(), e.revision, e.previous.is_some())).collect();
        let want = [
            (EventKind::Deleted, "deleted", 1, true),
            (EventKind::Added, "created", 5, false),
            (EventKind::Modified, "written", 4, true),
        ];
        assert_eq!(found, want);
        assert!(events_between(&now, &now.clone()).is_empty());
    }
}
