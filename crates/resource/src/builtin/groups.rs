//! The groups of built-in kinds, and the priorities that their APIServices declare.

use super::catalogue::{Catalogue, KindGroup};

impl Catalogue {
    /// Whether a group has built-in kinds.
    pub fn is_built_in_group(&'static self, group: &str) -> bool {
        // most requests are for other groups, and there are five times as many kinds as groups
        self.group(group).is_some() && self.kinds().any(|built_in| built_in.group == group)
    }

    /// Whether a group is kube-apiserver's own: no custom resource is served in it. The paths of such a group belong to
    /// its built-in routes, which know nothing of CustomResourceDefinitions.
    pub fn is_reserved_group(&'static self, group: &str) -> bool {
        self.is_built_in_group(group) || self.group(group).is_some_and(|group| group.is_reserved)
    }

    fn group(&'static self, name: &str) -> Option<&'static KindGroup> {
        self.groups().iter().find(|group| group.name == name)
    }

    /// `groupPriorityMinimum`: groups of higher priority come first in discovery.
    pub fn group_priority(&'static self, group: &str) -> u32 {
        self.group(group).map_or(1_000, |group| group.priority)
    }

    /// `versionPriority` of a version in its group: the highest is preferred.
    pub fn version_priority(&'static self, group: &str, version: &str) -> i64 {
        let known = self.group(group).and_then(|group| group.versions.iter().find(|(known, _)| *known == version));
        let of_other = if self.is_built_in_group(group) { 12 } else { 100 };
        known.map_or(of_other, |(_, priority)| *priority)
    }
}
