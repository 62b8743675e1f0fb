//! Calls admission: collects the attributes of a write, and normalizes the object that admission returns.

use access::admission::{Attributes, Charge, Operation};
use base::request::{DeleteOptions, FieldValidation, WriteOptions};
use machinery::{Map, Result, Text, Value};

use super::context::Context;
use super::meta::{self, MANAGED};
use super::request::Request;

/// A write that is submitted to admission.
pub struct Admit<'a> {
    pub context: &'a Context,
    pub request: &'a Request,
    pub operation: Operation,
    /// Empty if the request names no object, as for a deletecollection.
    pub name: &'a Text,
    pub options: &'a Value,
    pub dry_run: bool,
}

impl Admit<'_> {
    fn attributes<'b>(
        &'b self,
        object: Option<&'b Value>,
        old: Option<&'b Value>,
        warn: &'b (dyn Fn(String) + Sync),
    ) -> Attributes<'b> {
        let request = self.request;
        // an object posted to a subresource has a kind of its own, but admission sees the resource that it is posted
        // to
        let (resource, version) = match &request.posted_to {
            Some(resource) => (&**resource, &**resource.storage_version()),
            None => (&*request.resource, &*request.version),
        };
        Attributes {
            cluster: self.context.cluster(),
            user: &request.authorized.user,
            operation: self.operation,
            resource,
            version,
            subresource: request.subresource.as_str(),
            namespace: Attributes::namespace_of(resource, self.operation, request.namespace(), self.name),
            name: self.name,
            object,
            old,
            options: self.options,
            dry_run: self.dry_run,
            warn,
            audit_context: request.audit_context.as_deref(),
        }
    }

    /// Fails if nothing may be created in the namespace of an object. `shown` is the object's name in the error
    /// message.
    pub fn check_namespace(&self, object: &Value, shown: &str) -> Result<()> {
        let attributes = self.attributes(Some(object), None, &|_| {});
        self.context.admission.namespace_lifecycle(&attributes, shown)
    }

    /// Fails if the object is a namespace that must not be deleted.
    pub fn check_protected(&self, name: &str) -> Result<()> {
        self.context.admission.check_deletion(&self.attributes(None, None, &|_| {}), name)
    }

    /// The charge of a write to the quotas of its namespace. Fails if the write exceeds a quota.
    pub fn charges(&self, object: &Value, old: Option<&Value>) -> Result<Vec<Charge>> {
        if !self.request.admitted {
            return Ok(vec![]);
        }
        self.context.admission.charges(&self.attributes(Some(object), old, &|_| {}))
    }

    /// The object after mutating admission; `None` for a deletion.
    pub async fn mutate(&self, mut object: Option<Value>, old: Option<&Value>) -> Result<Option<Value>> {
        if !self.request.admitted {
            return Ok(object);
        }
        let warn = |warning: String| self.request.warn(warning);
        let attributes = self.attributes(None, old, &warn);
        if let Some(object) = &mut object {
            Box::pin(self.context.admission.admit(&attributes, object)).await?;
        }
        if self.context.admission.none_mutate() {
            return Ok(object);
        }
        // webhooks and policies see the object as its JSON
        let codec = self.request.strategy.codec();
        let printed = object.as_ref().and_then(|object| codec.printed(object));
        let (mut given, object) = if printed.is_some() { (printed, object) } else { (object, None) };
        given.iter_mut().for_each(Value::decode_parts);
        let old_decoded = decoded(old);
        let attributes = self.attributes(None, old_decoded.as_ref(), &warn);
        let changed = Box::pin(self.context.admission.mutate(&attributes, given.clone())).await?;
        match changed {
            Some(object) if given.as_ref() != Some(&object) => {
                let mut object = self.normalize(given.as_ref(), object)?;
                if let Some(old) = old {
                    keep_times(&mut object, old);
                }
                Ok(Some(object))
            }
            // admission changed nothing: return the object itself, since it may have empty lists that its JSON omits
            _ => Ok(object.or(given)),
        }
    }

    /// Asks policies and webhooks about a connection. What they change has no effect, since nothing is connected.
    pub async fn connect(&self, options: Value) -> Result<()> {
        let admission = &self.context.admission;
        if !self.request.admitted || admission.none_mutate() && admission.none_validate() {
            return Ok(());
        }
        let warn = |warning: String| self.request.warn(warning);
        let attributes = self.attributes(Some(&options), None, &warn);
        let changed = Box::pin(admission.mutate(&attributes, Some(options.clone()))).await?;
        let attributes = self.attributes(changed.as_ref(), None, &warn);
        Box::pin(admission.validate(&attributes)).await
    }

    /// Checks the types of an object that admission has changed, and normalizes its defaults and managedFields.
    fn normalize(&self, given: Option<&Value>, mut object: Value) -> Result<Value> {
        let strategy = &self.request.strategy;
        if strategy.view().is_some() {
            return Ok(object);
        }
        match self.operation {
            Operation::Create => strategy.codec().check_created(&object, &self.context.registry)?,
            _ => strategy.codec().check_admitted(&object, &self.context.registry)?,
        }
        meta::place_in(&mut object, self.request.namespace())?;
        let before = given.and_then(|given| given.at(&MANAGED));
        if object.at(&MANAGED) != before
            && let Err(why) = schema::apply::check_managed_fields(&object)
        {
            self.request.warn(format!(
                ".metadata.managedFields was in an invalid state after admission; this could be caused by an outdated mutating admission controller; please fix your requests: {why}"
            ));
            object.put_at(&MANAGED, before.cloned());
        }
        strategy.codec().normalize_admitted(&mut object)?;
        meta::dedup_owners(self.request, &mut object, meta::Stage::AfterMutation);
        Ok(object)
    }

    /// Fails if validating admission rejects the write of a valid object.
    pub async fn validate(&self, object: Option<&Value>, old: Option<&Value>) -> Result<()> {
        if !self.request.admitted {
            return Ok(());
        }
        let warn = |warning: String| self.request.warn(warning);
        let mut attributes = self.attributes(object, old, &warn);
        if let Some(object) = object.filter(|_| self.name.is_empty()) {
            // the name may have been generated
            attributes.name = object.str_at(&["metadata", "name"]);
        }
        let admission = &self.context.admission;
        Box::pin(admission.check(&attributes)).await?;
        if admission.none_validate() {
            return Ok(());
        }
        // webhooks and policies see the object as its JSON
        let printed = object.and_then(|object| self.request.strategy.storage_codec().printed(object));
        let (object, old) = (decoded(printed.as_ref().or(object)), decoded(old));
        let name = attributes.name;
        attributes = self.attributes(object.as_ref(), old.as_ref(), &warn);
        attributes.name = name;
        Box::pin(admission.validate(&attributes)).await
    }
}

/// An object as webhooks and policies see it.
fn decoded(object: Option<&Value>) -> Option<Value> {
    let mut object = object.cloned()?;
    object.decode_parts();
    Some(object)
}

/// Restores the old managedFields if the object differs from the old one only in their times.
fn keep_times(object: &mut Value, old: &Value) {
    let without_times = |object: &Value| {
        let mut object = object.clone();
        if let Some(Value::Array(entries)) =
            object.get_mut("metadata").and_then(|metadata| metadata.get_mut("managedFields"))
        {
            entries.iter_mut().for_each(|entry| drop(entry.remove_at(&["time"])));
        }
        object
    };
    if without_times(object) == without_times(old)
        && let Some(managers) = old.at(&MANAGED)
    {
        object.set_at(&MANAGED, managers.clone());
    }
}

/// CreateOptions or UpdateOptions, for AdmissionReviews.
pub fn write_options(kind: &'static str, options: &WriteOptions) -> Value {
    let mut out = options_of(kind, options.dry_run);
    if !options.field_manager.is_empty() {
        out.insert("fieldManager", Value::String(options.field_manager.clone()));
    }
    if options.field_validation_given {
        let validation = match options.field_validation {
            FieldValidation::Ignore => "Ignore",
            FieldValidation::Strict => "Strict",
            FieldValidation::Warn => "Warn",
        };
        out.insert("fieldValidation", Value::from(validation));
    }
    Value::Object(out)
}

/// DeleteOptions, for AdmissionReviews.
pub fn delete_options(options: &DeleteOptions) -> Value {
    let mut out = options_of("DeleteOptions", options.dry_run);
    if let Some(seconds) = options.grace_period_seconds {
        out.insert("gracePeriodSeconds", Value::Int(seconds));
    }
    if let Some(orphan) = options.orphan_dependents {
        out.insert("orphanDependents", Value::from(orphan));
    }
    if let Some(policy) = &options.propagation_policy {
        out.insert("propagationPolicy", Value::String(policy.clone()));
    }
    let mut preconditions = Map::new();
    for (key, value) in [("uid", &options.uid), ("resourceVersion", &options.resource_version)] {
        if let Some(value) = value {
            preconditions.insert(key, Value::String(value.clone()));
        }
    }
    if options.has_preconditions {
        out.insert("preconditions", Value::Object(preconditions));
    }
    Value::Object(out)
}

fn options_of(kind: &'static str, dry_run: bool) -> Map {
    let mut out = Map::new();
    out.insert("kind", Value::from(kind));
    out.insert("apiVersion", Value::from("meta.k8s.io/v1"));
    if dry_run {
        out.insert("dryRun", Value::Array(vec![Value::from("All")]));
    }
    out
}
