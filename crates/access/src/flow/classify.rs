//! Classification of requests into flows.

use base::request::{RequestInfo, User};
use http::HeaderValue;
use machinery::{Text, Value};

use super::header;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Distinguisher {
    Nothing,
    User,
    Namespace,
}

pub struct Schema {
    pub name: Text,
    pub uid: HeaderValue,
    pub precedence: i64,
    pub level: Text,
    distinguisher: Distinguisher,
    rules: Vec<Rules>,
}

/// The limits of a priority level, and its queues if excess requests are queued.
#[derive(Clone, Debug, PartialEq)]
pub struct Limit {
    pub shares: u32,
    /// Lendable share of its seats, from 0 to 1.
    pub lendable: f64,
    /// Limit of borrowed seats, relative to its own; `None` for no limit.
    pub borrowing: Option<f64>,
    pub queuing: Option<Queuing>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Queuing {
    pub queues: usize,
    pub hand: usize,
    pub length: usize,
}

impl Limit {
    /// The limit of an exempt level whose seats come from a pool: it may borrow all of them.
    pub fn of_exempt() -> Limit {
        let queuing = Some(Queuing { queues: 16, hand: 4, length: 50 });
        Limit { shares: 1, lendable: 0.0, borrowing: None, queuing }
    }

    /// A level without seats of its own.
    pub fn of_none() -> Limit {
        Limit { shares: 0, lendable: 0.0, borrowing: None, queuing: None }
    }
}

/// A PriorityLevelConfiguration; without limits if it is exempt.
pub struct PriorityLevel {
    pub name: Text,
    pub uid: HeaderValue,
    pub limit: Option<Limit>,
}

enum FlowSubject {
    User(Text),
    Group(Text),
    /// Namespace and name; `*` for all.
    Account(Text, Text),
}

struct ResourceRule {
    verbs: Vec<Text>,
    groups: Vec<Text>,
    resources: Vec<Text>,
    namespaces: Vec<Text>,
    cluster: bool,
}

struct PathRule {
    verbs: Vec<Text>,
    urls: Vec<Text>,
}

struct Rules {
    subjects: Vec<FlowSubject>,
    resources: Vec<ResourceRule>,
    paths: Vec<PathRule>,
}

fn contains(patterns: &[Text], text: &str) -> bool {
    patterns.iter().any(|pattern| pattern == "*" || pattern == text)
}

impl Schema {
    pub fn parse(object: &Value) -> Schema {
        let spec = object.get("spec").cloned().unwrap_or_default();
        Schema {
            name: object.str_at(&["metadata", "name"]).into(),
            uid: header(object),
            precedence: spec.get("matchingPrecedence").and_then(Value::as_int).unwrap_or(1000),
            level: spec.str_at(&["priorityLevelConfiguration", "name"]).into(),
            distinguisher: match spec.str_at(&["distinguisherMethod", "type"]) {
                "ByUser" => Distinguisher::User,
                "ByNamespace" => Distinguisher::Namespace,
                _ => Distinguisher::Nothing,
            },
            rules: spec.items_at(&["rules"]).iter().map(Rules::parse).collect(),
        }
    }

    pub fn matches(&self, user: &User, info: &RequestInfo) -> bool {
        self.rules.iter().any(|rules| {
            let matches_request = if info.is_resource {
                rules.resources.iter().any(|rule| rule.matches(info))
            } else {
                rules.paths.iter().any(|rule| rule.matches(info))
            };
            matches_request && rules.subjects.iter().any(|subject| subject.is(user))
        })
    }

    /// The identity of a flow.
    pub fn flow(&self, user: &User, info: &RequestInfo) -> String {
        let distinguisher = match self.distinguisher {
            Distinguisher::Nothing => "",
            Distinguisher::User => user.name.as_str(),
            Distinguisher::Namespace => info.namespace.as_str(),
        };
        format!("{}\0{distinguisher}", self.name)
    }
}

impl Rules {
    fn parse(value: &Value) -> Rules {
        let subject = |subject: &Value| match subject.str_at(&["kind"]) {
            "User" => FlowSubject::User(subject.str_at(&["user", "name"]).into()),
            "Group" => FlowSubject::Group(subject.str_at(&["group", "name"]).into()),
            _ => FlowSubject::Account(
                subject.str_at(&["serviceAccount", "namespace"]).into(),
                subject.str_at(&["serviceAccount", "name"]).into(),
            ),
        };
        let resource = |rule: &Value| ResourceRule {
            verbs: rule.text_list_at(&["verbs"]),
            groups: rule.text_list_at(&["apiGroups"]),
            resources: rule.text_list_at(&["resources"]),
            namespaces: rule.text_list_at(&["namespaces"]),
            cluster: rule.is_true_at(&["clusterScope"]),
        };
        let path = |rule: &Value| PathRule {
            verbs: rule.text_list_at(&["verbs"]),
            urls: rule.text_list_at(&["nonResourceURLs"]),
        };
        Rules {
            subjects: value.items_at(&["subjects"]).iter().map(subject).collect(),
            resources: value.items_at(&["resourceRules"]).iter().map(resource).collect(),
            paths: value.items_at(&["nonResourceRules"]).iter().map(path).collect(),
        }
    }
}

impl FlowSubject {
    fn is(&self, user: &User) -> bool {
        match self {
            FlowSubject::User(name) => name == "*" || *name == user.name,
            FlowSubject::Group(name) => name == "*" || user.in_group(name),
            FlowSubject::Account(namespace, name) => {
                let service_account =
                    user.name.strip_prefix("system:serviceaccount:").and_then(|rest| rest.split_once(':'));
                service_account.is_some_and(|(account_namespace, account_name)| {
                    *namespace == account_namespace && (name == "*" || *name == account_name)
                })
            }
        }
    }
}

impl ResourceRule {
    fn matches(&self, info: &RequestInfo) -> bool {
        let matches_resource = if info.subresource.is_empty() {
            contains(&self.resources, &info.resource)
        } else {
            contains(&self.resources, &format!("{}/{}", info.resource, info.subresource))
        };
        let in_scope =
            if info.namespace.is_empty() { self.cluster } else { contains(&self.namespaces, &info.namespace) };
        matches_resource && in_scope && contains(&self.verbs, info.verb.as_str()) && contains(&self.groups, &info.group)
    }
}

impl PathRule {
    fn matches(&self, info: &RequestInfo) -> bool {
        let method = info.method.as_str().to_ascii_lowercase();
        let covers = |url: &Text| {
            let path = info.path.as_str();
            let is_below = |prefix: &str| prefix.ends_with('/') && path.starts_with(prefix);
            url == "*" || url == path || url.strip_suffix('*').is_some_and(is_below)
        };
        contains(&self.verbs, &method) && self.urls.iter().any(covers)
    }
}

impl PriorityLevel {
    pub fn parse(object: &Value) -> PriorityLevel {
        let number = |path: &[&str]| object.at(path).and_then(Value::as_int);
        let limited = |name: &str| number(&["spec", "limited", name]);
        let percent = |value: i64| value as f64 / 100.0;
        let queuing = |name: &str| {
            let value = number(&["spec", "limited", "limitResponse", "queuing", name]).unwrap_or(1);
            usize::try_from(value).unwrap_or(1).max(1)
        };
        let limit = || Limit {
            shares: limited("nominalConcurrencyShares").and_then(|shares| u32::try_from(shares).ok()).unwrap_or(30),
            lendable: percent(limited("lendablePercent").unwrap_or(0)).clamp(0.0, 1.0),
            borrowing: limited("borrowingLimitPercent").map(percent),
            queuing: (object.str_at(&["spec", "limited", "limitResponse", "type"]) == "Queue").then(|| Queuing {
                queues: queuing("queues"),
                hand: queuing("handSize"),
                length: queuing("queueLengthLimit"),
            }),
        };
        PriorityLevel {
            name: object.str_at(&["metadata", "name"]).into(),
            uid: header(object),
            limit: (object.str_at(&["spec", "type"]) == "Limited").then(limit),
        }
    }
}
