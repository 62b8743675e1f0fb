//! What a kubeconfig of one cluster and one user says.

use std::path::Path;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

/// URL and credentials of a server. Certificates and keys are PEM.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Access {
    pub server: String,
    pub authority: Vec<u8>,
    pub certificate: Vec<u8>,
    pub key: Vec<u8>,
    pub token: Option<String>,
}

/// Reads a kubeconfig file.
pub fn read(path: &Path) -> Result<Access, String> {
    let text = std::fs::read_to_string(path).map_err(|error| format!("cannot read {}: {error}", path.display()))?;
    let directory = path.parent().unwrap_or(Path::new("."));
    parse(&text, directory).map_err(|error| format!("{}: {error}", path.display()))
}

/// The first value of a key, wherever it stands.
fn value<'a>(text: &'a str, key: &str) -> Option<&'a str> {
    let of_line = |line: &'a str| line.trim_start_matches(['-', ' ']).strip_prefix(key)?.strip_prefix(':');
    text.lines().find_map(of_line).map(|value| value.trim().trim_matches(['"', '\'']))
}

/// PEM that stands in the text as base64, or in a file beside it.
fn pem(text: &str, key: &str, directory: &Path) -> Result<Vec<u8>, String> {
    if let Some(data) = value(text, &format!("{key}-data")) {
        return STANDARD.decode(data).map_err(|error| format!("{key}-data: {error}"));
    }
    let Some(file) = value(text, key) else { return Ok(vec![]) };
    let path = directory.join(file);
    std::fs::read(&path).map_err(|error| format!("cannot read {}: {error}", path.display()))
}

fn parse(text: &str, directory: &Path) -> Result<Access, String> {
    Ok(Access {
        server: value(text, "server").ok_or("no server")?.to_owned(),
        authority: pem(text, "certificate-authority", directory)?,
        certificate: pem(text, "client-certificate", directory)?,
        key: pem(text, "client-key", directory)?,
        token: value(text, "token").map(str::to_owned),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_cluster_and_one_user_are_read() {
        let text = "clusters:\n- cluster:\n    server: https://[::1]:6443\n    certificate-authority-data: Y2E=\nusers:\n- name: a\n  user:\n    client-certificate-data: Yw==\n    client-key-data: \"aw==\"\n";
        let access = parse(text, Path::new(".")).unwrap();
        assert_eq!(access.server, "https://[::1]:6443");
        assert_eq!((access.authority, access.certificate, access.key), (b"ca".to_vec(), b"c".to_vec(), b"k".to_vec()));
        assert_eq!(access.token, None);
        assert!(parse("users: []\n", Path::new(".")).is_err());
    }
}
