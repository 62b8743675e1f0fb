//! Watch: the start of a stream and its events.

use std::sync::Arc;
use std::time::Duration;

use base::clock;
use base::request::ListOptions;
use machinery::selector::FieldRequirement;
use machinery::{Result, Status, Text, Value, json};
use objects::{Cursor, Event, EventKind, Expired, Position, Stored};
use store::Revision;
use tokio::time::Instant;

use super::context::Context;
use super::deliveries::{self, BookmarkKind, Deliveries, Passed, WatchEvent};
use super::items::Items;
use super::list::{ListStart, catch_up, too_large, wait_until};
use super::request::{Request, parse_version};
use super::response::ResponseObject;
use super::selection::Selection;
use crate::limits;

enum Initial {
    /// The current state, and the revision of the bookmark that follows it, if one was requested.
    State(Items, Option<Revision>),
    Error(Status),
}

/// A running watch. Its only state is a position in the event ring.
pub struct Watch {
    pub request: Arc<Request>,
    context: Arc<Context>,
    selection: Selection,
    cursor: Cursor,
    initial: Option<Initial>,
    retired: tokio::sync::watch::Receiver<bool>,
    stop: tokio::sync::watch::Receiver<bool>,
    deadline: Instant,
    next_bookmark: Option<Instant>,
    ended: bool,
    sent: Revision,
    /// Decides when events are sent, if a higher layer does so.
    deliveries: Option<Box<dyn Deliveries>>,
}

/// Restricts a watch to the object that its path names. A field selector has to select that object, too.
fn select_name(options: &mut ListOptions, name: &Text) -> Result<()> {
    let selector = &mut options.field_selector;
    if !selector.is_empty() && selector.exact("metadata.name") != Some(name) {
        return Err(Status::bad_request("fieldSelector metadata.name doesn't match requested name"));
    }
    if selector.is_empty() {
        let named = FieldRequirement { field: "metadata.name".into(), value: name.clone(), negated: false };
        selector.requirements.push(named);
    }
    Ok(())
}

/// Starts a watch. `stop` ends it when the server shuts down.
pub async fn watch(
    context: Arc<Context>,
    request: Arc<Request>,
    stop: tokio::sync::watch::Receiver<bool>,
) -> Result<Watch> {
    let mut options = ListOptions::of_watch(request.query(), &request.resource.gates)?;
    // the initial state is sent as a whole
    options.limit = 0;
    // as in kube-apiserver, a field that cannot be selected by is the first error
    let mut selection = Selection::new(&request, &options)?;
    if request.computed().is_some() {
        let resource = &request.resource;
        return Err(Status::method_not_supported(&resource.group, &resource.plural, "watch"));
    }
    let name = request.name();
    if !name.is_empty() {
        select_name(&mut options, name)?;
        selection = Selection::new(&request, &options)?;
    }
    selection.check_path(&request)?;
    let version = parse_version(&options.resource_version).map_err(|why| Status::untyped(500, why))?;
    let retired = request.resource.retired.subscribe();
    let (from, mut initial) = beginning(&context, &request, &selection, version).await;
    context.objects.reach_back(from).await;
    let subscribed = request.resource.collection.subscribe(selection.scope.clone(), from);
    let cursor = match subscribed {
        Ok(cursor) => cursor,
        Err(Expired { oldest }) => {
            initial = Some(Initial::Error(too_old(from, oldest)));
            let (_, newest) = request.resource.collection.latest();
            request.resource.collection.subscribe(selection.scope.clone(), newest).map_err(|_| too_old(from, oldest))?
        }
    };
    let now = clock::instant();
    let deadline = now + timeout(&options);
    let next_bookmark = next_bookmark(now, deadline).filter(|_| options.allow_bookmarks);
    Ok(Watch {
        context,
        selection,
        cursor,
        initial,
        retired,
        stop,
        deadline,
        next_bookmark,
        ended: false,
        sent: from,
        deliveries: None,
        request,
    })
}

/// The revision after which events follow, and what precedes them.
async fn beginning(
    context: &Context,
    request: &Request,
    selection: &Selection,
    version: Revision,
) -> (Revision, Option<Initial>) {
    let options = &selection.options;
    // without the option, a watch without a resourceVersion also begins with the current state, but no bookmark
    // follows it
    if !options.send_initial_events.unwrap_or(version == 0) {
        return (if version == 0 { context.objects.revision() } else { version }, None);
    }
    let is_marked = options.allow_bookmarks && options.send_initial_events.is_some();
    match initial_state(context, request, selection, version).await {
        Ok((revision, items)) => (revision, Some(Initial::State(items, is_marked.then_some(revision)))),
        Err(status) => (version, Some(Initial::Error(status))),
    }
}

fn timeout(options: &ListOptions) -> Duration {
    match options.timeout_seconds {
        Some(seconds) if seconds > 0 => Duration::from_secs(seconds.unsigned_abs()),
        // a negative timeout ends the watch at once
        Some(seconds) if seconds < 0 => Duration::ZERO,
        _ => Duration::from_secs(1800 + clock::random_below(1800)),
    }
}

/// The time of the next bookmark: one a minute, and a last one shortly before the end.
fn next_bookmark(now: Instant, deadline: Instant) -> Option<Instant> {
    let last = deadline.checked_sub(Duration::from_secs(limits::LAST_BOOKMARK_SECONDS))?;
    let regular = now + Duration::from_millis(limits::BOOKMARK_SECONDS * 1000 - clock::random_below(1000));
    Some(last.min(regular)).filter(|next| *next > now)
}

fn too_old(version: Revision, oldest: Revision) -> Status {
    Status::expired(format!("too old resource version: {version} ({oldest})"))
}

/// The current objects.
async fn initial_state(
    context: &Context,
    request: &Request,
    selection: &Selection,
    version: Revision,
) -> Result<(Revision, Items)> {
    if selection.options.resource_version.is_empty() {
        catch_up(context).await?;
    }
    if wait_until(context, version).await.is_err() {
        return Err(too_large(version, context.objects.revision()));
    }
    // from an old cache, if the request reads from one
    let list = selection.page(context, request, ListStart::Newest).await?.list;
    Ok((list.revision, list.items))
}

/// Why a waiting watch wakes up.
enum WakeReason {
    Events(Result<Vec<Arc<Event>>, Expired>),
    /// Events that were held may be sent.
    Ready,
    /// The resource has changed or been removed, or the server shuts down.
    End,
    /// A bookmark is due, or the watch times out.
    Time,
}

impl Watch {
    /// Lets a higher layer decide when events are sent. `make` gets the position of the watch.
    pub fn deliver_through(&mut self, make: impl FnOnce(Position) -> Box<dyn Deliveries>) {
        self.deliveries = Some(make(self.cursor.position()));
    }

    /// The next events; `None` at the end of the stream. A call means that the events of the previous call have been
    /// sent.
    pub async fn next(&mut self) -> Option<Vec<WatchEvent>> {
        loop {
            let events = self.follow().await;
            let Some(deliveries) = &mut self.deliveries else { return events };
            let is_end = events.is_none() || self.ended;
            let Passed { events, ends } = deliveries.pass(events.unwrap_or_default());
            self.ended |= ends;
            if !events.is_empty() {
                return Some(events);
            }
            if is_end || ends {
                return None;
            }
        }
    }

    /// The events that follow those of the previous call; `None` at the end of the stream. An empty list means that
    /// held events may be sent now.
    async fn follow(&mut self) -> Option<Vec<WatchEvent>> {
        if self.ended {
            return None;
        }
        if clock::instant() >= self.deadline {
            return None;
        }
        if let Some(events) = self.initial_events().await {
            return Some(events);
        }
        loop {
            if let Some(deliveries) = &mut self.deliveries {
                deliveries.reached(self.cursor.after());
            }
            let bookmark = self.next_bookmark.unwrap_or(self.deadline).min(self.deadline);
            let wake = tokio::select! {
                biased;
                // before the events, because there may always be more of them
                _ = self.retired.wait_for(|retired| *retired) => WakeReason::End,
                _ = self.stop.wait_for(|stop| *stop) => WakeReason::End,
                () = tokio::time::sleep_until(bookmark) => WakeReason::Time,
                () = deliveries::ready(&mut self.deliveries) => WakeReason::Ready,
                events = self.cursor.next() => WakeReason::Events(events),
            };
            let events = match wake {
                WakeReason::Events(events) => events,
                WakeReason::Ready => return Some(vec![]),
                WakeReason::End => return self.drain().await,
                WakeReason::Time if clock::instant() >= self.deadline => return None,
                WakeReason::Time => return Some(self.bookmark().await),
            };
            match events {
                Ok(events) => {
                    let shown = self.select(&events).await;
                    if !shown.is_empty() {
                        return Some(shown);
                    }
                    tokio::task::yield_now().await;
                }
                Err(Expired { oldest }) => {
                    self.ended = true;
                    return Some(vec![WatchEvent::Error(too_old(self.cursor.after(), oldest))]);
                }
            }
        }
    }

    /// The next initial events; `None` when all have been delivered.
    async fn initial_events(&mut self) -> Option<Vec<WatchEvent>> {
        let (mut items, bookmark) = match self.initial.take()? {
            Initial::State(items, bookmark) => (items, bookmark),
            Initial::Error(status) => {
                self.ended = true;
                return Some(vec![WatchEvent::Error(status)]);
            }
        };
        match items.next(&self.request).await {
            Ok(shown) if shown.is_empty() => {
                Some(vec![WatchEvent::Bookmark(bookmark?, BookmarkKind::InitialEventsEnd)])
            }
            Ok(shown) => {
                self.initial = Some(Initial::State(items, bookmark));
                Some(shown.into_iter().map(|shown| WatchEvent::Object("ADDED", shown)).collect())
            }
            Err(status) => {
                self.ended = true;
                Some(vec![WatchEvent::Error(status)])
            }
        }
    }

    /// Ends the watch once the events so far have been sent.
    async fn drain(&mut self) -> Option<Vec<WatchEvent>> {
        self.ended = true;
        let events = self.cursor.take().unwrap_or_default();
        let shown = self.select(&events).await;
        (!shown.is_empty()).then_some(shown)
    }

    /// The events that have not been sent yet, and then a bookmark at the newest revision up to which events have
    /// been delivered.
    async fn bookmark(&mut self) -> Vec<WatchEvent> {
        self.next_bookmark = next_bookmark(clock::instant(), self.deadline);
        // read before the ring, so that the ring has all events up to this revision
        let revision = self.context.objects.revision();
        let events = self.cursor.take().unwrap_or_default();
        let mut shown = self.select(&events).await;
        // the cursor delivers events in batches, and a bookmark must not be ahead of events in a later batch
        let delivered = if self.cursor.is_behind() { self.cursor.after() } else { revision.max(self.cursor.after()) };
        self.sent = self.sent.max(delivered);
        shown.push(WatchEvent::Bookmark(self.sent, BookmarkKind::Progress));
        shown
    }

    /// The events that match the selectors; an error ends the stream.
    async fn select(&mut self, events: &[Arc<Event>]) -> Vec<WatchEvent> {
        let (resource, version) = (&self.request.resource, &self.request.version);
        if resource.is_prepared() {
            let objects: Vec<&Arc<Stored>> = events.iter().flat_map(|e| e.previous.iter().chain([&e.object])).collect();
            if let Err(status) = resource.prepare(&objects, version).await {
                self.ended = true;
                return vec![WatchEvent::Error(status)];
            }
        }
        let mut out = vec![];
        for event in events {
            match self.shown(event) {
                Ok(Some(shown)) => out.push(shown),
                Ok(None) => {}
                Err(status) => {
                    self.ended = true;
                    out.push(WatchEvent::Error(status));
                    break;
                }
            }
            self.sent = event.revision;
        }
        out
    }

    /// The event that the watch sends, if any: how the set of selected objects has changed.
    fn shown(&self, event: &Event) -> Result<Option<WatchEvent>> {
        let before = match &event.previous {
            Some(previous) => self.selection.matches(&self.request, previous)?,
            None => false,
        };
        let now = event.kind != EventKind::Deleted && self.selection.matches(&self.request, &event.object)?;
        let (kind, object) = match (before, now) {
            (false, false) => return Ok(None),
            (false, true) => ("ADDED", event.object.clone()),
            (true, true) => ("MODIFIED", event.object.clone()),
            (true, false) if event.kind == EventKind::Deleted => ("DELETED", event.object.clone()),
            (true, false) => ("DELETED", self.departed(event)),
        };
        let shown = ResponseObject::stored(&self.request.resource, &self.request.version, object)?;
        Ok(Some(WatchEvent::Object(kind, shown)))
    }

    /// The object of a DELETED event for an object that is no longer selected: its previous state, with the
    /// resourceVersion of the change.
    fn departed(&self, event: &Event) -> Arc<Stored> {
        match &event.previous {
            Some(previous) => Arc::new(previous.at(event.revision)),
            None => event.object.clone(),
        }
    }

    pub fn bookmark_object(&self, revision: Revision, kind: BookmarkKind) -> Value {
        let mut object = json!({
            "apiVersion": (self.request.api_version()),
            "kind": (&self.request.resource.kind),
            "metadata": {"resourceVersion": (revision.to_string())},
        });
        if kind == BookmarkKind::InitialEventsEnd {
            object.set_at(&["metadata", "annotations", "k8s.io/initial-events-end"], Value::from("true"));
        }
        // built-in kinds print some fields even if they have their zero values
        let shaped = self.request.version.built_in.map(|row| row.shape(&object));
        match shaped.filter(|shaped| shaped.error.is_none()) {
            Some(shaped) => shaped.value,
            None => object,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn last_bookmark_precedes_watch_timeout() {
        let now = clock::instant();
        let after = |seconds: u64| now + Duration::from_secs(seconds);
        let cases = [(30, 0, Some(28)), (30, 20, Some(28)), (30, 28, None), (30, 29, None), (2, 0, None), (1, 0, None)];
        for (end, at, want) in cases {
            assert_eq!(next_bookmark(after(at), after(end)), want.map(after), "{at} of {end}");
        }
        let regular = next_bookmark(now, after(1800)).unwrap();
        assert!(regular > after(58) && regular <= after(60));
    }
}
