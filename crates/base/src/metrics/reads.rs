//! Metrics of lists and watches, which the watch cache serves.

use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;

use super::{Buckets, GroupResource, GroupVersionResource, Histograms, Listed, WatchList};

const EVENT_BYTES: Buckets = Buckets(&[1024.0, 2048.0, 4096.0, 8192.0, 16_384.0, 32_768.0, 65_536.0, 131_072.0]);
const LIST_SECONDS: Buckets =
    Buckets(&[0.05, 0.1, 0.2, 0.4, 0.6, 0.8, 1.0, 2.0, 4.0, 6.0, 8.0, 10.0, 15.0, 20.0, 30.0]);

metrics! {
    pub struct Reads {
        pub watch_events: Family<GroupVersionResource, Counter> => "apiserver_watch_events", "Events sent to watchers";
        pub watch_events_sizes: Histograms<GroupVersionResource> = Family::new_with_constructor(EVENT_BYTES) =>
            "apiserver_watch_events_sizes", "Size of events sent to watchers, in bytes";
        pub watch_list_duration_seconds: Histograms<WatchList> = Family::new_with_constructor(LIST_SECONDS) =>
            "apiserver_watch_list_duration_seconds", "Time until all initial events of a watch are sent, in seconds";
        pub cache_list: Family<Listed, Counter> => "apiserver_cache_list", "Lists from the watch cache";
        pub cache_list_fetched_objects: Family<Listed, Counter> =>
            "apiserver_cache_list_fetched_objects", "Objects that lists visited";
        pub cache_list_returned_objects: Family<GroupResource, Counter> =>
            "apiserver_cache_list_returned_objects", "Objects that lists returned";
        pub events_received: Family<GroupResource, Counter> =>
            "apiserver_watch_cache_events_received", "Events received from the store";
        pub events_dispatched: Family<GroupResource, Counter> =>
            "apiserver_watch_cache_events_dispatched", "Events dispatched to watchers";
        pub resource_version: Family<GroupResource, Gauge> =>
            "apiserver_watch_cache_resource_version", "Revision of the newest event";
    }
}

impl Reads {
    /// Counts a list, with the number of objects visited and returned.
    pub fn listed(&self, of: &GroupResource, fetched: usize, returned: usize) {
        let list = Listed { index: "", of: of.clone() };
        self.cache_list.get_or_create(&list).inc();
        self.cache_list_fetched_objects.get_or_create(&list).inc_by(fetched as u64);
        self.cache_list_returned_objects.get_or_create(of).inc_by(returned as u64);
    }
}
