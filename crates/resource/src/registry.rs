//! The live set of resources: an immutable snapshot, replaced whenever a CRD changes.

use std::sync::Arc;

use arc_swap::ArcSwap;
use base::request::FeatureGates;
use machinery::{Release, Text};
use objects::Objects;

use super::builtin::Catalogue;
use super::model::Resource;
use super::names::{DefinitionNames, Names};
use super::shared;
use super::version::Version;

/// The server of a group and plural: the resource, and the names of its CRD.
pub struct Defined {
    /// The served resource; `None` while names are not accepted.
    pub resource: Option<Resource>,
    /// The names of the CRD, if there is one.
    pub names: Option<Arc<DefinitionNames>>,
}

/// Resources by group and plural.
pub type Snapshot = imbl::OrdMap<(Text, Text), Arc<Resource>>;

/// The current snapshot.
pub struct Registry {
    catalogue: &'static Catalogue,
    gates: FeatureGates,
    snapshot: ArcSwap<Snapshot>,
    /// The names of all CRDs, served or not.
    names: Names,
    /// Increases with every change, and is the key of caches that derive from a snapshot.
    generation: std::sync::atomic::AtomicU64,
}

impl Registry {
    pub fn new(catalogue: &'static Catalogue, gates: FeatureGates) -> Registry {
        let (snapshot, names) = (ArcSwap::default(), Names::default());
        Registry { catalogue, gates, snapshot, names, generation: 0.into() }
    }

    /// The built-in kinds, of which some are served.
    pub fn catalogue(&self) -> &'static Catalogue {
        self.catalogue
    }

    /// Serves the built-in kinds of another registry too, with the objects of another context.
    pub fn share_built_in(&self, base: &Registry, objects: &Objects) {
        let mut next = Snapshot::clone(&self.snapshot.load());
        for (key, resource) in base.snapshot().iter().filter(|(_, resource)| !resource.is_custom()) {
            next.insert(key.clone(), Arc::new(resource.with_objects_of(objects)));
        }
        self.snapshot.store(Arc::new(next));
        self.generation.fetch_add(1, std::sync::atomic::Ordering::AcqRel);
    }

    /// The features of the server.
    pub fn gates(&self) -> &FeatureGates {
        &self.gates
    }

    /// The release that is served.
    pub fn release(&self) -> Release {
        self.gates.release()
    }

    pub fn snapshot(&self) -> Arc<Snapshot> {
        self.snapshot.load_full()
    }

    pub fn generation(&self) -> u64 {
        self.generation.load(std::sync::atomic::Ordering::Acquire)
    }

    pub fn get(&self, group: &str, plural: &str) -> Option<Arc<Resource>> {
        self.snapshot.load().get(&(Text::from(group), Text::from(plural))).cloned()
    }

    pub fn of_kind(&self, group: &str, version: &str, kind: &str) -> Option<Arc<Resource>> {
        let snapshot = self.snapshot.load();
        let from = (Text::from(group), Text::default());
        let mut of_group = snapshot.range(from..).map(|(_, resource)| resource).take_while(|r| r.group == group);
        of_group.find(|resource| resource.kind == kind && resource.served(version).is_some()).cloned()
    }

    /// Whether a built-in kind is served in a version.
    pub fn of_built_in_kind(&self, group: &str, version: &str, kind: &str) -> bool {
        let found = |resource: &Arc<Resource>| resource.kind == kind && resource.version(version).is_some();
        let snapshot = self.snapshot.load();
        snapshot.values().any(|resource| !resource.is_custom() && resource.group == group && found(resource))
    }

    /// Whether a group has built-in kinds that are served.
    pub fn is_own_group(&self, group: &str) -> bool {
        let snapshot = self.snapshot.load();
        let from = (Text::from(group), Text::default());
        let mut of_group = snapshot.range(from..).map(|(_, resource)| resource).take_while(|r| r.group == group);
        self.catalogue.is_built_in_group(group) && of_group.any(|resource| !resource.is_custom())
    }

    /// Whether a group and plural belong to a built-in kind.
    pub fn is_built_in(&self, group: &str, plural: &str) -> bool {
        self.get(group, plural).is_some_and(|served| !served.is_custom())
    }

    /// Whether a built-in kind or a ThirdPartyResource serves a group and plural.
    pub fn overlaps_definition(&self, group: &str, plural: &str) -> bool {
        self.get(group, plural).is_some_and(|served| served.third_party || !served.is_custom())
    }

    pub fn names(&self) -> &Names {
        &self.names
    }

    /// Replaces the resource and the names of a group and plural; built-in kinds stay. Custom resources in a built-in
    /// group are not listed by discovery.
    pub fn define(&self, group: &Text, plural: &Text, defined: Defined) {
        self.names.set(group, plural, defined.names.as_deref());
        if self.get(group, plural).is_none_or(|served| served.is_custom()) {
            let mut resource = defined.resource;
            if let Some(resource) = &mut resource {
                let is_listed = resource.third_party || !self.catalogue.is_reserved_group(group);
                if resource.established && !is_listed {
                    resource.facts_mut().established = false;
                }
            }
            self.replace(group, plural, resource);
        }
    }

    /// Replaces the served resource of a group and plural, or removes it if `resource` is `None`.
    pub fn replace(&self, group: &Text, plural: &Text, resource: Option<Resource>) {
        let key = (group.clone(), plural.clone());
        let old = self.snapshot.load().get(&key).cloned();
        let unchanged = |resource: &Resource| {
            old.as_ref().filter(|old| !resource.is_custom() || old.fingerprint == resource.fingerprint).cloned()
        };
        let resource = resource.map(|mut resource| {
            if let Some(old) = unchanged(&resource) {
                // clients see no change, so programs and watches continue
                let facts = resource.facts_mut();
                let pairs = std::mem::take(&mut facts.versions).into_iter().zip(&old.versions);
                let continuing = |(new, old)| {
                    Arc::into_inner(new).map_or_else(|| Arc::clone(old), |new| Arc::new(Version::continuing(new, old)))
                };
                facts.versions = pairs.map(continuing).collect();
                resource.retired = old.retired.clone();
            }
            shared::offer(resource.facts());
            Arc::new(resource)
        });
        self.snapshot.rcu(|snapshot| {
            let mut next = Snapshot::clone(snapshot);
            match &resource {
                Some(resource) => next.insert(key.clone(), resource.clone()),
                None => next.remove(&key),
            };
            next
        });
        self.generation.fetch_add(1, std::sync::atomic::Ordering::AcqRel);
        let continued = |old: &Resource| resource.as_ref().is_some_and(|new| Arc::ptr_eq(&new.retired, &old.retired));
        if let Some(old) = old
            && !continued(&old)
        {
            old.retired.send_replace(true);
        }
    }
}
