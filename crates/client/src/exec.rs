//! Credentials that a program prints, as the users of most clouds have them: `exec` of a user in a kubeconfig
//! (`client.authentication.k8s.io`, KEP-541).

use std::path::Path;
use std::process::{Command, Stdio};

use machinery::{Value, json};

use crate::error::AccessError;

/// The output of a program. Empty fields are absent; certificates and keys are PEM.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Credentials {
    pub token: String,
    pub certificate: Vec<u8>,
    pub key: Vec<u8>,
}

/// Runs the program that `exec` describes; a relative path starts from the directory of the kubeconfig. The program gets no stdin, and its
/// stderr is that of this process.
pub fn credentials(exec: &Value, cluster: &Value, directory: &Path) -> Result<Credentials, AccessError> {
    let name = exec.str_at(&["command"]);
    let named = || name.to_owned();
    let program = if name.contains('/') { directory.join(name) } else { name.into() };
    let mut info = json!({"apiVersion": (exec.str_at(&["apiVersion"])), "kind": "ExecCredential",
        "spec": {"interactive": false}});
    if exec.is_true_at(&["provideClusterInfo"]) {
        info.set_at(&["spec", "cluster"], cluster.clone());
    }
    let mut command = Command::new(program);
    command.args(exec.items_at(&["args"]).iter().filter_map(Value::as_str));
    command.envs(exec.items_at(&["env"]).iter().map(|entry| (entry.str_at(&["name"]), entry.str_at(&["value"]))));
    command.env("KUBERNETES_EXEC_INFO", info.to_json()).stdin(Stdio::null()).stderr(Stdio::inherit());
    let done = command.output().map_err(|source| {
        let hint = exec.str_at(&["installHint"]).trim().lines().next().map(str::to_owned);
        AccessError::NotRun { program: named(), source, hint }
    })?;
    if !done.status.success() {
        return Err(AccessError::Failed { program: named(), status: done.status });
    }
    let printed = machinery::value::decode(&done.stdout);
    let printed = printed.map_err(|source| AccessError::Output { program: named(), source })?;
    let text = |field: &str| printed.str_at(&["status", field]).to_owned();
    let found = Credentials {
        token: text("token"),
        certificate: text("clientCertificateData").into(),
        key: text("clientKeyData").into(),
    };
    if found == Credentials::default() { Err(AccessError::NoCredentials { program: named() }) } else { Ok(found) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn programs_print_credentials() {
        let run = |script: &str, more: Value| {
            let mut exec = json!({"apiVersion": "client.authentication.k8s.io/v1", "command": "sh", "args": ["-c", script],
                "env": [{"name": "WHO", "value": "me"}]});
            for (name, value) in more.fields() {
                exec.set_at(&[name], value.clone());
            }
            let found = credentials(&exec, &json!({"server": "https://x"}), Path::new("/tmp"));
            found.map_err(|error| error.to_string()).map(|found| {
                let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
                [found.token, text(&found.certificate), text(&found.key)].join(" ")
            })
        };
        let token = r#"echo "{\"status\":{\"token\":\"t-$WHO\"}}""#;
        let pair = r#"echo '{"status":{"clientCertificateData":"c","clientKeyData":"k"}}'"#;
        let info =
            r#"case "$KUBERNETES_EXEC_INFO" in *'"server":"https://x"'*) echo '{"status":{"token":"known"}}';; esac"#;
        for (script, more, want) in [
            (token, json!({}), Ok("t-me  ")),
            (pair, json!({}), Ok(" c k")),
            (info, json!({"provideClusterInfo": true}), Ok("known  ")),
            ("exit 3", json!({}), Err("sh, which the kubeconfig names for credentials, failed: exit status: 3")),
            ("echo '{}'", json!({}), Err("sh has printed no credentials")),
            (
                "",
                json!({"command": "./no-such", "installHint": "get it"}),
                Err("cannot run ./no-such: No such file or directory (os error 2): get it"),
            ),
        ] {
            assert_eq!(run(script, more).as_deref().map_err(String::as_str), want, "{script}");
        }
    }
}
