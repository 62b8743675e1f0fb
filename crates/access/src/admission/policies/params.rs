//! The parameters of policies: objects of any resource, selected by name or labels.

use std::sync::Arc;

use machinery::selector::LabelSelector;
use machinery::{Text, Value};
use objects::Stored;
use resource::{Resource, Version};

use crate::admission::ClusterState;

pub struct ParamKind {
    group: Text,
    version: Text,
    kind: Text,
}

pub struct ParamRef {
    name: Text,
    namespace: Text,
    selector: Option<LabelSelector>,
    denies_missing: bool,
}

/// The resource whose objects are the parameters, and the version in which they are read.
pub struct ParamResource {
    resource: Arc<Resource>,
    version: Arc<Version>,
}

impl ParamKind {
    pub fn parse(kind: &Value) -> ParamKind {
        let api_version = kind.str_at(&["apiVersion"]);
        let (group, version) = api_version.split_once('/').unwrap_or(("", api_version));
        ParamKind { group: group.into(), version: version.into(), kind: kind.str_at(&["kind"]).into() }
    }

    /// The resource of the kind.
    pub fn find(&self, cluster: &ClusterState<'_>) -> Result<ParamResource, String> {
        let resource = cluster.registry.of_kind(&self.group, &self.version, &self.kind);
        let found = resource.and_then(|resource| {
            let version = resource.served(&self.version)?.clone();
            Some(ParamResource { resource, version })
        });
        found.ok_or_else(|| {
            let ParamKind { group, version, kind } = self;
            format!("failed to find resource referenced by paramKind: '{group}/{version}, Kind={kind}'")
        })
    }
}

impl ParamRef {
    pub fn parse(reference: &Value) -> ParamRef {
        ParamRef {
            name: reference.str_at(&["name"]).into(),
            namespace: reference.str_at(&["namespace"]).into(),
            selector: reference.get("selector").and_then(LabelSelector::from_value),
            denies_missing: reference.str_at(&["parameterNotFoundAction"]) != "Allow",
        }
    }
}

/// Collects the parameters that a binding gives to its policy, which is evaluated once for each of them. Without
/// `paramKind` or `paramRef`, it is evaluated once without parameters: `[None]`.
pub async fn collect(
    resource: Option<&ParamResource>,
    reference: Option<&ParamRef>,
    namespace: &Text,
) -> Result<Vec<Option<Value>>, String> {
    let (Some(resource), Some(reference)) = (resource, reference) else { return Ok(vec![None]) };
    let params_namespace = resource.namespace(reference, namespace)?;
    let objects = match &reference.selector {
        Some(selector) => resource.selected(&params_namespace, selector),
        None => resource.named(&params_namespace, &reference.name),
    };
    if objects.is_empty() && reference.denies_missing {
        return Err("no params found for policy binding with `Deny` parameterNotFoundAction".to_owned());
    }
    resource.read(&objects).await
}

impl ParamResource {
    /// The namespace of the parameters.
    fn namespace(&self, reference: &ParamRef, namespace: &Text) -> Result<Text, String> {
        match (self.resource.namespaced, reference.namespace.as_str()) {
            (true, "") if namespace.is_empty() => {
                Err("cannot use namespaced paramRef in policy binding that matches cluster-scoped resources".to_owned())
            }
            (true, "") => Ok(namespace.clone()),
            (true, _) => Ok(reference.namespace.clone()),
            (false, "") => Ok(Text::default()),
            (false, _) => Err("paramRef.namespace must not be provided for a cluster-scoped `paramKind`".to_owned()),
        }
    }

    fn named(&self, namespace: &str, name: &str) -> Vec<Arc<Stored>> {
        self.resource.collection.get(&self.resource.key(namespace, name).path).into_iter().collect()
    }

    fn selected(&self, namespace: &Text, selector: &LabelSelector) -> Vec<Arc<Stored>> {
        let collection = &self.resource.collection;
        let mut objects = match namespace.as_str() {
            "" => collection.latest().0.values().cloned().collect(),
            namespace => collection.in_namespace(namespace),
        };
        objects.retain(|stored| selector.selects(&stored.meta.labels));
        objects
    }

    async fn read(&self, objects: &[Arc<Stored>]) -> Result<Vec<Option<Value>>, String> {
        let text = |status: machinery::Status| status.message.clone();
        self.resource.prepare(&objects.iter().collect::<Vec<_>>(), &self.version).await.map_err(text)?;
        objects.iter().map(|stored| self.resource.read(stored, &self.version).map(Some).map_err(text)).collect()
    }
}
