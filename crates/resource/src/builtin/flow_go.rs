//! How kube-apiserver prints specs of flow control in errors: its internal Go structs, with all their fields.

use machinery::Value;

/// The form of a value in Go.
pub enum Go {
    /// A value that is printed as it is; absent ones are the zero value.
    Plain(&'static str),
    /// The fields, by their names in Go and in JSON.
    Struct(&'static [(&'static str, &'static str, Go)]),
    /// A pointer to a struct or a number; `null` if it is absent.
    Pointer(&'static Go),
    /// A slice; `null` if it is absent.
    List(&'static Go),
}

const TEXT: Go = Go::Plain("\"\"");
const NUMBER: Go = Go::Plain("0");
const POINTER: Go = Go::Plain("null");
const TEXTS: Go = Go::List(&TEXT);
static NAMED: Go = Go::Struct(&[("Name", "name", TEXT)]);

/// `FlowSchemaSpec`.
pub static SCHEMA: Go = Go::Struct(&[
    ("PriorityLevelConfiguration", "priorityLevelConfiguration", Go::Struct(&[("Name", "name", TEXT)])),
    ("MatchingPrecedence", "matchingPrecedence", NUMBER),
    ("DistinguisherMethod", "distinguisherMethod", Go::Pointer(&Go::Struct(&[("Type", "type", TEXT)]))),
    ("Rules", "rules", Go::List(&RULE)),
]);

static RULE: Go = Go::Struct(&[
    ("Subjects", "subjects", Go::List(&SUBJECT)),
    ("ResourceRules", "resourceRules", Go::List(&RESOURCE_RULE)),
    ("NonResourceRules", "nonResourceRules", Go::List(&OTHER_RULE)),
]);

static SUBJECT: Go = Go::Struct(&[
    ("Kind", "kind", TEXT),
    ("User", "user", Go::Pointer(&NAMED)),
    ("Group", "group", Go::Pointer(&NAMED)),
    ("ServiceAccount", "serviceAccount", Go::Pointer(&ACCOUNT)),
]);

static ACCOUNT: Go = Go::Struct(&[("Namespace", "namespace", TEXT), ("Name", "name", TEXT)]);

static RESOURCE_RULE: Go = Go::Struct(&[
    ("Verbs", "verbs", TEXTS),
    ("APIGroups", "apiGroups", TEXTS),
    ("Resources", "resources", TEXTS),
    ("ClusterScope", "clusterScope", Go::Plain("false")),
    ("Namespaces", "namespaces", TEXTS),
]);

static OTHER_RULE: Go = Go::Struct(&[("Verbs", "verbs", TEXTS), ("NonResourceURLs", "nonResourceURLs", TEXTS)]);

/// `PriorityLevelConfigurationSpec`.
pub static LEVEL: Go = Go::Struct(&[
    ("Type", "type", TEXT),
    ("Limited", "limited", Go::Pointer(&LIMITED)),
    ("Exempt", "exempt", Go::Pointer(&EXEMPT)),
]);

static LIMITED: Go = Go::Struct(&[
    ("NominalConcurrencyShares", "nominalConcurrencyShares", NUMBER),
    ("LimitResponse", "limitResponse", Go::Struct(&[("Type", "type", TEXT), ("Queuing", "queuing", QUEUING)])),
    ("LendablePercent", "lendablePercent", POINTER),
    ("BorrowingLimitPercent", "borrowingLimitPercent", POINTER),
]);

const QUEUING: Go = Go::Pointer(&Go::Struct(&[
    ("Queues", "queues", NUMBER),
    ("HandSize", "handSize", NUMBER),
    ("QueueLengthLimit", "queueLengthLimit", NUMBER),
]));

static EXEMPT: Go = Go::Struct(&[
    ("NominalConcurrencyShares", "nominalConcurrencyShares", POINTER),
    ("LendablePercent", "lendablePercent", POINTER),
]);

impl Go {
    /// Prints a value as Go's JSON encoder does.
    pub fn print(&self, value: Option<&Value>) -> String {
        let value = value.filter(|value| !value.is_null());
        match (self, value) {
            (Go::Plain(zero), None) => (*zero).to_owned(),
            (Go::Plain(_), Some(value)) => value.to_json(),
            (Go::Pointer(_) | Go::List(_), None) => "null".to_owned(),
            (Go::Pointer(form), value) => form.print(value),
            (Go::List(form), Some(list)) => {
                let items: Vec<String> =
                    list.as_array().unwrap_or_default().iter().map(|item| form.print(Some(item))).collect();
                format!("[{}]", items.join(","))
            }
            (Go::Struct(fields), value) => {
                let print = |(go, json, form): &(&str, &str, Go)| {
                    format!("\"{go}\":{}", form.print(value.and_then(|value| value.get(json))))
                };
                format!("{{{}}}", fields.iter().map(print).collect::<Vec<_>>().join(","))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use machinery::json;

    use super::*;

    #[test]
    fn absent_fields_have_their_zero_values() {
        let level = json!({"type": "Limited", "limited": {"nominalConcurrencyShares": 7, "lendablePercent": 0}});
        assert_eq!(
            LEVEL.print(Some(&level)),
            r#"{"Type":"Limited","Limited":{"NominalConcurrencyShares":7,"LimitResponse":{"Type":"","Queuing":null},"LendablePercent":0,"BorrowingLimitPercent":null},"Exempt":null}"#
        );
        let schema = json!({"rules": [{"subjects": [{"kind": "User", "user": {"name": "u"}}]}]});
        assert_eq!(
            SCHEMA.print(Some(&schema)),
            r#"{"PriorityLevelConfiguration":{"Name":""},"MatchingPrecedence":0,"DistinguisherMethod":null,"Rules":[{"Subjects":[{"Kind":"User","User":{"Name":"u"},"Group":null,"ServiceAccount":null}],"ResourceRules":null,"NonResourceRules":null}]}"#
        );
    }
}
