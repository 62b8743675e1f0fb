//! Gives kinds series of their own, and ends the series of a kind that is deleted.

use machinery::Text;

use super::{
    DeprecatedApi, GroupResource, GroupVersionResource, Label, Listed, Metrics, Series, StoreOperation, Terminated,
    WatchList,
};

/// Which kinds of an API have series of their own.
///
/// Owners of workspaces define any number of kinds, so those would make any number of series, and show what is used there.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum KindSeries {
    /// Every kind.
    #[default]
    Each,
    /// None: all kinds of all workspaces have the same labels.
    Workspaces,
}

/// Labels all kinds of workspaces alike, by the resource with which requests for the content of a workspace are authorized.
const WORKSPACES: (Text, Text) = (Text::new_static("workspaces.pintle.dev"), Text::new_static("workspaces/content"));

impl KindSeries {
    /// The labels of a kind.
    pub fn of(self, group: &Text, plural: &Text) -> GroupResource {
        let (group, resource) = match self {
            KindSeries::Each => (group.clone(), plural.clone()),
            KindSeries::Workspaces => WORKSPACES,
        };
        GroupResource { group: Label(group), resource: Label(resource) }
    }

    pub fn of_version(self, group: &Text, version: &Text, plural: &Text) -> GroupVersionResource {
        let GroupResource { group, resource } = self.of(group, plural);
        let version = if self == KindSeries::Each { version.clone() } else { Text::default() };
        GroupVersionResource { group, version: Label(version), resource }
    }

    /// Labels an object whose name an owner of the API chooses, such as a webhook.
    pub fn name(self, name: &str) -> Label {
        Label(if self == KindSeries::Each { name.into() } else { Text::new_static("workspaces") })
    }
}

impl Metrics {
    /// Ends the series of a kind that is no longer served.
    pub fn forget_kind(&self, group: &Text, plural: &Text) {
        let of = KindSeries::Each.of(group, plural);
        for known in self.requests.take(&of) {
            let (dry, codes) = known.end();
            self.request_duration_seconds.remove(&dry);
            self.request_sli_duration_seconds.remove(&dry.series);
            self.response_sizes.remove(&dry.series);
            for code in [429, 504] {
                self.request_terminations.remove(&Terminated { code, series: dry.series.clone() });
            }
            for code in codes {
                self.request.remove(&super::RequestLabels { code, of: dry.clone() });
            }
            self.forget_version(dry.series);
        }
        for operation in ["create", "update", "delete"] {
            let operation = StoreOperation { operation, group: of.group.clone(), resource: of.resource.clone() };
            self.etcd_request_duration_seconds.remove(&operation);
            self.etcd_requests.remove(&operation);
            self.etcd_request_errors.remove(&operation);
        }
        self.reads.forget(&of);
    }

    fn forget_version(&self, series: Series) {
        let Series { group, version, resource, subresource, .. } = series.clone();
        for scope in ["cluster", "namespace"] {
            self.longrunning_requests.remove(&Series {
                verb: "WATCH",
                subresource: Label::default(),
                scope,
                ..series.clone()
            });
            let (group, version, resource) = (group.clone(), version.clone(), resource.clone());
            self.reads.watch_list_duration_seconds.remove(&WatchList { group, version, resource, scope });
        }
        self.requested_deprecated_apis.remove(&DeprecatedApi {
            group: group.clone(),
            version: version.clone(),
            resource: resource.clone(),
            subresource,
            removed_release: "",
        });
        let of = GroupVersionResource { group, version, resource };
        self.reads.watch_events.remove(&of);
        self.reads.watch_events_sizes.remove(&of);
    }
}

impl super::Reads {
    fn forget(&self, of: &GroupResource) {
        let listed = Listed { index: "", of: of.clone() };
        self.cache_list.remove(&listed);
        self.cache_list_fetched_objects.remove(&listed);
        self.cache_list_returned_objects.remove(of);
        self.events_received.remove(of);
        self.events_dispatched.remove(of);
        self.resource_version.remove(of);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::metrics::{DrySeries, METRICS};

    #[test]
    fn series_end_with_their_kind() {
        let (group, plural, version) = ("ended.example.com".into(), "boats".into(), "v1".into());
        let GroupVersionResource { group: of_group, version: of_version, resource } =
            KindSeries::Each.of_version(&group, &version, &plural);
        let of = KindSeries::Each.of(&group, &plural);
        let series = |verb| Series {
            verb,
            group: of_group.clone(),
            version: of_version.clone(),
            resource: resource.clone(),
            scope: "cluster",
            ..Series::default()
        };
        let requests = || METRICS.requests.get(DrySeries { dry_run: "", series: series("LIST") });
        let in_flight = requests();
        in_flight.took(0.1);
        in_flight.sizes().observe(1.0);
        in_flight.count(200);
        METRICS.request_terminations.get_or_create(&Terminated { code: 504, series: series("LIST") }).inc();
        METRICS.longrunning_requests.get_or_create(&series("WATCH")).inc();
        METRICS.reads.listed(&of, 1, 1);
        METRICS.reads.events_received.get_or_create(&of).inc();
        METRICS.reads.watch_events.get_or_create(&KindSeries::Each.of_version(&group, &version, &plural)).inc();
        let operation = StoreOperation { operation: "create", group: of.group.clone(), resource: of.resource.clone() };
        METRICS.wrote(&operation, std::time::Duration::ZERO, true);
        let shown = || METRICS.expose("", 0).1.lines().filter(|line| line.contains("ended.example.com")).count();
        assert!(shown() > 10);
        METRICS.forget_kind(&group, &plural);
        assert_eq!(shown(), 0);
        // a request that was in flight begins no series
        assert!(!in_flight.is_current());
        in_flight.count(200);
        assert_eq!(shown(), 0);
        requests().count(200);
        assert_eq!(shown(), 1, "the kind is defined again");
        METRICS.forget_kind(&group, &plural);
    }
}
