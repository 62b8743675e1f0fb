//! The administrator's kubeconfig.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

/// A kubeconfig with everything in it.
pub fn render(server: &str, authority: &str, certificate: &str, key: &str) -> String {
    let encode = |pem: &str| STANDARD.encode(pem);
    format!(
        "apiVersion: v1\nkind: Config\nclusters:\n- name: pintle\n  cluster:\n    server: {server}\n    certificate-authority-data: {}\nusers:\n- name: admin\n  user:\n    client-certificate-data: {}\n    client-key-data: {}\ncontexts:\n- name: pintle\n  context:\n    cluster: pintle\n    user: admin\ncurrent-context: pintle\n",
        encode(authority),
        encode(certificate),
        encode(key)
    )
}
