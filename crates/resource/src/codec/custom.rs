//! The codec of custom resources, which are typed by their schema.

use base::request::FieldValidation;
use machinery::value::Decoded;
use machinery::{FieldError, FieldPath, Map, Release, Result, Status, Text, Value};
use schema::apply::ConvertError;
use schema::{Malformed, Prior};

use super::timestamps::Uncoerced;
use super::{Codec, Endpoint, Patched, TypeMeta, Unpatched, Warn, report, split_version};
use crate::body::{Document, Format, Strict, type_error};
use crate::registry::Registry;
use crate::rules::metadata::{MetadataRules, restore_system_fields};
use crate::version::Version;

/// Metadata that clients cannot choose. Upstream keeps it as applied until the write resets it.
const SYSTEM_FIELDS: [&str; 5] =
    ["creationTimestamp", "deletionGracePeriodSeconds", "deletionTimestamp", "generation", "uid"];

/// Why a field of metadata cannot be read.
fn unreadable(name: &str, value: &Value) -> Option<String> {
    schema::metadata::conversion_error(&[(name, value.clone())].into())
}

pub struct CustomCodec {
    pub at: Endpoint,
    /// Whether an update keeps the stored metadata, as an update of the status does.
    pub keeps_metadata: bool,
}

impl Codec for CustomCodec {
    fn api_version(&self) -> Text {
        self.at.api_version()
    }

    fn kind(&self) -> &str {
        &self.at.resource.kind
    }

    fn decode(&self, document: &Document, validation: FieldValidation, warn: Warn<'_>) -> Result<Value> {
        let Decoded { value: mut object, duplicates } = self.at.body_type().parse(document)?;
        self.check_type(&object, document, validation)?;
        let mut strict = Strict::of(duplicates);
        let (kind, given) = (object.str_at(&["kind"]).to_owned(), object.str_at(&["apiVersion"]).to_owned());
        let normalized = self.normalize(&mut object, &mut strict);
        normalized.map_err(|why| self.at.body_type().bad_body(&kind, split_version(&given).1, &why))?;
        report(&strict, document, validation, warn, |error| not_strict(&kind, &given, error))?;
        self.at.body_type().check_version(&given)?;
        Ok(object)
    }

    fn decode_patched(&self, object: &mut Value, strict: &mut Strict, _from: Patched<'_>) -> Result<(), Unpatched> {
        if let Some(why) = type_error(object) {
            return Err(Unpatched::Invalid(why));
        }
        if object.str_at(&["kind"]).is_empty() {
            return Err(Unpatched::Invalid(format!("Object 'Kind' is missing in '{}'", object.to_json())));
        }
        if object.str_at(&["apiVersion"]).is_empty() {
            self.normalize(object, strict)?;
            if object.get("apiVersion").is_some_and(Value::is_null) {
                let why = ".apiVersion accessor error: <nil> is of the type <nil>, expected string";
                return Err(Unpatched::Invalid(why.to_owned()));
            }
            let why = "Object 'apiVersion' is missing in 'object has no apiVersion field'";
            return Err(Unpatched::Failed(Status::internal(why)));
        }
        Ok(self.normalize(object, strict)?)
    }

    fn normalize_applied(&self, object: &mut Value, _: &Value, live: Option<&Value>) -> Result<Uncoerced> {
        self.clean_system_fields(object, live)?;
        let sent = live.map(|_| object.clone());
        self.coerce(object, Malformed::RefuseExceptNull).map_err(|why| Status::untyped(500, why))?;
        let counted = |name: &str| !(self.keeps_metadata || name == "status" && self.at.version.status);
        let difference = live.zip(sent).map(|(live, sent)| Uncoerced::of(&sent, object, live, counted));
        self.default(object)?;
        Ok(difference.unwrap_or(Uncoerced::Same))
    }

    fn check_created(&self, object: &Value, _: &Registry) -> Result<()> {
        match object.get("metadata") {
            None | Some(Value::Object(_)) => Ok(()),
            Some(_) => Err(Status::internal("system metadata was not initialized")),
        }
    }

    fn normalize_admitted(&self, object: &mut Value) -> Result<()> {
        // fields that clients cannot choose are not checked, since the write sets them
        let mut metadata = object.get("metadata").filter(|_| self.refuses_metadata()).cloned().unwrap_or_default();
        SYSTEM_FIELDS.iter().for_each(|name| drop(metadata.remove_at(&[name])));
        let why = if metadata.is_null() { None } else { schema::metadata::conversion_error(&metadata) };
        if let Some(why) = why {
            return Err(self.bad_metadata(object, None, why));
        }
        // malformed metadata is dropped, as in reads
        self.coerce(object, Malformed::Drop).map_err(|why| Status::untyped(500, why))?;
        self.default(object)
    }

    fn unknown_version(&self, api_version: &str) -> ConvertError {
        ConvertError::Failed(format!("request to convert CR to an invalid group/version: {api_version}"))
    }

    /// The Status names the submitted type even if the type is the error.
    fn invalid(&self, submitted: &TypeMeta, name: &str, errors: &[FieldError]) -> Status {
        let group = split_version(&submitted.api_version).0;
        Status::invalid(group, &submitted.kind, name, errors)
    }

    fn is_shown_as_stored(&self, stored: &Value) -> bool {
        // defaulting may set a status that was reset before
        stored.get("status").is_some() || !self.at.version.program().schema.has_default(&["status"])
    }
}

/// The error of a decoded body with unknown or duplicate fields; it names the type of the body.
fn not_strict(kind: &str, api_version: &str, why: &str) -> Status {
    if api_version.is_empty() {
        return Status::bad_request("Object 'apiVersion' is missing in 'object has no apiVersion field'");
    }
    let version = machinery::value::quote(split_version(api_version).1);
    Status::bad_request(format!("{kind} in version {version} cannot be handled as a {kind}: {why}"))
}

impl CustomCodec {
    fn check_type(&self, object: &Value, document: &Document, validation: FieldValidation) -> Result<()> {
        if object.str_at(&["kind"]).is_empty() {
            let missing = |shown: &str| format!("Object 'Kind' is missing in '{shown}'");
            let (sent, body_type) = (String::from_utf8_lossy(document.bytes()), self.at.body_type());
            if validation != FieldValidation::Ignore {
                return Err(body_type.unrecognized(&missing(&sent), document));
            }
            // a JSON body is shown as it was sent
            let json = || sent.trim_matches([' ', '\t', '\r', '\n']).to_owned();
            let shown = if document.format == Format::Yaml { object.to_json() } else { json() };
            let own = self.at.api_version();
            let given = Some(object.str_at(&["apiVersion"])).filter(|given| !given.is_empty());
            return Err(body_type.bad_body(self.kind(), split_version(given.unwrap_or(&own)).1, &missing(&shown)));
        }
        if object.get("apiVersion").is_some_and(Value::is_null) {
            let why = ".apiVersion accessor error: <nil> is of the type <nil>, expected string";
            return Err(self.at.body_type().bad_body(object.str_at(&["kind"]), "", why));
        }
        if self.at.resource.third_party { self.check_third_party_type(object) } else { Ok(()) }
    }

    /// Checks the type of an instance of a ThirdPartyResource, whose errors differ from those of custom resources.
    fn check_third_party_type(&self, object: &Value) -> Result<()> {
        let (group, version) = object.str_at(&["apiVersion"]).rsplit_once('/').unwrap_or_default();
        let Endpoint { resource, version: own } = &self.at;
        for (what, expected, got) in [
            ("kind", resource.kind.as_str(), object.str_at(&["kind"])),
            ("group", &resource.group, group),
            ("version", &own.name, version),
        ] {
            if expected != got {
                let message = format!("{what} doesn't match, expecting: {expected}, got {got}");
                return Err(Status::bad_request(message));
            }
        }
        Ok(())
    }

    /// Prunes and defaults an object in the version that its `apiVersion` names.
    fn normalize(&self, object: &mut Value, strict: &mut Strict) -> Result<(), String> {
        if let Value::Object(map) = object {
            strict.unknown.extend(schema::metadata::coerce(map, Malformed::Refuse)?);
        }
        let (group, name) = split_version(object.str_at(&["apiVersion"]));
        let resource = &self.at.resource;
        if group != resource.group || *object.str_at(&["kind"]) != *resource.kind {
            // the schema of another type is not known
            return Ok(());
        }
        match resource.version(name) {
            Some(version) => normalize_in(version, object, strict),
            None => {
                // the CRD does not have this version, so that no field is declared
                strict.unknown.extend(undeclared(object));
                Ok(())
            }
        }
    }

    /// Whether malformed metadata is an error. Before 1.37 it was dropped.
    fn refuses_metadata(&self) -> bool {
        self.at.resource.release >= Release::V1_37
    }

    /// The error of metadata that cannot be read. In an update, `live` is the stored object.
    fn bad_metadata(&self, object: &Value, live: Option<&Value>, why: String) -> Status {
        let metadata = object.get("metadata").unwrap_or(&Value::Null);
        let malformed = FieldError::invalid(&FieldPath::new("metadata"), metadata, why);
        let errors = match live {
            Some(live) => self.update_errors(object, live, malformed),
            None => vec![malformed],
        };
        let text = |name: &str| object.str_at(&[name]).into();
        let submitted = TypeMeta { api_version: text("apiVersion"), kind: text("kind") };
        self.invalid(&submitted, object.str_at(&["metadata", "name"]), &errors)
    }

    fn update_errors(&self, object: &Value, live: &Value, malformed: FieldError) -> Vec<FieldError> {
        let Endpoint { resource, version } = &self.at;
        let mut read = object.clone();
        restore_system_fields(&mut read, live);
        read.remove_at(&["metadata", "deletionTimestamp"]);
        let mut errors = MetadataRules::generic_update_errors(&read, live, resource.metadata_context());
        errors.retain(|error| error.field != "metadata.deletionTimestamp");
        errors.push(malformed);
        if version.status {
            read.put_at(&["status"], live.get("status").cloned());
        }
        let schema = &version.program().schema;
        match schema.default(&mut read) {
            Ok(()) => schema.validate_after(Prior::Metadata(errors), &read, Some(live)).errors,
            Err(_) => errors,
        }
    }

    /// Removes malformed values of system metadata from the result of an apply if the write resets them anyway; other
    /// malformed values are an error.
    fn clean_system_fields(&self, object: &mut Value, live: Option<&Value>) -> Result<()> {
        let Some(metadata) = object.get("metadata").and_then(Value::as_object) else { return Ok(()) };
        let malformed: Vec<(&str, String)> =
            SYSTEM_FIELDS.into_iter().filter_map(|name| Some((name, unreadable(name, metadata.get(name)?)?))).collect();
        for (name, why) in malformed {
            match live.map(|live| live.at(&["metadata", name]).cloned()) {
                Some(_) if name.starts_with("deletion") && self.refuses_metadata() && !self.keeps_metadata => {
                    return Err(self.bad_metadata(object, live, why));
                }
                Some(Some(value)) => object.set_at(&["metadata", name], value),
                _ => {
                    object.remove_at(&["metadata", name]);
                }
            }
        }
        Ok(())
    }

    /// Coerces the metadata of an object and of the objects embedded in it.
    fn coerce(&self, object: &mut Value, malformed: Malformed) -> Result<(), String> {
        if let Value::Object(map) = object {
            schema::metadata::coerce(map, malformed)?;
        }
        let schema = &self.at.version.program().schema;
        schema.coerce_embedded(object, malformed, &mut vec![]).map_err(|why| why.to_string())
    }

    fn default(&self, object: &mut Value) -> Result<()> {
        let defaulted = self.at.version.program().schema.default(object);
        defaulted.map_err(|why| Status::untyped(500, why.to_string()))
    }
}

/// Prunes an object and sets its defaults.
fn normalize_in(version: &Version, object: &mut Value, strict: &mut Strict) -> Result<(), String> {
    let schema = &version.program().schema;
    schema.prune(object, &mut strict.unknown);
    schema.coerce_embedded(object, Malformed::Refuse, &mut strict.unknown).map_err(|error| error.to_string())?;
    strict.too_large = schema.default(object).err();
    Ok(())
}

/// All fields except `apiVersion`, `kind` and `metadata`.
fn undeclared(object: &Value) -> Vec<String> {
    let names = object.as_object().into_iter().flat_map(Map::keys);
    names.filter(|name| !matches!(name.as_str(), "apiVersion" | "kind" | "metadata")).map(ToString::to_string).collect()
}
