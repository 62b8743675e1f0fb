//! Built-in kinds: a table with a row for each, and their validation and defaults.

mod accounts;
mod admission;
mod allocations;
mod apiservices;
mod autoscaling;
mod autoscaling_versions;
mod catalogue;
mod certificates;
mod checks;
mod claim_templates;
mod columns;
mod components;
mod config;
mod declarative;
mod declared;
mod definition;
pub mod devices;
mod events;
mod expressions;
mod flow;
mod foreign;
mod job_rules;
mod key_pair;
mod leases;
mod limit_ranges;
mod migrations;
mod mutations;
mod namespaces;
mod nodes;
mod pod_status;
mod pod_volumes;
mod pod_warnings;
mod pods;
mod podspec;
mod policies;
mod quotas;
mod rbac;
mod request_pem;
mod reviews;
mod rollouts;
mod routing;
mod rule_checks;
mod runtime_classes;
mod runtime_config;
mod schedules;
mod secrets;
pub mod services;
mod storage_kinds;
mod tables;
mod third_party;
mod volumes;
mod webhooks;
mod workloads;

pub use accounts::SERVICE_ACCOUNT;
pub use apiservices::{
    API_SERVICES, MANAGED, MANAGED_ALWAYS, MANAGED_AT_START, REGISTRATION_GROUP, SERVED_HERE, version_priority,
};
pub use columns::{AGE_DESCRIPTION, BuiltInColumn, NAME_DESCRIPTION};
pub use definition::{add_cleanup_finalizer, set_terminating};
pub use expressions::{MINOR, Scope, access_review_type, user_info_type};
pub use flow::FLOW_GROUP;
pub use foreign::is_known;
pub use migrations::{MIGRATION_GROUP, MIGRATIONS};
pub use namespaces::NAMESPACE_FINALIZER;
pub use reviews::TOKEN_REQUEST;
pub use runtime_config::RuntimeConfig;
pub use tables::selector_text;
pub use third_party::{THIRD_PARTY_GROUP, THIRD_PARTY_RESOURCES};

use std::sync::LazyLock;

use declarative::Declarative;
use machinery::{FieldError, FieldPath, Release, Text, Value};
use schema::apply::FieldSet;
use schema::definition::ApiVersion;
use schema::shape::{self, OBJECT_META, Shape, Struct, TEXT, TypeError, always, given, non_empty};

use super::group_version;
use super::rules::{Deletion, MetadataRules};

/// The effect of decoding into the Go type of a kind and encoding it again.
pub enum Form {
    Typed(&'static Struct),
    /// The Go type of that name in the table of `machinery::types`.
    Named(&'static str),
    /// CRDs have a decoder of their own.
    Definition(ApiVersion),
}

/// How a kind is stored whose objects are stored in another group or version.
pub struct StoredAs {
    pub group: &'static str,
    pub to_stored: fn(Value) -> Value,
    pub to_shown: fn(Value) -> Value,
}

/// The same object in another version of its kind, whose fields are the same.
fn in_version(mut object: Value, built_in: &BuiltIn) -> Value {
    object.set_at(&["apiVersion"], Value::String(group_version(built_in.group, built_in.version)));
    object
}

/// A field that selectors may use, and where its text is: at the first of these paths that has one. A text that begins with
/// an equals sign stands for itself.
pub type Selectable = (&'static str, &'static [&'static str]);

/// An object in its typed shape.
pub struct Shaped {
    pub value: Value,
    pub unknown: Vec<String>,
    pub error: Option<String>,
    /// All type errors, if decoding went on after the first.
    pub errors: Vec<TypeError>,
}

/// Additional work of the verbs around writes of a kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Hooks {
    None,
    /// Reserves cluster IPs and node ports.
    Service,
    /// Prevents privilege escalation: authors can only grant permissions that they have.
    Role,
    RoleBinding,
    /// Names and establishes what a CRD defines.
    Definition,
    ThirdPartyResource,
    /// Sets the user of a certificate signing request.
    CertificateRequest,
    /// Restricts administrative access to devices.
    ResourceClaim,
}

/// The handler in the verbs of a POST of a kind that is not stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Review {
    SelfSubject,
    Access,
    SelfAccess,
    SelfRules,
    Token,
    TokenRequest,
    /// Assigns a Pod to a Node.
    Binding,
    /// Deletes a Pod unless a budget forbids it.
    Eviction,
}

/// How errors of field selectors name a kind with selectable fields of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Labels {
    Default,
    /// By its name.
    OfKind,
    /// By group, version and name.
    OfVersion,
}

/// How the status endpoint of a kind treats metadata.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StatusMetadata {
    /// The endpoint writes metadata.
    Written,
    /// The endpoint writes metadata, and managedFields do not record it.
    Unowned,
    /// Metadata of the stored object are kept.
    Kept,
}

/// A subresource that a kind has besides `status` and `scale`.
#[derive(Debug)]
pub struct OwnSubresource {
    pub name: &'static str,
    pub verbs: &'static [&'static str],
    pub endpoint: OwnEndpoint,
}

/// The behaviour of an own subresource.
#[derive(Clone, Copy, Debug)]
pub enum OwnEndpoint {
    /// Writes a part of the object.
    Part(&'static Part),
    /// Takes an object of another kind, which is responded to and not stored.
    Posted(&'static BuiltIn),
    /// Connects the client with what the object stands for.
    Connect(Connect),
}

/// The strategy of a subresource that writes a part of the object.
pub struct Part {
    /// Restores what the endpoint does not write; the second is the stored object.
    pub prepare: fn(&mut Value, &Value),
    pub validate: fn(&Value, &Value, Release) -> Vec<FieldError>,
    /// The fields that the endpoint does not write, for managedFields.
    pub reset: fn() -> &'static FieldSet,
}

impl std::fmt::Debug for Part {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Part")
    }
}

/// How the server itself writes what follows from a posted object.
static AS_SERVER: Part = Part { prepare: keep_owners, validate: |_, _, _| vec![], reset: || &NO_RESETS };
/// Writes of the server itself have no owner.
fn keep_owners(object: &mut Value, old: &Value) {
    let path = ["metadata", "managedFields"];
    match old.at(&path) {
        Some(owners) => object.set_at(&path, owners.clone()),
        None => drop(object.remove_at(&path)),
    }
}

static NO_RESETS: LazyLock<FieldSet> = LazyLock::new(|| FieldSet::of_fields(&[]));

/// The target of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Connect {
    /// The log of a container.
    Log,
    /// The streams of a container, by the kind of the options.
    Streams(&'static str),
    /// The HTTP server of a Pod, Service or Node, by the kind of the options.
    Proxy(&'static str),
}

impl OwnSubresource {
    /// Whether a path may follow the name.
    pub fn takes_paths(&self) -> bool {
        matches!(self.endpoint, OwnEndpoint::Connect(Connect::Proxy(_)))
    }

    /// Group, version and kind of its objects, if they are not those of the resource.
    pub fn kind(&self) -> Option<(&'static str, &'static str, &'static str)> {
        match self.endpoint {
            OwnEndpoint::Posted(row) => Some((row.group, row.version, row.kind)),
            OwnEndpoint::Connect(Connect::Streams(kind) | Connect::Proxy(kind)) => Some(("", "v1", kind)),
            OwnEndpoint::Connect(Connect::Log) | OwnEndpoint::Part(_) => None,
        }
    }
}

/// A built-in kind.
pub struct BuiltIn {
    pub group: &'static str,
    pub version: &'static str,
    pub kind: &'static str,
    pub plural: &'static str,
    pub singular: &'static str,
    pub short_names: &'static [&'static str],
    pub categories: &'static [&'static str],
    pub namespaced: bool,
    pub status: bool,
    /// Whether a create resets the status to its zero value.
    pub fresh_status: bool,
    /// Whether the generation counts the changes of an object.
    pub generation: bool,
    /// Whether there is a subresource `scale`, of `spec.replicas` and `status.replicas`.
    pub scale: bool,
    pub status_metadata: StatusMetadata,
    pub metadata: MetadataRules,
    pub deletion: Deletion,
    pub hooks: Hooks,
    /// The review that responds to a POST, if objects of the kind are not stored.
    pub review: Option<Review>,
    /// The fields that the main endpoint resets, if that is not the status alone.
    pub resets: Option<fn() -> &'static FieldSet>,
    /// The objects of a kind that is computed when it is read.
    pub computed: Option<fn() -> Vec<Value>>,
    /// Subresources besides the status.
    pub subresources: &'static [OwnSubresource],
    /// Whether deletecollection is a verb of the kind.
    pub delete_collection: bool,
    /// Whether objects of the status endpoint can be shown as tables.
    pub status_tables: bool,
    /// PUT without resourceVersion overwrites.
    pub unconditional_update: bool,
    /// PUT of an object that does not exist creates it.
    pub create_on_update: bool,
    /// Errors show the group in keys of objects.
    pub keyed_by_group: bool,
    /// How errors of field selectors name the kind.
    pub labels: Labels,
    /// Fields besides name and namespace that selectors may use.
    pub selectable: &'static [Selectable],
    pub form: Form,
    pub stored_as: Option<&'static StoredAs>,
    /// Text of the warning in every response; empty if the version is not deprecated.
    pub deprecation: &'static str,
    /// The release of Kubernetes that no longer serves the version, if it is known.
    pub removed_release: &'static str,
    /// Refuses the body of a create or an update before anything of it is reset.
    pub check_body: fn(&Value) -> Option<FieldError>,
    pub default: fn(&mut Value),
    /// Changes an object before it is validated; the second is the stored one.
    pub prepare: fn(&mut Value, Option<&Value>),
    /// Canonicalizes a changed object before its fields get owners.
    pub canonicalize: fn(&mut Value),
    /// The object as it is validated, if that is another one.
    pub validated: fn(&Value) -> Option<Value>,
    pub validate: fn(&Value, Option<&Value>, Release) -> Vec<FieldError>,
    /// Changes an object whose status is written before it is validated; the second is the stored one.
    pub prepare_status: fn(&mut Value, &Value),
    /// The errors of a write to the status subresource.
    pub validate_status: fn(&Value, &Value, Release) -> Vec<FieldError>,
    /// The rules of declarative validation that are enforced. An error of theirs replaces one of the same sort at the same
    /// field, and comes after all others.
    pub declarative: Option<Declarative>,
    /// Warnings about what is accepted and not advised.
    pub warnings: fn(&Value, Option<&Value>, Release) -> Vec<String>,
    /// Whether tables begin with the name.
    pub name_column: bool,
    /// The columns of tables besides the name.
    pub columns: &'static [BuiltInColumn],
    /// The columns before a release.
    pub former_columns: Option<(Release, &'static [BuiltInColumn])>,
}

impl BuiltIn {
    /// The object in its typed shape, with its unknown fields and its first type error.
    pub fn shape(&self, object: &Value) -> Shaped {
        match self.form {
            Form::Definition(version) => definition::shape(object, version),
            Form::Typed(_) | Form::Named(_) => {
                let read = shape::read_request(object, self.structure());
                Shaped { value: read.value, unknown: read.unknown, error: read.error, errors: read.errors }
            }
        }
    }

    /// A type error with the names of the types of this version. Types of metadata are always of v1.
    pub fn typed_in_version(&self, why: &str) -> String {
        const SHARED: [&str; 3] = ["LabelSelector", "ObjectMeta", "OwnerReference"];
        match why.rsplit_once(" of type v1.") {
            Some((head, name)) if !SHARED.iter().any(|shared| name.starts_with(shared)) => {
                format!("{head} of type {}.{name}", self.version)
            }
            _ => why.to_owned(),
        }
    }

    /// A decoded object as its JSON shows it: without empty lists and maps that Go's encoder omits.
    pub fn printed(&self, object: &Value) -> Value {
        match self.form {
            Form::Definition(_) => object.clone(),
            Form::Typed(_) | Form::Named(_) => shape::read(object, self.structure()).value,
        }
    }

    /// Whether decoding reports a duplicate field at a path of a JSON body.
    pub fn sees_duplicate(&self, path: &str) -> bool {
        shape::sees_duplicate(path, self.structure())
    }

    /// Decodes a JSON body with duplicate fields, as Go merges them.
    pub fn joined(&self, body: &[u8]) -> Value {
        shape::joined(&machinery::value::decode_every(body), self.structure())
    }

    /// The errors of an object: those of its kind, then those of the rules of its types.
    pub fn errors(&self, object: &Value, old: Option<&Value>, release: Release) -> Vec<FieldError> {
        let validated = (self.validated)(object);
        let object = validated.as_ref().unwrap_or(object);
        let mut errors = (self.validate)(object, old, release);
        let own = errors.len();
        self.add_rule_errors(object, old, false, &mut errors);
        podspec::drop_unchecked(&mut errors, own);
        errors
    }

    /// A subresource of this kind alone.
    pub fn own_subresource(&self, name: &str) -> Option<&'static OwnSubresource> {
        self.subresources.iter().find(|own| own.name == name)
    }

    /// The strategy of a subresource that writes a part of the object.
    pub fn part(&self, name: &str) -> Option<&'static Part> {
        match self.own_subresource(name)?.endpoint {
            OwnEndpoint::Part(part) => Some(part),
            OwnEndpoint::Posted(_) => Some(&AS_SERVER),
            OwnEndpoint::Connect(_) => None,
        }
    }

    /// The errors of a status: those of its kind, then those of the rules of its types.
    pub fn status_errors(&self, object: &Value, old: &Value, release: Release) -> Vec<FieldError> {
        let mut errors = (self.validate_status)(object, old, release);
        self.add_rule_errors(object, Some(old), true, &mut errors);
        errors
    }

    fn add_rule_errors(&self, object: &Value, old: Option<&Value>, of_status: bool, errors: &mut Vec<FieldError>) {
        let (is_update, checks) = (old.is_some(), rule_checks::named);
        let mut rules = shape::RuleErrors { is_update, of_status, checks, errors };
        rules.of(object, old, self.structure(), &FieldPath::root());
    }

    /// The zero value of the kind's Go type.
    pub fn zero(&self) -> Value {
        match self.form {
            Form::Definition(version) => definition::zero(version),
            Form::Typed(_) | Form::Named(_) => shape::read(&Value::object(), self.structure()).value,
        }
    }

    /// Converts an object to its stored form.
    pub fn to_stored(&self, object: Value) -> Value {
        let object = match self.form {
            Form::Typed(_) | Form::Named(_) => shape::read_stored(&object, self.structure()),
            // of either version, see `stored_as`
            Form::Definition(ApiVersion::V1) => schema::definition::to_stored(&object),
            Form::Definition(ApiVersion::V1Beta1) => object,
        };
        match self.stored_as {
            Some(stored) => (stored.to_stored)(object),
            None => object,
        }
    }

    /// Converts a stored object to this version of the kind.
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
            Form::Named(go) => shape::named(go),
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
        let text = |path: &&str| match path.strip_prefix('=') {
            Some(text) => text.to_owned(),
            None => match object.at(&path.split('.').collect::<Vec<_>>()) {
                Some(Value::Int(number)) => number.to_string(),
                found => found.and_then(Value::as_str).unwrap_or_default().to_owned(),
            },
        };
        let found = paths.iter().map(text).find(|text| !text.is_empty());
        Some(Text::from(found.unwrap_or_default()))
    }

    /// The columns of tables besides the name, in a release.
    pub fn columns_in(&self, release: Release) -> &'static [BuiltInColumn] {
        match self.former_columns {
            Some((since, columns)) if release < since => columns,
            _ => self.columns,
        }
    }

    /// Whether `rows` of an empty table is null, as for all kinds with default columns.
    pub fn has_null_rows(&self) -> bool {
        self.columns.iter().any(|column| column.name == columns::CREATED_AT.name)
    }
}

/// Another version or group of a kind, with the same stored objects, by its `apiVersion`; served or not.
pub fn sibling(built_in: &BuiltIn, api_version: &str) -> Option<&'static BuiltIn> {
    static BETA_DEFINITION: BuiltIn = definition::BETA;
    static MIGRATIONS: [BuiltIn; 2] = [migrations::BETA_MIGRATION, migrations::MIGRATION];
    static FIRST_AUTOSCALER: BuiltIn = autoscaling::FIRST;
    let mut all = kinds().chain([&BETA_DEFINITION, &FIRST_AUTOSCALER]).chain(&MIGRATIONS);
    let found = all.find(|s| s.kind == built_in.kind && group_version(s.group, s.version) == api_version)?;
    let is_other = (found.group, found.version) != (built_in.group, built_in.version);
    (is_other && found.storage_group() == built_in.storage_group()).then_some(found)
}

impl PartialEq for BuiltIn {
    fn eq(&self, other: &BuiltIn) -> bool {
        self.group == other.group && self.kind == other.kind
    }
}

impl Eq for BuiltIn {}

impl std::fmt::Debug for BuiltIn {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.kind)
    }
}

/// The group of CustomResourceDefinitions.
pub const DEFINITION_GROUP: &str = "apiextensions.k8s.io";
/// Their plural.
pub const DEFINITIONS: &str = "customresourcedefinitions";

const BASE: BuiltIn = BuiltIn {
    group: "",
    version: "v1",
    kind: "",
    plural: "",
    singular: "",
    short_names: &[],
    categories: &[],
    namespaced: true,
    status: false,
    fresh_status: false,
    generation: false,
    scale: false,
    status_metadata: StatusMetadata::Written,
    metadata: MetadataRules::BUILT_IN,
    deletion: Deletion::DEFAULT,
    hooks: Hooks::None,
    review: None,
    resets: None,
    computed: None,
    subresources: &[],
    delete_collection: true,
    status_tables: true,
    unconditional_update: true,
    create_on_update: false,
    keyed_by_group: false,
    selectable: &[],
    form: Form::Typed(&REVIEW),
    stored_as: None,
    deprecation: "",
    removed_release: "",
    check_body: |_| None,
    default: |_| {},
    prepare: |_, _| {},
    validate: |_, _, _| vec![],
    prepare_status: |_, _| {},
    labels: Labels::Default,
    canonicalize: |_| {},
    validated: |_| None,
    validate_status: |_, _, _| vec![],
    declarative: None,
    warnings: |_, _, _| vec![],
    name_column: true,
    columns: &[columns::AGE],
    former_columns: None,
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

const SELF_SUBJECT_REVIEW: BuiltIn = BuiltIn {
    group: "authentication.k8s.io",
    kind: "SelfSubjectReview",
    plural: "selfsubjectreviews",
    singular: "selfsubjectreview",
    namespaced: false,
    review: Some(Review::SelfSubject),
    form: Form::Typed(&REVIEW),
    ..BASE
};

/// The built-in kinds with forms of their own.
pub static KINDS: [BuiltIn; 27] = [
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

/// Every built-in kind that is served by default.
pub fn kinds() -> impl Iterator<Item = &'static BuiltIn> + Clone {
    KINDS.iter().chain(catalogue::CATALOGUE)
}

/// The built-in kinds that are stored, each in its own form.
pub fn stored_kinds() -> impl Iterator<Item = &'static BuiltIn> {
    static THIRD_PARTY: BuiltIn = third_party::THIRD_PARTY_RESOURCE;
    static MIGRATION: BuiltIn = migrations::BETA_MIGRATION;
    static MUTATIONS: [BuiltIn; 2] = [mutations::BETA_POLICY, mutations::BETA_BINDING];
    static ALLOCATIONS: [BuiltIn; 1] = [allocations::RANGE_ALLOCATION];
    let switched = [&THIRD_PARTY, &MIGRATION].into_iter().chain(&MUTATIONS).chain(&ALLOCATIONS);
    kinds().chain(switched).filter(|row| row.review.is_none() && row.computed.is_none() && row.stored_as.is_none())
}

/// HorizontalPodAutoscalers in `autoscaling/v1`.
fn first_autoscaler() -> &'static BuiltIn {
    static FIRST: BuiltIn = autoscaling::FIRST;
    &FIRST
}

fn autoscaling_is_on(config: RuntimeConfig) -> bool {
    kinds().filter(|row| row.kind == first_autoscaler().kind).all(|row| config.serves(row))
}

/// CRDs in `v1beta1`, which kube-apiserver may have stored.
pub fn beta_definition() -> &'static BuiltIn {
    static BETA: BuiltIn = definition::BETA;
    &BETA
}

/// Sets the generation to 1 on create, and increments it with every change outside of metadata and status.
pub fn track_generation(object: &mut Value, old: Option<&Value>) {
    let Some(old) = old else { return object.set_at(&["metadata", "generation"], Value::Int(1)) };
    fn counted(object: &Value) -> impl Iterator<Item = (&Text, &Value)> {
        let fields = object.as_object().into_iter().flat_map(machinery::Map::iter);
        fields.filter(|(key, _)| !matches!(key.as_str(), "apiVersion" | "kind" | "metadata" | "status"))
    }
    if !counted(object).eq(counted(old)) {
        let generation = old.at(&["metadata", "generation"]).and_then(Value::as_int).unwrap_or_default();
        object.set_at(&["metadata", "generation"], Value::Int(generation + 1));
    }
}

/// A kind in its storage version, and the other versions that are served.
type Served = (&'static BuiltIn, &'static [BuiltIn]);

/// The built-in kinds that are served, each with its older versions.
pub fn served(config: RuntimeConfig) -> Vec<Served> {
    static BETA_DEFINITION: [BuiltIn; 1] = [definition::BETA];
    let older: &[BuiltIn] = if config.beta_definitions { &BETA_DEFINITION } else { &[] };
    static THIRD_PARTY: [BuiltIn; 1] = [third_party::THIRD_PARTY_RESOURCE];
    let third_party: &'static [BuiltIn] = if config.third_party_resources { &THIRD_PARTY } else { &[] };
    static BETA: [Served; 2] =
        [(&mutations::BETA_POLICY, &[mutations::POLICY]), (&mutations::BETA_BINDING, &[mutations::BINDING])];
    static STABLE: [Served; 2] = [(&mutations::POLICY, &[]), (&mutations::BINDING, &[])];
    static BOTH: [Served; 2] =
        [(&mutations::POLICY, &[mutations::BETA_POLICY]), (&mutations::BINDING, &[mutations::BETA_BINDING])];
    let mutations: &[Served] = match (config.mutating_policies, config.beta_mutating_policies) {
        (false, _) => &[],
        (true, _) if config.release < Release::V1_36 => &BETA,
        (true, false) => &STABLE,
        (true, true) => &BOTH,
    };
    static BETA_MIGRATION: (&BuiltIn, &[BuiltIn]) = (&migrations::BETA_MIGRATION, &[]);
    static MIGRATION: (&BuiltIn, &[BuiltIn]) = (&migrations::MIGRATION, &[]);
    static BOTH_MIGRATIONS: (&BuiltIn, &[BuiltIn]) = (&migrations::BETA_MIGRATION, &[migrations::MIGRATION]);
    let migrations = match (config.beta_migrations, config.migrations) {
        (false, false) => None,
        (true, false) => Some(BETA_MIGRATION),
        (false, true) => Some(MIGRATION),
        (true, true) => Some(BOTH_MIGRATIONS),
    };
    let autoscaler = std::slice::from_ref(first_autoscaler());
    let (first, newest) = (config.serves(first_autoscaler()), autoscaling_is_on(config));
    let older_of = |built_in: &BuiltIn| match built_in.kind {
        "CustomResourceDefinition" => older,
        "HorizontalPodAutoscaler" if first => autoscaler,
        _ => &[],
    };
    let on = kinds().filter(|row| config.serves(row));
    // without v2, v1 is served alone
    let alone = autoscaler.iter().filter(|_| first && !newest);
    let all =
        on.chain(third_party).map(|built_in| (built_in, older_of(built_in))).chain(alone.map(|row| (row, &[][..])));
    all.chain(mutations.iter().copied()).chain(migrations).collect()
}

/// Whether a group is one of built-in kinds.
pub fn is_built_in_group(group: &str) -> bool {
    group == MIGRATION_GROUP || kinds().any(|built_in| built_in.group == group)
}

/// Whether a group is kube-apiserver's own: no custom resource is served in it.
pub fn is_reserved_group(group: &str) -> bool {
    is_built_in_group(group) || foreign::is_group(group)
}

/// `groupPriorityMinimum`: groups of higher priority come first in discovery.
pub fn group_priority(group: &str) -> u32 {
    match group {
        // no APIService says so: this group is there before them
        REGISTRATION_GROUP => 20_001,
        "" => 18_000,
        "extensions" => 17_900,
        "events.k8s.io" => 17_750,
        "authentication.k8s.io" => 17_700,
        "authorization.k8s.io" => 17_600,
        "apps" => 17_800,
        "autoscaling" => 17_500,
        "batch" => 17_400,
        "certificates.k8s.io" => 17_300,
        "networking.k8s.io" => 17_200,
        "policy" => 17_100,
        "rbac.authorization.k8s.io" => 17_000,
        "storage.k8s.io" => 16_800,
        "apiextensions.k8s.io" | "admissionregistration.k8s.io" => 16_700,
        "scheduling.k8s.io" => 16_600,
        "coordination.k8s.io" => 16_500,
        "node.k8s.io" => 16_300,
        "discovery.k8s.io" | "resource.k8s.io" => 16_200,
        FLOW_GROUP => 16_100,
        MIGRATION_GROUP => 15_800,
        _ => 1_000,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Fields are found by binary search.
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
    fn fields_of_shapes_are_sorted() {
        for built_in in kinds() {
            if let Form::Typed(shape) = built_in.form {
                check_sorted(shape);
            }
        }
    }

    #[test]
    fn converts_events_between_groups() {
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
