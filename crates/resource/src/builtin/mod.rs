//! Built-in kinds: a row for each version of a kind, with its facts and what it does with its objects. Which kinds there are
//! is for the crate above to say, in a [`Catalogue`].

mod behaviour;
mod catalogue;
pub mod checks;
pub mod columns;
mod declarative;
pub mod defaults;
mod foreign;
pub mod formats;
mod groups;
pub mod prefixed_names;
mod reserved;
pub mod rules;
mod served;
mod source;

pub use behaviour::{Behaviour, Hooks, NO_RESETS, Objects, Part, PartRules, Review, StoredAs};
pub use catalogue::{
    Availability, BuiltIn, Catalogue, Connect, Generation, GroupVersionKind, Key, Labels, OwnEndpoint, OwnSubresource,
    Shaped, StatusFacts, StatusMetadata,
};
pub use columns::{AGE_DESCRIPTION, BuiltInColumn, NAME_DESCRIPTION, selector_text};
pub use foreign::{is_unversioned, meta_shape, type_version};
pub use reserved::STATIC_SUFFIX;
pub use source::{CellFunction, Check, Condition, GroupSource, Named, Sources};

use std::borrow::Cow;

use base::request::FeatureGates;
use behaviour::AS_SERVER;
use catalogue::FieldSource;
use machinery::types::{go_struct, message_name};
use machinery::{FieldError, Release, Text, Value};
use rules::{Pass, Ruled};
use schema::at;
use schema::definition::ApiVersion;
use schema::metadata::MetadataContext;
use schema::shape::{self, Keys, Struct};

use super::scheme::group_version;

impl BuiltIn {
    /// The conversion of the kind, if its objects are prepared and validated in their stored form.
    fn checked_conversion(&self) -> Option<&'static StoredAs> {
        self.behaviour.conversion.as_ref().filter(|conversion| conversion.checked_path.is_some())
    }

    /// The row of the version in which objects are prepared and validated.
    pub fn checked(&self) -> &BuiltIn {
        let is_stable = |row: &&'static BuiltIn| *row == self && row.stored_as.is_none();
        match self.checked_conversion() {
            Some(_) => self.catalogue.kinds().find(is_stable).unwrap_or(self),
            None => self,
        }
    }

    /// The path of a field in the version in which objects are validated.
    pub fn checked_path(&self, path: &str) -> String {
        let checked = self.behaviour.conversion.as_ref().and_then(|conversion| conversion.checked_path);
        checked.map_or_else(|| path.to_owned(), |checked| checked(path))
    }

    /// Calls `change` with an object in the form in which it is prepared, and with the row of that form.
    pub fn in_checked_form<R>(&self, object: &mut Value, change: impl FnOnce(&BuiltIn, &mut Value) -> R) -> R {
        let Some(conversion) = self.checked_conversion() else { return change(self, object) };
        *object = (conversion.to_stored)(std::mem::take(object));
        let done = change(self.checked(), object);
        *object = (conversion.to_shown)(std::mem::take(object));
        done
    }

    /// An object in the form in which it is validated and compared.
    pub fn checked_form<'a>(&self, object: &'a Value) -> Cow<'a, Value> {
        match self.checked_conversion() {
            Some(conversion) => Cow::Owned((conversion.to_stored)(object.clone())),
            None => Cow::Borrowed(object),
        }
    }

    /// Canonicalizes a changed object before its fields get owners.
    pub fn canonicalize(&self, object: &mut Value) {
        if let Some(conversion) = self.behaviour.conversion.as_ref().filter(|conversion| conversion.is_canonical) {
            *object = (conversion.to_shown)((conversion.to_stored)(std::mem::take(object)));
        }
    }

    /// The version of the row if the kind is CustomResourceDefinition, which has a decoder of its own.
    fn definition(&self) -> Option<ApiVersion> {
        let version = || if self.version == "v1" { ApiVersion::V1 } else { ApiVersion::V1Beta1 };
        self.is_definition().then(version)
    }

    /// The object in its typed shape, with its unknown fields and its first type error.
    pub fn shape(&self, object: &Value) -> Shaped {
        self.shape_as(object, Keys::Included)
    }

    /// As [`BuiltIn::shape`], with or without the keys of maps in the paths of unknown fields.
    pub fn shape_as(&self, object: &Value, keys: Keys) -> Shaped {
        match self.definition() {
            Some(version) => shape_definition(object, version, keys),
            None => {
                let read = shape::read_request_as(object, self.structure(), keys);
                Shaped { value: read.value, unknown: read.unknown, error: read.error, errors: read.errors }
            }
        }
    }

    /// A type error in which types have the version of this row. Types of metadata and names of resources are always
    /// those of v1.
    pub fn typed_in_version(&self, why: &str) -> String {
        const SHARED: [&str; 8] = [
            "CoordinatedLeaseStrategy", "LabelSelector", "ManagedFieldsEntry", "ObjectMeta", "OperationType",
            "OwnerReference", "ReinvocationPolicyType", "ResourceName",
        ];
        for list in ["", "[]"] {
            match why.rsplit_once(&format!(" of type {list}v1.")) {
                Some((head, name)) if !SHARED.iter().any(|shared| name.starts_with(shared)) => {
                    return format!("{head} of type {list}{}.{name}", self.version);
                }
                _ => {}
            }
        }
        why.to_owned()
    }

    /// A decoded object as its JSON shows it: without empty lists and maps that Go's encoder omits.
    pub fn printed(&self, object: &Value) -> Value {
        if self.is_definition() { object.clone() } else { shape::read(object, self.structure()).value }
    }

    /// Whether decoding reports a field that occurs twice at this path of a JSON body.
    pub fn sees_duplicate(&self, path: &str) -> bool {
        shape::sees_duplicate(path, self.structure())
    }

    /// Decodes a JSON body, merging duplicate fields as Go does.
    pub fn joined(&self, body: &[u8]) -> Value {
        shape::joined(&machinery::value::decode_every(body), self.structure())
    }

    /// The errors of an object: first those of the kind's own code, then those of the rules of its types.
    pub fn errors(&self, object: &Value, old: Option<&Value>, release: Release) -> Vec<FieldError> {
        let validated = (self.behaviour.validated)(object);
        let object = validated.as_ref().unwrap_or(object);
        let found = at::found_in(self.catalogue.rules(), object, old, release, |at| {
            (self.behaviour.validate)(at);
            rules::check(Pass::Written { of_status: false }, at, self.ruled());
        });
        rules::in_order(self.ruled(), found)
    }

    /// The warnings about an object, in the form in which it is validated.
    pub fn warnings(&self, object: &Value, old: Option<&Value>, release: Release) -> Vec<String> {
        at::warnings_of(object, old, release, self.behaviour.warnings)
    }

    /// The warnings about a new object before it is prepared.
    pub fn early_warnings(&self, object: &Value, release: Release) -> Vec<String> {
        at::warnings_of(object, None, release, self.behaviour.early_warnings)
    }

    /// The warnings about a written status.
    pub fn status_warnings(&self, object: &Value, release: Release) -> Vec<String> {
        at::warnings_of(object, None, release, self.behaviour.status.warnings)
    }

    /// The errors of a new object, including those of its metadata.
    pub fn errors_of_new(&self, object: &Value, release: Release) -> Vec<FieldError> {
        let own = self.errors(object, None, release);
        self.metadata.merge_create_errors(object, self.metadata_context(release), own)
    }

    pub fn metadata_context(&self, release: Release) -> MetadataContext {
        MetadataContext { namespaced: self.namespaced, release }
    }

    /// A subresource that only this kind has.
    pub fn own_subresource(&self, name: &str) -> Option<&OwnSubresource> {
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

    /// The errors of a status: first those of the kind's own code, then those of the rules of its types.
    pub fn status_errors(&self, object: &Value, old: &Value, release: Release) -> Vec<FieldError> {
        let found = at::found_in(self.catalogue.rules(), object, Some(old), release, |at| {
            (self.behaviour.status.validate)(at);
            rules::check(Pass::Written { of_status: true }, at, self.ruled());
        });
        rules::in_order(self.ruled(), found)
    }

    /// The errors of a write to a subresource.
    pub fn part_errors(&self, part: &Part, object: &Value, old: &Value, release: Release) -> Vec<FieldError> {
        let found = at::found_in(self.catalogue.rules(), object, Some(old), release, |at| {
            (part.validate)(at);
            if part.rules == PartRules::Whole {
                rules::check(Pass::Written { of_status: false }, at, self.ruled());
            }
        });
        rules::in_order(self.ruled(), found)
    }

    /// The rules of the Go type of the kind. CRDs have none, since their validation is separate code.
    fn ruled(&self) -> Option<&'static Ruled> {
        *self.ruled.get_or_init(|| self.catalogue.rules().of(self.go_type()).filter(|_| !self.is_definition()))
    }

    /// Drops the fields of features whose gates are not on, unless the old object has them.
    pub fn drop_gated(&self, object: &mut Value, old: Option<&Value>, gates: &FeatureGates) {
        self.ruled().into_iter().for_each(|of| rules::drop_gated(object, old, of, &|gate| gates.is_on(gate)));
    }

    /// Sets the defaults of fields that are not set, except those of features whose gates are not on.
    pub fn set_defaults(&self, object: &mut Value, gates: &FeatureGates) {
        self.ruled().into_iter().for_each(|of| rules::set_defaults(object, of, &|gate| gates.is_on(gate)));
    }

    /// The zero value of the kind's Go type.
    pub fn zero(&self) -> Value {
        match self.definition() {
            Some(version) => zero_definition(version),
            None => shape::read(&Value::object(), self.structure()).value,
        }
    }

    /// Converts an object to its stored form.
    pub fn to_stored(&self, object: Value) -> Value {
        let object = match self.definition() {
            None => shape::read_stored(&object, self.structure()),
            // for v1beta1, the conversion below reads the fields
            Some(ApiVersion::V1) => schema::definition::to_stored(&object),
            Some(ApiVersion::V1Beta1) => object,
        };
        match (self.stored_as, &self.behaviour.conversion) {
            (Some(_), Some(conversion)) => (conversion.to_stored)(object),
            (Some(stored), None) => in_version(object, stored),
            (None, _) => object,
        }
    }

    /// Converts a stored object to this version of the kind.
    pub fn to_shown(&self, object: Value) -> Value {
        match (self.stored_as, &self.behaviour.conversion) {
            (Some(_), Some(conversion)) => (conversion.to_shown)(object),
            (Some(_), None) => in_version(object, self.api_version),
            (None, _) => object,
        }
    }

    /// The API group under which objects are stored.
    pub fn storage_group(&self) -> &'static str {
        self.stored_as.map_or(self.group, |stored| stored.split_once('/').map_or("", |(group, _)| group))
    }

    /// The Go package of the internal type, as errors show it.
    pub fn go_package(&self) -> &'static str {
        machinery::types::go_package(self.storage_group())
    }

    /// The Go type of the kind, such as `core.v1.Pod`.
    ///
    /// # Panics
    ///
    /// If the table of Go types does not have it; a test looks up all of them.
    pub fn go_type(&self) -> &'static str {
        self.go_type.get_or_init(|| match self.definition() {
            Some(version) => version.go_type(),
            None => {
                let name = message_name(&group_version(self.group, self.form), self.kind);
                go_struct(&name).unwrap_or_else(|| panic!("no Go type {name}")).name
            }
        })
    }

    /// The shape of the kind.
    pub fn structure(&self) -> &'static Struct {
        self.structure.get_or_init(|| shape::named(self.go_type()))
    }

    /// The part of the schema of the kind that patches and OpenAPI need.
    pub fn type_schema(&self) -> Value {
        shape::type_schema(self.structure())
    }

    /// The schema of the kind that expressions are checked against.
    pub fn declared_schema(&self) -> Value {
        shape::declared_schema(self.structure())
    }

    /// The columns of tables besides the name, in a release.
    pub fn columns_in(&self, release: Release) -> &'static [BuiltInColumn] {
        self.catalogue.columns().of(self.table_name(), release)
    }

    /// Whether `rows` of an empty table is null, as it is for all kinds with kube-apiserver's default columns.
    pub fn has_null_rows(&self) -> bool {
        self.catalogue.columns().has_default_columns(self.table_name())
    }

    /// The text of a selectable field; `None` if the field is not selectable.
    pub fn field_text(&self, object: &Value, label: &str) -> Option<Text> {
        let field = self.selectable.iter().find(|field| field.label == label)?;
        let text = |source: &FieldSource| match source {
            FieldSource::Text(text) => (*text).to_owned(),
            FieldSource::Path(path) => match object.at(path) {
                Some(Value::Int(number)) => number.to_string(),
                Some(Value::Bool(set)) => set.to_string(),
                found => found.and_then(Value::as_str).unwrap_or_default().to_owned(),
            },
        };
        let found = field.sources.iter().map(text).find(|text| !text.is_empty());
        Some(Text::from(found.unwrap_or_default()))
    }
}

/// The same object in another version of its kind that has the same fields.
pub fn in_version(mut object: Value, api_version: &str) -> Value {
    object.set_at(&["apiVersion"], Value::from(api_version));
    object
}

/// The group of CustomResourceDefinitions.
pub const DEFINITION_GROUP: &str = "apiextensions.k8s.io";
/// The plural of CustomResourceDefinitions.
pub const DEFINITIONS: &str = "customresourcedefinitions";

/// Whether an update changes nothing but metadata and status. `of` is the Go type of the kind. Empty lists equal absent
/// ones.
pub fn is_same(of: &'static str, object: &Value, old: &Value) -> bool {
    schema::shape::same_fields(object, old, schema::shape::named(of), &UNCOUNTED)
}

/// The fields whose changes do not increment the generation.
pub const UNCOUNTED: [&str; 4] = ["apiVersion", "kind", "metadata", "status"];

/// Sets the generation of a new object to 1, and increments it with every change outside of metadata and status.
pub fn track_generation(object: &mut Value, old: Option<&Value>) {
    let Some(old) = old else { return object.set_at(&["metadata", "generation"], Value::Int(1)) };
    fn counted(object: &Value) -> impl Iterator<Item = (&Text, &Value)> {
        let fields = object.fields();
        fields.filter(|(key, _)| !UNCOUNTED.contains(&key.as_str()))
    }
    if !counted(object).eq(counted(old)) {
        let generation = old.int_at(&["metadata", "generation"]);
        object.set_at(&["metadata", "generation"], Value::Int(generation + 1));
    }
}

fn zero_definition(version: ApiVersion) -> Value {
    let zero = schema::definition::to_stored(&Value::object());
    match version {
        ApiVersion::V1 => zero,
        ApiVersion::V1Beta1 => schema::definition::to_beta(&zero),
    }
}

/// Decodes a body as a CRD.
fn shape_definition(value: &Value, version: ApiVersion, keys: Keys) -> Shaped {
    match schema::definition::decode_as(value, version, keys) {
        Ok(decoded) => Shaped { value: decoded.definition, unknown: decoded.unknown, error: None, errors: vec![] },
        Err(errors) => {
            Shaped { value: Value::object(), unknown: vec![], error: schema::shape::first_error(&errors, None), errors }
        }
    }
}
