//! The default objects of a new store, recorded in `image.txt` as the server and its controllers leave them. With
//! them, a start need not derive the objects nor pass them through the write pipeline.
//!
//! Each line has the releases and the condition under which it applies, the key, and the stored text, with
//! placeholders for the uid and the times. A test compares the lines with what the pipeline and the controllers
//! store.

use std::sync::Arc;

use base::clock;
use futures_util::{StreamExt as _, TryStreamExt as _, stream};
use machinery::{Release, Result};
use objects::{Encoded, Key, Stored};
use resource::Resource;

use super::context::Context;
use super::{meta, stored};
use crate::limits;

const IMAGE: &str = include_str!("image.txt");
/// Encloses the names of placeholders, and occurs nowhere else.
const MARK: char = '@';
const UID: &str = "uid";
const TIME: &str = "time";

/// Settings that a line depends on besides the release.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Switches {
    /// API priority and fairness is enabled.
    fairness: bool,
    /// A controller writes the rules that ClusterRoles aggregate.
    aggregation: bool,
}

type Condition = fn(Switches) -> bool;

/// The conditions that a line may name.
const CONDITIONS: [(&str, Condition); 4] = [
    ("always", |_| true),
    ("fairness", |switches| switches.fairness),
    ("aggregation", |switches| switches.aggregation),
    ("no-aggregation", |switches| !switches.aggregation),
];

/// A recorded object.
struct DefaultObject {
    group: &'static str,
    plural: &'static str,
    /// The path: the namespace, if there is one, and the name.
    path: &'static str,
    template: &'static str,
}

impl DefaultObject {
    fn is_of(&self, group: &str, plural: &str) -> bool {
        self.group == group && self.plural == plural
    }
}

/// The default objects of one configuration.
pub struct Image(Vec<DefaultObject>);

impl Image {
    /// The objects of a release with its default feature gates and APIs.
    pub fn of(release: Release, fairness: bool, aggregation: bool) -> Image {
        let (release, switches) = (release.to_string(), Switches { fairness, aggregation });
        let holds = |word| CONDITIONS.iter().any(|(known, holds)| *known == word && holds(switches));
        let line = |line: &'static str| {
            let (releases, rest) = line.split_once(' ')?;
            let (condition, rest) = rest.split_once(' ')?;
            if !releases.split(',').any(|one| one == release) || !holds(condition) {
                return None;
            }
            let (key, template) = rest.split_once(' ')?;
            let (group, rest) = key.split_once('/')?;
            let (plural, path) = rest.split_once('/')?;
            Some(DefaultObject { group, plural, path, template })
        };
        Image(IMAGE.lines().filter_map(line).collect())
    }

    /// The number of recorded objects of a kind.
    pub fn count(&self, group: &str, plural: &str) -> usize {
        self.0.iter().filter(|recorded| recorded.is_of(group, plural)).count()
    }

    /// Whether all recorded objects of a kind are stored as recorded. Then none is missing.
    pub fn is_stored(&self, context: &Context, group: &str, plural: &str) -> bool {
        let Some(resource) = context.registry.get(group, plural) else { return false };
        let is_stored = |recorded: &DefaultObject| {
            let stored = resource.collection.get(recorded.path);
            stored.is_some_and(|stored| is_stamped(recorded.template, &stored.body.bytes))
        };
        self.0.iter().filter(|recorded| recorded.is_of(group, plural)).all(is_stored)
    }

    /// Creates the objects, in a store that has none.
    pub async fn create(&self, context: &Context) -> Result<()> {
        let put = |(key, object)| async move {
            // no error if another server has created it
            stored::put(context, &key, object, None).await.map(drop)
        };
        stream::iter(self.stamped(context)).map(Ok).try_for_each_concurrent(limits::IMAGE_PARALLEL, put).await
    }

    /// The objects with new uids and the current time as their creation time.
    fn stamped<'a>(&'a self, context: &'a Context) -> impl Iterator<Item = (Key, Encoded)> + 'a {
        let time = clock::now_rfc3339();
        let of_one_kind = self.0.chunk_by(|a, b| a.is_of(b.group, b.plural));
        of_one_kind.filter_map(|kind| Some((kind, context.registry.get(kind[0].group, kind[0].plural)?))).flat_map(
            move |(kind, resource)| {
                let (time, shown_in) = (time.clone(), shown_in(context, &resource));
                kind.iter().filter_map(move |recorded| {
                    let (namespace, name) = recorded.path.rsplit_once('/').unwrap_or(("", recorded.path));
                    let uid = clock::uid(|| meta::seed_key(&resource.group, &resource.kind, namespace, name));
                    let text = stamp(recorded.template, &uid, &time);
                    let Stored { body, meta, .. } = Stored::parse(0, &text.into())?;
                    Some((resource.key(namespace, name), Encoded { body, meta, shown_in }))
                })
            },
        )
    }
}

/// The id of the version in which the stored form of a kind is what clients see, if there is one.
fn shown_in(context: &Context, resource: &Arc<Resource>) -> Option<u64> {
    let request = context.as_server(resource, "", "").request(&http::Method::POST);
    let is_shown = request.strategy.storage_codec().is_shown_as_stored(&machinery::Value::Null);
    is_shown.then_some(request.version.id)
}

/// The text of a template.
fn stamp(template: &str, uid: &str, time: &str) -> String {
    let mut text = String::with_capacity(template.len() + 2 * uid.len());
    for part in template.split(MARK) {
        text += match part {
            UID => uid,
            TIME => time,
            part => part,
        };
    }
    text
}

/// Whether a text matches a template, with any uid and any times.
fn is_stamped(template: &str, text: &[u8]) -> bool {
    let mut rest = text;
    let mut take = |length: usize| {
        let (taken, after) = rest.split_at_checked(length)?;
        rest = after;
        Some(taken)
    };
    let is_plain = |taken: &[u8]| !taken.iter().any(|byte| matches!(byte, b'"' | b'\\'));
    let is_same = template.split(MARK).all(|part| match part {
        UID => take("00000000-0000-0000-0000-000000000000".len()).is_some_and(is_plain),
        TIME => take("0000-00-00T00:00:00Z".len()).is_some_and(is_plain),
        part => take(part.len()) == Some(part.as_bytes()),
    });
    is_same && rest.is_empty()
}

#[cfg(test)]
mod tests;
