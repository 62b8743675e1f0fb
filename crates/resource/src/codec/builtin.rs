//! The codec of built-in kinds, which are typed by the shape in their row.

use std::borrow::Cow;

use base::request::FieldValidation;
use bytes::Bytes;
use machinery::patch::RawKind;
use machinery::patch::strategic_merge::PatchMeta;
use machinery::types::message_name;
use machinery::value::{Decoded, key_order};
use machinery::{FieldError, FieldPath, Release, Result, Status, Text, Value};
use objects::Key;
use schema::shape;

use super::timestamps::Uncoerced;
use super::{Codec, Endpoint, Patched, TypeMeta, Unpatched, Warn, report, split_version};
use crate::body::{Document, Format, Strict, not_a_string, type_error, type_text, typed_version};
use crate::builtin::{BuiltIn, type_version};
use crate::registry::Registry;
use crate::scheme::unknown_kind;

pub struct BuiltInCodec {
    pub at: Endpoint,
    pub row: &'static BuiltIn,
}

impl Codec for BuiltInCodec {
    fn api_version(&self) -> Text {
        self.at.api_version()
    }

    fn kind(&self) -> &str {
        self.row.kind
    }

    fn decode(&self, document: &Document, validation: FieldValidation, warn: Warn<'_>) -> Result<Value> {
        let Decoded { value: mut object, duplicates } = self.at.body_type().parse(document)?;
        if document.format == Format::Json && !duplicates.is_empty() {
            object = self.row_of(&object).joined(document.bytes());
        }
        let posted_as = self.row.also_posted_as.filter(|version| {
            // an error about another kind names its own version
            let is_own_kind = ["", self.row.kind].contains(&type_text(&object, "kind"));
            is_own_kind && object.str_at(&["apiVersion"]) == *version
        });
        if posted_as.is_some() {
            object.set_at(&["apiVersion"], Value::String(self.at.api_version()));
        }
        self.default_type(&mut object, document)?;
        keep_reset(&mut object);
        let mut strict = Strict::of(duplicates);
        let given = posted_as.unwrap_or(object.str_at(&["apiVersion"])).to_owned();
        let kind = object.str_at(&["kind"]).to_owned();
        let bad_body = |why: &str| self.at.body_type().bad_body(&kind, split_version(&given).1, why);
        let normalized = self.normalize(&mut object, &mut strict);
        if document.format == Format::Json {
            self.keep_seen(&mut strict, &object);
        }
        let strict = strict.in_order(document);
        normalized.map_err(|why| bad_body(&self.first_type_error(|| document.json_text(), &object, why)))?;
        report(&strict, document, validation, warn, bad_body)?;
        if posted_as.is_none() {
            self.at.body_type().check_version(&given)?;
        }
        let (name, namespace) = (object.str_at(&["metadata", "name"]), object.str_at(&["metadata", "namespace"]));
        if self.row.refuses_namespaces && !namespace.is_empty() {
            let error = FieldError::forbidden(&FieldPath::new("metadata.namespace"), "not allowed on this type");
            return Err(Status::invalid(self.row.group, self.row.kind, name, &[error]));
        }
        Ok(object)
    }

    fn decode_patched(&self, object: &mut Value, strict: &mut Strict, from: Patched<'_>) -> Result<(), Unpatched> {
        let strategic = matches!(from, Patched::Maps);
        match object.as_object().and_then(not_a_string).filter(|_| strategic) {
            Some(why) => return Err(Unpatched::Invalid(self.conversion_error(object).unwrap_or(why))),
            None if strategic => {}
            None => self.check_patched_type(object, strict)?,
        }
        object.set_at(&["kind"], Value::from(self.row.kind));
        object.set_at(&["apiVersion"], Value::String(self.at.api_version()));
        keep_reset(object);
        if strategic {
            shape::convert_numbers(object, self.row.structure());
            strict.omit_keys();
        }
        let normalized = self.normalize(object, strict);
        normalized.map_err(|why| match from {
            Patched::Maps => self.conversion_error(object).unwrap_or(why),
            Patched::Text(text) => self.first_type_error(|| text().into(), object, why),
        })?;
        self.keep_seen(strict, object);
        Ok(())
    }

    fn patch_meta(&self) -> PatchMeta {
        PatchMeta::of_type(self.row.go_type())
    }

    fn printed_as(&self) -> RawKind {
        RawKind::BuiltIn
    }

    fn normalize_applied(&self, object: &mut Value, configuration: &Value, _live: Option<&Value>) -> Result<Uncoerced> {
        shape::convert_numbers(object, self.row.structure());
        self.read(object, &mut Strict::default()).map_err(|why| {
            let text = |key: &str| configuration.str_at(&["metadata", key]);
            let (namespace, name) = (text("namespace"), text("name"));
            let kind = format!("{}/{}, Kind={}", self.row.group, self.row.version, self.row.kind);
            let why = self.conversion_error(object).unwrap_or(why);
            let unable = format!("unable to convert unstructured object to {kind}: {why}");
            let object = format!("{namespace}/{name}; {kind}");
            Status::untyped(500, format!("failed to convert new object ({object}) to proper version: {unable}"))
        })?;
        Ok(Uncoerced::Same)
    }

    fn check_admitted(&self, object: &Value, registry: &Registry) -> Result<()> {
        let (api_version, kind) = (object.str_at(&["apiVersion"]), object.str_at(&["kind"]));
        if kind == self.row.kind && api_version == self.at.api_version() {
            return Ok(());
        }
        let (group, version) = split_version(api_version);
        Err(match registry.of_built_in_kind(group, version, kind) {
            true => {
                let package = self.row.group.split('.').next().filter(|name| !name.is_empty()).unwrap_or("core");
                let wanted = self.row.kind;
                Status::untyped(
                    500,
                    format!("converting ({version}.{kind}) to ({package}.{wanted}): unknown conversion"),
                )
            }
            false => Status::internal(unknown_kind(kind, api_version)),
        })
    }

    fn normalize_admitted(&self, object: &mut Value) -> Result<()> {
        self.read(object, &mut Strict::default()).map_err(Status::internal)
    }

    fn audited<'a>(&self, object: &'a Value) -> Cow<'a, Value> {
        if object.get("metadata").is_some() {
            return Cow::Borrowed(object);
        }
        let mut object = object.clone();
        object.set_at(&["metadata"], Value::object());
        Cow::Owned(object)
    }

    fn printed(&self, object: &Value) -> Option<Value> {
        // decoding keeps empty lists and maps, which JSON omits
        object.has_empty().then(|| self.row.printed(object))
    }

    fn zero(&self) -> Option<Value> {
        Some(self.row.zero())
    }

    fn invalid(&self, _submitted: &TypeMeta, name: &str, errors: &[FieldError]) -> Status {
        Status::invalid(self.row.storage_group(), self.row.kind, name, errors)
    }

    /// The keys of built-in kinds other than CRDs have no group.
    fn shown_key(&self, key: &Key) -> String {
        match self.row.is_definition() {
            true => String::from_utf8_lossy(&key.to_bytes()).into_owned(),
            false => format!("/registry/{}", self.row.upstream_path(&key.path)),
        }
    }

    fn is_equal(&self, a: &Value, b: &Value) -> bool {
        // built-in types do not distinguish empty from absent lists
        self.row.to_stored(a.clone()) == self.row.to_stored(b.clone())
    }

    fn is_shown_as_stored(&self, _stored: &Value) -> bool {
        self.row.stored_as.is_none()
    }
}

/// Replaces an empty list of managedFields by a list with one empty entry. Both reset managedFields, but a typed object
/// loses an empty list when it is read. In custom resources an empty list resets nothing.
fn keep_reset(object: &mut Value) {
    const MANAGED_FIELDS: [&str; 2] = ["metadata", "managedFields"];
    if object.at(&MANAGED_FIELDS).and_then(Value::as_array).is_some_and(<[Value]>::is_empty) {
        object.set_at(&MANAGED_FIELDS, Value::Array(vec![Value::object()]));
    }
}

impl BuiltInCodec {
    pub fn release(&self) -> Release {
        self.at.resource.release
    }

    /// Decodes an object as the type of the kind and sets defaults. The error is Go's text for a field of the wrong
    /// type.
    fn read(&self, object: &mut Value, strict: &mut Strict) -> Result<(), String> {
        let shaped = self.row.shape_as(object, strict.keys());
        strict.extend_typed(shaped.unknown);
        if let Some(error) = shaped.error {
            return Err(error);
        }
        *object = shaped.value;
        self.row.set_defaults(object, &self.at.resource.gates);
        (self.row.behaviour.default)(object);
        Ok(())
    }

    /// As [`BuiltInCodec::read`], in the version that the object names.
    fn normalize(&self, object: &mut Value, strict: &mut Strict) -> Result<(), String> {
        let Some(sibling) = self.sibling(object) else { return self.read(object, strict) };
        let shaped = sibling.shape_as(object, strict.keys());
        strict.extend_typed(shaped.unknown);
        shaped.error.map_or(Ok(()), Err)
    }

    /// The other version or group of the kind that the body names, if it does. The body is decoded as that version
    /// before it is rejected.
    fn sibling(&self, object: &Value) -> Option<&'static BuiltIn> {
        let api_version = object.str_at(&["apiVersion"]);
        if object.str_at(&["kind"]) == self.row.kind { self.row.sibling(api_version) } else { None }
    }

    fn row_of(&self, object: &Value) -> &'static BuiltIn {
        self.sibling(object).unwrap_or(self.row)
    }

    /// Keeps only the duplicate fields that typed decoding of JSON reports.
    fn keep_seen(&self, strict: &mut Strict, object: &Value) {
        let row = self.row_of(object);
        strict.duplicates.retain(|path| row.sees_duplicate(path));
    }

    /// The error of the field of the wrong type that comes first in the JSON text of the object.
    fn first_type_error(&self, text: impl FnOnce() -> Bytes, object: &Value, why: String) -> String {
        let errors = self.row_of(object).shape(object).errors;
        let first = match errors.len() {
            0 | 1 => None,
            _ => shape::first_error(&errors, Some(&key_order(&text()))),
        };
        self.row_of(object).typed_in_version(&first.unwrap_or(why))
    }

    /// The error of converting a map to the typed object if a field has the wrong type.
    fn conversion_error(&self, object: &Value) -> Option<String> {
        let go_type = message_name(&self.at.api_version(), self.row.kind);
        shape::first_conversion_error(&self.row.shape(object).errors, object, &go_type)
    }

    /// Sets `apiVersion` and `kind` if the body omits them, and rejects a body of another type.
    fn default_type(&self, object: &mut Value, document: &Document) -> Result<()> {
        let (kind, api_version) = (type_text(object, "kind").to_owned(), typed_version(object));
        let expected = self.at.api_version();
        let other = !api_version.is_empty() && api_version != expected;
        if other && kind.is_empty() && self.row.sibling(&api_version).is_some() {
            object.set_at(&["kind"], Value::from(self.row.kind));
        }
        if self.sibling(object).is_some() {
            return Ok(());
        }
        let version = |api_version: &str| api_version.rsplit('/').next().unwrap_or_default().to_owned();
        let given = if api_version.is_empty() { expected.as_str() } else { api_version.as_str() };
        if kind != self.row.kind
            && let Some(error) = self.other_kind_error(&kind, given, object, Some(document))
        {
            return Err(self.at.body_type().bad_body(&kind, &version(given), &error));
        }
        if (!kind.is_empty() && kind != self.row.kind) || other {
            let api_version = if api_version.is_empty() { expected.as_str() } else { &api_version };
            let kind = if kind.is_empty() { self.row.kind } else { &kind };
            return Err(self.at.body_type().bad_body(kind, &version(api_version), &unknown_kind(kind, api_version)));
        }
        if !matches!(object, Value::Object(_)) {
            *object = Value::object();
        }
        object.set_at(&["kind"], Value::from(self.row.kind));
        object.set_at(&["apiVersion"], Value::String(expected));
        Ok(())
    }

    /// Checks `apiVersion` and `kind` of a patched object. An object without an `apiVersion` decodes to an empty one.
    fn check_patched_type(&self, object: &mut Value, strict: &mut Strict) -> Result<(), String> {
        if let Some(why) = type_error(object) {
            return Err(why);
        }
        let (kind, api_version) = (object.str_at(&["kind"]).to_owned(), object.str_at(&["apiVersion"]).to_owned());
        if api_version.is_empty() && !kind.is_empty() && kind != self.row.kind {
            if self.row.scheme().is_none() && self.row.catalogue.is_known("v1", &kind) {
                let (wanted, package) = (self.row.kind, self.row.go_package());
                return Err(format!("converting (core.{kind}) to ({package}.{wanted}): unknown conversion"));
            }
            let why = "is registered for the internal version of group \"\" in scheme \"pkg/runtime/scheme.go:111\"";
            return Err(format!("no kind {} {why}", machinery::value::quote(&kind)));
        }
        if api_version.is_empty() {
            let read = std::mem::replace(object, Value::object());
            let fields = read.as_object().into_iter().flat_map(machinery::Map::keys).map(ToString::to_string);
            strict.unknown.extend(fields.filter(|name| !matches!(name.as_str(), "apiVersion" | "kind")));
            return Ok(());
        }
        let kind = if kind.is_empty() { self.row.kind } else { &kind };
        if kind != self.row.kind {
            let error = self.other_kind_error(kind, &api_version, object, None);
            return Err(error.unwrap_or_else(|| unknown_kind(kind, &api_version)));
        }
        match api_version == self.at.api_version() || self.row.sibling(&api_version).is_some() {
            true => Ok(()),
            false => Err(unknown_kind(kind, &api_version)),
        }
    }

    /// The error of a body that is a list or an object of another built-in kind, which decodes as its own type but
    /// cannot be converted. CRDs and APIServices have schemes of their own, in which no other kinds are registered.
    fn other_kind_error(
        &self,
        kind: &str,
        api_version: &str,
        object: &Value,
        document: Option<&Document>,
    ) -> Option<String> {
        let is = |row: &&BuiltIn| {
            (row.kind == kind || kind.strip_suffix("List") == Some(row.kind)) && row.api_version == api_version
        };
        let catalogue = self.row.catalogue;
        let own = self.row.scheme();
        let other = catalogue.kinds().find(is);
        if other.is_some_and(|row| row.scheme() != own) {
            return None;
        }
        let is_known = match own {
            Some(group) => catalogue.is_known_in_scheme_of(group, api_version, kind),
            None => catalogue.is_known(api_version, kind),
        };
        if other.is_none() && !is_known {
            return None;
        }
        let error = catalogue.shape_of(api_version, kind, object).and_then(|shaped| match document {
            Some(document) => shaped.error_in(&document.json_text()),
            None => shaped.error,
        });
        if error.is_some() {
            return error;
        }
        let (wanted, package) = (self.row.kind, self.row.go_package());
        let version = type_version(api_version, kind);
        Some(format!("converting ({version}.{kind}) to ({package}.{wanted}): unknown conversion"))
    }
}
