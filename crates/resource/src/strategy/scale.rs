//! The subresource `scale` of custom resources: `autoscaling/v1` Scale as a view of an object.

use std::sync::{Arc, OnceLock};

use machinery::field::FieldPath;
use machinery::patch::gotext;
use machinery::{FieldError, Result, Status, Text, Value};
use schema::apply::{ConvertError, FieldSet, ManagedFieldsError, ScalePath, TypeSchema, Versions};

use super::{Strategy, Validity};
use crate::builtin::selector_text;
use crate::codec::{Codec, Endpoint, SCALE_VERSION, ScaleCodec, set_scale_type};
use crate::version::{ScalePaths, Version};

const MANAGED_FIELDS: [&str; 2] = ["metadata", "managedFields"];

/// Stands for absent replicas while the Scale of an object is edited.
const UNSET: i64 = i32::MIN as i64;

/// An object as a Scale, and the strategy of the subresource `scale`.
pub struct ScaleView {
    at: Endpoint,
    codec: ScaleCodec,
    /// The strategy of the objects themselves.
    main: Arc<dyn Strategy>,
    /// The replicas path of each version, for managedFields.
    tracked: Vec<ScalePath>,
}

impl Strategy for ScaleView {
    fn codec(&self) -> &dyn Codec {
        &self.codec
    }

    fn storage_codec(&self) -> &dyn Codec {
        self.main.codec()
    }

    fn prepare_for_update(&self, object: &mut Value, old: &Value) {
        self.main.prepare_for_update(object, old);
    }

    fn validate_update(&self, object: &Value, old: &Value) -> Validity {
        self.main.validate_update(object, old)
    }

    fn canonicalize(&self, scale: &mut Value) {
        set_scale_type(scale);
        let replicas = replicas_of(scale);
        set_replicas(scale, replicas);
    }

    fn reset_fields(&self, _version: &Version) -> Option<&'static FieldSet> {
        None
    }

    fn allow_unconditional_update(&self) -> bool {
        true
    }

    fn view(&self) -> Option<&ScaleView> {
        Some(self)
    }
}

const FRACTION: &str = "to proper version: unable to convert unstructured object to autoscaling/v1, Kind=Scale: cannot convert float64 to int32";
const UNCONVERTIBLE: &str = "to proper version: request to convert CR to an invalid group/version: autoscaling/v1";

impl ScaleView {
    /// The Scale of objects whose own endpoint has the strategy `main`.
    pub fn new(at: Endpoint, main: Arc<dyn Strategy>) -> ScaleView {
        let resource = &at.resource;
        let path = |version: &Version| ScalePath {
            api_version: resource.api_version(version),
            replicas: version
                .scale
                .as_ref()
                .map(|scale| segments(&scale.spec_replicas).into_iter().map(Text::from).collect()),
        };
        let tracked = resource.versions.iter().map(|version| path(version)).collect();
        let codec = resource.built_in.map_or(ScaleCodec::Custom, |row| ScaleCodec::BuiltIn(row.catalogue));
        ScaleView { tracked, at, codec, main }
    }

    /// The schema of Scales.
    pub fn types(&self) -> &dyn Versions {
        static TYPES: OnceLock<ScaleTypes> = OnceLock::new();
        TYPES.get_or_init(ScaleTypes::new)
    }

    /// The Scale of an object for changes, with `UNSET` for absent replicas.
    pub fn editable(&self, old: &Value) -> Result<Value> {
        let paths = self.paths(old)?;
        let replicas = integer(old, &paths.spec_replicas)?.unwrap_or(UNSET);
        let mut scale = self.scale_of(old, paths, Some(replicas))?;
        let list = ScalePath::to_scale(old.at(&MANAGED_FIELDS), &self.tracked).map_err(unreadable)?;
        if let Some(list) = list {
            scale.set_at(&MANAGED_FIELDS, list);
        }
        Ok(scale)
    }

    /// The object with the replicas of a Scale and the field ownership that they have there.
    pub fn merge(&self, scale: &Value, old: &Value) -> Result<Value> {
        let path = &self.paths(old)?.spec_replicas;
        let replicas = replicas_of(scale);
        if replicas == UNSET {
            return Err(Status::bad_request(format!("the spec replicas field \"{path}\" cannot be empty")));
        }
        if replicas < 0 && !self.at.resource.is_custom() {
            // kube-apiserver validates the Scale of a built-in kind before its version and the object
            let error = FieldError::invalid(
                &FieldPath::new("spec.replicas"),
                &Value::Int(replicas),
                "must be greater than or equal to 0",
            );
            return Err(Status::invalid("autoscaling", "Scale", old.str_at(&["metadata", "name"]), &[error]));
        }
        let (uid, own_uid) = (scale.str_at(&["metadata", "uid"]), old.str_at(&["metadata", "uid"]));
        if !uid.is_empty() && uid != own_uid && !self.at.resource.is_custom() {
            let why = format!("Precondition failed: UID in precondition: {uid}, UID in object meta: {own_uid}");
            let (resource, name) = (&self.at.resource, old.str_at(&["metadata", "name"]));
            return Err(Status::conflict(&resource.group, &format!("{}/scale", resource.plural), name, &why));
        }
        let mut object = old.clone();
        object.set_at(&segments(path), Value::Int(replicas));
        let (before, after) = (old.at(&MANAGED_FIELDS), scale.at(&MANAGED_FIELDS));
        let api_version = self.main.codec().api_version();
        let list = ScalePath::to_resource(before, after, &api_version, &self.tracked).map_err(unreadable)?;
        object.put_at(&MANAGED_FIELDS, list);
        Ok(object)
    }

    /// The Scale of an object as clients see it. A Scale without replicas may stand for an object without replicas,
    /// which [`ScaleView::check_readable`] refuses.
    pub fn of(&self, object: &Value) -> Result<Value> {
        let paths = self.paths(object)?;
        let replicas = integer(object, &paths.spec_replicas)?;
        self.scale_of(object, paths, replicas)
    }

    /// Rejects reads of an object without replicas.
    pub fn check_readable(&self, object: &Value) -> Result<()> {
        let path = &self.paths(object)?.spec_replicas;
        self.of(object)?;
        match integer(object, path)? {
            Some(_) => Ok(()),
            None => Err(Status::internal(format!("the spec replicas field \"{path}\" does not exist"))),
        }
    }

    /// As in kube-apiserver, an apply that changes a custom resource fails, since a Scale cannot be converted to a
    /// version of the resource. Conflicts are still reported, and applying equal values shares their ownership. One to
    /// a built-in kind fails if the replicas are no whole number.
    pub fn check_applied(&self, configuration: &Value, live: &Value, applied: &Value) -> Result<()> {
        const REPLICAS: [&str; 2] = ["spec", "replicas"];
        let why = match configuration.at(&REPLICAS) {
            _ if self.at.resource.is_custom() && applied.at(&REPLICAS) != live.at(&REPLICAS) => UNCONVERTIBLE,
            Some(Value::Float(number)) if number.fract() != 0.0 => FRACTION,
            _ => return Ok(()),
        };
        let text = |key: &str| configuration.str_at(&["metadata", key]);
        let (namespace, name) = (text("namespace"), text("name"));
        let object = format!("{namespace}/{name}; autoscaling/v1, Kind=Scale");
        Err(Status::untyped(500, format!("failed to convert new object ({object}) {why}")))
    }

    /// Checks whether a configuration can be applied to what [`ScaleView::editable`] returned.
    pub fn check_apply(&self, configuration: &Value, live: &Value) -> Result<()> {
        let is_scale =
            configuration.str_at(&["apiVersion"]) == SCALE_VERSION && configuration.str_at(&["kind"]) == "Scale";
        if !is_scale || !self.at.resource.is_custom() || live.at(&MANAGED_FIELDS).is_some() {
            return Ok(());
        }
        let live = format!("failed to convert live object (/; autoscaling/v1, Kind=Scale) {UNCONVERTIBLE}");
        Err(Status::untyped(500, format!("failed to create manager for existing fields: {live}")))
    }

    fn paths(&self, object: &Value) -> Result<&ScalePaths> {
        paths(&self.at, object)
    }

    fn scale_of(&self, object: &Value, paths: &ScalePaths, replicas: Option<i64>) -> Result<Value> {
        let mut scale = Value::object();
        set_scale_type(&mut scale);
        for key in ["name", "namespace", "uid", "resourceVersion", "creationTimestamp"] {
            if let Some(value) = object.at(&["metadata", key]) {
                scale.set_at(&["metadata", key], value.clone());
            }
        }
        set_replicas(&mut scale, replicas.map_or(0, narrow));
        let status = integer(object, &paths.status_replicas)?.unwrap_or_default();
        scale.set_at(&["status", "replicas"], Value::Int(narrow(status)));
        let selector = self.selector(object, paths.label_selector.as_ref())?;
        if !selector.is_empty() {
            scale.set_at(&["status", "selector"], Value::String(selector));
        }
        Ok(scale)
    }

    /// The selector of the Pods as text. In built-in kinds, it is a LabelSelector or a map of labels.
    fn selector(&self, object: &Value, path: Option<&Text>) -> Result<Text> {
        let Some(path) = path else { return Ok(Text::default()) };
        match nested(object, path)? {
            None => Ok(Text::default()),
            Some(Value::String(text)) => Ok(text.clone()),
            Some(Value::Object(selector)) if !self.at.resource.is_custom() => Ok(Text::from(selector_text(selector))),
            Some(other) => Err(accessor_error(path, other, "string")),
        }
    }
}

fn paths<'a>(at: &'a Endpoint, object: &Value) -> Result<&'a ScalePaths> {
    at.version.scale.as_ref().ok_or_else(|| at.resource.not_found(object.str_at(&["metadata", "name"])))
}

fn unreadable(error: ManagedFieldsError) -> Status {
    Status::internal(error.to_string())
}

fn segments(path: &str) -> Vec<&str> {
    path.trim_start_matches('.').split('.').collect()
}

/// The value at a path, as Go's `NestedFieldNoCopy` returns it: a null on the path means that the value is absent, and
/// any other value on the path that is not an object is an error.
fn nested<'a>(object: &'a Value, path: &str) -> Result<Option<&'a Value>> {
    let names = segments(path);
    let mut value = object;
    for (i, name) in names.iter().enumerate() {
        match value {
            Value::Object(map) => match map.get(name) {
                Some(next) => value = next,
                None => return Ok(None),
            },
            Value::Null => return Ok(None),
            other => {
                let so_far = format!(".{}", names[..=i].join("."));
                return Err(accessor_error(&so_far, other, "map[string]interface{}"));
            }
        }
    }
    Ok(Some(value))
}

fn accessor_error(path: &str, value: &Value, expected: &str) -> Status {
    let (shown, kind) = (gotext::plain(value), gotext::type_of(value));
    Status::untyped(500, format!("{path} accessor error: {shown} is of the type {kind}, expected {expected}"))
}

fn integer(object: &Value, path: &str) -> Result<Option<i64>> {
    match nested(object, path)? {
        None => Ok(None),
        Some(Value::Int(i)) => Ok(Some(*i)),
        Some(other) => Err(accessor_error(path, other, "int64")),
    }
}

/// Truncates to 32 bits, the width of the numbers in a Scale. Larger numbers wrap around.
fn narrow(replicas: i64) -> i64 {
    i64::from(replicas as i32)
}

fn replicas_of(scale: &Value) -> i64 {
    scale.int_at(&["spec", "replicas"])
}

/// Sets `spec.replicas` of a Scale. Zero is omitted.
fn set_replicas(scale: &mut Value, replicas: i64) {
    match replicas {
        0 => scale.set_at(&["spec"], Value::object()),
        replicas => scale.set_at(&["spec", "replicas"], Value::Int(replicas)),
    }
}

/// A Scale as the field manager sees it.
struct ScaleTypes {
    types: TypeSchema,
}

impl ScaleTypes {
    fn new() -> ScaleTypes {
        let integer = || machinery::json!({"type": "integer"});
        let schema = machinery::json!({"type": "object", "properties": {
            "spec": {"type": "object", "properties": {"replicas": (integer())}},
            "status": {"type": "object", "properties": {"replicas": (integer()), "selector": {"type": "string"}}}
        }});
        ScaleTypes { types: TypeSchema::compile(&schema) }
    }
}

impl Versions for ScaleTypes {
    fn types(&self, api_version: &str) -> Option<&TypeSchema> {
        (api_version == SCALE_VERSION).then_some(&self.types)
    }

    fn convert(&self, object: &Value, api_version: &str) -> Result<Value, ConvertError> {
        if api_version == SCALE_VERSION { Ok(object.clone()) } else { Err(ConvertError::MissingVersion) }
    }
}
