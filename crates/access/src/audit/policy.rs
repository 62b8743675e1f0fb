//! The audit policy: which requests are recorded, and in how much detail.

use base::configuration::{ConfigurationErrors, ConfigurationKind, UnknownFields};
use base::request::{RequestInfo, User};
use machinery::{FieldPath, Text, Value, names};

use super::event::{AuditedRequest, Level, Stage};

const KIND: ConfigurationKind = ConfigurationKind {
    api_versions: &["audit.k8s.io/v1"],
    go: "audit_config.v1.Policy",
    unknown_fields: UnknownFields::Dropped,
};

/// A set of stages.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Stages(u8);

impl Stages {
    fn with(self, stage: Stage) -> Stages {
        Stages(self.0 | 1 << stage as u8)
    }

    fn union(self, other: Stages) -> Stages {
        Stages(self.0 | other.0)
    }

    pub fn has(self, stage: Stage) -> bool {
        self.0 & 1 << stage as u8 != 0
    }
}

/// Resources of a group, optionally restricted to names.
#[derive(Clone, Debug, Default)]
struct Resources {
    group: Text,
    /// Empty for all; `*`, `pods`, `pods/log`, `pods/*`, `*/status`.
    resources: Vec<Text>,
    names: Vec<Text>,
}

/// A rule; empty fields match everything.
#[derive(Debug, Default)]
struct AuditRule {
    level: Level,
    users: Vec<Text>,
    groups: Vec<Text>,
    verbs: Vec<Text>,
    resources: Vec<Resources>,
    namespaces: Vec<Text>,
    urls: Vec<Text>,
    omitted: Stages,
    omits_managed_fields: Option<bool>,
}

/// The parts of a request that are recorded.
#[derive(Clone, Copy, Debug)]
pub struct AuditDecision {
    pub level: Level,
    pub omitted: Stages,
    pub omits_managed_fields: bool,
}

/// The rules, in order: the first match decides.
#[derive(Debug, Default)]
pub struct AuditPolicy {
    rules: Vec<AuditRule>,
    omitted: Stages,
    omits_managed_fields: bool,
}

fn stages(value: &Value, path: &FieldPath, errors: &mut ConfigurationErrors) -> Stages {
    value.texts_at(&["omitStages"]).fold(Stages::default(), |all, name| match Stage::parse(name) {
        Some(stage) => all.with(stage),
        None => {
            errors.not_supported(&path.child("omitStages"), name, &[]);
            all
        }
    })
}

impl AuditPolicy {
    /// Reads a decoded audit.k8s.io/v1 Policy. The error is one line that names the fields.
    pub fn parse(value: &Value) -> Result<AuditPolicy, String> {
        let value = &KIND.read(value)?;
        let rules = value.items_at(&["rules"]);
        if rules.is_empty() {
            return Err("loaded illegal policy with 0 rules".to_owned());
        }
        let (path, mut errors) = (FieldPath::new("rules"), ConfigurationErrors::default());
        let rules = rules.iter().enumerate().map(|(i, rule)| AuditRule::parse(rule, &path.index(i), &mut errors));
        let policy = AuditPolicy {
            rules: rules.collect(),
            omitted: stages(value, &FieldPath::root(), &mut errors),
            omits_managed_fields: value.is_true_at(&["omitManagedFields"]),
        };
        errors.check().map(|()| policy)
    }

    /// The errors of fields that a policy does not have. They have no effect, and kube-apiserver warns about them.
    pub fn unknown_fields(value: &Value) -> Vec<String> {
        KIND.unknown_fields(value)
    }

    /// Decides what is recorded of a request. The first rule that matches it counts; without one, nothing is recorded.
    pub fn decide(&self, subject: &AuditedRequest<'_>) -> AuditDecision {
        let rule = self.rules.iter().find(|rule| rule.matches(subject.user, subject.info));
        AuditDecision {
            level: rule.map_or(Level::None, |rule| rule.level),
            omitted: self.omitted.union(rule.map_or_else(Stages::default, |rule| rule.omitted)),
            omits_managed_fields: rule.and_then(|rule| rule.omits_managed_fields).unwrap_or(self.omits_managed_fields),
        }
    }
}

impl AuditRule {
    fn parse(value: &Value, path: &FieldPath, errors: &mut ConfigurationErrors) -> AuditRule {
        let given = value.str_at(&["level"]);
        let level = Level::parse(given);
        if given.is_empty() {
            errors.required(&path.child("level"), "");
        } else if level.is_none() {
            errors.not_supported(&path.child("level"), given, &["Metadata", "None", "Request", "RequestResponse"]);
        }
        let resources = |value: &Value| Resources {
            group: value.str_at(&["group"]).into(),
            resources: value.text_list_at(&["resources"]),
            names: value.text_list_at(&["resourceNames"]),
        };
        let rule = AuditRule {
            level: level.unwrap_or_default(),
            users: value.text_list_at(&["users"]),
            groups: value.text_list_at(&["userGroups"]),
            verbs: value.text_list_at(&["verbs"]),
            resources: value.items_at(&["resources"]).iter().map(resources).collect(),
            namespaces: value.text_list_at(&["namespaces"]),
            urls: value.text_list_at(&["nonResourceURLs"]),
            omitted: stages(value, path, errors),
            omits_managed_fields: value.get("omitManagedFields").and_then(Value::as_bool),
        };
        rule.validate(path, errors);
        rule
    }

    fn validate(&self, path: &FieldPath, errors: &mut ConfigurationErrors) {
        let urls = path.child("nonResourceURLs");
        for (i, url) in self.urls.iter().enumerate().filter(|(_, url)| *url != "*") {
            if !url.starts_with('/') {
                errors.invalid(&urls.index(i), url, "non-resource URL rules must begin with a '/' character");
            } else if url.trim_end_matches('*').contains('*') || url.ends_with("**") {
                let why = "non-resource URL wildcards '*' must be the final character of the rule";
                errors.invalid(&urls.index(i), url, why);
            }
        }
        let list = |texts: &[Text]| texts.iter().map(Value::from).collect::<Value>();
        let has_resources = !self.resources.is_empty() || !self.namespaces.is_empty();
        if has_resources && !self.urls.is_empty() {
            let why = "rules cannot apply to both regular resources and non-resource URLs";
            errors.invalid(&urls, list(&self.urls), why);
        }
        for (i, resources) in self.resources.iter().enumerate() {
            let path = path.child("resources").index(i);
            let wrong = names::dns1123_subdomain(&resources.group);
            if !["", "*"].contains(&resources.group.as_str()) && !wrong.is_empty() {
                errors.invalid(&path.child("group"), &resources.group, wrong.join(","));
            }
            if !resources.names.is_empty() && resources.resources.is_empty() {
                let why = "using resourceNames requires at least one resource";
                errors.invalid(&path.child("resourceNames"), list(&resources.names), why);
            }
        }
    }

    fn matches(&self, user: &User, info: &RequestInfo) -> bool {
        let method = info.method.as_str().to_ascii_lowercase();
        let verb = if info.is_resource { info.verb.as_str() } else { method.as_str() };
        (self.users.is_empty() || self.users.contains(&user.name))
            && (self.groups.is_empty() || self.groups.iter().any(|group| user.in_group(group)))
            && (self.verbs.is_empty() || self.verbs.iter().any(|known| known == verb))
            && self.matches_target(info)
    }

    /// Matches the resource or the path of a request.
    fn matches_target(&self, info: &RequestInfo) -> bool {
        if !self.namespaces.is_empty() || !self.resources.is_empty() {
            return info.is_resource
                && (self.namespaces.is_empty() || self.namespaces.contains(&info.namespace))
                && (self.resources.is_empty() || self.resources.iter().any(|resources| resources.matches(info)));
        }
        if self.urls.is_empty() {
            return true;
        }
        let path = info.path.as_str();
        let covers = |url: &Text| url == path || url.strip_suffix('*').is_some_and(|prefix| path.starts_with(prefix));
        !info.is_resource && self.urls.iter().any(covers)
    }
}

impl Resources {
    fn matches(&self, info: &RequestInfo) -> bool {
        if self.group != info.group && self.group != "*" {
            return false;
        }
        if self.resources.is_empty() {
            return true;
        }
        let subresource = info.subresource.as_str();
        let matches_resource = |pattern: &Text| match pattern.split_once('/') {
            None => pattern == "*" || (*pattern == info.resource && subresource.is_empty()),
            Some(("*", pattern)) => pattern == subresource && !subresource.is_empty(),
            // as in kube-apiserver, `pods/*` matches `pods` as well
            Some((resource, "*")) => resource == info.resource,
            Some((resource, pattern)) => resource == info.resource && pattern == subresource,
        };
        let has_name = self.names.is_empty() || self.names.contains(&info.name);
        has_name && self.resources.iter().any(matches_resource)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use machinery::json;

    fn policy(rules: Value) -> Result<AuditPolicy, String> {
        let mut value = json!({"apiVersion": "audit.k8s.io/v1", "kind": "Policy", "omitStages": ["RequestReceived"]});
        value.set_at(&["rules"], rules);
        AuditPolicy::parse(&value)
    }

    #[test]
    fn first_matching_rule_decides() {
        let policy = policy(json!([
            {"level": "None", "users": ["robot"], "verbs": ["watch"]},
            {"level": "Metadata", "resources": [{"group": "", "resources": ["secrets", "configmaps"]}]},
            {"level": "RequestResponse", "resources": [{"group": "g.io", "resources": ["boats"], "resourceNames": ["x"]}]},
            {"level": "Request", "resources": [{"group": "g.io", "resources": ["*/status", "boats/scale"]}]},
            {"level": "Metadata", "namespaces": ["kube-system"], "omitStages": ["ResponseStarted"]},
            {"level": "Request", "nonResourceURLs": ["/healthz*", "/version"]},
            {"level": "Request", "resources": [{"group": "*", "resources": ["rafts/*"]}]},
            {"level": "Metadata", "userGroups": ["watched"]}
        ]))
        .unwrap();
        let level = |name: &'static str, method: http::Method, path: &str, query: &str| {
            let user = User { name: name.into(), groups: vec![name.into()], ..User::default() };
            let info = RequestInfo::parse(&method, path, query);
            policy.decide(&AuditedRequest::test(&user, &info)).level
        };
        use http::Method as M;
        for (name, method, path, query, wanted) in [
            ("robot", M::GET, "/api/v1/secrets", "watch=1", Level::None),
            ("robot", M::GET, "/api/v1/secrets", "", Level::Metadata),
            ("ann", M::PUT, "/apis/g.io/v1/namespaces/n/ships/a/status", "", Level::Request),
            ("ann", M::PUT, "/apis/g.io/v1/namespaces/n/boats/a/scale", "", Level::Request),
            ("ann", M::PUT, "/apis/g.io/v1/namespaces/n/boats/x", "", Level::RequestResponse),
            ("ann", M::PUT, "/apis/g.io/v1/namespaces/n/boats/y", "", Level::None),
            ("ann", M::GET, "/apis/g.io/v1/namespaces/kube-system/boats/y", "", Level::Metadata),
            ("ann", M::GET, "/api/v1/namespaces/kube-system", "", Level::Metadata),
            ("ann", M::GET, "/apis/h.io/v1/rafts", "", Level::Request),
            ("ann", M::GET, "/apis/h.io/v1/rafts/a/status", "", Level::Request),
            ("ann", M::GET, "/healthz/ping", "", Level::Request),
            ("ann", M::GET, "/version", "", Level::Request),
            ("ann", M::GET, "/metrics", "", Level::None),
            ("watched", M::GET, "/metrics", "", Level::Metadata),
        ] {
            assert_eq!(level(name, method.clone(), path, query), wanted, "{name} {method} {path}?{query}");
        }
        let omitted = |path: &str| {
            let (user, info) = (User::default(), RequestInfo::parse(&M::GET, path, ""));
            let omitted = policy.decide(&AuditedRequest::test(&user, &info)).omitted;
            (omitted.has(Stage::RequestReceived), omitted.has(Stage::ResponseStarted))
        };
        assert_eq!(omitted("/apis/g.io/v1/namespaces/kube-system/boats"), (true, true));
        assert_eq!(omitted("/metrics"), (true, false));
    }

    #[test]
    fn errors_name_the_invalid_value() {
        for (rules, wanted) in [
            (json!([]), "loaded illegal policy with 0 rules"),
            (json!([{}]), "rules[0].level: Required value"),
            (json!([{"level": "All"}]), "rules[0].level: Unsupported value: \"All\""),
            (json!([{"level": "None", "omitStages": ["End"]}]), "rules[0].omitStages: Unsupported value: \"End\""),
            (
                json!([{"level": "None", "nonResourceURLs": ["healthz"]}]),
                "rules[0].nonResourceURLs[0]: Invalid value: \"healthz\": non-resource URL rules must begin with",
            ),
            (
                json!([{"level": "None", "nonResourceURLs": ["/a*b"]}]),
                "rules[0].nonResourceURLs[0]: Invalid value: \"/a*b\": non-resource URL wildcards",
            ),
            (json!([{"level": "None", "namespaces": ["n"], "nonResourceURLs": ["/"]}]), "rules[0].nonResourceURLs: "),
        ] {
            let error = policy(rules).unwrap_err();
            assert!(error.starts_with(wanted), "{error}");
        }
        assert!(AuditPolicy::parse(&json!({"apiVersion": "v1", "kind": "Policy"})).is_err());
    }
}
