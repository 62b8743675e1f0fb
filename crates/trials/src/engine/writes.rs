//! The writes of clients in a fork, in their order.

use embed::Value;

use crate::compare::ObjectKey;

/// The user agent of the requests of this process.
pub const OWN: &str = "pintle";

/// A write that has ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Write {
    /// The user agent up to its first space; `None` for one of this process, such as the application of a change.
    pub agent: Option<String>,
    pub verb: String,
    /// The object; without a name, the collection.
    pub object: ObjectKey,
    /// The code of the response; 0 if the connection has ended instead.
    pub code: i64,
    /// The message of the response, if the write was refused.
    pub message: String,
}

impl Write {
    /// Reads a write of a Report.
    pub fn read(value: &Value) -> Write {
        let text = |field: &str| value.str_at(&[field]).to_owned();
        // `deployments/status.apps`: a subresource has no dot
        let resource = value.str_at(&["resource"]);
        let resource = match resource.split_once('/') {
            None => resource.to_owned(),
            Some((plural, rest)) => {
                rest.split_once('.').map_or(plural.to_owned(), |(_, group)| format!("{plural}.{group}"))
            }
        };
        let name = value.str_at(&["name"]);
        // a request for a namespace is one within it, too
        let namespace = if resource == "namespaces" { "" } else { value.str_at(&["namespace"]) };
        Write {
            agent: Some(text("userAgent")).filter(|agent| agent != OWN),
            verb: text("verb"),
            object: ObjectKey { resource: resource.into(), namespace: namespace.into(), name: name.into() },
            code: value.int_at(&["code"]),
            message: text("message"),
        }
    }

    pub fn is_success(&self) -> bool {
        (200..300).contains(&self.code)
    }

    /// Whether the server has refused the write for good: conflicts are retried, and what is absent or exists already is no refusal.
    pub fn is_refused(&self) -> bool {
        self.code >= 400 && ![404, 409].contains(&self.code)
    }
}

#[cfg(test)]
mod tests {
    use machinery::json;

    use super::*;

    #[test]
    fn resources_have_no_subresources() {
        for (given, resource) in [
            ("configmaps", "configmaps"),
            ("deployments.apps", "deployments.apps"),
            ("deployments/status.apps", "deployments.apps"),
            ("pods/status", "pods"),
            ("certificates/status.cert-manager.io", "certificates.cert-manager.io"),
        ] {
            let write = Write::read(&json!({"resource": given, "userAgent": "m/1", "code": 422}));
            assert_eq!(write.object.resource.as_str(), resource, "{given}");
            assert!(write.is_refused() && write.agent.as_deref() == Some("m/1"));
        }
        assert_eq!(Write::read(&json!({"userAgent": OWN})).agent, None);
    }
}
