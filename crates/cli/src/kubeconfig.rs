//! Kubeconfigs: the administrator's is written, those of servers outside are read.

use std::path::Path;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use machinery::Value;
use server::Outside;

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

/// Reads the server and the credentials of the current context. The error is one line.
pub fn read(path: &Path) -> Result<Outside, String> {
    let text = std::fs::read(path).map_err(|error| format!("cannot read {}: {error}", path.display()))?;
    let wrong = |why: String| format!("{}: {why}", path.display());
    let config = machinery::yaml::decode(&text).map_err(|error| wrong(error.to_string()))?.value;
    outside(&config, path.parent().unwrap_or(Path::new("."))).map_err(wrong)
}

/// Field `field` of the entry of `list` with this name.
fn named<'a>(config: &'a Value, list: &str, name: &str, field: &str) -> Result<&'a Value, String> {
    let items = config.get(list).and_then(Value::as_array).unwrap_or_default();
    let found = items.iter().find(|item| item.str_at(&["name"]) == name).and_then(|item| item.get(field));
    found.ok_or_else(|| format!("there is no {field} {name:?}"))
}

/// What stands there as base64, or in a file beside the kubeconfig.
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

fn outside(config: &Value, directory: &Path) -> Result<Outside, String> {
    let context = named(config, "contexts", config.str_at(&["current-context"]), "context")?;
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
    Ok(Outside {
        url: cluster.str_at(&["server"]).to_owned(),
        roots: content(cluster, "certificate-authority", directory)?,
        certificate: content(user, "client-certificate", directory)?,
        key: content(user, "client-key", directory)?,
        token,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_current_context_says_where_and_who() {
        let read = |text: &str| outside(&machinery::yaml::decode(text.as_bytes()).unwrap().value, Path::new("."));
        let found = read(&render("https://127.0.0.1:6443", "ca", "c", "k")).unwrap();
        assert_eq!(found.url, "https://127.0.0.1:6443");
        assert_eq!((&*found.roots, &*found.certificate, &*found.key), (&b"ca"[..], &b"c"[..], &b"k"[..]));
        let two = "contexts: [{name: a, context: {cluster: x, user: u}}, {name: b, context: {cluster: y}}]\n\
                   clusters: [{name: x, cluster: {server: 'https://x'}}, {name: y, cluster: {server: 'https://y/p'}}]\n\
                   users: [{name: u, user: {token: t}}]\ncurrent-context: ";
        let of = |context: &str| read(&format!("{two}{context}\n")).map(|found| (found.url, found.token));
        assert_eq!(of("a"), Ok(("https://x".to_owned(), "t".to_owned())));
        assert_eq!(of("b"), Ok(("https://y/p".to_owned(), String::new())));
        assert_eq!(of("c"), Err("there is no context \"c\"".to_owned()));
    }
}
