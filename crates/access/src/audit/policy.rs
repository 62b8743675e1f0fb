//! The audit policy: which requests are recorded, and in how much detail.

use base::request::{RequestInfo, User};
use machinery::{Text, Value};

use super::event::{AuditedRequest, Level, Stage};

/// A set of stages.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Stages(u8);

impl Stages {
    fn with(self, stage: Stage) -> Stages {
        Stages(self.0 | 1 << stage as u8)
    }

    fn and(self, other: Stages) -> Stages {
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

/// The rules, in order: the first match decides.
#[derive(Debug, Default)]
pub struct AuditPolicy {
    rules: Vec<AuditRule>,
    omitted: Stages,
    omits_managed_fields: bool,
}

fn texts(value: &Value, key: &str) -> Vec<Text> {
    let list = value.get(key).and_then(Value::as_array).unwrap_or_default();
    list.iter().filter_map(Value::as_str).map(Text::from).collect()
}

fn stages(value: &Value, path: &str) -> Result<Stages, String> {
    texts(value, "omitStages").iter().try_fold(Stages::default(), |all, name| {
        let stage = Stage::parse(name).ok_or_else(|| format!("{path}omitStages: Unsupported value: {name:?}"))?;
        Ok(all.with(stage))
    })
}

impl AuditPolicy {
    /// Reads a decoded audit.k8s.io/v1 Policy. The error is one line that names the field.
    pub fn parse(value: &Value) -> Result<AuditPolicy, String> {
        let (version, kind) = (value.str_at(&["apiVersion"]), value.str_at(&["kind"]));
        if (version, kind) != ("audit.k8s.io/v1", "Policy") {
            return Err(format!("no kind {kind:?} is registered for version {version:?}"));
        }
        let rules = value.get("rules").and_then(Value::as_array).unwrap_or_default();
        if rules.is_empty() {
            return Err("loaded illegal policy with 0 rules".to_owned());
        }
        Ok(AuditPolicy {
            rules: rules.iter().enumerate().map(|(i, rule)| AuditRule::parse(rule, i)).collect::<Result<_, _>>()?,
            omitted: stages(value, "")?,
            omits_managed_fields: value.get("omitManagedFields").and_then(Value::as_bool).unwrap_or_default(),
        })
    }

    /// The level of a request, and the index of the rule that decided.
    pub fn of(&self, subject: &AuditedRequest<'_>) -> (Level, Option<usize>) {
        let found = self.rules.iter().position(|rule| rule.matches(subject.user, subject.info));
        (found.and_then(|at| self.rules.get(at)).map_or(Level::None, |rule| rule.level), found)
    }

    pub fn omitted(&self, rule: Option<usize>) -> Stages {
        self.omitted.and(rule.and_then(|at| self.rules.get(at)).map(|rule| rule.omitted).unwrap_or_default())
    }

    pub fn omits_managed_fields(&self, rule: Option<usize>) -> bool {
        let own = rule.and_then(|at| self.rules.get(at)).and_then(|rule| rule.omits_managed_fields);
        own.unwrap_or(self.omits_managed_fields)
    }
}

impl AuditRule {
    fn parse(value: &Value, index: usize) -> Result<AuditRule, String> {
        let level = value.str_at(&["level"]);
        let level = match level {
            "" => return Err(format!("rules[{index}].level: Required value")),
            level => Level::parse(level)
                .ok_or_else(|| format!("rules[{index}].level: Unsupported value: {level:?}: supported values: \"Metadata\", \"None\", \"Request\", \"RequestResponse\""))?,
        };
        let listed = value.get("resources").and_then(Value::as_array).unwrap_or_default();
        let resources = |value: &Value| Resources {
            group: value.str_at(&["group"]).into(),
            resources: texts(value, "resources"),
            names: texts(value, "resourceNames"),
        };
        let rule = AuditRule {
            level,
            users: texts(value, "users"),
            groups: texts(value, "userGroups"),
            verbs: texts(value, "verbs"),
            resources: listed.iter().map(resources).collect(),
            namespaces: texts(value, "namespaces"),
            urls: texts(value, "nonResourceURLs"),
            omitted: stages(value, &format!("rules[{index}]."))?,
            omits_managed_fields: value.get("omitManagedFields").and_then(Value::as_bool),
        };
        let of_resources = !rule.resources.is_empty() || !rule.namespaces.is_empty();
        if of_resources && !rule.urls.is_empty() {
            let why = "rules cannot apply to both regular resources and non-resource URLs";
            return Err(format!("rules[{index}].nonResourceURLs: Invalid value: {why}"));
        }
        for (i, resources) in rule.resources.iter().enumerate() {
            if !resources.names.is_empty() && resources.resources.is_empty() {
                let why = "using resourceNames requires at least one resource";
                return Err(format!("rules[{index}].resources[{i}].resourceNames: Invalid value: {why}"));
            }
        }
        Ok(rule)
    }

    fn matches(&self, user: &User, info: &RequestInfo) -> bool {
        let any = |list: &[Text], found: &dyn Fn(&Text) -> bool| list.is_empty() || list.iter().any(found);
        let method = info.method.as_str().to_ascii_lowercase();
        let verb = if info.is_resource { info.verb.as_str() } else { method.as_str() };
        any(&self.users, &|name| *name == user.name)
            && any(&self.groups, &|group| user.in_group(group))
            && any(&self.verbs, &|wanted| wanted == verb)
            && self.matches_what(info)
    }

    fn matches_what(&self, info: &RequestInfo) -> bool {
        let of_resources = !self.namespaces.is_empty() || !self.resources.is_empty();
        match (of_resources, self.urls.is_empty()) {
            (false, true) => true,
            (true, _) if info.is_resource => {
                let place = if info.resource == "namespaces" { "" } else { info.namespace.as_str() };
                let here = self.namespaces.is_empty() || self.namespaces.iter().any(|namespace| namespace == place);
                here && (self.resources.is_empty() || self.resources.iter().any(|it| it.matches(info)))
            }
            (_, false) if !info.is_resource => self.urls.iter().any(|url| {
                url == "*"
                    || url == info.path.as_str()
                    || url.strip_suffix('*').is_some_and(|it| info.path.starts_with(it))
            }),
            _ => false,
        }
    }
}

impl Resources {
    fn matches(&self, info: &RequestInfo) -> bool {
        if self.group != info.group {
            return false;
        }
        let sub = info.subresource.as_str();
        let fits = |wanted: &Text| match wanted.split_once('/') {
            None if wanted == "*" => true,
            None => wanted == info.resource.as_str() && sub.is_empty(),
            Some(("*", wanted)) => wanted == sub,
            Some((resource, "*")) => resource == info.resource && !sub.is_empty(),
            Some((resource, wanted)) => resource == info.resource && wanted == sub,
        };
        let named = self.names.is_empty() || self.names.contains(&info.name);
        self.resources.is_empty() || (named && self.resources.iter().any(fits))
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
            {"level": "Request", "resources": [{"group": "g.io", "resources": ["*/status", "boats/*"]}]},
            {"level": "RequestResponse", "resources": [{"group": "g.io", "resources": ["boats"], "resourceNames": ["x"]}]},
            {"level": "Metadata", "namespaces": ["kube-system"], "omitStages": ["ResponseStarted"]},
            {"level": "Request", "nonResourceURLs": ["/healthz*", "/version"]},
            {"level": "Metadata", "userGroups": ["watched"]}
        ]))
        .unwrap();
        let level = |name: &'static str, method: http::Method, path: &str, query: &str| {
            let user = User { name: name.into(), groups: vec![name.into()], ..User::default() };
            let info = RequestInfo::parse(&method, path, query);
            policy.of(&AuditedRequest::test(&user, &info)).0
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
            ("ann", M::GET, "/healthz/ping", "", Level::Request),
            ("ann", M::GET, "/version", "", Level::Request),
            ("ann", M::GET, "/metrics", "", Level::None),
            ("watched", M::GET, "/metrics", "", Level::Metadata),
        ] {
            assert_eq!(level(name, method.clone(), path, query), wanted, "{name} {method} {path}?{query}");
        }
        assert!(
            policy.omitted(Some(4)).has(Stage::RequestReceived) && policy.omitted(Some(4)).has(Stage::ResponseStarted)
        );
        assert!(!policy.omitted(None).has(Stage::ResponseStarted));
    }

    #[test]
    fn errors_name_the_invalid_value() {
        for (rules, wanted) in [
            (json!([]), "loaded illegal policy with 0 rules"),
            (json!([{}]), "rules[0].level: Required value"),
            (json!([{"level": "All"}]), "rules[0].level: Unsupported value: \"All\""),
            (json!([{"level": "None", "omitStages": ["End"]}]), "rules[0].omitStages: Unsupported value: \"End\""),
            (json!([{"level": "None", "namespaces": ["n"], "nonResourceURLs": ["/"]}]), "rules[0].nonResourceURLs: "),
        ] {
            let error = policy(rules).unwrap_err();
            assert!(error.starts_with(wanted), "{error}");
        }
        assert!(AuditPolicy::parse(&json!({"apiVersion": "v1", "kind": "Policy"})).is_err());
    }
}
