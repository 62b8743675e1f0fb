//! Where policies and webhooks come from: manifests, and objects of the API. Those of manifests come first.

use std::sync::Arc;

use arc_swap::ArcSwap;

/// Which policies or webhooks see a write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SourceScope {
    /// Only those of manifests: the write changes a policy or a webhook configuration, and others could make it
    /// impossible to correct one.
    Manifests,
    All,
}

/// The policies or webhooks of a plugin by their sources.
#[derive(Default)]
pub struct Sources<T: Default> {
    pub manifests: ArcSwap<T>,
    pub api: ArcSwap<T>,
}

/// The policies or webhooks that are in force for one write.
pub struct EffectiveSources<T> {
    manifests: Arc<T>,
    api: Option<Arc<T>>,
}

impl<T: Default> Sources<T> {
    pub fn in_force(&self, scope: SourceScope) -> EffectiveSources<T> {
        EffectiveSources {
            manifests: self.manifests.load_full(),
            api: (scope == SourceScope::All).then(|| self.api.load_full()),
        }
    }

    /// Whether something holds for the policies or webhooks of both sources.
    pub fn all(&self, holds: impl Fn(&T) -> bool) -> bool {
        holds(&self.manifests.load()) && holds(&self.api.load())
    }
}

impl<T> EffectiveSources<T> {
    /// The policies or webhooks by their sources, those of manifests first.
    pub fn in_order(&self) -> impl Iterator<Item = &T> {
        std::iter::once(&*self.manifests).chain(self.api.as_deref())
    }
}
