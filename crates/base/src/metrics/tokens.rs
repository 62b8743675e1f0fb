//! Metrics of ServiceAccount tokens that should be replaced: legacy ones, which do not expire, and extended ones.

use prometheus_client::metrics::counter::Counter;

metrics! {
    /// Uses of such tokens. Every use is counted, whereas kube-apiserver caches authentications for 10 s.
    pub struct TokenMetrics {
        pub legacy: Counter => "serviceaccount_legacy_tokens", "Uses of tokens without audiences";
        pub manual: Counter =>
            "serviceaccount_legacy_manual_token_uses", "Uses of tokens in Secrets that users created";
        pub automatic: Counter =>
            "serviceaccount_legacy_auto_token_uses", "Uses of tokens in Secrets that a ServiceAccount lists";
        pub invalidated: Counter =>
            "serviceaccount_invalid_legacy_auto_token_uses", "Uses of tokens in Secrets that are marked as invalid";
        pub valid: Counter =>
            "serviceaccount_valid_tokens", "Uses of extended tokens of Pods before they should have been renewed";
        pub stale: Counter =>
            "serviceaccount_stale_tokens", "Uses of extended tokens of Pods that should have been renewed";
    }
}
