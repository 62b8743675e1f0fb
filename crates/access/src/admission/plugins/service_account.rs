//! ServiceAccount: assigns Pods a ServiceAccount of their namespace and mounts one of its tokens.

use base::clock;
use machinery::{Value, json};

use super::pod_resources::CONTAINERS;
use super::{Awaited, Decision, PluginRequest, annotation, push};
use crate::limits;

const DEFAULT: &str = "default";
const PLURAL: &str = "serviceaccounts";
const NAME: [&str; 2] = ["spec", "serviceAccountName"];
const PULL_SECRETS: [&str; 2] = ["spec", "imagePullSecrets"];
const MIRROR: &str = "kubernetes.io/config.mirror";
const TOKEN_VOLUME: &str = "kube-api-access-";
const TOKEN_PATH: &str = "/var/run/secrets/kubernetes.io/serviceaccount";

fn path_of(call: &PluginRequest<'_>, name: &str) -> String {
    format!("{}/{name}", call.attributes.namespace)
}

/// The default ServiceAccount. A new Pod without another account waits for it, since a controller may still be creating
/// it in a new namespace.
pub fn awaited(call: &PluginRequest<'_>, pod: &Value) -> Option<Awaited> {
    let name = pod.str_at(&NAME);
    if !["", DEFAULT].contains(&name) || annotation(pod, MIRROR).is_some() || !call.is_create() {
        return None;
    }
    Some(Awaited { group: "", plural: PLURAL, path: path_of(call, DEFAULT) })
}

fn account(call: &PluginRequest<'_>, name: &str) -> Result<Value, String> {
    let path = path_of(call, name);
    let not_found = || format!("error looking up service account {path}: serviceaccount {name:?} not found");
    call.get("", PLURAL, &path).ok_or_else(not_found)
}

pub fn admit(call: &PluginRequest<'_>, pod: &mut Value) -> Decision {
    if !call.is_create() {
        return Ok(());
    }
    if annotation(pod, MIRROR).is_some() {
        return check_mirror(pod);
    }
    if pod.str_at(&NAME).is_empty() {
        for field in ["serviceAccountName", "serviceAccount"] {
            pod.set_at(&["spec", field], Value::from(DEFAULT));
        }
    }
    let account = account(call, pod.str_at(&NAME))?;
    let of_pod = pod.at(&["spec", "automountServiceAccountToken"]).and_then(Value::as_bool);
    let of_account = account.get("automountServiceAccountToken").and_then(Value::as_bool);
    if of_pod.or(of_account).unwrap_or(true) {
        mount_token(pod);
    }
    let secrets = account.items_at(&["imagePullSecrets"]);
    if pod.items_at(&PULL_SECRETS).is_empty() && !secrets.is_empty() {
        let names = secrets.iter().map(|secret| json!({"name": (secret.str_at(&["name"]).to_owned())}));
        pod.set_at(&PULL_SECRETS, names.collect());
    }
    check_secrets(pod, &account)
}

pub fn validate(call: &PluginRequest<'_>) -> Decision {
    let pod = call.object();
    let is_ephemeral = call.attributes.subresource == "ephemeralcontainers";
    if !is_ephemeral && !call.is_create() {
        return Ok(());
    }
    if !is_ephemeral && annotation(pod, MIRROR).is_some() {
        return check_mirror(pod);
    }
    let name = pod.str_at(&NAME);
    if name.is_empty() {
        let pod = path_of(call, pod.str_at(&["metadata", "name"]));
        return Err(format!("no service account specified for pod {pod}").into());
    }
    let account = account(call, name)?;
    if is_ephemeral { check_ephemeral(pod, &account) } else { check_secrets(pod, &account) }
}

/// Mounts a token into every container that has no other mount at its path.
fn mount_token(pod: &mut Value) {
    let names = pod.items_at(&["spec", "volumes"]).iter().map(|volume| volume.str_at(&["name"]));
    let existing = names.filter(|name| name.starts_with(TOKEN_VOLUME)).map(str::to_owned).next();
    let volume_of = || ["namespace", "name", "generateName"].map(|field| pod.str_at(&["metadata", field])).join("/");
    let name = existing.clone().unwrap_or_else(|| format!("{TOKEN_VOLUME}{}", clock::name_suffix(volume_of)));
    let mount = json!({"name": (name.clone()), "readOnly": true, "mountPath": TOKEN_PATH});
    let mut is_needed = false;
    for list in ["initContainers", "containers"] {
        let containers = pod.get_mut("spec").and_then(|spec| spec.get_mut(list)).and_then(Value::as_array_mut);
        for container in containers.into_iter().flatten() {
            let mounts = container.items_at(&["volumeMounts"]);
            if !mounts.iter().any(|mount| mount.str_at(&["mountPath"]) == TOKEN_PATH) {
                push(container, &["volumeMounts"], mount.clone());
                is_needed = true;
            }
        }
    }
    if is_needed && existing.is_none() {
        push(pod, &["spec", "volumes"], token_volume(&name));
    }
}

fn token_volume(name: &str) -> Value {
    json!({"name": (name.to_owned()), "projected": {
        "sources": [
            {"serviceAccountToken": {"expirationSeconds": (limits::INJECTED_SECONDS), "path": "token"}},
            {"configMap": {"name": "kube-root-ca.crt", "items": [{"key": "ca.crt", "path": "ca.crt"}]}},
            {"downwardAPI": {"items": [
                {"path": "namespace", "fieldRef": {"apiVersion": "v1", "fieldPath": "metadata.namespace"}}
            ]}}
        ],
        "defaultMode": 420
    }})
}

/// Checks a mirror Pod, which a kubelet creates for a static Pod: it uses no ServiceAccount and no Secrets.
fn check_mirror(pod: &Value) -> Decision {
    if !pod.str_at(&NAME).is_empty() {
        return Err("a mirror pod may not reference service accounts".to_owned().into());
    }
    let containers = CONTAINERS.iter().flat_map(|list| pod.items_at(&["spec", list]));
    let in_container = |container: &Value| !secrets_of(container).is_empty();
    let volumes = pod.items_at(&["spec", "volumes"]);
    if !pod.items_at(&PULL_SECRETS).is_empty()
        || volumes.iter().any(names_secret)
        || containers.clone().any(in_container)
    {
        return Err("a mirror pod may not reference secrets".to_owned().into());
    }
    let sources = volumes.iter().flat_map(|volume| volume.items_at(&["projected", "sources"]));
    if sources.clone().any(|source| source.get("serviceAccountToken").is_some()) {
        return Err("a mirror pod may not use ServiceAccountToken volume projections".to_owned().into());
    }
    Ok(())
}

/// Whether a volume uses a Secret in any of its sources.
fn names_secret(volume: &Value) -> bool {
    const REFERENCES: [&str; 6] = [
        "secret", "secretRef", "secretName", "nodePublishSecretRef", "nodeStageSecretRef", "controllerPublishSecretRef",
    ];
    match volume {
        Value::Object(fields) => {
            fields.iter().any(|(key, value)| REFERENCES.contains(&key.as_str()) || names_secret(value))
        }
        Value::Array(items) => items.iter().any(names_secret),
        _ => false,
    }
}

/// The names of the Secrets in a container's environment, each with its variable; `None` for `envFrom`.
fn secrets_of(container: &Value) -> Vec<(Option<&str>, &str)> {
    let variables = container.items_at(&["env"]).iter().filter_map(|variable| {
        let reference = variable.at(&["valueFrom", "secretKeyRef"])?;
        Some((Some(variable.str_at(&["name"])), reference.str_at(&["name"])))
    });
    let sources = container.items_at(&["envFrom"]).iter();
    let sources = sources.filter_map(|source| Some((None, source.get("secretRef")?.str_at(&["name"]))));
    variables.chain(sources).collect()
}

/// Whether Pods may use only the Secrets that their ServiceAccount lists.
fn enforces(account: &Value) -> bool {
    let value = annotation(account, "kubernetes.io/enforce-mountable-secrets").unwrap_or_default();
    matches!(value, "1" | "t" | "T" | "true" | "TRUE" | "True")
}

fn has(account: &Value, list: &str, name: &str) -> bool {
    account.items_at(&[list]).iter().any(|secret| secret.str_at(&["name"]) == name)
}

fn check_secrets(pod: &Value, account: &Value) -> Decision {
    if !enforces(account) {
        return Ok(());
    }
    let account_name = account.str_at(&["metadata", "name"]);
    for volume in pod.items_at(&["spec", "volumes"]).iter().filter(|volume| volume.get("secret").is_some()) {
        let secret = volume.str_at(&["secret", "secretName"]);
        if !has(account, "secrets", secret) {
            return Err(format!("volume with secret.secretName={secret:?} is not allowed because service account {account_name} does not reference that secret").into());
        }
    }
    check_environments(pod, account, &[("initContainers", "init container"), ("containers", "container")])?;
    for (i, secret) in pod.items_at(&PULL_SECRETS).iter().enumerate() {
        let secret = secret.str_at(&["name"]);
        if !has(account, "imagePullSecrets", secret) {
            return Err(format!("imagePullSecrets[{i}].name={secret:?} is not allowed because service account {account_name} does not reference that imagePullSecret").into());
        }
    }
    Ok(())
}

fn check_ephemeral(pod: &Value, account: &Value) -> Decision {
    if !enforces(account) {
        return Ok(());
    }
    check_environments(pod, account, &[("ephemeralContainers", "ephemeral container")])
}

fn check_environments(pod: &Value, account: &Value, lists: &[(&str, &str)]) -> Decision {
    let account_name = account.str_at(&["metadata", "name"]);
    for (list, noun) in lists {
        for container in pod.items_at(&["spec", list]) {
            let forbidden = secrets_of(container).into_iter().find(|(_, secret)| !has(account, "secrets", secret));
            let Some((variable, secret)) = forbidden else { continue };
            let source = variable.map_or_else(|| "envFrom".to_owned(), |name| format!("envVar {name}"));
            let name = container.str_at(&["name"]);
            return Err(format!("{noun} {name} with {source} referencing secret.secretName={secret:?} is not allowed because service account {account_name} does not reference that secret").into());
        }
    }
    Ok(())
}
