//! The URL and credentials of a server, as in a kubeconfig.

use std::path::{Path, PathBuf};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use machinery::Value;

use crate::error::AccessError;
use crate::exec::{self, Credentials};

/// URL and credentials of a server. Certificates and keys are PEM; empty fields are absent.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Access {
    /// `https://host[:port][/path]`.
    pub server: String,
    /// CA bundle for the server's certificate.
    pub certificate_authority: Vec<u8>,
    pub certificate: Vec<u8>,
    /// Private key of the client certificate.
    pub key: Vec<u8>,
    /// Bearer token.
    pub token: String,
    /// The name for which the server's certificate must be valid, if it is not that of the URL.
    pub server_name: String,
    pub verification: Verification,
}

/// Whether the certificate of the server must be valid.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Verification {
    #[default]
    Required,
    /// `insecure-skip-tls-verify`.
    Skipped,
}

impl Access {
    /// Reads the cluster and the user of the current context of a kubeconfig file. Relative file names are resolved
    /// against its directory.
    pub fn read(kubeconfig: &Path) -> Result<Access, AccessError> {
        Access::read_all(&[kubeconfig.to_owned()])
    }

    /// The same for several files, as in `KUBECONFIG`: the first file with an entry, or with a current context, counts, and
    /// files that do not exist are skipped unless none of them does.
    pub fn read_all(kubeconfigs: &[PathBuf]) -> Result<Access, AccessError> {
        Access::read_context(kubeconfigs, None)
    }

    /// The same for a context; `None` is the current one.
    pub fn read_context(kubeconfigs: &[PathBuf], context: Option<&str>) -> Result<Access, AccessError> {
        let (mut found, mut missing) = (vec![], None);
        for path in kubeconfigs {
            match std::fs::read(path) {
                Ok(text) => {
                    let config = machinery::yaml::decode(&text);
                    let content = config.map_err(|source| AccessError::NotYaml { path: path.clone(), source })?.value;
                    found.push(Config { content, directory: path.parent().unwrap_or(Path::new(".")) });
                }
                Err(source) => {
                    let is_missing = source.kind() == std::io::ErrorKind::NotFound;
                    let error = AccessError::Unreadable { path: path.clone(), source };
                    if !is_missing {
                        return Err(error);
                    }
                    missing.get_or_insert(error);
                }
            }
        }
        if let Some(error) = missing.filter(|_| found.is_empty()) {
            return Err(error);
        }
        of_context(&found, context).map_err(|error| {
            let names: Vec<String> = kubeconfigs.iter().map(|path| path.display().to_string()).collect();
            AccessError::Context { files: names.join(":"), source: Box::new(error) }
        })
    }
}

impl Access {
    /// Access to the API outside of workspaces, with the same credentials.
    #[must_use]
    pub fn outside_workspaces(mut self) -> Access {
        if let Some((root, below)) = self.server.split_once("/clusters/") {
            let name = below.split(['/', '.']).next().unwrap_or_default();
            // the name of the server in the handshake may be that of the workspace
            if let Some(domain) = self.server_name.strip_prefix(name).and_then(|rest| rest.strip_prefix('.')) {
                self.server_name = domain.to_owned();
            }
            self.server = root.to_owned();
        }
        self
    }

    /// Access to a workspace of the server, with the same credentials.
    #[must_use]
    pub fn to_workspace(self, name: &str) -> Access {
        let outside = self.outside_workspaces();
        Access { server: format!("{}/clusters/{name}", outside.server.trim_end_matches('/')), ..outside }
    }
}

/// The content of a kubeconfig file.
struct Config<'a> {
    content: Value,
    /// The directory that relative file names start from.
    directory: &'a Path,
}

/// Field `field` of the first entry of `list` with this name, and the directory of its file.
fn named<'a>(
    configs: &'a [Config],
    list: &str,
    name: &str,
    field: &'static str,
) -> Result<(&'a Value, &'a Path), AccessError> {
    let find = |config: &'a Config| {
        let entries = config.content.items_at(&[list]);
        let entry = entries.iter().find(|entry| entry.str_at(&["name"]) == name)?;
        Some((entry.get(field)?, config.directory))
    };
    configs.iter().find_map(find).ok_or_else(|| AccessError::Missing { field, name: name.to_owned() })
}

/// The content of `KEY-data`, base64, or of the file that `KEY` names; empty if there is neither.
fn content(value: &Value, key: &'static str, directory: &Path) -> Result<Vec<u8>, AccessError> {
    let data = value.str_at(&[&format!("{key}-data")]);
    if !data.is_empty() {
        return STANDARD.decode(data).map_err(|source| AccessError::NotBase64 { key, source });
    }
    match value.str_at(&[key]) {
        "" => Ok(vec![]),
        file => {
            let path = directory.join(file);
            std::fs::read(&path).map_err(|source| AccessError::Unreadable { path, source })
        }
    }
}

fn of_context(configs: &[Config], context: Option<&str>) -> Result<Access, AccessError> {
    let mut names = configs.iter().map(|config| config.content.str_at(&["current-context"]));
    let current = || names.find(|name| !name.is_empty());
    let name = context.or_else(current).ok_or(AccessError::NoCurrentContext)?;
    let (context, _) = named(configs, "contexts", name, "context")?;
    let (cluster, beside_cluster) = named(configs, "clusters", context.str_at(&["cluster"]), "cluster")?;
    let anonymous = Value::object();
    let (user, beside_user) = match context.str_at(&["user"]) {
        "" => (&anonymous, Path::new("")),
        name => named(configs, "users", name, "user")?,
    };
    let token = match user.str_at(&["token"]) {
        "" => String::from_utf8_lossy(&content(user, "tokenFile", beside_user)?).trim().to_owned(),
        token => token.to_owned(),
    };
    let mut own = Credentials {
        token,
        certificate: content(user, "client-certificate", beside_user)?,
        key: content(user, "client-key", beside_user)?,
    };
    if let Some(exec) = user.get("exec").filter(|_| own == Credentials::default()) {
        own = exec::credentials(exec, cluster, beside_user)?;
    }
    Ok(Access {
        server: cluster.str_at(&["server"]).to_owned(),
        certificate_authority: content(cluster, "certificate-authority", beside_cluster)?,
        certificate: own.certificate,
        key: own.key,
        token: own.token,
        server_name: cluster.str_at(&["tls-server-name"]).to_owned(),
        verification: match cluster.get("insecure-skip-tls-verify").and_then(Value::as_bool) {
            Some(true) => Verification::Skipped,
            _ => Verification::Required,
        },
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn workspaces_are_places_of_a_server() {
        for server in ["https://x", "https://x/", "https://x/clusters/a"] {
            let access = Access { server: server.to_owned(), ..Access::default() };
            assert_eq!(access.clone().to_workspace("b").server, "https://x/clusters/b");
            assert_eq!(access.outside_workspaces().server.trim_end_matches('/'), "https://x");
        }
        for (name, outside) in [("a.w.example", "w.example"), ("x.example", "x.example"), ("", "")] {
            let server = "https://x/clusters/a.uid".to_owned();
            let access = Access { server, server_name: name.to_owned(), ..Access::default() };
            let access = access.outside_workspaces();
            assert_eq!((access.server.as_str(), access.server_name.as_str()), ("https://x", outside));
        }
    }

    #[test]
    fn current_context_is_used() {
        let text = "contexts: [{name: a, context: {cluster: x, user: u}}, {name: b, context: {cluster: y, user: v}}]\n\
                    clusters: [{name: x, cluster: {server: 'https://x', certificate-authority-data: Y2E=}},\n\
                    \x20          {name: y, cluster: {server: 'https://y/p', insecure-skip-tls-verify: true, tls-server-name: z}}]\n\
                    users: [{name: u, user: {token: t}},\n\
                    \x20       {name: v, user: {client-certificate-data: Yw==, client-key-data: aw==}}]\n\
                    current-context: ";
        let read = |context: &str| {
            let content = machinery::yaml::decode(format!("{text}{context}\n").as_bytes()).unwrap().value;
            of_context(&[Config { content, directory: Path::new(".") }], None).map_err(|error| error.to_string())
        };
        let with_token = Access {
            server: "https://x".to_owned(),
            certificate_authority: b"ca".to_vec(),
            token: "t".to_owned(),
            ..Access::default()
        };
        let with_certificate = Access {
            server: "https://y/p".to_owned(),
            certificate: b"c".to_vec(),
            key: b"k".to_vec(),
            server_name: "z".to_owned(),
            verification: Verification::Skipped,
            ..Access::default()
        };
        assert_eq!(read("a"), Ok(with_token));
        assert_eq!(read("b"), Ok(with_certificate));
        assert_eq!(read("c"), Err("there is no context \"c\"".to_owned()));
    }

    #[test]
    fn first_of_several_files_counts() {
        let directory = tempfile::tempdir().unwrap();
        let (users, contexts) = (directory.path().join("users"), directory.path().join("sub/contexts"));
        std::fs::create_dir(directory.path().join("sub")).unwrap();
        std::fs::write(directory.path().join("sub/ca"), "ca").unwrap();
        std::fs::write(&users, "users: [{name: u, user: {token: first}}]").unwrap();
        let text = "users: [{name: u, user: {token: second}}]\ncurrent-context: a\ncontexts: [{name: a, context: \
                    {cluster: x, user: u}}]\nclusters: [{name: x, cluster: {server: 'https://x', certificate-authority: ca}}]";
        std::fs::write(&contexts, text).unwrap();
        let missing = directory.path().join("missing");
        let access = Access::read_all(&[missing.clone(), users, contexts]).unwrap();
        assert_eq!((&*access.token, &*access.certificate_authority), ("first", &b"ca"[..]));
        let error = Access::read_all(std::slice::from_ref(&missing)).unwrap_err().to_string();
        assert!(error.starts_with(&format!("cannot read {}", missing.display())), "{error}");
    }
}
