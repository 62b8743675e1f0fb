//! Kubeconfigs: writes the administrator's, and reads those of webhooks and other servers.

use std::path::Path;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use client::Access;
use server::RemoteEndpoint;

/// Returns a self-contained kubeconfig.
pub fn render(server: &str, authority: &str, certificate: &str, key: &str) -> String {
    let encode = |pem: &str| STANDARD.encode(pem);
    format!(
        "apiVersion: v1\nkind: Config\nclusters:\n- name: pintle\n  cluster:\n    server: {server}\n    certificate-authority-data: {}\nusers:\n- name: admin\n  user:\n    client-certificate-data: {}\n    client-key-data: {}\ncontexts:\n- name: pintle\n  context:\n    cluster: pintle\n    user: admin\ncurrent-context: pintle\n",
        encode(authority),
        encode(certificate),
        encode(key)
    )
}

/// Reads the URL and the credentials of a webhook from the current context of a kubeconfig. The error is one line.
pub fn read(path: &Path) -> Result<RemoteEndpoint, String> {
    let access = Access::read(path)?;
    Ok(RemoteEndpoint {
        url: access.server,
        roots: access.certificate_authority,
        certificate: access.certificate,
        key: access.key,
        token: access.token,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn admin_kubeconfig_can_be_parsed() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("admin.kubeconfig");
        std::fs::write(&path, render("https://127.0.0.1:6443", "ca", "c", "k")).unwrap();
        let found = read(&path).unwrap();
        assert_eq!(found.url, "https://127.0.0.1:6443");
        assert_eq!((&*found.roots, &*found.certificate, &*found.key), (&b"ca"[..], &b"c"[..], &b"k"[..]));
    }
}
