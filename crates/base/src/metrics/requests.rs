//! The metrics of the requests that have the same labels. They are found once for each request, instead of once for each metric:
//! a search hashes all labels.

use std::collections::HashMap;
use std::sync::{Arc, OnceLock};

use parking_lot::{Mutex, RwLock};
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::histogram::Histogram;

use super::{DrySeries, GroupResource, METRICS, RequestLabels, Series};

/// The requests that have the same labels. A metric appears once it has a value, as with kube-apiserver.
pub struct RequestSeries {
    labels: DrySeries,
    duration: OnceLock<Histogram>,
    sli_duration: OnceLock<Histogram>,
    sizes: OnceLock<Histogram>,
    /// By status code; `None` once the kind is gone, so that a request in flight does not begin a series again.
    counts: Mutex<Option<Vec<(u16, Counter)>>>,
}

/// The series by labels. Every entry is also in the metrics, so this map is no larger than they are.
#[derive(Default)]
pub struct KnownRequests(RwLock<SeriesIndex>);

#[derive(Default)]
struct SeriesIndex {
    by_labels: HashMap<DrySeries, Arc<RequestSeries>>,
    /// Labels by kind, so that ending a kind takes no longer if there are many.
    by_kind: HashMap<GroupResource, Vec<DrySeries>>,
}

impl KnownRequests {
    pub fn get(&self, labels: DrySeries) -> Arc<RequestSeries> {
        if let Some(known) = self.0.read().by_labels.get(&labels) {
            return known.clone();
        }
        let mut known = self.0.write();
        let SeriesIndex { by_labels, by_kind } = &mut *known;
        let begin = || {
            let kind = GroupResource { group: labels.series.group.clone(), resource: labels.series.resource.clone() };
            by_kind.entry(kind).or_default().push(labels.clone());
            Arc::new(RequestSeries::new(labels.clone()))
        };
        by_labels.entry(labels.clone()).or_insert_with(begin).clone()
    }

    pub(super) fn take(&self, of: &GroupResource) -> Vec<Arc<RequestSeries>> {
        let mut known = self.0.write();
        let labels = known.by_kind.remove(of).unwrap_or_default();
        labels.iter().filter_map(|labels| known.by_labels.remove(labels)).collect()
    }
}

impl RequestSeries {
    fn new(labels: DrySeries) -> RequestSeries {
        let (duration, sli_duration, sizes) = Default::default();
        RequestSeries { labels, duration, sli_duration, sizes, counts: Mutex::new(Some(vec![])) }
    }

    pub fn labels(&self) -> &Series {
        &self.labels.series
    }

    /// Records the duration of a request.
    pub fn took(&self, seconds: f64) {
        let duration = || METRICS.request_duration_seconds.get_or_create_owned(&self.labels);
        self.duration.get_or_init(duration).observe(seconds);
        let sli_duration = || METRICS.request_sli_duration_seconds.get_or_create_owned(&self.labels.series);
        self.sli_duration.get_or_init(sli_duration).observe(seconds);
    }

    /// The sizes of responses in bytes.
    pub fn sizes(&self) -> &Histogram {
        self.sizes.get_or_init(|| METRICS.response_sizes.get_or_create_owned(&self.labels.series))
    }

    /// Ends the series. Returns their labels and codes.
    pub(super) fn end(&self) -> (DrySeries, Vec<u16>) {
        let counts = self.counts.lock().take().unwrap_or_default();
        (self.labels.clone(), counts.into_iter().map(|(code, _)| code).collect())
    }

    /// Whether the kind is still served.
    pub fn is_current(&self) -> bool {
        self.counts.lock().is_some()
    }

    /// Counts a response.
    pub fn count(&self, code: u16) {
        let mut counts = self.counts.lock();
        let Some(counts) = &mut *counts else { return };
        if let Some((_, count)) = counts.iter().find(|(known, _)| *known == code) {
            count.inc();
            return;
        }
        let count = METRICS.request.get_or_create_owned(&RequestLabels { code, of: self.labels.clone() });
        count.inc();
        counts.push((code, count));
    }
}
