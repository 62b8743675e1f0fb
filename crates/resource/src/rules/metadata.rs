//! Metadata of written objects: the checks that each kind has, and the fields that updates cannot change.

use std::collections::BTreeSet;

use machinery::field::{FieldError, drop_repetitions};
use machinery::{Release, Value, names};
use schema::at::{At, errors_of};
use schema::metadata::{MetadataContext, validate_before_update, validate_common, validate_update};

/// When the metadata of a new object is validated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OnCreate {
    /// Before the other fields.
    First,
    /// After the other fields, and only if those are valid.
    Last,
    /// The kind's own validation includes it.
    Included,
}

/// A check of metadata that a kind makes in addition to those of every update. As in kube-apiserver, an error that
/// both find is reported twice.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OnUpdate {
    /// Validates the metadata as a whole.
    Object,
    /// Validates the change of metadata.
    Change,
}

/// The checks of metadata of a kind.
#[derive(Clone, Copy, Debug)]
pub struct MetadataRules {
    /// Validates the name; returns error messages.
    pub name: fn(&str, Release) -> Vec<String>,
    pub on_create: OnCreate,
    /// The checks of updates, in the order in which errors are reported.
    pub on_update: &'static [OnUpdate],
    /// The checks of updates through subresources.
    pub on_status: &'static [OnUpdate],
    /// Whether unqualified finalizers must be standard ones.
    pub standard_finalizers: bool,
}

impl MetadataRules {
    pub const CUSTOM: MetadataRules = MetadataRules {
        name: |name, _| names::dns1123_subdomain(name),
        on_create: OnCreate::First,
        on_update: &[OnUpdate::Change],
        on_status: &[OnUpdate::Change],
        standard_finalizers: false,
    };
    /// The rules of most built-in kinds.
    pub const BUILT_IN: MetadataRules = MetadataRules { standard_finalizers: true, ..MetadataRules::CUSTOM };

    /// Combines the errors of a new object's metadata with those of its other fields (`own`), in the order of the kind.
    pub fn merge_create_errors(
        &self,
        object: &Value,
        context: MetadataContext,
        own: Vec<FieldError>,
    ) -> Vec<FieldError> {
        let mut errors = match self.on_create {
            OnCreate::Last if !own.is_empty() => own,
            _ => self.create_errors(object, context).into_iter().chain(own).collect(),
        };
        if errors.is_empty() {
            errors = errors_of(object, None, context.release, |object| {
                object.field("metadata.name").check_text(names::path_segment);
                object.field("metadata.generateName").check_text(names::path_segment_prefix);
            });
        }
        errors
    }

    /// Validates the metadata of a new object.
    pub fn create_errors(&self, object: &Value, context: MetadataContext) -> Vec<FieldError> {
        if self.on_create == OnCreate::Included {
            return vec![];
        }
        let errors = errors_of(object, None, context.release, |object| {
            let metadata = object.field("metadata");
            self.check_name(metadata);
            if context.namespaced {
                metadata.field("namespace").require_text("");
            }
            validate_common(metadata);
            self.check_finalizers(metadata);
        });
        self.without_repetitions(errors, context.release)
    }

    /// Drops errors that were found twice from the metadata of custom resources, as declarative validation does
    /// since 1.37.
    fn without_repetitions(&self, mut errors: Vec<FieldError>, release: Release) -> Vec<FieldError> {
        if !self.standard_finalizers && release >= Release::V1_37 {
            drop_repetitions(&mut errors);
        }
        errors
    }

    fn check_name(&self, metadata: At) {
        let problems = |name: &str| (self.name)(name, metadata.release());
        let generate = metadata.field("generateName");
        generate.check_text_unless_empty(|generate| problems(&names::masked_prefix(generate)));
        metadata.field("name").require_text("name or generateName is required");
        metadata.field("name").check_text_unless_empty(problems);
    }

    fn check_finalizers(&self, metadata: At) {
        for finalizer in metadata.items_of("finalizers").filter(|_| self.standard_finalizers) {
            let name = finalizer.as_text();
            let is_unqualified = !name.contains('/') && !is_standard(name);
            let why = "name is neither a standard finalizer name nor is it fully qualified";
            finalizer.invalid_if(is_unqualified, why);
        }
    }

    /// The errors of metadata that every update can have. They come before those of the kind.
    pub fn generic_update_errors(object: &Value, old: &Value, context: MetadataContext) -> Vec<FieldError> {
        errors_of(object, Some(old), context.release, |object| {
            validate_before_update(object.field("metadata"), context.namespaced);
        })
    }

    /// Validates the metadata of an update: the checks of every update, then those of the kind.
    pub fn update_errors(&self, object: &Value, old: &Value, context: MetadataContext) -> Vec<FieldError> {
        self.errors(self.on_update, object, old, context)
    }

    /// As [`MetadataRules::update_errors`], for a subresource.
    pub fn status_errors(&self, object: &Value, old: &Value, context: MetadataContext) -> Vec<FieldError> {
        self.errors(self.on_status, object, old, context)
    }

    fn errors(&self, checks: &[OnUpdate], object: &Value, old: &Value, context: MetadataContext) -> Vec<FieldError> {
        let mut errors = Self::generic_update_errors(object, old, context);
        // the kind repeats the checks of every update; if those found nothing, there is nothing to report twice
        let is_valid = errors.is_empty();
        for check in checks {
            let own = errors_of(object, Some(old), context.release, |object| {
                let metadata = object.field("metadata");
                match check {
                    OnUpdate::Object => {
                        self.check_name(metadata);
                        if !is_valid {
                            validate_common(metadata);
                        }
                    }
                    OnUpdate::Change if is_valid => {}
                    OnUpdate::Change => validate_update(metadata),
                }
                self.check_finalizers(metadata);
            });
            errors.extend(self.without_repetitions(own, context.release));
        }
        errors
    }
}

fn is_standard(finalizer: &str) -> bool {
    matches!(finalizer, "orphan" | "foregroundDeletion" | "kubernetes")
}

/// Validates a name that must be a DNS-1123 label.
pub fn label_name(name: &str) -> Vec<String> {
    match name.contains('.') && names::dns1123_subdomain(name).is_empty() {
        true => vec!["must not contain dots".to_owned()],
        false => names::dns1123_label(name),
    }
}

/// Restores the fields that updates cannot change. An update may repeat `deletionTimestamp` and the grace period, but
/// not set them.
pub fn restore_system_fields(object: &mut Value, old: &Value) {
    let deleting = old.at(&["metadata", "deletionTimestamp"]).is_some_and(|t| !t.is_null());
    let Some(metadata) = object.get_mut("metadata").and_then(Value::as_object_mut) else { return };
    let empty = Value::object();
    let old = old.get("metadata").unwrap_or(&empty);
    let mut restore = |key: &str| match old.get(key) {
        Some(value) => {
            metadata.insert(key, value.clone());
        }
        None => {
            metadata.remove(key);
        }
    };
    restore("creationTimestamp");
    restore("generation");
    restore("selfLink");
    if deleting {
        restore("deletionTimestamp");
    }
    for key in ["uid", "deletionGracePeriodSeconds"] {
        let absent = metadata.get(key).is_none_or(|v| v.is_null() || v.as_str() == Some(""));
        if absent && let Some(value) = old.get(key) {
            metadata.insert(key, value.clone());
        }
    }
}

/// Warnings about finalizers that are new and not domain-qualified.
pub fn finalizer_warnings(object: &Value, old: Option<&Value>) -> Vec<String> {
    fn list(object: &Value) -> BTreeSet<&str> {
        object.texts_at(&["metadata", "finalizers"]).collect()
    }
    let known = old.map(list).unwrap_or_default();
    let given = list(object);
    let added = given.difference(&known).copied();
    let advised = |finalizer: &&str| {
        !finalizer.contains('/') && names::qualified_name(finalizer).is_empty() && !is_standard(finalizer)
    };
    let warning = |finalizer: &str| {
        let path = if finalizer.contains('.') { " including a path (/)" } else { "" };
        let quoted = machinery::value::quote(finalizer);
        format!(
            "metadata.finalizers: {quoted}: prefer a domain-qualified finalizer name{path} to avoid accidental conflicts with other finalizer writers"
        )
    };
    added.filter(advised).map(warning).collect()
}
