//! Empties namespaces that are being deleted, then lets them go (api-machinery 29).

use std::sync::Arc;

use machinery::{Status, Value};

use crate::resource::builtin::NAMESPACE_FINALIZER;
use crate::verbs::{self, Context};

/// One pass over all namespaces that are being deleted.
pub async fn finalize(context: &Context) {
    let Some(namespaces) = context.registry.get("", "namespaces") else { return };
    let (root, _) = namespaces.collection.latest();
    for (name, _) in root.iter().filter(|(_, stored)| stored.meta.deleting) {
        if let Err(status) = finalize_one(context, name).await {
            tracing::warn!(namespace = %name, error = %status, "a namespace cannot be emptied yet");
        }
    }
}

async fn finalize_one(context: &Context, name: &str) -> Result<(), Status> {
    let mut left = 0;
    for (_, resource) in context.registry.snapshot().iter().filter(|(_, resource)| resource.namespaced) {
        left += verbs::empty_namespace(context, resource, name).await?;
    }
    if left > 0 {
        return Ok(());
    }
    let Some(namespaces) = context.registry.get("", "namespaces") else { return Ok(()) };
    verbs::change_as_server(context, &Arc::clone(&namespaces), name, "finalize", |object| {
        let finalizers = object.at(&["spec", "finalizers"]).and_then(Value::as_array).unwrap_or_default();
        let kept = finalizers.iter().filter(|f| f.as_str() != Some(NAMESPACE_FINALIZER)).cloned().collect();
        object.set_at(&["spec", "finalizers"], kept);
    })
    .await
}
