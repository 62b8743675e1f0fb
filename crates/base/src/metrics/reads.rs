//! Metrics of lists and watches, which the watch cache serves.

use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::registry::Registry;

use super::{Buckets, GroupResource, GroupVersionResource, Histograms, Listed, WatchList};

const EVENT_BYTES: Buckets = Buckets(&[1024.0, 2048.0, 4096.0, 8192.0, 16_384.0, 32_768.0, 65_536.0, 131_072.0]);
const LIST_SECONDS: Buckets =
    Buckets(&[0.05, 0.1, 0.2, 0.4, 0.6, 0.8, 1.0, 2.0, 4.0, 6.0, 8.0, 10.0, 15.0, 20.0, 30.0]);

pub struct Reads {
    pub watch_events: Family<GroupVersionResource, Counter>,
    pub watch_events_sizes: Histograms<GroupVersionResource>,
    pub watch_list_duration_seconds: Histograms<WatchList>,
    pub cache_list: Family<Listed, Counter>,
    pub cache_list_fetched_objects: Family<Listed, Counter>,
    pub cache_list_returned_objects: Family<GroupResource, Counter>,
    pub events_received: Family<GroupResource, Counter>,
    pub events_dispatched: Family<GroupResource, Counter>,
    pub resource_version: Family<GroupResource, Gauge>,
}

impl Default for Reads {
    fn default() -> Reads {
        Reads {
            watch_events: Family::default(),
            watch_events_sizes: Family::new_with_constructor(EVENT_BYTES),
            watch_list_duration_seconds: Family::new_with_constructor(LIST_SECONDS),
            cache_list: Family::default(),
            cache_list_fetched_objects: Family::default(),
            cache_list_returned_objects: Family::default(),
            events_received: Family::default(),
            events_dispatched: Family::default(),
            resource_version: Family::default(),
        }
    }
}

impl Reads {
    pub fn register(&self, registry: &mut Registry) {
        let all = registry.sub_registry_with_prefix("apiserver");
        all.register("watch_events", "Events sent to watchers", self.watch_events.clone());
        all.register(
            "watch_events_sizes",
            "Size of events sent to watchers, in bytes",
            self.watch_events_sizes.clone(),
        );
        let help = "Time until all initial events of a watch are sent, in seconds";
        all.register("watch_list_duration_seconds", help, self.watch_list_duration_seconds.clone());
        all.register("cache_list", "Lists from the watch cache", self.cache_list.clone());
        let help = "Objects that lists visited";
        all.register("cache_list_fetched_objects", help, self.cache_list_fetched_objects.clone());
        let help = "Objects that lists returned";
        all.register("cache_list_returned_objects", help, self.cache_list_returned_objects.clone());
        let help = "Events received from the store";
        all.register("watch_cache_events_received", help, self.events_received.clone());
        let help = "Events dispatched to watchers";
        all.register("watch_cache_events_dispatched", help, self.events_dispatched.clone());
        all.register("watch_cache_resource_version", "Revision of the newest event", self.resource_version.clone());
    }

    /// Counts a list, with the number of objects visited and returned.
    pub fn listed(&self, of: &GroupResource, fetched: usize, returned: usize) {
        let list = Listed { index: "", of: of.clone() };
        self.cache_list.get_or_create(&list).inc();
        self.cache_list_fetched_objects.get_or_create(&list).inc_by(fetched as u64);
        self.cache_list_returned_objects.get_or_create(of).inc_by(returned as u64);
    }
}
