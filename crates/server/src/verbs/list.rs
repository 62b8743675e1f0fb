//! Get and list.

use std::sync::Arc;

use base::metrics::METRICS;
use base::request::{ListOptions, Verb, VersionMatch};
use base::task;
use machinery::selector::label::{Operator, Requirement};
use machinery::status::{Cause, Details, Reason};
use machinery::{Result, Status, Text, Value};
use objects::{Collection, CollectionState, Expired, IndexKey, Meta, Scope, Stored};
use store::Revision;

use super::context::Context;
use super::continuation::Continue;
use super::items::{Items, Pace, Scan};
use super::outcome::{Effect, ListOutcome, Outcome};
use super::request::{Request, parse_version};
use super::response::ResponseObject;
use super::selection::Selection;
use crate::limits;

/// Returns one of the objects of a computed kind. They have no resourceVersion to wait for.
fn get_computed(request: &Request, all: Vec<Value>) -> Result<Outcome> {
    request.check_path(request.name())?;
    let found = all.into_iter().find(|object| object.str_at(&["metadata", "name"]) == request.name());
    let found = found.ok_or_else(|| Status::not_found("", &request.resource.singular, request.name()))?;
    Ok(Outcome::Object(Effect::Done, ResponseObject::Tree(found)))
}

/// Returns one object.
pub async fn get(context: &Context, request: &Request) -> Result<Outcome> {
    let query = request.query();
    if query.flag("export") {
        let message = "the export parameter, deprecated since v1.14, is no longer supported";
        return Err(Status::bad_request(message));
    }
    if let Some(all) = request.computed() {
        return get_computed(request, all);
    }
    let path = request.place()?.path;
    let wanted = query.get("resourceVersion").unwrap_or_default();
    let version = parse_version(wanted).map_err(|why| Status::untyped(500, why))?;
    request.check_path(request.name())?;
    if wanted.is_empty() {
        catch_up(context).await?
    } else {
        wait_until(context, version).await?
    }
    let stored = match request.lagging_state() {
        Some((state, _)) => state.root.get(&path).cloned(),
        None => request.resource.collection.get(&path),
    };
    let stored = stored.ok_or_else(|| request.resource.not_found(request.name()))?;
    Ok(Outcome::Object(Effect::Done, request.read(stored).await?))
}

/// Converts the objects of a list with the conversion webhook of their CRD.
async fn prepare(request: &Request, objects: &[Arc<Stored>]) -> Result<()> {
    let (resource, version) = (&request.resource, &request.version);
    let prepared = resource.prepare(&objects.iter().collect::<Vec<_>>(), version).await;
    prepared.map_err(|why| {
        let unconverted = objects.iter().filter(|stored| !stored.remembers(version.id));
        let unreadable: Vec<_> = unconverted.map(|stored| (&**stored, why.clone())).collect();
        resource.unreadable_list(&unreadable, false, why)
    })
}

/// The error of a list that failed with `why`. If objects cannot be read, the error names them. `page` is the size of
/// a page of all objects, which limits the search to that page.
fn if_unreadable(request: &Request, scan: &Scan, page: Option<usize>, why: Status) -> Status {
    let (resource, version) = (&request.resource, &request.version);
    let all: Vec<Arc<Stored>> = scan.ahead(page.unwrap_or(usize::MAX)).cloned().collect();
    let fails = |stored: &Arc<Stored>| resource.rendition(stored, version).err();
    let unreadable: Vec<_> = all.iter().filter_map(|stored| Some((&**stored, fails(stored)?))).collect();
    resource.unreadable_list(&unreadable, page.is_some(), why)
}

/// Waits until all writes that were made before this call are visible, including writes of other servers. A read
/// without a resourceVersion requires this.
pub async fn catch_up(context: &Context) -> Result<()> {
    context.objects.catch_up().await.map_err(|error| objects::failure(&error))
}

/// Waits until a resourceVersion is visible. Fails with 504 after [`limits::FUTURE_VERSION_SECONDS`].
pub async fn wait_until(context: &Context, version: Revision) -> Result<()> {
    if version <= context.objects.revision() {
        return Ok(());
    }
    let limit = std::time::Duration::from_secs(limits::FUTURE_VERSION_SECONDS);
    if tokio::time::timeout(limit, context.objects.wait_for(version)).await.is_ok() {
        return Ok(());
    }
    Err(too_large(version, context.objects.revision()))
}

pub fn too_large(version: Revision, current: Revision) -> Status {
    let message = format!("Timeout: Too large resource version: {version}, current: {current}");
    let cause = Cause {
        reason: "ResourceVersionTooLarge".into(),
        message: "Too large resource version".to_owned(),
        field: String::new(),
    };
    Status::new(Reason::Timeout, message).with_details(Details {
        causes: vec![cause],
        retry_after_seconds: 1,
        ..Details::default()
    })
}

impl Selection {
    pub async fn page(&self, context: &Context, request: &Request, start: ListStart) -> Result<Page> {
        let options = &self.options;
        let ListState { state, revision, after } = self.state(context, request, start).await?;
        let limit = if options.resource_version == "0" { 0 } else { usize::try_from(options.limit).unwrap_or(0) };
        let whole = Scan::new(state.root.clone(), &self.scope, after.as_deref());
        let scan = self.indexed(&request.resource.collection, &state, &whole);
        let surveyed = self.survey(request, scan.clone(), limit, revision).await;
        let of_all = usize::try_from(options.limit).ok().filter(|limit| *limit > 0 && self.is_unselected());
        let survey = surveyed.map_err(|why| match request.resource.is_prepared() {
            true => why,
            false => if_unreadable(request, &whole, of_all, why),
        })?;
        let fetched = survey.fetched;
        let items = if survey.kept.len() == survey.selected {
            Items::shown(survey.kept)
        } else {
            Items::selected(scan.clone(), self.clone(), survey.selected)
        };
        let (mut remaining, mut continue_token) = (None, String::new());
        if let Some(rest) = survey.rest {
            let from = i64::try_from(revision).unwrap_or(i64::MAX);
            continue_token = Continue::new(from, scope_of(request), &rest.last).encode();
            remaining = self.is_unselected().then(|| self.remaining(request, revision, &scan, after, rest, fetched));
        }
        let shards = self.shards.clone();
        Ok(Page { list: ListOutcome { items, revision, continue_token, remaining, shards }, fetched })
    }

    /// Restricts the scan `whole` to the objects that an index finds, if that is worthwhile and the state has the
    /// index. If it has none, a task builds one for later lists. This list does not wait for it, since it may be the
    /// only one by that label.
    fn indexed(&self, collection: &Arc<Collection>, state: &CollectionState, whole: &Scan) -> Scan {
        let keys: Vec<_> = self.options.label_selector.requirements().iter().filter_map(index_of).collect();
        let exceeds = |scan: &Scan| scan.ahead(limits::INDEXED_OBJECTS_MIN + 1).count() > limits::INDEXED_OBJECTS_MIN;
        if keys.is_empty() || !exceeds(whole) {
            return whole.clone();
        }
        let mut found: Option<(usize, Scan)> = None;
        for (key, values) in keys {
            if collection.lacks_index(&key) {
                let (collection, key) = (collection.clone(), key.clone());
                task::spawn("label index", async move { task::blocking(|| collection.index(key)) });
            }
            let Some(index) = state.indexed(&key) else { continue };
            let scan = whole.with_index(index.clone(), values);
            if !exceeds(&scan) {
                return scan;
            }
            // counted up to a limit: among large numbers it matters little which one is the smallest
            let objects = scan.ahead(limits::LIST_SCAN).count();
            if found.as_ref().is_none_or(|(least, _)| objects < *least) {
                found = Some((objects, scan));
            }
        }
        found.map_or_else(|| whole.clone(), |(_, scan)| scan)
    }

    /// Selects up to `limit` objects, or all if it is 0. Finds every error that could otherwise occur after the
    /// response has begun.
    async fn survey(&self, request: &Request, mut scan: Scan, limit: usize, revision: Revision) -> Result<ScanResult> {
        let (resource, version) = (&request.resource, &request.version);
        let most = if limit == 0 { usize::MAX } else { limit };
        let batch_max = if resource.is_prepared() { limits::CONVERSION_OBJECTS } else { self.batch(limits::LIST_SCAN) };
        // the first batch has the size of the page, so that the cost of a page depends on its size only; later
        // batches double
        let mut batch = most.max(limits::LIST_BATCH).min(batch_max);
        let mut found = ScanResult { kept: vec![], selected: 0, fetched: 0, rest: None };
        let whole = limit == 0 && !resource.is_prepared() && self.is_unselected() && scan.is_at_start();
        let known = if whole { resource.collection.surveyed(revision, &self.scope, version.id) } else { None };
        if let Some(count) = known {
            return Ok(ScanResult { selected: count, fetched: count, ..found });
        }
        let mut pace = Pace::default();
        loop {
            self.convert_ahead(request, &scan, batch, most - found.selected).await?;
            let mut last = None;
            let visited = scan.each(batch, |stored| {
                found.fetched += 1;
                if !self.matches(request, stored)? {
                    return Ok(true);
                }
                found.selected += 1;
                if found.selected <= limits::LIST_KEPT {
                    found.kept.push(ResponseObject::stored(resource, version, stored.clone())?);
                } else {
                    resource.rendition(stored, version)?;
                    found.kept.clear();
                }
                last = (found.selected == limit).then(|| resource.key(&stored.meta.namespace, &stored.meta.name).path);
                Ok::<_, Status>(last.is_none())
            })?;
            if let Some(last) = last {
                // the request for the next page selects from the remaining objects
                found.rest = (!scan.is_at_end()).then_some(Rest { last, scan });
                return Ok(found);
            }
            if visited < batch {
                if whole && found.selected > limits::LIST_KEPT {
                    resource.collection.remember_survey(revision, self.scope.clone(), version.id, found.selected);
                }
                return Ok(found);
            }
            batch = (2 * batch).min(batch_max);
            // a scan that awaits a conversion webhook does not hold the turn, because other scans would wait for the
            // webhook, too
            if !resource.is_prepared() {
                pace.next().await;
            }
        }
    }

    /// For a CRD with a conversion webhook, converts the objects among the next `count` that the list will return,
    /// `most` at most.
    pub async fn convert_ahead(&self, request: &Request, scan: &Scan, count: usize, most: usize) -> Result<()> {
        if !request.resource.is_prepared() {
            return Ok(());
        }
        let mut ahead: Vec<Arc<Stored>> = scan.ahead(count).cloned().collect();
        if !self.needs_content {
            // errors of the selection are ignored here: they occur again when the objects are visited
            ahead.retain(|stored| self.matches(request, stored).unwrap_or_default());
            ahead.truncate(most);
        }
        prepare(request, &ahead).await
    }

    fn is_unselected(&self) -> bool {
        self.options.label_selector.is_empty() && self.options.field_selector.is_empty() && self.shards.is_none()
    }

    /// The number of objects after a page of `fetched` objects. The page began after the path `after`, or at the start of `scan`.
    fn remaining(
        &self,
        request: &Request,
        revision: Revision,
        scan: &Scan,
        after: Option<String>,
        Rest { last, scan: rest }: Rest,
        fetched: usize,
    ) -> usize {
        let collection = &request.resource.collection;
        let begin = Text::from(after.as_deref().unwrap_or_default());
        let known = match collection.left_after(revision, &self.scope, &begin) {
            None if after.is_none() && self.scope == Scope::All => Some(scan.count()),
            known => known,
        };
        let left = known.and_then(|known| known.checked_sub(fetched)).unwrap_or_else(|| rest.count());
        if known.is_none() {
            collection.remember_left(revision, self.scope.clone(), begin, left + fetched);
        }
        if collection.left_after(revision, &self.scope, &last).is_none() {
            collection.remember_left(revision, self.scope.clone(), last, left);
        }
        left
    }

    async fn state(&self, context: &Context, request: &Request, start: ListStart) -> Result<ListState> {
        let collection = &request.resource.collection;
        let latest = || {
            let revision = context.objects.revision();
            let (state, newest) = collection.state();
            (state, revision.max(newest))
        };
        match start {
            ListStart::Continued(token) if token.revision < 0 => {
                let (state, revision) = latest();
                Ok(ListState { state, revision, after: Some(token.path_in(scope_of(request))) })
            }
            ListStart::Continued(token) => {
                let revision = token.revision.unsigned_abs();
                context.objects.reach_back(revision).await;
                match collection.at(revision) {
                    Ok(state) => Ok(ListState { state, revision, after: Some(token.path_in(scope_of(request))) }),
                    Err(Expired { .. }) => Err(expired_token(token)),
                }
            }
            ListStart::Exact(version) => {
                context.objects.reach_back(version).await;
                let too_old = |_| Status::expired("The resourceVersion for the provided list is too old.");
                Ok(ListState { state: collection.at(version).map_err(too_old)?, revision: version, after: None })
            }
            ListStart::Newest => {
                let (state, revision) = request.lagging_state().unwrap_or_else(latest);
                Ok(ListState { state, revision, after: None })
            }
        }
    }
}

/// The index that serves a requirement, and the values that meet the requirement.
fn index_of(required: &Requirement) -> Option<(IndexKey, Vec<Text>)> {
    match required.operator {
        Operator::Exists => Some((IndexKey::Existence(required.key.clone()), vec![Text::default()])),
        Operator::In if required.values.len() <= limits::INDEXED_VALUES_MAX => {
            let mut values = required.values.clone();
            values.dedup();
            Some((IndexKey::Value(required.key.clone()), values))
        }
        _ => None,
    }
}

/// The namespace of a list; empty for all namespaces.
fn scope_of(request: &Request) -> &str {
    if request.resource.namespaced { request.namespace() } else { "" }
}

fn expired_token(token: Continue) -> Status {
    let message = "The provided continue parameter is too old to display a consistent list result. You can start a new list without the continue parameter, or use the continue token in this response to retrieve the remainder of the results. Continuing with the provided token results in an inconsistent list - objects that were created, modified, or deleted between the time the first chunk was returned and now may show up in the list.";
    let mut status = Status::expired(message);
    status.continue_token = Continue { revision: -1, ..token }.encode();
    status
}

/// The selected objects of one page.
struct ScanResult {
    /// The selected objects, unless they are more than [`limits::LIST_KEPT`].
    kept: Vec<ResponseObject>,
    selected: usize,
    fetched: usize,
    /// The rest behind the page, if objects remain.
    rest: Option<Rest>,
}

/// The rest of a scan behind a page.
struct Rest {
    /// The path of the last object of the page.
    last: Text,
    scan: Scan,
}

/// The objects from which a list selects.
struct ListState {
    state: CollectionState,
    revision: Revision,
    /// The path after which the page begins.
    after: Option<String>,
}

pub struct Page {
    pub list: ListOutcome,
    /// The number of visited objects.
    pub fetched: usize,
}

/// Fails if the options of a list or a watch are invalid.
pub fn check_options(request: &Request) -> Result<()> {
    match request.authorized.info.verb {
        Verb::Watch => ListOptions::of_watch(request.query(), &request.resource.gates).map(drop),
        _ => ListOptions::of_list(request.query()).map(drop),
    }
}

/// The state that a list returns.
pub enum ListStart {
    /// The state of the list that the token continues.
    Continued(Continue),
    /// The state at a revision.
    Exact(Revision),
    /// The newest state that is visible.
    Newest,
}

/// Determines where a list starts, and waits until that is visible. Fails at once if no such state can exist, or if the
/// namespace can contain no objects.
pub async fn reach(context: &Context, request: &Request, selection: &Selection) -> Result<ListStart> {
    let options = &selection.options;
    if !options.continue_token.is_empty() {
        let token = Continue::decode(&options.continue_token)?;
        selection.check_path(request)?;
        // another server may have written this revision, so it may not have arrived yet
        wait_until(context, Revision::try_from(token.revision).unwrap_or(0)).await?;
        return match options.resource_version.as_str() {
            "" | "0" => Ok(ListStart::Continued(token)),
            _ => Err(Status::bad_request("specifying resource version is not allowed when using continue")),
        };
    }
    let version = parse_version(&options.resource_version)
        .map_err(|why| Status::bad_request(format!("invalid resource version: {why}")))?;
    selection.check_path(request)?;
    if options.resource_version.is_empty() {
        catch_up(context).await?
    } else {
        wait_until(context, version).await?
    }
    let is_exact =
        options.version_match == Some(VersionMatch::Exact) || (options.version_match.is_none() && options.limit > 0);
    Ok(if is_exact && version > 0 { ListStart::Exact(version) } else { ListStart::Newest })
}

pub async fn list(context: &Context, request: &Request) -> Result<Outcome> {
    let options = ListOptions::of_list(request.query())?;
    if let Some(mut all) = request.computed() {
        let selection = Selection::without_shards(request, &options)?;
        all.retain(|object| selection.matches_metadata(&Meta::of(object)));
        let items = Items::shown(all.into_iter().map(ResponseObject::Tree).collect());
        let continue_token = String::new();
        return Ok(Outcome::List(ListOutcome { items, revision: 0, continue_token, remaining: None, shards: None }));
    }
    let selection = Selection::new(request, &options)?;
    let start = reach(context, request, &selection).await?;
    let page = selection.page(context, request, start).await?;
    let of = context.objects.series.of(&request.resource.group, &request.resource.plural);
    METRICS.reads.listed(&of, page.fetched, page.list.items.len());
    Ok(Outcome::List(page.list))
}
