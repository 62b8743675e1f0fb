//! Decoding and validation of EncryptionConfigurations, with kube-apiserver's errors.

use std::collections::HashSet;
use std::hash::{Hash as _, Hasher as _};
use std::sync::Arc;
use std::time::Duration;

use base::configuration::{ConfigurationErrors, ConfigurationKind, UnknownFields};
use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use machinery::{FieldError, FieldPath, Value};

use super::cipher::Cipher;
use super::error::{ConfigurationError, KmsError};
use super::kms::{Kms, Settings};
use super::{Provider, Rule};

const KIND: ConfigurationKind = ConfigurationKind {
    api_versions: &["apiserver.config.k8s.io/v1"],
    go: "apiserver_config.v1.EncryptionConfiguration",
    unknown_fields: UnknownFields::Refused,
};
/// The default of `timeout`; kube-apiserver's.
const KMS_TIMEOUT: Duration = Duration::from_secs(3);
const AES_KEY_BYTES: &[usize] = &[16, 24, 32];
const SECRETBOX_KEY_BYTES: &[usize] = &[32];
const NO_PROVIDER: &str =
    "provider does not contain any of the expected providers: KMS, AESGCM, AESCBC, Secretbox, Identity";
const SEVERAL_PROVIDERS: &str =
    "more than one provider specified in a single element, should split into different list elements";
const OVERLAP: &str = "using overlapping resources such as 'secrets' and '*.' in the same resource list is not allowed as they will be masked";

/// A kind of provider with keys.
struct Kind {
    field: &'static str,
    prefix: &'static str,
    noun: &'static str,
    key_bytes: &'static [usize],
    make: fn(&[u8]) -> Option<Cipher>,
}

const KINDS: [Kind; 3] = [
    Kind { field: "aesgcm", prefix: "k8s:enc:aesgcm:v1:", noun: "AES", key_bytes: AES_KEY_BYTES, make: Cipher::gcm },
    Kind { field: "aescbc", prefix: "k8s:enc:aescbc:v1:", noun: "AES", key_bytes: AES_KEY_BYTES, make: Cipher::cbc },
    Kind {
        field: "secretbox",
        prefix: "k8s:enc:secretbox:v1:",
        noun: "Secretbox",
        key_bytes: SECRETBOX_KEY_BYTES,
        make: Cipher::secretbox,
    },
];

/// The rules, in order.
pub fn parse(value: &Value) -> Result<Vec<Rule>, ConfigurationError> {
    let value = &KIND.read(value)?;
    let mut errors = ConfigurationErrors::default();
    validate(value).into_iter().for_each(|error| errors.push(error));
    errors.check()?;
    let mut rules: Vec<Rule> = vec![];
    for entry in value.items_at(&["resources"]) {
        let providers = entry.items_at(&["providers"]).iter().map(provider).collect::<Result<Vec<_>, _>>()?;
        let providers = Arc::new(providers);
        for resource in entry.texts_at(&["resources"]) {
            let (resource, group) = split(resource);
            not_masked(&rules, resource, group)?;
            let (group, resource) = (group.to_owned(), resource.to_owned());
            rules.push(Rule { group, resource, providers: providers.clone() });
        }
    }
    Ok(rules)
}

/// `resource.group`; the core group is empty.
fn split(text: &str) -> (&str, &str) {
    text.split_once('.').unwrap_or((text, ""))
}

/// Whether an earlier rule, for a whole group or for everything, masks this one.
fn not_masked(rules: &[Rule], resource: &str, group: &str) -> Result<(), ConfigurationError> {
    for (any, by) in [(group, format!("*.{group}")), ("*", "*.*".to_owned())] {
        let masks = |rule: &Rule| rule.group == any && rule.resource == "*" && (any, "*") != (group, resource);
        if rules.iter().any(masks) {
            let dot = if group.is_empty() && resource != "*" { "" } else { "." };
            return Err(ConfigurationError::Masked { resource: format!("{resource}{dot}{group}"), by });
        }
    }
    Ok(())
}

fn provider(value: &Value) -> Result<Provider, ConfigurationError> {
    if let Some(service) = value.get("kms") {
        let settings = kms_settings(service)?;
        let failed = |source: KmsError| ConfigurationError::Kms { name: settings.name.clone(), source };
        return Kms::start(&settings).map(Provider::Kms).map_err(failed);
    }
    for Kind { field, prefix, noun, make, .. } in KINDS {
        let Some(named) = value.get(field) else { continue };
        let mut keys = vec![];
        for key in named.items_at(&["keys"]) {
            let name = key.str_at(&["name"]);
            let secret = BASE64_STANDARD.decode(key.str_at(&["secret"])).ok();
            let cipher = secret.and_then(|secret| make(&secret));
            let cipher = cipher.ok_or_else(|| ConfigurationError::Key(name.to_owned()))?;
            keys.push((format!("{name}:"), cipher));
        }
        let mark = mark(prefix, &named.items_at(&["keys"])[0]);
        return Ok(Provider::Keys { prefix, noun, keys, mark });
    }
    Ok(Provider::Identity)
}

/// See [`Provider::mark`].
fn mark(prefix: &str, key: &Value) -> u64 {
    let mut hasher = std::hash::DefaultHasher::new();
    (prefix, key.str_at(&["name"]), key.str_at(&["secret"])).hash(&mut hasher);
    hasher.finish()
}

fn kms_timeout(service: &Value) -> Result<Duration, String> {
    let text = service.str_at(&["timeout"]);
    if text.is_empty() { Ok(KMS_TIMEOUT) } else { machinery::time::parse_duration(text).map_err(|e| e.to_string()) }
}

fn kms_settings(service: &Value) -> Result<Settings, String> {
    let (name, endpoint) = (service.str_at(&["name"]).to_owned(), service.str_at(&["endpoint"]).to_owned());
    Ok(Settings { name, endpoint, timeout: kms_timeout(service)? })
}

fn validate(value: &Value) -> Vec<FieldError> {
    let root = FieldPath::new("resources");
    let entries = value.items_at(&["resources"]);
    if entries.is_empty() {
        return vec![FieldError::required(&root, "at least one resources is required")];
    }
    let mut errors = vec![];
    let mut names_of_services = HashSet::new();
    for (i, entry) in entries.iter().enumerate() {
        let (resources, providers) = (root.index(i).child("resources"), root.index(i).child("providers"));
        let names: Vec<&str> = entry.texts_at(&["resources"]).collect();
        let required =
            |path: &FieldPath| FieldError::required(path, format!("at least one {} is required", path.as_str()));
        if names.is_empty() {
            errors.push(required(&resources));
        }
        errors.extend(overlaps(&names, &resources, entry.get("resources").unwrap_or(&Value::Null)));
        errors.extend(names.iter().enumerate().filter_map(|(j, name)| wrong_name(name, &resources.index(j))));
        if entry.items_at(&["providers"]).is_empty() {
            errors.push(required(&providers));
        }
        for (j, provider) in entry.items_at(&["providers"]).iter().enumerate() {
            errors.extend(wrong_provider(provider, &providers.index(j), &mut names_of_services));
        }
    }
    errors
}

fn overlaps(names: &[&str], path: &FieldPath, shown: &Value) -> Vec<FieldError> {
    let split: Vec<_> = names.iter().map(|name| split(name)).collect();
    let distinct: HashSet<_> = split.iter().collect();
    let duplicate = distinct.len() < split.len();
    let masks = |(i, one): (usize, &(&str, &str))| {
        let others = split.iter().enumerate().filter(|(j, other)| i != *j && (*other != one || one.0 == "*"));
        let mut others = others.map(|(_, other)| other);
        *one == ("*", "*") && others.clone().next().is_some() || one.0 == "*" && others.any(|other| other.1 == one.1)
    };
    let mut errors = vec![];
    if duplicate {
        errors.push(FieldError::invalid(path, shown, "the same resource cannot be specified multiple times"));
    }
    if split.iter().enumerate().any(masks) {
        errors.push(FieldError::invalid(path, shown, OVERLAP));
    }
    errors
}

fn wrong_name(name: &str, path: &FieldPath) -> Option<FieldError> {
    let (resource, group) = split(name);
    let why = match (resource, group) {
        _ if name.to_lowercase() != name => "resource name should not contain capital letters",
        _ if name == "*" => "use '*.' to encrypt all the resources from core API group or *.* to encrypt all resources",
        _ if ["apiserveripinfo", "serviceipallocations", "servicenodeportallocations"].contains(&name) => {
            "resources which do not have REST API/s cannot be encrypted"
        }
        (_, "events.k8s.io") => {
            "'*.events.k8s.io' objects are stored using the 'events' API group in etcd. Use 'events' instead in the config file"
        }
        (_, "extensions") => "'extensions' group has been removed and cannot be used for encryption",
        (resource, "*") if resource != "*" => "encrypting the same resource across groups is not supported",
        _ => return None,
    };
    Some(FieldError::invalid(path, &Value::from(name), why))
}

fn wrong_provider<'a>(provider: &'a Value, path: &FieldPath, names: &mut HashSet<&'a str>) -> Vec<FieldError> {
    let all = ["kms", "aesgcm", "aescbc", "secretbox", "identity"];
    let found: Vec<&str> = all.into_iter().filter(|field| provider.get(field).is_some()).collect();
    let [one] = found[..] else {
        let why = if found.is_empty() { NO_PROVIDER } else { SEVERAL_PROVIDERS };
        // its content may be secret
        return vec![FieldError::invalid_raw(path, found.join(","), why)];
    };
    if one == "kms" {
        return wrong_kms(provider.get(one).unwrap_or(&Value::Null), &path.child(one), names);
    }
    let Some(kind) = KINDS.iter().find(|kind| kind.field == one) else { return vec![] };
    let path = path.child(one).child("keys");
    let keys = provider.items_at(&[one, "keys"]);
    if keys.is_empty() {
        return vec![FieldError::required(&path, "at least one keys is required")];
    }
    keys.iter().enumerate().flat_map(|(i, key)| wrong_key(key, &path.index(i), kind.key_bytes)).collect()
}

/// The errors of a key management service. `names` are those of the services before it.
fn wrong_kms<'a>(service: &'a Value, path: &FieldPath, names: &mut HashSet<&'a str>) -> Vec<FieldError> {
    let mut errors = vec![];
    let mut invalid = |field: &str, value: &str, why: String| {
        errors.push(FieldError::invalid(&path.child(field), &Value::from(value), why));
    };
    let (name, endpoint, version) =
        (service.str_at(&["name"]), service.str_at(&["endpoint"]), service.str_at(&["apiVersion"]));
    if name.contains(':') {
        invalid("name", name, format!("invalid KMS provider name {name}, must not contain ':'"));
    }
    if !names.insert(name) {
        invalid("name", name, format!("duplicate KMS provider name {name}, names must be unique"));
    }
    match kms_timeout(service) {
        Ok(timeout) if !timeout.is_zero() => {}
        _ => invalid("timeout", service.str_at(&["timeout"]), "timeout should be a positive value".to_owned()),
    }
    let scheme = endpoint.split_once(':').map_or("", |(scheme, _)| scheme);
    if endpoint.is_empty() {
        invalid("endpoint", "", "endpoint is a mandatory field for a kms".to_owned());
    } else if scheme != "unix" {
        let why = format!("unsupported scheme {scheme:?} for KMS provider, only unix is supported");
        invalid("endpoint", endpoint, why);
    }
    match version {
        "v2" => {}
        "" | "v1" => invalid("apiVersion", version, "KMS v1 is not supported here; use a v2 plugin".to_owned()),
        _ => {
            let why = "unsupported apiVersion apiVersion for KMS provider, only v1 and v2 are supported";
            invalid("apiVersion", version, why.to_owned());
        }
    }
    if let Some(size) = service.get("cachesize").filter(|size| version == "v2" && !size.is_null()) {
        invalid("cachesize", &size.to_json(), "cachesize is not supported in v2".to_owned());
    }
    if name.is_empty() {
        errors.push(FieldError::required(&path.child("name"), "name is a mandatory field for a provider"));
    }
    errors
}

fn wrong_key(key: &Value, path: &FieldPath, lengths: &[usize]) -> Vec<FieldError> {
    let mut errors = vec![];
    if key.str_at(&["name"]).is_empty() {
        errors.push(FieldError::required(&path.child("name"), "name is a mandatory field for a key"));
    }
    let (place, secret) = (path.child("secret"), key.str_at(&["secret"]));
    if secret.is_empty() {
        errors.push(FieldError::required(&place, "secret is a mandatory field for a key"));
        return errors;
    }
    let redacted = |why: &str| FieldError::invalid_raw(&place, "REDACTED".to_owned(), why);
    match BASE64_STANDARD.decode(secret) {
        Err(_) => errors.push(redacted("secrets must be base64 encoded")),
        Ok(bytes) if !lengths.contains(&bytes.len()) => {
            let lengths: Vec<String> = lengths.iter().map(ToString::to_string).collect();
            let (got, wanted) = (bytes.len(), lengths.join(" "));
            errors.push(redacted(&format!(
                "secret is not of the expected length, got {got}, expected one of [{wanted}]"
            )));
        }
        Ok(_) => {}
    }
    errors
}
