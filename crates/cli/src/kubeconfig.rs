//! Kubeconfigs: writes those of the administrator and of users, and reads those of webhooks and other servers.

use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use client::{Access, Context as _, Result, fail};
use machinery::url::Url;
use machinery::{Value, json};
use server::{Remote, RemoteEndpoint};

use crate::certificates::{Pair, write_atomically};
use crate::files::read_existing;

/// The administrator's kubeconfig in the data directory.
pub const ADMIN_FILE: &str = "admin.kubeconfig";

/// A kubeconfig, in which some entries are replaced and the others kept.
#[derive(Clone, Debug, PartialEq)]
pub struct Kubeconfig(Value);

/// The names of the entries of a context.
#[derive(Clone, Debug)]
pub struct Entries {
    /// The context, and its cluster.
    pub context: String,
    pub user: String,
}

impl Entries {
    /// The entries of the administrator.
    pub fn of_admin(context: &str) -> Entries {
        Entries { context: context.to_owned(), user: format!("{context}-admin") }
    }
}

impl Kubeconfig {
    pub fn new() -> Kubeconfig {
        Kubeconfig(json!({"apiVersion": "v1", "kind": "Config"}))
    }

    /// Reads a file, if it is there. Fails with a one-line message.
    pub fn read(path: &Path) -> Result<Option<Kubeconfig>> {
        let Some(text) = read_existing(path)? else { return Ok(None) };
        let wrong = |why: &dyn std::fmt::Display| {
            format!("{} is not a kubeconfig: {why}; correct or remove it", path.display())
        };
        let value = machinery::yaml::decode(&text).map_err(|error| wrong(&error))?.value;
        match &value {
            Value::Null => Ok(Some(Kubeconfig::new())),
            Value::Object(_) => {
                for list in ["clusters", "users", "contexts"] {
                    if !matches!(value.get(list), None | Some(Value::Null | Value::Array(_))) {
                        return fail(wrong(&format_args!("{list} is not a list")));
                    }
                }
                Ok(Some(Kubeconfig(value)))
            }
            _ => fail(wrong(&"it has no fields")),
        }
    }

    /// Writes the file with this mode. A link is followed.
    pub fn write(&self, path: &Path, mode: u32) -> Result<()> {
        let target = std::fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
        write_atomically(&target, &machinery::yaml::encode(&self.0), mode)
    }

    /// Sets the server, the CA bundle and the credentials of a context. Other fields of the entries are kept, and so is
    /// a server with a DNS name, which the user has chosen.
    pub fn set(&mut self, entries: &Entries, server: &str, authority: &str, credentials: &Pair) {
        let cluster = self.entry("clusters", &entries.context, "cluster");
        if !has_chosen_server(cluster) {
            cluster.set_at(&["server"], Value::from(server));
        }
        set_authority(cluster, authority);
        set_credentials(self.entry("users", &entries.user, "user"), credentials);
        let context = self.entry("contexts", &entries.context, "context");
        context.set_at(&["cluster"], Value::from(entries.context.as_str()));
        context.set_at(&["user"], Value::from(entries.user.as_str()));
    }

    pub fn has_current_context(&self) -> bool {
        !self.0.str_at(&["current-context"]).is_empty()
    }

    pub fn set_current_context(&mut self, name: &str) {
        self.0.set_at(&["current-context"], Value::from(name));
    }

    /// The first entry that already has one of these names, such as `context "a"`.
    pub fn taken(&self, entries: &Entries) -> Option<String> {
        let names = [("context", &entries.context), ("cluster", &entries.context), ("user", &entries.user)];
        let is_taken = |(kind, name): &(&str, &String)| self.named(&format!("{kind}s"), name).is_some();
        names.into_iter().find(is_taken).map(|(kind, name)| format!("{kind} {name:?}"))
    }

    /// The entry of a list with this name.
    fn named(&self, list: &str, name: &str) -> Option<&Value> {
        self.0.items_at(&[list]).iter().find(|entry| entry.str_at(&["name"]) == name)
    }

    /// The server of the current context.
    pub fn server(&self) -> Option<&str> {
        let context = self.named("contexts", self.0.str_at(&["current-context"]))?;
        let cluster = self.named("clusters", context.str_at(&["context", "cluster"]))?;
        Some(cluster.str_at(&["cluster", "server"])).filter(|server| !server.is_empty())
    }

    /// A kubeconfig with the cluster and the user of the current context alone, for the API at another URL of the same server, with
    /// this name of the server in the handshake unless it is empty. Its context has the name `name`. `None` without a current context.
    pub fn for_branch(&self, name: &str, url: &str, host: &str) -> Option<Kubeconfig> {
        let context = self.named("contexts", self.0.str_at(&["current-context"]))?.get("context")?;
        let mut cluster = self.named("clusters", context.str_at(&["cluster"]))?.get("cluster")?.clone();
        let user = self.named("users", context.str_at(&["user"]))?.get("user")?.clone();
        cluster.set_at(&["server"], Value::from(url));
        cluster.put_text(&["tls-server-name"], host);
        Some(Kubeconfig(server::kubeconfig(name, cluster, user)))
    }

    pub fn text(&self) -> String {
        machinery::yaml::encode(&self.0)
    }

    /// The content of the entry of this name, which is added if there is none.
    fn entry(&mut self, list: &str, name: &str, field: &str) -> &mut Value {
        if !matches!(self.0.get(list), Some(Value::Array(_))) {
            self.0.set_at(&[list], Value::Array(vec![]));
        }
        let Some(Value::Array(entries)) = self.0.get_mut(list) else { unreachable!("it has just been set") };
        let at = entries.iter().position(|entry| entry.str_at(&["name"]) == name).unwrap_or_else(|| {
            entries.push(json!({"name": name}));
            entries.len() - 1
        });
        if !matches!(entries[at].get(field), Some(Value::Object(_))) {
            entries[at].set_at(&[field], Value::object());
        }
        entries[at].get_mut(field).unwrap_or_else(|| unreachable!("it has just been set"))
    }
}

/// Whether the server of a cluster has a DNS name other than `localhost`. The server itself writes no such name.
fn has_chosen_server(cluster: &Value) -> bool {
    let Ok(url) = Url::parse(cluster.str_at(&["server"])) else { return false };
    let is_port = |port: &str| port.bytes().all(|byte| byte.is_ascii_digit());
    let host = url.host.rsplit_once(':').filter(|(_, port)| is_port(port)).map_or(url.host.as_str(), |(host, _)| host);
    !host.is_empty() && host != "localhost" && host.trim_matches(['[', ']']).parse::<std::net::IpAddr>().is_err()
}

fn set_authority(cluster: &mut Value, authority: &str) {
    // clients refuse a CA bundle together with insecure-skip-tls-verify
    if cluster.get("insecure-skip-tls-verify").and_then(Value::as_bool) != Some(true) {
        cluster.remove_at(&["certificate-authority"]);
        cluster.set_at(&["certificate-authority-data"], Value::from(STANDARD.encode(authority)));
    }
}

fn set_credentials(user: &mut Value, credentials: &Pair) {
    user.set_at(&["client-certificate-data"], Value::from(STANDARD.encode(&credentials.certificate)));
    user.set_at(&["client-key-data"], Value::from(STANDARD.encode(&credentials.key)));
}

/// The kubeconfigs of the administrator that a server keeps.
#[derive(Clone, Debug)]
pub struct AdminFiles {
    /// The files with their modes.
    pub files: Vec<(PathBuf, u32)>,
    pub context: String,
}

impl AdminFiles {
    /// Checks that existing files can be changed. Fails with a one-line message.
    pub fn check(&self) -> Result<()> {
        self.files.iter().try_for_each(|(path, _)| Kubeconfig::read(path).map(drop))
    }

    /// Writes the files that differ from what they should have. Their other content is kept.
    pub fn write(&self, server: &str, authority: &str, credentials: &Pair) -> Result<()> {
        for (path, mode) in &self.files {
            let found = Kubeconfig::read(path)?;
            let mut kubeconfig = found.clone().unwrap_or_else(Kubeconfig::new);
            kubeconfig.set(&Entries::of_admin(&self.context), server, authority, credentials);
            if !kubeconfig.has_current_context() {
                kubeconfig.set_current_context(&self.context);
            }
            if found.as_ref() != Some(&kubeconfig) || !has_mode(path, *mode) {
                kubeconfig.write(path, *mode)?;
            }
        }
        Ok(())
    }
}

fn has_mode(path: &Path, mode: u32) -> bool {
    std::fs::metadata(path).is_ok_and(|metadata| metadata.permissions().mode() & 0o777 == mode)
}

/// Makes a client of the webhook that the current context of a kubeconfig describes.
pub fn connect(path: &Path) -> Result<Remote> {
    let access = Access::read(path)?;
    Ok(Remote::new(&RemoteEndpoint {
        url: access.server,
        roots: access.certificate_authority,
        certificate: access.certificate,
        key: access.key,
        token: access.token,
    })?)
}

/// Connects as `connect` does. An error names the flag that names the kubeconfig.
pub fn remote(flag: &str, path: &Path) -> Result<Remote> {
    connect(path).context(flag)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pair(certificate: &str, key: &str) -> Pair {
        Pair { certificate: certificate.to_owned(), key: key.to_owned() }
    }

    #[test]
    fn admin_kubeconfig_can_be_parsed() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("admin.kubeconfig");
        let files = AdminFiles { files: vec![(path.clone(), 0o600)], context: "pintle".to_owned() };
        files.write("https://127.0.0.1:6443", "ca", &pair("c", "k")).unwrap();
        let found = Access::read(&path).unwrap();
        assert_eq!(found.server, "https://127.0.0.1:6443");
        let found = (&*found.certificate_authority, &*found.certificate, &*found.key);
        assert_eq!(found, (&b"ca"[..], &b"c"[..], &b"k"[..]));
    }

    #[test]
    fn changes_of_the_user_are_kept() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("config");
        let before = "current-context: other\nclusters:\n- {name: pintle, cluster: {server: 'https://10.0.0.9:1', \
                      proxy-url: 'http://p'}}\n- {name: named, cluster: {server: 'https://k.example.com:1'}}\n\
                      users:\n- {name: other, user: {token: t}}\n\
                      contexts:\n- {name: pintle, context: {namespace: mine, user: x}}\npreferences: {colors: true}\n";
        std::fs::write(&path, before).unwrap();
        for context in ["pintle", "named"] {
            let files = AdminFiles { files: vec![(path.clone(), 0o640)], context: context.to_owned() };
            files.check().unwrap();
            files.write("https://127.0.0.1:6443", "ca", &pair("c", "k")).unwrap();
        }
        let text = || std::fs::read_to_string(&path).unwrap();
        let (commented, files) = (
            format!("# mine\n{}", text()),
            AdminFiles { files: vec![(path.clone(), 0o600)], context: "named".to_owned() },
        );
        std::fs::write(&path, &commented).unwrap();
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o600)).unwrap();
        files.write("https://127.0.0.1:6443", "ca", &pair("c", "k")).unwrap();
        assert_eq!(text(), commented, "a file that has it all is not written");
        let Some(Kubeconfig(got)) = Kubeconfig::read(&path).unwrap() else { panic!("it is there") };
        let want = "apiVersion\n";
        assert!(!got.to_json().contains(want));
        let credentials = json!({"client-certificate-data": "Yw==", "client-key-data": "aw=="});
        let want = json!({
            "current-context": "other",
            "preferences": {"colors": true},
            "clusters": [
                {"name": "pintle", "cluster": {"server": "https://127.0.0.1:6443", "proxy-url": "http://p",
                    "certificate-authority-data": "Y2E="}},
                {"name": "named", "cluster": {"server": "https://k.example.com:1", "certificate-authority-data": "Y2E="}}
            ],
            "users": [
                {"name": "other", "user": {"token": "t"}},
                {"name": "pintle-admin", "user": (credentials.clone())},
                {"name": "named-admin", "user": credentials}
            ],
            "contexts": [
                {"name": "pintle", "context": {"namespace": "mine", "cluster": "pintle", "user": "pintle-admin"}},
                {"name": "named", "context": {"cluster": "named", "user": "named-admin"}}
            ]
        });
        assert_eq!(got, want);
    }

    #[test]
    fn wrong_files_are_not_changed() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("config");
        for wrong in ["- a", "clusters: 7", "a: [", "text"] {
            std::fs::write(&path, wrong).unwrap();
            let error = Kubeconfig::read(&path).unwrap_err().to_string();
            assert!(error.contains("is not a kubeconfig") && !error.contains('\n'), "{error}");
        }
    }
}
