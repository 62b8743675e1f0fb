//! Tokens of ServiceAccounts that do not end by themselves.

use prometheus_client::metrics::counter::Counter;
use prometheus_client::registry::Registry;

/// Times that such tokens were shown, each time; kube-apiserver passes over what it has seen in the last 10 s.
#[derive(Default)]
pub struct TokenMetrics {
    pub legacy: Counter,
    pub manual: Counter,
    pub automatic: Counter,
    pub invalidated: Counter,
}

impl TokenMetrics {
    pub fn register(&self, registry: &mut Registry) {
        let all = registry.sub_registry_with_prefix("serviceaccount");
        all.register("legacy_tokens", "Uses of tokens without audiences", self.legacy.clone());
        all.register("legacy_manual_token_uses", "Uses of tokens in Secrets that somebody made", self.manual.clone());
        let help = "Uses of tokens in Secrets that an account lists";
        all.register("legacy_auto_token_uses", help, self.automatic.clone());
        let help = "Uses of tokens in Secrets that are marked as invalid";
        all.register("invalid_legacy_auto_token_uses", help, self.invalidated.clone());
    }
}
