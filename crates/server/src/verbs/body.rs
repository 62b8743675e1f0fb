//! From the bytes of a request to an object of the request's version (crd.md 7.6, api-machinery 5).

use machinery::value::{Decoded, JsonError, JsonProblem, KeyOrder, STRICT_ERRORS_MAX, decode_strict, key_order, quote};
use machinery::yaml::{self, YamlProblem};
use machinery::{DecodeError, Status, Value};

use crate::request::FieldValidation;
use crate::resource::{Version, builtin, group_version, unknown_kind};
use crate::wording;
use schema::{DefaultsTooLarge, Malformed};

use super::Request;

/// How a body is encoded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    Json,
    Yaml,
    Protobuf,
    Cbor,
}

/// A body that has been read.
#[derive(Debug)]
pub struct Document {
    pub bytes: bytes::Bytes,
    pub format: Format,
}

const TYPE_STRUCT: &str =
    r#"struct { APIVersion string "json:\"apiVersion,omitempty\""; Kind string "json:\"kind,omitempty\"" }"#;

/// The first bytes of a body, as errors show them.
fn excerpt(bytes: &[u8]) -> String {
    if bytes.is_empty() {
        return "<empty>".to_owned();
    }
    let head = &bytes[..bytes.len().min(30)];
    let more = if bytes.len() > 30 { " ..." } else { "" };
    let text = if bytes.first() == Some(&b'{') {
        String::from_utf8_lossy(head).into_owned()
    } else {
        head.iter().map(|b| format!("{b:02x}")).collect()
    };
    format!("{text}{more}")
}

impl Document {
    /// A document of the server's own.
    pub fn json(value: &Value) -> Document {
        Document { bytes: value.to_json().into(), format: Format::Json }
    }

    pub fn decode(&self) -> Result<Decoded, DecodeError> {
        let without_duplicates = |value| Decoded { value, duplicates: vec![] };
        Ok(match self.format {
            Format::Json => decode_strict(&self.bytes)?,
            Format::Yaml => yaml::decode(&self.bytes)?,
            Format::Protobuf => without_duplicates(machinery::protobuf::decode(&self.bytes)?),
            Format::Cbor => without_duplicates(machinery::cbor::decode(&self.bytes)?),
        })
    }

    /// What is wrong with the type of the document, if anything is.
    pub fn type_error(&self, decoded: &Result<Decoded, DecodeError>) -> Option<String> {
        match decoded {
            Ok(decoded) => type_error(&decoded.value),
            Err(error) => {
                let text = wording::decode_error(error);
                Some(match error {
                    DecodeError::Json(_) => format!("couldn't get version/kind; json parse error: {text}"),
                    DecodeError::Yaml(error) if matches!(error.problem, YamlProblem::TooDeep(_)) => {
                        format!("couldn't get version/kind; json parse error: {text}")
                    }
                    _ => text,
                })
            }
        }
    }
}

/// What is wrong with the type that a body says it has, if anything is.
pub fn type_error(value: &Value) -> Option<String> {
    match value {
        Value::Object(members) => member_error(members),
        Value::Null => None,
        other => {
            let found = other.json_type();
            Some(format!(
                "couldn't get version/kind; json parse error: json: cannot unmarshal {found} into Go value of type {TYPE_STRUCT}"
            ))
        }
    }
}

/// A member that says the type, as Go finds it: whatever the case of its name.
pub fn type_text<'a>(object: &'a Value, name: &str) -> &'a str {
    let exact = object.str_at(&[name]);
    let members = object.as_object().into_iter().flat_map(machinery::Map::iter).filter(|_| exact.is_empty());
    let mut other = members.filter(|(key, _)| key.eq_ignore_ascii_case(name)).filter_map(|(_, value)| value.as_str());
    other.next().unwrap_or(exact)
}

/// The `apiVersion` of a typed body: a slash alone says nothing, one before the version says nothing of a group.
fn typed_version(object: &Value) -> String {
    type_text(object, "apiVersion").trim_start_matches('/').to_owned()
}

/// The members that say the type are texts; else this is Go's error.
pub fn no_text(members: &machinery::Map) -> Option<String> {
    let found = |key: &&str| members.get(key).filter(|value| !matches!(value, Value::Null | Value::String(_)));
    let key = ["apiVersion", "kind"].into_iter().find(|key| found(key).is_some())?;
    let found = found(&key)?.json_type();
    Some(format!("json: cannot unmarshal {found} into Go struct field .{key} of type string"))
}

/// What is wrong with the members that say the type, if anything is.
fn member_error(members: &machinery::Map) -> Option<String> {
    if let Some(why) = no_text(members) {
        return Some(format!("couldn't get version/kind; json parse error: {why}"));
    }
    let api_version = members.get("apiVersion").and_then(Value::as_str).unwrap_or_default();
    (api_version.matches('/').count() > 1).then(|| format!("unexpected GroupVersion string: {api_version}"))
}

/// What strict decoding found.
#[derive(Debug, Default)]
pub struct Strict {
    pub duplicates: Vec<String>,
    pub unknown: Vec<String>,
    /// Texts of both kinds for a typed body, in the order in which the fields stand in it.
    ordered: Option<Vec<String>>,
    /// Defaults made the object too large to be stored, and are not complete.
    too_large: Option<DefaultsTooLarge>,
}

impl Strict {
    /// What typed decoding of a document found, in the order of the document, and of that the first
    /// [`STRICT_ERRORS_MAX`].
    pub fn in_order(mut self, document: &Document) -> Strict {
        if document.format == Format::Json && self.unknown.len() + self.duplicates.len() > 1 {
            self.ordered = Some(self.texts_in_order(&key_order(&document.bytes)));
        }
        self.unknown.truncate(STRICT_ERRORS_MAX);
        self
    }

    /// Refuses an object that defaults made too large: the error is that of storing it.
    pub fn check_size(&self) -> Result<(), Status> {
        self.too_large.as_ref().map_or(Ok(()), |why| Err(Status::untyped(500, why.to_string())))
    }

    /// Texts in the order in which they are reported. `yaml` duplicates are one block in errors.
    fn texts(&self, format: Format, error: bool) -> Vec<String> {
        if let Some(ordered) = &self.ordered {
            return ordered.clone();
        }
        let mut texts: Vec<String> = match format {
            Format::Json | Format::Protobuf | Format::Cbor => {
                self.duplicates.iter().map(|path| format!("duplicate field \"{path}\"")).collect()
            }
            Format::Yaml if error && !self.duplicates.is_empty() => {
                let lines: Vec<String> = self.duplicates.iter().map(|line| format!("  {line}")).collect();
                vec![format!("yaml: unmarshal errors:\n{}", lines.join("\n"))]
            }
            Format::Yaml => self.duplicates.clone(),
        };
        texts.extend(self.unknown.iter().map(|path| format!("unknown field \"{path}\"")));
        texts
    }

    fn texts_in_order(&self, order: &KeyOrder) -> Vec<String> {
        let duplicates = self.duplicates.iter().map(|path| (order.again(path), "duplicate", path));
        let unknown = self.unknown.iter().map(|path| (order.first(path), "unknown", path));
        let mut found: Vec<(Option<u32>, &str, &String)> = duplicates.chain(unknown).collect();
        found.sort_by_key(|(place, ..)| *place);
        found.truncate(STRICT_ERRORS_MAX);
        found.into_iter().map(|(_, kind, path)| format!("{kind} field \"{path}\"")).collect()
    }

    /// `strict decoding error: …`, if anything was found.
    pub fn error(&self, format: Format) -> Option<String> {
        let texts = self.texts(format, true);
        (!texts.is_empty()).then(|| format!("strict decoding error: {}", texts.join(", ")))
    }

    pub fn warn(&self, format: Format, request: &Request) {
        self.texts(format, false).into_iter().for_each(|text| request.warn(text));
    }
}

/// Brings an object into the form of `version`: metadata coerced, pruned, defaulted. The error is Go's text for a
/// member of a wrong type.
pub fn normalise(version: &Version, object: &mut Value, strict: &mut Strict) -> Result<(), String> {
    if let Some(shipped) = version.shipped {
        let shaped = shipped.shape(object);
        strict.unknown.extend(shaped.unknown);
        if let Some(error) = shaped.error {
            return Err(error);
        }
        *object = shaped.value;
        (shipped.default)(object);
        return Ok(());
    }
    coerce_metadata(object, strict)?;
    let schema = &version.program().schema;
    schema.prune(object, &mut strict.unknown);
    schema.coerce_embedded(object, Malformed::Refuse, &mut strict.unknown).map_err(|error| error.to_string())?;
    strict.too_large = schema.default(object).err();
    Ok(())
}

fn coerce_metadata(object: &mut Value, strict: &mut Strict) -> Result<(), String> {
    if let Value::Object(map) = object {
        strict.unknown.extend(schema::metadata::coerce(map, Malformed::Refuse)?);
    }
    Ok(())
}

/// An `apiVersion` as group and version.
fn split_version(api_version: &str) -> (&str, &str) {
    api_version.split_once('/').unwrap_or(("", api_version))
}

impl Request {
    /// What is told of a body that says it is `kind` in `version`.
    fn bad_body(&self, kind: &str, version: &str, why: &str) -> Status {
        let wanted = &self.resource.kind;
        Status::bad_request(format!("{kind} in version {} cannot be handled as a {wanted}: {why}", quote(version)))
    }

    /// As [`Request::bad_body`], of a body of the type that is wanted.
    fn bad_own_body(&self, why: &str) -> Status {
        self.bad_body(&self.resource.kind, &self.version.name, why)
    }

    /// What is told of a body that has been read, and has more or less in it than it may: a custom resource has become
    /// what it says it is.
    fn bad_strict_body(&self, kind: &str, api_version: &str, why: &str) -> Status {
        if !self.resource.is_custom() {
            return self.bad_body(kind, split_version(api_version).1, why);
        }
        if api_version.is_empty() {
            return Status::bad_request("Object 'apiVersion' is missing in 'object has no apiVersion field'");
        }
        let version = split_version(api_version).1;
        Status::bad_request(format!("{kind} in version {} cannot be handled as a {kind}: {why}", quote(version)))
    }

    fn unrecognized(&self, why: &str, document: &Document) -> Status {
        let kind = &self.resource.kind;
        let excerpt = excerpt(&document.bytes);
        Status::bad_request(format!("the object provided is unrecognized (must be of type {kind}): {why} ({excerpt})"))
    }

    /// Decodes the body of a create or an update.
    pub fn decode_object(&self, document: &Document, validation: FieldValidation) -> Result<Value, Status> {
        let decoded = document.decode();
        if let Err(DecodeError::Json(error @ JsonError { problem: JsonProblem::NumberOutOfRange { .. }, .. })) =
            &decoded
        {
            // the type can be read, the object can't
            return Err(self.bad_own_body(&wording::json_error(error)));
        }
        if let Some(why) = document.type_error(&decoded) {
            return Err(self.unrecognized(&why, document));
        }
        let Decoded { value: mut object, duplicates } = decoded.unwrap_or_default();
        if self.resource.is_custom() {
            self.check_type(&object, document, validation)?;
            if self.resource.third_party {
                self.check_third_party_type(&object)?;
            }
        } else {
            if let Some(shipped) = self.sibling(&object).or(self.version.shipped)
                && document.format == Format::Json
                && !duplicates.is_empty()
            {
                object = shipped.joined(&document.bytes);
            }
            self.default_type(&mut object, document)?;
        }
        let mut strict = Strict { duplicates, ..Strict::default() };
        let validation = match document.format {
            // messages have no unknown members to tell
            Format::Protobuf => FieldValidation::Ignore,
            _ => validation,
        };
        let (kind, given) = (object.str_at(&["kind"]).to_owned(), object.str_at(&["apiVersion"]).to_owned());
        let bad_body = |why: &str| self.bad_body(&kind, split_version(&given).1, why);
        let outcome = self.normalise(&mut object, &mut strict);
        if !self.resource.is_custom() {
            if document.format == Format::Json {
                self.keep_seen(&mut strict, &object);
            }
            strict = strict.in_order(document);
        }
        outcome.map_err(|why| bad_body(&self.first_type_error(document, &object, why)))?;
        match validation {
            FieldValidation::Ignore => {}
            FieldValidation::Warn => strict.warn(document.format, self),
            FieldValidation::Strict => {
                if let Some(error) = strict.error(document.format) {
                    return Err(self.bad_strict_body(&kind, &given, &error));
                }
            }
        }
        strict.check_size()?;
        let expected = self.api_version();
        if given != expected {
            let given = if given == "/" { "" } else { &given };
            return Err(Status::bad_request(format!(
                "the API version in the data ({given}) does not match the expected API version ({expected})"
            )));
        }
        self.record(&object);
        Ok(object)
    }

    /// Records what a body was decoded to.
    pub fn record(&self, object: &Value) {
        let Some(trail) = &self.trail else { return };
        if !self.resource.is_custom() && object.get("metadata").is_none() {
            let mut object = object.clone();
            object.set_at(&["metadata"], Value::object());
            return trail.object(&object);
        }
        trail.object(object);
    }

    /// Keeps the duplicate members that typed decoding of JSON notices.
    pub fn keep_seen(&self, strict: &mut Strict, object: &Value) {
        if let Some(shipped) = self.sibling(object).or(self.version.shipped) {
            strict.duplicates.retain(|path| shipped.sees_duplicate(path));
        }
    }

    /// What is told of a typed body with several members of wrong types: it hangs on their order in the body.
    fn first_type_error(&self, document: &Document, object: &Value, why: String) -> String {
        let shipped = self.sibling(object).or(self.version.shipped);
        let errors = shipped.map(|shipped| shipped.shape(object).errors).unwrap_or_default();
        if errors.len() < 2 {
            return why;
        }
        schema::shape::first_error(&errors, Some(&key_order(&document.bytes))).unwrap_or(why)
    }

    /// What the conversion of a map to a typed object says of a member of a wrong type.
    pub fn conversion_error(&self, object: &Value) -> Option<String> {
        let shaped = self.version.shipped?.shape(object);
        schema::shape::first_conversion_error(&shaped.errors)
    }

    /// Brings an object into the form of the version that it says it has.
    pub fn normalise(&self, object: &mut Value, strict: &mut Strict) -> Result<(), String> {
        if let Some(sibling) = self.sibling(object) {
            let shaped = sibling.shape(object);
            strict.unknown.extend(shaped.unknown);
            return shaped.error.map_or(Ok(()), Err);
        }
        if !self.resource.is_custom() {
            return normalise(&self.version, object, strict);
        }
        let (group, name) = split_version(object.str_at(&["apiVersion"]));
        if group != self.resource.group || *object.str_at(&["kind"]) != *self.resource.kind {
            // something else: no schema says what is in it
            return coerce_metadata(object, strict);
        }
        match self.resource.version(name).cloned() {
            Some(version) => normalise(&version, object, strict),
            None => {
                // a version that the definition doesn't have declares nothing
                coerce_metadata(object, strict)?;
                strict.unknown.extend(undeclared(object));
                Ok(())
            }
        }
    }

    /// What a body of this kind says that it is, if that is a type that is known and not the one of this path: the body is
    /// read as such before it is refused.
    fn sibling(&self, object: &Value) -> Option<&'static builtin::Shipped> {
        let shipped = self.shipped().filter(|_| *object.str_at(&["kind"]) == *self.resource.kind)?;
        builtin::sibling(shipped, object.str_at(&["apiVersion"]))
    }

    /// ThirdPartyResources tell what is wrong with a type in words of their own (crd.md 19.3).
    fn check_third_party_type(&self, object: &Value) -> Result<(), Status> {
        let (group, version) = object.str_at(&["apiVersion"]).rsplit_once('/').unwrap_or_default();
        let (resource, kind) = (&self.resource, object.str_at(&["kind"]));
        for (what, expected, got) in [
            ("kind", resource.kind.as_str(), kind),
            ("group", &resource.group, group),
            ("version", &self.version.name, version),
        ] {
            if expected != got {
                let message = format!("{what} doesn't match, expecting: {expected}, got {got}");
                return Err(Status::bad_request(message));
            }
        }
        Ok(())
    }

    fn check_type(&self, object: &Value, document: &Document, validation: FieldValidation) -> Result<(), Status> {
        if object.str_at(&["kind"]).is_empty() {
            let why = format!("Object 'Kind' is missing in '{}'", String::from_utf8_lossy(&document.bytes));
            return Err(match validation {
                FieldValidation::Ignore => self.bad_own_body(&why),
                _ => self.unrecognized(&why, document),
            });
        }
        if object.get("apiVersion").is_some_and(Value::is_null) {
            let why = ".apiVersion accessor error: <nil> is of the type <nil>, expected string";
            return Err(self.bad_body(object.str_at(&["kind"]), "", why));
        }
        Ok(())
    }

    /// Bodies of shipped kinds may leave out their type; another one is refused.
    fn default_type(&self, object: &mut Value, document: &Document) -> Result<(), Status> {
        let (kind, api_version) = (type_text(object, "kind").to_owned(), typed_version(object));
        let expected = self.api_version();
        let other = !api_version.is_empty() && api_version != expected;
        if self.sibling(object).is_some() {
            return Ok(());
        }
        if kind != self.resource.kind
            && let Some(error) = self.other_kind_error(&kind, &api_version, object, Some(document))
        {
            return Err(Status::bad_request(format!(
                "{kind} in version \"{}\" cannot be handled as a {}: {error}",
                api_version.rsplit('/').next().unwrap_or_default(),
                self.resource.kind
            )));
        }
        if (!kind.is_empty() && kind != self.resource.kind) || other {
            let api_version = if api_version.is_empty() { expected.as_str() } else { &api_version };
            let kind = if kind.is_empty() { self.resource.kind.to_string() } else { kind };
            let version = api_version.rsplit('/').next().unwrap_or_default();
            let why = unknown_kind(&kind, api_version);
            return Err(self.bad_body(&kind, version, &why));
        }
        if !matches!(object, Value::Object(_)) {
            *object = Value::object();
        }
        object.set_at(&["kind"], Value::String(self.resource.kind.clone()));
        object.set_at(&["apiVersion"], Value::String(expected));
        Ok(())
    }

    /// What is wrong with the type that a patched object of a shipped kind says it has. Without a version nothing of it
    /// is read.
    pub fn patched_type(&self, object: &mut Value, strict: &mut Strict) -> Result<(), String> {
        if let Some(why) = type_error(object) {
            return Err(why);
        }
        let (kind, api_version) = (object.str_at(&["kind"]).to_owned(), object.str_at(&["apiVersion"]).to_owned());
        let own = &self.resource.kind;
        if api_version.is_empty() {
            let read = std::mem::replace(object, Value::object());
            let members = read.as_object().into_iter().flat_map(machinery::Map::keys).map(ToString::to_string);
            strict.unknown.extend(members.filter(|name| !matches!(name.as_str(), "apiVersion" | "kind")));
        } else if !kind.is_empty()
            && *own != *kind
            && let Some(error) = self.other_kind_error(&kind, &api_version, object, None)
        {
            return Err(error);
        } else if !self.is_own_type(if kind.is_empty() { own } else { &kind }, &api_version) {
            return Err(unknown_kind(if kind.is_empty() { own } else { &kind }, &api_version));
        }
        Ok(())
    }

    /// Whether objects of this type become objects of the resource.
    fn is_own_type(&self, kind: &str, api_version: &str) -> bool {
        if kind != self.resource.kind {
            return false;
        }
        let other_look =
            || self.resource.shipped().is_some_and(|shipped| builtin::sibling(shipped, api_version).is_some());
        api_version == self.api_version() || other_look()
    }

    /// A body of another shipped kind, or of a list, is read as what it says it is, and then can't become what is wanted. Definitions
    /// have a scheme of their own, which knows no other kinds.
    fn other_kind_error(
        &self,
        kind: &str,
        api_version: &str,
        object: &Value,
        document: Option<&Document>,
    ) -> Option<String> {
        let is = |s: &&builtin::Shipped| {
            (s.kind == kind || kind.strip_suffix("List") == Some(s.kind))
                && group_version(s.group, s.version) == api_version
        };
        let shipped = builtin::SHIPPED.iter().find(is);
        let error = shipped.filter(|s| s.kind == kind).and_then(|s| {
            let shaped = s.shape(object);
            let order = document.filter(|_| shaped.errors.len() > 1).map(|document| key_order(&document.bytes));
            order.and_then(|order| schema::shape::first_error(&shaped.errors, Some(&order))).or(shaped.error)
        });
        let apart = |group: &str| group == builtin::DEFINITION_GROUP;
        let near = match shipped {
            Some(shipped) => apart(shipped.group) == apart(&self.resource.group),
            None => !apart(&self.resource.group) && builtin::is_known(api_version, kind),
        };
        if error.is_some() || !near {
            return error;
        }
        let package = self.resource.shipped()?.go_package();
        let (wanted, version) = (&self.resource.kind, split_version(api_version).1);
        Some(format!("converting ({version}.{kind}) to ({package}.{wanted}): unknown conversion"))
    }
}

fn undeclared(object: &Value) -> Vec<String> {
    let names = object.as_object().into_iter().flat_map(machinery::Map::keys);
    names.filter(|name| !matches!(name.as_str(), "apiVersion" | "kind" | "metadata")).map(ToString::to_string).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn typed_bodies_are_told_in_their_order() {
        let bytes = bytes::Bytes::from(r#"{"z":1,"a":{"y":1,"n":1,"n":2,"b":1},"z":2}"#);
        let document = Document { bytes, format: Format::Json };
        let found = |order: fn(Strict, &Document) -> Strict| {
            let unknown = ["a.b", "a.y", "z"].map(str::to_owned).to_vec();
            let strict = Strict { duplicates: vec!["a.n".to_owned()], unknown, ..Strict::default() };
            order(strict, &document).texts(Format::Json, true)
        };
        let told = ["unknown field \"z\"", "unknown field \"a.y\"", "duplicate field \"a.n\"", "unknown field \"a.b\""];
        assert_eq!(found(Strict::in_order), told);
        let apart =
            ["duplicate field \"a.n\"", "unknown field \"a.b\"", "unknown field \"a.y\"", "unknown field \"z\""];
        assert_eq!(found(|strict, _| strict), apart);
    }

    /// A quadratic search took more than 90 s for as many.
    #[test]
    fn strict_errors_of_typed_bodies_are_the_first_hundred() {
        let fields = |from: usize| (from..200_000).map(|i| format!("\"u{i}\":1,")).collect::<String>();
        let bytes = bytes::Bytes::from(format!("{{\"z\":1,{}\"a\":1}}", fields(0)));
        let document = Document { bytes, format: Format::Json };
        let mut unknown: Vec<String> = (0..200_000).map(|i| format!("u{i}")).chain(["a".into(), "z".into()]).collect();
        unknown.sort();
        let strict = Strict { unknown: unknown.clone(), ..Strict::default() }.in_order(&document);
        let texts = strict.texts(Format::Json, true);
        assert_eq!(
            (texts.len(), texts[0].as_str(), texts[99].as_str()),
            (100, "unknown field \"z\"", "unknown field \"u98\"")
        );
        let yaml = Document { bytes: bytes::Bytes::new(), format: Format::Yaml };
        assert_eq!(Strict { unknown, ..Strict::default() }.in_order(&yaml).texts(Format::Yaml, true).len(), 100);
    }
}
