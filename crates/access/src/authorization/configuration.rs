//! Decoding, defaults and validation of AuthorizationConfiguration (`apiserver.config.k8s.io`, KEP-3221). Errors name the
//! field.

use std::path::Path;
use std::time::Duration;

use base::configuration::{API_VERSIONS, ConfigurationErrors, ConfigurationKind, UnknownFields};
use base::webhook::Remote;
use base::wording;
use machinery::field::{FieldError, FieldPath};
use machinery::{Text, Value, names};

use super::authorizer::AuthorizationMode;
use super::conditions::Condition;
use super::webhook::{AccessReviewer, DecisionTtl};
use crate::authentication::ReviewVersion;
use crate::limits;

const KIND: ConfigurationKind = ConfigurationKind {
    api_versions: API_VERSIONS,
    go: "apiserver_config.v1.AuthorizationConfiguration",
    unknown_fields: UnknownFields::Refused,
};
const KINDS: [&str; 4] = ["AlwaysAllow", "AlwaysDeny", "RBAC", "Webhook"];

/// Creates the client of a kubeconfig; the error is one line.
pub type Connect<'a> = &'a dyn Fn(&Path) -> Result<Remote, String>;

/// The authorizers of a decoded AuthorizationConfiguration, in order. Fails with a one-line message.
pub fn parse(value: &Value, connect: Connect<'_>) -> Result<Vec<AuthorizationMode>, String> {
    let value = &KIND.read(value)?;
    let mut reader = AuthorizerReader { errors: ConfigurationErrors::default(), connect };
    let modes = reader.authorizers(value.items_at(&["authorizers"]));
    reader.errors.check().map(|()| modes)
}

/// Builds the authorizers, and collects errors.
struct AuthorizerReader<'a> {
    errors: ConfigurationErrors,
    connect: Connect<'a>,
}

impl AuthorizerReader<'_> {
    fn authorizers(&mut self, entries: &[Value]) -> Vec<AuthorizationMode> {
        let path = FieldPath::new("authorizers");
        if entries.is_empty() {
            self.errors.required(&path, "at least one authorization mode must be defined");
        }
        let (mut kinds, mut seen, mut modes) = (vec![], vec![], vec![]);
        for (i, entry) in entries.iter().enumerate() {
            let path = path.index(i);
            let kind = entry.str_at(&["type"]);
            if !self.kind(kind, &kinds, &path.child("type")) {
                continue;
            }
            kinds.push(kind);
            self.name(entry.str_at(&["name"]), &seen, &path.child("name"));
            seen.push(entry.str_at(&["name"]));
            modes.extend(self.mode(kind, entry, &path));
        }
        modes
    }

    /// Whether this type of authorizer is valid here.
    fn kind(&mut self, kind: &str, seen: &[&str], path: &FieldPath) -> bool {
        if kind.is_empty() {
            self.errors.required(path, "");
        } else if !KINDS.contains(&kind) {
            self.errors.not_supported(path, kind, &KINDS);
        } else if seen.contains(&kind) && kind != "Webhook" {
            self.errors.duplicate(path, kind);
        } else {
            return true;
        }
        false
    }

    fn name(&mut self, name: &str, seen: &[&str], path: &FieldPath) {
        let errors = names::dns1123_subdomain(name);
        if name.is_empty() {
            self.errors.required(path, "");
        } else if seen.contains(&name) {
            self.errors.duplicate(path, name);
        } else if !errors.is_empty() {
            self.errors.invalid(path, name, format!("authorizer name is invalid: {}", errors.join(", ")));
        }
    }

    fn mode(&mut self, kind: &str, entry: &Value, path: &FieldPath) -> Option<AuthorizationMode> {
        let webhook = entry.get("webhook");
        if kind != "Webhook" {
            if webhook.is_some() {
                self.errors.invalid(&path.child("webhook"), "non-null", "may only be specified when type=Webhook");
            }
            return Some(match kind {
                "RBAC" => AuthorizationMode::Rbac,
                "AlwaysAllow" => AuthorizationMode::AlwaysAllow,
                _ => AuthorizationMode::AlwaysDeny,
            });
        }
        let Some(webhook) = webhook else {
            self.errors.required(&path.child("webhook"), "required when type=Webhook");
            return None;
        };
        let reviewer = self.webhook(webhook, path)?.named(entry.str_at(&["name"]));
        Some(AuthorizationMode::Webhook(Box::new(reviewer)))
    }

    /// Upstream's messages leave `webhook` out of the paths.
    fn webhook(&mut self, webhook: &Value, path: &FieldPath) -> Option<AccessReviewer> {
        let timeout = self.duration(webhook, path, "timeout", None);
        let allowed_ttl = self.duration(webhook, path, "authorizedTTL", Some(300));
        let refused_ttl = self.duration(webhook, path, "unauthorizedTTL", Some(30));
        let version = self.version(webhook, path);
        let denies = self.failure_policy(webhook.str_at(&["failurePolicy"]), &path.child("failurePolicy"));
        let remote =
            self.connection(webhook.get("connectionInfo").unwrap_or(&Value::Null), &path.child("connectionInfo"));
        let conditions = self.conditions(webhook.items_at(&["matchConditions"]), &path.child("matchConditions"));
        let is_cached = |field: &str| webhook.get(field).and_then(Value::as_bool).unwrap_or(true);
        let ttl_if = |field: &str, ttl: Duration| if is_cached(field) { ttl } else { Duration::ZERO };
        let ttl = DecisionTtl {
            allowed: ttl_if("cacheAuthorizedRequests", allowed_ttl?),
            refused: ttl_if("cacheUnauthorizedRequests", refused_ttl?),
        };
        let remote = remote?.with_timeout(timeout?);
        Some(AccessReviewer::new(remote, version?, ttl).with_conditions(conditions).deny_on_failure(denies?))
    }

    /// A positive duration; `default`, in seconds, if it is absent or zero.
    fn duration(&mut self, webhook: &Value, path: &FieldPath, name: &str, default: Option<u64>) -> Option<Duration> {
        let (text, path) = (webhook.str_at(&[name]), path.child(name));
        let range = if name == "timeout" { "must be > 0s and <= 30s" } else { "must be > 0s" };
        let magnitude = text.strip_prefix('-').unwrap_or(text);
        let parsed = if text.is_empty() { Ok(Duration::ZERO) } else { machinery::time::parse_duration(magnitude) };
        match (parsed, default) {
            (Err(error), _) => self.errors.invalid(&path, text, wording::duration_error(&error, magnitude)),
            (Ok(time), Some(seconds)) if time.is_zero() => return Some(Duration::from_secs(seconds)),
            (Ok(time), None) if time.is_zero() => self.errors.required(&path, ""),
            (Ok(time), _) if text.starts_with('-') || (name == "timeout" && time > limits::AUTHORIZER_TIMEOUT_MAX) => {
                self.errors.invalid(&path, text, range);
            }
            (Ok(time), _) => return Some(time),
        }
        None
    }

    fn version(&mut self, webhook: &Value, path: &FieldPath) -> Option<ReviewVersion> {
        let given = webhook.str_at(&["subjectAccessReviewVersion"]);
        let version_path = path.child("subjectAccessReviewVersion");
        let version = ReviewVersion::parse(given).ok();
        if given.is_empty() {
            self.errors.required(&version_path, "");
        } else if version.is_none() {
            self.errors.not_supported(&version_path, given, &["v1", "v1beta1"]);
        }
        let version_path = path.child("matchConditionSubjectAccessReviewVersion");
        match webhook.str_at(&["matchConditionSubjectAccessReviewVersion"]) {
            "" if webhook.items_at(&["matchConditions"]).is_empty() => {}
            "" => self.errors.required(&version_path, "required if match conditions are specified"),
            "v1" => {}
            other => self.errors.not_supported(&version_path, other, &["v1"]),
        }
        version
    }

    /// Whether requests are denied if the webhook fails.
    fn failure_policy(&mut self, policy: &str, path: &FieldPath) -> Option<bool> {
        match policy {
            "NoOpinion" => return Some(false),
            "Deny" => return Some(true),
            "" => self.errors.required(path, ""),
            other => self.errors.not_supported(path, other, &["NoOpinion", "Deny"]),
        }
        None
    }

    fn connection(&mut self, info: &Value, path: &FieldPath) -> Option<Remote> {
        let (file, file_path) = (info.str_at(&["kubeConfigFile"]), path.child("kubeConfigFile"));
        match info.str_at(&["type"]) {
            "" => self.errors.required(&path.child("type"), ""),
            "KubeConfigFile" if file.is_empty() => self.errors.required(&file_path, ""),
            "KubeConfigFile" if !Path::new(file).is_absolute() => {
                self.errors.invalid(&file_path, file, "must be an absolute path");
            }
            "KubeConfigFile" => match (self.connect)(Path::new(file)) {
                Ok(remote) => return Some(remote),
                Err(why) => self.errors.invalid(&file_path, file, format!("error loading file: {why}")),
            },
            // InClusterConfig, which does not exist outside of a cluster
            other => {
                let path = path.child("type");
                self.errors.not_supported(&path, other, &["KubeConfigFile"]);
            }
        }
        None
    }

    fn conditions(&mut self, conditions: &[Value], path: &FieldPath) -> Vec<Condition> {
        if conditions.len() > kinds::limits::MATCH_CONDITIONS_MAX {
            self.errors.push(FieldError::too_many(path, conditions.len(), kinds::limits::MATCH_CONDITIONS_MAX));
            return vec![];
        }
        let (mut seen, mut out): (Vec<Text>, Vec<Condition>) = (vec![], vec![]);
        for (i, condition) in conditions.iter().enumerate() {
            let path = path.index(i).child("expression");
            let text = condition.str_at(&["expression"]);
            if text.trim().is_empty() {
                self.errors.required(&path, "");
            } else if seen.iter().any(|known| known == text) {
                self.errors.duplicate(&path, text);
            } else {
                seen.push(text.into());
                match Condition::compile(text) {
                    Ok(condition) => out.push(condition),
                    Err(why) => self.errors.invalid(&path, text, why),
                }
            }
        }
        out
    }
}

#[cfg(test)]
mod tests {
    use machinery::json;

    use super::*;

    fn errors_of(authorizers: &[Value]) -> String {
        let value = json!({
            "apiVersion": "apiserver.config.k8s.io/v1", "kind": "AuthorizationConfiguration",
            "authorizers": (authorizers.to_vec())
        });
        parse(&value, &|_| Err("not here".to_owned())).map(|_| ()).unwrap_err()
    }

    fn webhook(fields: &[(&str, Value)]) -> Value {
        let mut webhook = json!({
            "timeout": "3s", "subjectAccessReviewVersion": "v1", "failurePolicy": "Deny",
            "connectionInfo": {"type": "KubeConfigFile", "kubeConfigFile": "/k"}
        });
        for (key, value) in fields {
            webhook.set_at(&[key], value.clone());
        }
        json!({"type": "Webhook", "name": "hook", "webhook": webhook})
    }

    #[test]
    fn authorizers_have_unique_names() {
        let rbac = json!({"type": "RBAC", "name": "r"});
        let cases: [(&[Value], &str); 8] = [
            (&[], "authorizers: Required value: at least one authorization mode must be defined"),
            (&[json!({"name": "r"})], "authorizers[0].type: Required value"),
            (
                &[json!({"type": "Node", "name": "n"})],
                "authorizers[0].type: Unsupported value: \"Node\": supported values: \"AlwaysAllow\", \"AlwaysDeny\", \"RBAC\", \"Webhook\"",
            ),
            (&[rbac.clone(), json!({"type": "RBAC", "name": "s"})], "authorizers[1].type: Duplicate value: \"RBAC\""),
            (
                &[rbac.clone(), json!({"type": "AlwaysDeny", "name": "r"})],
                "authorizers[1].name: Duplicate value: \"r\"",
            ),
            (&[json!({"type": "RBAC"})], "authorizers[0].name: Required value"),
            (
                &[json!({"type": "Webhook", "name": "w"})],
                "authorizers[0].webhook: Required value: required when type=Webhook",
            ),
            (
                &[json!({"type": "RBAC", "name": "r", "webhook": {}})],
                "authorizers[0].webhook: Invalid value: \"non-null\": may only be specified when type=Webhook",
            ),
        ];
        for (authorizers, wanted) in cases {
            assert_eq!(errors_of(authorizers), wanted);
        }
        assert!(
            errors_of(&[json!({"type": "RBAC", "name": "R_"})])
                .contains("authorizer name is invalid: a lowercase RFC 1123")
        );
    }

    #[test]
    fn webhooks_are_checked() {
        let at = |fields: &[(&str, Value)]| {
            let reach = ("connectionInfo", json!({"type": "KubeConfigFile", "kubeConfigFile": "k"}));
            let fields: Vec<(&str, Value)> = [reach].into_iter().chain(fields.iter().cloned()).collect();
            let all = errors_of(&[webhook(&fields)]);
            let always = "authorizers[0].connectionInfo.kubeConfigFile: Invalid value: \"k\": must be an absolute path";
            assert!(all.contains(always), "{all}");
            all
        };
        let condition = |text: &str| json!([{"expression": text}]);
        let cases: [(&str, Value, &str); 10] = [
            ("subjectAccessReviewVersion", json!(""), "authorizers[0].subjectAccessReviewVersion: Required value"),
            ("failurePolicy", json!(""), "authorizers[0].failurePolicy: Required value"),
            ("timeout", json!("0s"), "authorizers[0].timeout: Required value"),
            ("timeout", json!("31s"), "authorizers[0].timeout: Invalid value: \"31s\": must be > 0s and <= 30s"),
            ("authorizedTTL", json!("-1s"), "authorizers[0].authorizedTTL: Invalid value: \"-1s\": must be > 0s"),
            (
                "subjectAccessReviewVersion",
                json!("v2"),
                "authorizers[0].subjectAccessReviewVersion: Unsupported value: \"v2\": supported values: \"v1\", \"v1beta1\"",
            ),
            (
                "failurePolicy",
                json!("Allow"),
                "authorizers[0].failurePolicy: Unsupported value: \"Allow\": supported values: \"NoOpinion\", \"Deny\"",
            ),
            (
                "matchConditions",
                condition("true"),
                "authorizers[0].matchConditionSubjectAccessReviewVersion: Required value: required if match conditions are specified",
            ),
            ("matchConditions", condition(" "), "authorizers[0].matchConditions[0].expression: Required value"),
            (
                "matchConditions",
                condition("request.user"),
                "authorizers[0].matchConditions[0].expression: Invalid value: \"request.user\": must evaluate to bool but got string",
            ),
        ];
        for (key, value, wanted) in cases {
            let all = at(&[(key, value)]);
            assert!(all.contains(wanted), "{all}");
        }
        let nowhere = errors_of(&[webhook(&[("connectionInfo", json!({}))])]);
        assert!(nowhere.contains("authorizers[0].connectionInfo.type: Required value"), "{nowhere}");
        let unreachable =
            "authorizers[0].connectionInfo.kubeConfigFile: Invalid value: \"/k\": error loading file: not here";
        assert_eq!(errors_of(&[webhook(&[])]), unreachable);
        let unknown = "strict decoding error: unknown field \"authorizers[0].webhook.colour\"";
        assert_eq!(errors_of(&[webhook(&[("colour", json!("red"))])]), unknown);
    }
}
