//! Metrics of ServiceAccount tokens that should be replaced: legacy ones, which do not expire, and extended ones.

use prometheus_client::metrics::counter::Counter;
use prometheus_client::registry::Registry;

/// Uses of such tokens. Every use is counted, whereas kube-apiserver caches authentications for 10 s.
#[derive(Default)]
pub struct TokenMetrics {
    pub legacy: Counter,
    pub manual: Counter,
    pub automatic: Counter,
    pub invalidated: Counter,
    pub valid: Counter,
    pub stale: Counter,
}

impl TokenMetrics {
    pub fn register(&self, registry: &mut Registry) {
        let all = registry.sub_registry_with_prefix("serviceaccount");
        all.register("legacy_tokens", "Uses of tokens without audiences", self.legacy.clone());
        all.register("legacy_manual_token_uses", "Uses of tokens in Secrets that users created", self.manual.clone());
        let help = "Uses of tokens in Secrets that a ServiceAccount lists";
        all.register("legacy_auto_token_uses", help, self.automatic.clone());
        let help = "Uses of tokens in Secrets that are marked as invalid";
        all.register("invalid_legacy_auto_token_uses", help, self.invalidated.clone());
        let help = "Uses of extended tokens of Pods before they should have been renewed";
        all.register("valid_tokens", help, self.valid.clone());
        all.register(
            "stale_tokens",
            "Uses of extended tokens of Pods that should have been renewed",
            self.stale.clone(),
        );
    }
}
