//! Shipped kinds: a table of definitions, and the few extra rules (layer 2).

mod columns;
mod rules;
mod shapes;

pub use columns::{AGE_DESCRIPTION, ShippedColumn};
pub use rules::NAMESPACE_FINALIZER;

use std::sync::Arc;

use machinery::patch::strategic_merge::PatchMeta;
use machinery::{Text, Value};

use super::version::Version;
use super::{Conversion, Resource, Rules};
use crate::objects::Objects;

/// What decoding into the Go type of a kind and encoding it again does: the object, unknown members, a type error.
pub type Shape = fn(&Value) -> Shaped;

/// An object in its typed shape.
pub struct Shaped {
    pub value: Value,
    pub unknown: Vec<String>,
    pub error: Option<String>,
}

/// How names of a kind are checked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NameRule {
    Subdomain,
    /// DNS-1123 label.
    Label,
}

/// A shipped kind.
pub struct Shipped {
    pub group: &'static str,
    pub version: &'static str,
    pub kind: &'static str,
    pub plural: &'static str,
    pub singular: &'static str,
    pub short_names: &'static [&'static str],
    pub categories: &'static [&'static str],
    pub namespaced: bool,
    pub status: bool,
    pub name_rule: NameRule,
    /// PUT without resourceVersion overwrites.
    pub unconditional_update: bool,
    /// DELETE answers the object instead of a Status.
    pub returns_deleted: bool,
    /// Answered and not stored.
    pub review: bool,
    /// metadata.generation is kept.
    pub generation: bool,
    /// Fields besides name and namespace that selectors may use.
    pub selectable: &'static [&'static str],
    pub shape: Shape,
    /// The object before anything is set: what a create does not bring into being.
    pub zero: fn() -> Value,
    pub default: fn(&mut Value),
    /// Changes an object before it is validated; the second is the stored one.
    pub prepare: fn(&mut Value, Option<&Value>),
    pub validate: fn(&Value, Option<&Value>) -> Vec<machinery::FieldError>,
    /// The errors of a write to the status subresource.
    pub validate_status: fn(&Value, &Value) -> Vec<machinery::FieldError>,
    /// Warnings about what is accepted and not advised.
    pub warnings: fn(&Value, Option<&Value>) -> Vec<String>,
    /// What tables show besides the name.
    pub columns: &'static [ShippedColumn],
    /// The form that is stored and shown.
    pub to_stored: fn(Value) -> Value,
}

impl Shipped {
    /// Whether an object without finalizers may go; a namespace has finalizers of its own.
    pub fn allows_removal(&self, object: &Value) -> bool {
        self.kind != "Namespace"
            || object.at(&["spec", "finalizers"]).and_then(Value::as_array).is_none_or(<[Value]>::is_empty)
    }

    /// What a deletion changes besides metadata.
    pub fn mark_deleted(&self, object: &mut Value) {
        if self.kind == "Namespace" {
            object.set_at(&["status", "phase"], Value::from("Terminating"));
        }
    }
}

/// How a strategic merge patch merges objects of a kind.
pub fn patch_metadata(shipped: Option<&'static Shipped>) -> PatchMeta {
    PatchMeta::of_kind(&shapes::type_schema(shipped.map_or("", |s| s.kind)))
}

impl PartialEq for Shipped {
    fn eq(&self, other: &Shipped) -> bool {
        self.group == other.group && self.kind == other.kind
    }
}

impl Eq for Shipped {}

impl std::fmt::Debug for Shipped {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.kind)
    }
}

/// The group of CustomResourceDefinitions.
pub const DEFINITION_GROUP: &str = "apiextensions.k8s.io";
/// Their plural.
pub const DEFINITIONS: &str = "customresourcedefinitions";

const BASE: Shipped = Shipped {
    group: "",
    version: "v1",
    kind: "",
    plural: "",
    singular: "",
    short_names: &[],
    categories: &[],
    namespaced: true,
    status: false,
    name_rule: NameRule::Subdomain,
    unconditional_update: true,
    returns_deleted: false,
    review: false,
    generation: false,
    selectable: &[],
    shape: shapes::config_map,
    zero: Value::object,
    default: |_| {},
    prepare: |_, _| {},
    validate: |_, _| vec![],
    validate_status: |_, _| vec![],
    warnings: |_, _| vec![],
    columns: &[columns::AGE],
    to_stored: |object| object,
};

/// Every shipped kind.
pub static SHIPPED: [Shipped; 5] = [
    Shipped {
        kind: "ConfigMap",
        plural: "configmaps",
        singular: "configmap",
        short_names: &["cm"],
        shape: shapes::config_map,
        validate: rules::validate_config_map,
        columns: &[columns::DATA, columns::AGE],
        ..BASE
    },
    Shipped {
        kind: "Namespace",
        plural: "namespaces",
        singular: "namespace",
        short_names: &["ns"],
        namespaced: false,
        status: true,
        name_rule: NameRule::Label,
        returns_deleted: true,
        selectable: &["status.phase", "name"],
        shape: shapes::namespace,
        zero: || shapes::namespace(&Value::object()).value,
        columns: &[columns::PHASE, columns::AGE],
        default: rules::default_namespace,
        prepare: rules::prepare_namespace,
        validate: rules::validate_namespace,
        to_stored: |object| shapes::namespace(&object).value,
        ..BASE
    },
    Shipped {
        kind: "Secret",
        plural: "secrets",
        singular: "secret",
        selectable: &["type"],
        shape: shapes::secret,
        default: rules::default_secret,
        validate: rules::validate_secret,
        columns: &[columns::TYPE, columns::DATA, columns::AGE],
        ..BASE
    },
    Shipped {
        group: "authentication.k8s.io",
        kind: "SelfSubjectReview",
        plural: "selfsubjectreviews",
        singular: "selfsubjectreview",
        namespaced: false,
        review: true,
        shape: shapes::self_subject_review,
        ..BASE
    },
    Shipped {
        group: DEFINITION_GROUP,
        kind: "CustomResourceDefinition",
        plural: DEFINITIONS,
        singular: "customresourcedefinition",
        short_names: &["crd", "crds"],
        categories: &["api-extensions"],
        namespaced: false,
        status: true,
        unconditional_update: false,
        generation: true,
        shape: shapes::definition,
        zero: shapes::zero_definition,
        prepare: rules::prepare_definition,
        validate: rules::validate_definition,
        validate_status: schema::definition::validate_status_update,
        warnings: rules::definition_warnings,
        columns: &[columns::CREATED_AT],
        to_stored: |object| schema::definition::to_stored(&object),
        ..BASE
    },
];

fn texts(list: &[&'static str]) -> Vec<Text> {
    list.iter().map(|s| Text::new_static(s)).collect()
}

/// The resource of a shipped kind.
pub fn resource(shipped: &'static Shipped, objects: &Objects) -> Resource {
    let (group, plural) = (Text::new_static(shipped.group), Text::new_static(shipped.plural));
    let mut version = Version::new(Text::new_static(shipped.version), shapes::type_schema(shipped.kind));
    version.status = shipped.status;
    Resource {
        collection: objects.collection(&group, &plural),
        group,
        plural,
        singular: Text::new_static(shipped.singular),
        kind: Text::new_static(shipped.kind),
        list_kind: Text::from(format!("{}List", shipped.kind)),
        short_names: texts(shipped.short_names),
        categories: texts(shipped.categories),
        namespaced: shipped.namespaced,
        versions: vec![Arc::new(version)],
        storage: 0,
        conversion: Conversion::None,
        rules: Rules::Shipped(shipped),
        broken: false,
        established: true,
        terminating: false,
        fingerprint: String::new(),
        retired: Arc::new(tokio::sync::watch::Sender::new(false)),
    }
}

/// Whether a group is one of shipped kinds.
pub fn is_shipped_group(group: &str) -> bool {
    SHIPPED.iter().any(|shipped| shipped.group == group)
}

/// The order of groups in discovery: greater is earlier (api-machinery 16.3).
pub fn group_priority(group: &str) -> u32 {
    match group {
        "" => 18_000,
        "events.k8s.io" => 17_750,
        "authentication.k8s.io" => 17_700,
        "authorization.k8s.io" => 17_600,
        "rbac.authorization.k8s.io" => 17_000,
        "apiextensions.k8s.io" | "admissionregistration.k8s.io" => 16_700,
        "coordination.k8s.io" => 16_500,
        _ => 1_000,
    }
}
