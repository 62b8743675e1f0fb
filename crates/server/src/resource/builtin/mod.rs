//! Shipped kinds: a table of definitions, and the few extra rules (layer 2).

mod accounts;
mod admission;
mod allocations;
mod apiservices;
mod checks;
mod columns;
mod config;
mod definition;
mod events;
mod expressions;
mod flow;
mod foreign;
mod generations;
mod key_pair;
mod leases;
mod migrations;
mod mutations;
mod namespaces;
mod policies;
mod quotas;
mod rbac;
mod reviews;
mod secrets;
pub mod services;
mod third_party;
mod webhooks;

pub use accounts::SERVICE_ACCOUNT;
pub use apiservices::{
    API_SERVICES, MANAGED, MANAGED_ALWAYS, MANAGED_AT_START, REGISTRATION_GROUP, SERVED_HERE, api_services,
    version_priority,
};
pub use columns::{AGE_DESCRIPTION, NAME_DESCRIPTION, ShippedColumn};
pub use expressions::{MINOR, Scope, access_review_type, user_info_type};
pub use flow::FLOW_GROUP;
pub use foreign::is_known;
pub use generations::RuntimeConfig;
pub use migrations::{MIGRATION_GROUP, MIGRATIONS};
pub use namespaces::NAMESPACE_FINALIZER;
pub use reviews::TOKEN_REQUEST;
pub use third_party::{THIRD_PARTY_GROUP, THIRD_PARTY_RESOURCES};

use std::sync::Arc;

use machinery::patch::strategic_merge::PatchMeta;
use machinery::{FieldError, Text, Value};
use schema::definition::ApiVersion;
use schema::shape::{self, OBJECT_META, Shape, Struct, TEXT, TypeError, always, given, non_empty};

use super::version::Version;
use super::{Conversion, Resource, Rules, group_version};
use crate::objects::Objects;

/// What decoding into the Go type of a kind and encoding it again does.
pub enum Form {
    Typed(&'static Struct),
    /// CustomResourceDefinitions decode in ways of their own.
    Definition(ApiVersion),
}

/// How a kind is stored that is another look at objects of another group or version.
pub struct StoredAs {
    pub group: &'static str,
    pub to_stored: fn(Value) -> Value,
    pub to_shown: fn(Value) -> Value,
}

/// The same object in another version of its kind, whose members are the same.
fn in_version(mut object: Value, shipped: &Shipped) -> Value {
    object.set_at(&["apiVersion"], Value::String(group_version(shipped.group, shipped.version)));
    object
}

/// A field that selectors may use, and where its text is: at the first of these paths that has one.
pub type Selectable = (&'static str, &'static [&'static str]);

/// An object in its typed shape.
pub struct Shaped {
    pub value: Value,
    pub unknown: Vec<String>,
    pub error: Option<String>,
    /// All of them, where several can be told apart.
    pub errors: Vec<TypeError>,
}

/// How names of a kind are checked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NameRule {
    Subdomain,
    /// DNS-1123 label.
    Label,
    /// DNS-1035 label.
    OldLabel,
    /// Whatever may be a segment of a path.
    Path,
}

/// What the status endpoint of a kind does with metadata.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StatusMetadata {
    /// It writes them.
    Written,
    /// It writes them, and nobody owns what it has written.
    Unowned,
    /// They stay as they are.
    Kept,
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
    pub status_metadata: StatusMetadata,
    pub name_rule: NameRule,
    /// PUT without resourceVersion overwrites.
    pub unconditional_update: bool,
    /// PUT of an absent object creates it.
    pub create_on_update: bool,
    /// DELETE answers the object instead of a Status.
    pub returns_deleted: bool,
    /// Answered and not stored.
    pub review: bool,
    /// metadata.generation is kept.
    pub generation: bool,
    /// Updates check the metadata as a whole once more, so that its errors come once more.
    pub rechecks_metadata: bool,
    /// Updates check the change of the metadata once more.
    pub rechecks_change: bool,
    /// Metadata of a new object are looked at when nothing else is wrong with it.
    pub metadata_last: bool,
    /// Finalizers are standard names or qualified ones.
    pub standard_finalizers: bool,
    /// Deletions look after dependents.
    pub owns_dependents: bool,
    /// Fields besides name and namespace that selectors may use.
    pub selectable: &'static [Selectable],
    pub form: Form,
    pub stored_as: Option<&'static StoredAs>,
    /// The warning that each answer carries.
    pub deprecation: &'static str,
    pub default: fn(&mut Value),
    /// Changes an object before it is validated; the second is the stored one.
    pub prepare: fn(&mut Value, Option<&Value>),
    pub validate: fn(&Value, Option<&Value>) -> Vec<FieldError>,
    /// The errors of a write to the status subresource.
    pub validate_status: fn(&Value, &Value) -> Vec<FieldError>,
    /// Warnings about what is accepted and not advised.
    pub warnings: fn(&Value, Option<&Value>) -> Vec<String>,
    /// Whether tables begin with the name.
    pub name_column: bool,
    /// What tables show besides the name.
    pub columns: &'static [ShippedColumn],
}

impl Shipped {
    /// The object in its typed shape, with its unknown members and its first type error.
    pub fn shape(&self, object: &Value) -> Shaped {
        match self.form {
            Form::Typed(shape) => {
                let read = shape::read(object, shape);
                Shaped { value: read.value, unknown: read.unknown, error: read.error, errors: read.errors }
            }
            Form::Definition(version) => definition::shape(object, version),
        }
    }

    /// Whether a member that comes twice in a JSON body is noticed, by its path.
    pub fn sees_duplicate(&self, path: &str) -> bool {
        shape::sees_duplicate(path, self.structure())
    }

    /// A JSON body in which members come again.
    pub fn joined(&self, body: &[u8]) -> Value {
        shape::joined(&machinery::value::decode_every(body), self.structure())
    }

    /// The object before anything is set: what a create does not bring into being.
    pub fn zero(&self) -> Value {
        match self.form {
            Form::Typed(shape) => shape::read(&Value::object(), shape).value,
            Form::Definition(version) => definition::zero(version),
        }
    }

    /// The form that is stored.
    pub fn to_stored(&self, object: Value) -> Value {
        let object = match self.form {
            Form::Typed(shape) => shape::read_stored(&object, shape),
            // of either version, see `stored_as`
            Form::Definition(ApiVersion::V1) => schema::definition::to_stored(&object),
            Form::Definition(ApiVersion::V1Beta1) => object,
        };
        match self.stored_as {
            Some(stored) => (stored.to_stored)(object),
            None => object,
        }
    }

    /// A stored object as this kind shows it.
    pub fn to_shown(&self, object: Value) -> Value {
        match self.stored_as {
            Some(stored) => (stored.to_shown)(object),
            None => object,
        }
    }

    /// The group under which objects are stored.
    pub fn storage_group(&self) -> &'static str {
        self.stored_as.map_or(self.group, |stored| stored.group)
    }

    /// The Go package of the internal type, as errors show it.
    pub fn go_package(&self) -> &'static str {
        match self.storage_group().split('.').next() {
            None | Some("") => "core",
            Some(package) => package,
        }
    }

    /// The shape of the kind.
    pub fn structure(&self) -> &'static Struct {
        match self.form {
            Form::Typed(shape) => shape,
            Form::Definition(ApiVersion::V1) => &shape::DEFINITION,
            Form::Definition(ApiVersion::V1Beta1) => &shape::DEFINITION_BETA,
        }
    }

    /// The schema of the kind as far as patches and OpenAPI need it.
    pub fn type_schema(&self) -> Value {
        shape::type_schema(self.structure())
    }

    /// The schema of the kind as expressions are checked against it.
    pub fn declared_schema(&self) -> Value {
        shape::declared_schema(self.structure())
    }

    /// The text of a selectable field, if it is one.
    pub fn field_text(&self, object: &Value, label: &str) -> Option<Text> {
        let (_, paths) = self.selectable.iter().find(|(name, _)| *name == label)?;
        let text = |path: &&str| object.str_at(&path.split('.').collect::<Vec<_>>());
        let found = paths.iter().map(text).find(|text| !text.is_empty());
        Some(Text::from(found.unwrap_or_default()))
    }

    /// Whether an object without finalizers may go; a namespace has finalizers of its own.
    pub fn allows_removal(&self, object: &Value) -> bool {
        self.kind != "Namespace"
            || object.at(&["spec", "finalizers"]).and_then(Value::as_array).is_none_or(<[Value]>::is_empty)
    }

    /// Whether tables show what they show of a kind that nobody made columns for.
    pub fn has_default_columns(&self) -> bool {
        matches!(self.columns, [only] if only.name == columns::CREATED_AT.name)
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
    PatchMeta::of_kind(&shipped.map(Shipped::type_schema).unwrap_or_default())
}

/// The other look at objects that are stored with those of a kind, by its group and version, served or not.
pub fn sibling(shipped: &Shipped, api_version: &str) -> Option<&'static Shipped> {
    static BETA_DEFINITION: Shipped = definition::BETA;
    static MIGRATIONS: [Shipped; 2] = [migrations::BETA_MIGRATION, migrations::MIGRATION];
    let mut all = SHIPPED.iter().chain([&BETA_DEFINITION]).chain(&MIGRATIONS);
    let found = all.find(|s| s.kind == shipped.kind && group_version(s.group, s.version) == api_version)?;
    let is_other = (found.group, found.version) != (shipped.group, shipped.version);
    (is_other && found.storage_group() == shipped.storage_group()).then_some(found)
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
    status_metadata: StatusMetadata::Written,
    name_rule: NameRule::Subdomain,
    unconditional_update: true,
    create_on_update: false,
    returns_deleted: false,
    review: false,
    generation: false,
    rechecks_metadata: false,
    rechecks_change: true,
    metadata_last: false,
    standard_finalizers: true,
    owns_dependents: true,
    selectable: &[],
    form: Form::Typed(&REVIEW),
    stored_as: None,
    deprecation: "",
    default: |_| {},
    prepare: |_, _| {},
    validate: |_, _| vec![],
    validate_status: |_, _| vec![],
    warnings: |_, _| vec![],
    name_column: true,
    columns: &[columns::AGE],
};

static REVIEW: Struct = Struct {
    name: "SelfSubjectReview",
    fields: &[
        non_empty("apiVersion", TEXT),
        non_empty("kind", TEXT),
        given("metadata", Shape::Struct(&OBJECT_META)),
        always("status", Shape::Struct(&reviews::SELF_STATUS)),
    ],
};

const SELF_SUBJECT_REVIEW: Shipped = Shipped {
    group: "authentication.k8s.io",
    kind: "SelfSubjectReview",
    plural: "selfsubjectreviews",
    singular: "selfsubjectreview",
    namespaced: false,
    review: true,
    form: Form::Typed(&REVIEW),
    ..BASE
};

/// Every shipped kind.
pub static SHIPPED: [Shipped; 27] = [
    config::CONFIG_MAP,
    namespaces::NAMESPACE,
    secrets::SECRET,
    accounts::SERVICE_ACCOUNT,
    services::SERVICE,
    quotas::RESOURCE_QUOTA,
    events::CORE_EVENT,
    events::EVENT,
    leases::LEASE,
    rbac::ROLE,
    rbac::ROLE_BINDING,
    rbac::CLUSTER_ROLE,
    rbac::CLUSTER_ROLE_BINDING,
    webhooks::VALIDATING,
    webhooks::MUTATING,
    policies::POLICY,
    policies::BINDING,
    flow::SCHEMA,
    flow::LEVEL,
    SELF_SUBJECT_REVIEW,
    reviews::SELF_ACCESS,
    reviews::ACCESS,
    reviews::LOCAL_ACCESS,
    reviews::SELF_RULES,
    reviews::TOKEN,
    definition::DEFINITION,
    apiservices::API_SERVICE,
];

/// The shipped kinds that are stored, each in its own form.
pub fn stored_kinds() -> impl Iterator<Item = &'static Shipped> {
    static THIRD_PARTY: Shipped = third_party::THIRD_PARTY_RESOURCE;
    static MIGRATION: Shipped = migrations::BETA_MIGRATION;
    static MUTATIONS: [Shipped; 2] = [mutations::BETA_POLICY, mutations::BETA_BINDING];
    static ALLOCATIONS: [Shipped; 2] = [allocations::IP_ADDRESS, allocations::RANGE_ALLOCATION];
    let switched = [&THIRD_PARTY, &MIGRATION].into_iter().chain(&MUTATIONS).chain(&ALLOCATIONS);
    SHIPPED.iter().chain(switched).filter(|shipped| !shipped.review && shipped.stored_as.is_none())
}

/// Definitions in their older form, which others may have stored.
pub fn beta_definition() -> &'static Shipped {
    static BETA: Shipped = definition::BETA;
    &BETA
}

/// Raises the generation with every change outside of metadata and status.
fn count_generations(object: &mut Value, old: Option<&Value>) {
    let Some(old) = old else { return };
    let outside = |v: &Value| -> Vec<(Text, Value)> {
        let all = v.as_object().into_iter().flat_map(machinery::Map::iter);
        let members = all.filter(|(key, _)| !matches!(key.as_str(), "apiVersion" | "kind" | "metadata" | "status"));
        members.map(|(key, value)| (key.clone(), value.clone())).collect()
    };
    if outside(object) != outside(old) {
        let generation = old.at(&["metadata", "generation"]).and_then(Value::as_int).unwrap_or_default();
        object.set_at(&["metadata", "generation"], Value::Int(generation + 1));
    }
}

fn texts(list: &[&'static str]) -> Vec<Text> {
    list.iter().map(|s| Text::new_static(s)).collect()
}

/// The shipped kinds that are served, each with its older versions.
pub fn served(config: RuntimeConfig) -> Vec<(&'static Shipped, &'static [Shipped])> {
    static BETA_DEFINITION: [Shipped; 1] = [definition::BETA];
    let older: &[Shipped] = if config.beta_definitions { &BETA_DEFINITION } else { &[] };
    static THIRD_PARTY: [Shipped; 1] = [third_party::THIRD_PARTY_RESOURCE];
    let third_party: &'static [Shipped] = if config.third_party_resources { &THIRD_PARTY } else { &[] };
    static MUTATIONS: [(&Shipped, &[Shipped]); 2] =
        [(&mutations::BETA_POLICY, &[mutations::POLICY]), (&mutations::BETA_BINDING, &[mutations::BINDING])];
    let mutations: &[(&'static Shipped, &'static [Shipped])] = if config.mutating_policies { &MUTATIONS } else { &[] };
    static BETA_MIGRATION: (&Shipped, &[Shipped]) = (&migrations::BETA_MIGRATION, &[]);
    static MIGRATION: (&Shipped, &[Shipped]) = (&migrations::MIGRATION, &[]);
    static BOTH_MIGRATIONS: (&Shipped, &[Shipped]) = (&migrations::BETA_MIGRATION, &[migrations::MIGRATION]);
    let migrations = match (config.beta_migrations, config.migrations) {
        (false, false) => None,
        (true, false) => Some(BETA_MIGRATION),
        (false, true) => Some(MIGRATION),
        (true, true) => Some(BOTH_MIGRATIONS),
    };
    let older_of = |shipped: &Shipped| if *shipped == definition::DEFINITION { older } else { &[] };
    let all = SHIPPED.iter().chain(third_party).map(|shipped| (shipped, older_of(shipped)));
    all.chain(mutations.iter().copied()).chain(migrations).collect()
}

fn version(shipped: &'static Shipped) -> Arc<Version> {
    let mut version = Version::new(Text::new_static(shipped.version), &shipped.type_schema());
    version.status = shipped.status;
    version.deprecation = Some(Text::new_static(shipped.deprecation)).filter(|text| !text.is_empty());
    version.shipped = Some(shipped);
    Arc::new(version)
}

/// The resource of a shipped kind, which is stored in its own version.
pub fn resource(shipped: &'static Shipped, older: &'static [Shipped], objects: &Objects) -> Resource {
    let (group, plural) = (Text::new_static(shipped.group), Text::new_static(shipped.plural));
    let stored_in = Text::new_static(shipped.storage_group());
    Resource {
        collection: objects.collection(&stored_in, &plural),
        group,
        plural,
        singular: Text::new_static(shipped.singular),
        kind: Text::new_static(shipped.kind),
        list_kind: Text::from(format!("{}List", shipped.kind)),
        short_names: texts(shipped.short_names),
        categories: texts(shipped.categories),
        namespaced: shipped.namespaced,
        versions: std::iter::once(shipped).chain(older).map(version).collect(),
        storage: 0,
        conversion: Conversion::None,
        rules: Rules::Shipped(shipped),
        third_party: false,
        broken: false,
        established: true,
        settled: true,
        terminating: false,
        fingerprint: String::new(),
        retired: Arc::new(tokio::sync::watch::Sender::new(false)),
    }
}

/// Whether a group is one of shipped kinds.
pub fn is_shipped_group(group: &str) -> bool {
    SHIPPED.iter().any(|shipped| shipped.group == group)
}

/// Whether a group is kube-apiserver's own: no custom resource is served in it.
pub fn is_built_in_group(group: &str) -> bool {
    is_shipped_group(group) || foreign::is_group(group)
}

/// The order of groups in discovery: greater is earlier (api-machinery 16.3).
pub fn group_priority(group: &str) -> u32 {
    match group {
        // no APIService says so: this group is there before them
        REGISTRATION_GROUP => 20_001,
        "" => 18_000,
        "extensions" => 17_900,
        "events.k8s.io" => 17_750,
        "authentication.k8s.io" => 17_700,
        "authorization.k8s.io" => 17_600,
        "rbac.authorization.k8s.io" => 17_000,
        "apiextensions.k8s.io" | "admissionregistration.k8s.io" => 16_700,
        "coordination.k8s.io" => 16_500,
        FLOW_GROUP => 16_100,
        MIGRATION_GROUP => 15_800,
        _ => 1_000,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Members are found by binary search.
    fn check_sorted(shape: &Struct) {
        assert!(shape.fields.is_sorted_by(|a, b| a.name < b.name), "{}", shape.name);
        for field in shape.fields {
            match &field.shape {
                Shape::Struct(inner) | Shape::List(_, Shape::Struct(inner)) => check_sorted(inner),
                _ => {}
            }
        }
    }

    #[test]
    fn members_of_shapes_are_sorted() {
        for shipped in &SHIPPED {
            if let Form::Typed(shape) = shipped.form {
                check_sorted(shape);
            }
        }
    }

    #[test]
    fn events_are_one_object_in_two_forms() {
        let event = machinery::json!({
            "apiVersion": "events.k8s.io/v1", "kind": "Event", "metadata": {"name": "a", "namespace": "n"},
            "note": "hello", "regarding": {"kind": "Boat"}, "reportingController": "c", "eventTime": null,
            "deprecatedSource": {}, "deprecatedFirstTimestamp": null, "deprecatedLastTimestamp": null
        });
        let stored = events::EVENT.to_stored(event.clone());
        assert_eq!(stored.str_at(&["message"]), "hello");
        assert_eq!(stored.str_at(&["involvedObject", "kind"]), "Boat");
        assert_eq!(stored.str_at(&["reportingInstance"]), "");
        assert_eq!(events::EVENT.to_shown(stored.clone()), event);
        assert_eq!(events::CORE_EVENT.field_text(&stored, "source").as_deref(), Some("c"));
        assert!(sibling(&events::EVENT, "v1").is_some_and(|s| s.group.is_empty()));
        assert!(sibling(&config::CONFIG_MAP, "v1").is_none());
    }
}
