//! The URL and credentials of a server, as in a kubeconfig.

use std::path::Path;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use machinery::Value;

/// URL and credentials of a server. Certificates and keys are PEM; empty fields are absent.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Access {
    /// `https://host[:port][/path]`.
    pub server: String,
    /// CA bundle for the server's certificate.
    pub certificate_authority: Vec<u8>,
    /// Client certificate.
    pub certificate: Vec<u8>,
    /// Private key of the client certificate.
    pub key: Vec<u8>,
    /// Bearer token.
    pub token: String,
}

impl Access {
    /// Reads the cluster and the user of the current context of a kubeconfig file. Relative file names are resolved
    /// against its directory. The error is one line that names the file.
    pub fn read(kubeconfig: &Path) -> Result<Access, String> {
        let text =
            std::fs::read(kubeconfig).map_err(|error| format!("cannot read {}: {error}", kubeconfig.display()))?;
        let wrong = |why: String| format!("{}: {why}", kubeconfig.display());
        let config = machinery::yaml::decode(&text).map_err(|error| wrong(error.to_string()))?.value;
        of_current_context(&config, kubeconfig.parent().unwrap_or(Path::new("."))).map_err(wrong)
    }
}

/// Field `field` of the entry of `list` with this name.
fn named<'a>(config: &'a Value, list: &str, name: &str, field: &str) -> Result<&'a Value, String> {
    let entries = config.get(list).and_then(Value::as_array).unwrap_or_default();
    let found = entries.iter().find(|entry| entry.str_at(&["name"]) == name).and_then(|entry| entry.get(field));
    found.ok_or_else(|| format!("there is no {field} {name:?}"))
}

/// The content of `KEY-data`, base64, or of the file that `KEY` names; empty if there is neither.
fn content(value: &Value, key: &str, directory: &Path) -> Result<Vec<u8>, String> {
    let data = value.str_at(&[&format!("{key}-data")]);
    if !data.is_empty() {
        return STANDARD.decode(data).map_err(|error| format!("{key}-data: {error}"));
    }
    match value.str_at(&[key]) {
        "" => Ok(vec![]),
        file => {
            let path = directory.join(file);
            std::fs::read(&path).map_err(|error| format!("cannot read {}: {error}", path.display()))
        }
    }
}

fn of_current_context(config: &Value, directory: &Path) -> Result<Access, String> {
    let name = config.str_at(&["current-context"]);
    if name.is_empty() {
        return Err("the kubeconfig has no current-context".to_owned());
    }
    let context = named(config, "contexts", name, "context")?;
    let cluster = named(config, "clusters", context.str_at(&["cluster"]), "cluster")?;
    let anonymous = Value::object();
    let user = match context.str_at(&["user"]) {
        "" => &anonymous,
        name => named(config, "users", name, "user")?,
    };
    let token = match user.str_at(&["token"]) {
        "" => String::from_utf8_lossy(&content(user, "tokenFile", directory)?).trim().to_owned(),
        token => token.to_owned(),
    };
    Ok(Access {
        server: cluster.str_at(&["server"]).to_owned(),
        certificate_authority: content(cluster, "certificate-authority", directory)?,
        certificate: content(user, "client-certificate", directory)?,
        key: content(user, "client-key", directory)?,
        token,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn current_context_is_used() {
        let text = "contexts: [{name: a, context: {cluster: x, user: u}}, {name: b, context: {cluster: y, user: v}}]\n\
                    clusters: [{name: x, cluster: {server: 'https://x', certificate-authority-data: Y2E=}},\n\
                    \x20          {name: y, cluster: {server: 'https://y/p'}}]\n\
                    users: [{name: u, user: {token: t}},\n\
                    \x20       {name: v, user: {client-certificate-data: Yw==, client-key-data: aw==}}]\n\
                    current-context: ";
        let read = |context: &str| {
            let config = machinery::yaml::decode(format!("{text}{context}\n").as_bytes()).unwrap().value;
            of_current_context(&config, Path::new("."))
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
            ..Access::default()
        };
        assert_eq!(read("a"), Ok(with_token));
        assert_eq!(read("b"), Ok(with_certificate));
        assert_eq!(read("c"), Err("there is no context \"c\"".to_owned()));
    }
}
