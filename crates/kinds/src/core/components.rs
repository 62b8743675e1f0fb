//! ComponentStatus: the health of control plane components, as observed by this process.

use machinery::{Value, json};

/// The ports of the other components of a control plane, on the same host.
const BESIDES: [(&str, u16); 2] = [("controller-manager", 10257), ("scheduler", 10259)];

/// All components: two that do not run here, and the store.
pub fn all() -> Vec<Value> {
    let component = |name: &str, status: &str, message: String| {
        json!({
            "apiVersion": "v1", "kind": "ComponentStatus", "metadata": {"name": name},
            "conditions": [{"type": "Healthy", "status": status, "message": message}]
        })
    };
    let refused = |(name, port): &(&str, u16)| {
        let address = format!("127.0.0.1:{port}");
        let why = format!("Get \"https://{address}/healthz\": dial tcp {address}: connect: connection refused");
        component(name, "False", why)
    };
    let store = component("etcd-0", "True", "ok".to_owned());
    BESIDES.iter().map(refused).chain([store]).collect()
}
