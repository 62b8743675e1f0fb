//! From storage to a version: pruned, defaulted, converted (crd.md 7.7, 16).

use std::sync::Arc;

use machinery::{Status, Text, Value};
use schema::Malformed;

use super::{Conversion, Resource, Version};
use crate::objects::{Body, Rendition, Stored};

impl Resource {
    /// The object in `version`, with its resourceVersion.
    pub fn read(&self, stored: &Stored, version: &Version) -> Result<Value, Status> {
        let body = self.rendition(stored, version)?;
        Ok(body.as_deref().unwrap_or(&stored.body).to_value(stored.revision))
    }

    /// The encoded form of the object in `version`, kept with the object.
    pub fn rendition(&self, stored: &Stored, version: &Version) -> Result<Rendition, Status> {
        stored.rendition(version.id, || {
            let before = stored.body.to_value(0);
            let after = self.transform(before.clone(), version)?;
            Ok(if after == before { None } else { Some(Arc::new(Body::encode(&after))) })
        })
    }

    /// A stored tree in `version`.
    fn transform(&self, mut object: Value, version: &Version) -> Result<Value, Status> {
        if let Some(shipped) = version.shipped {
            return Ok(shipped.to_shown(object));
        }
        let source = self.source(object.str_at(&["apiVersion"]))?.clone();
        if let Value::Object(map) = &mut object {
            // what is stored stays readable: members that are not what they should be are dropped
            let _ = schema::metadata::coerce(map, Malformed::Drop);
        }
        if object.at(&["metadata", "generation"]).and_then(Value::as_int).unwrap_or_default() == 0 {
            object.set_at(&["metadata", "generation"], Value::Int(1));
        }
        let program = source.program();
        program.schema.prune(&mut object, &mut vec![]);
        let _ = program.schema.coerce_embedded(&mut object, Malformed::Drop, &mut vec![]);
        program.schema.default(&mut object);
        self.convert(object, &source, version)
    }

    /// The version that an object is stored in.
    fn source(&self, api_version: &str) -> Result<&Arc<Version>, Status> {
        let name = match api_version.rsplit_once('/') {
            Some((group, name)) if group == self.group => name,
            _ => "",
        };
        // a ThirdPartyResource may forget versions: its objects are the same in all
        let any = || self.third_party.then(|| self.storage_version());
        self.version(name).or_else(any).ok_or_else(|| {
            Status::untyped(500, format!("request to convert CR from an invalid group/version: {api_version}"))
        })
    }

    /// An object of version `from` as one of version `to`.
    pub fn convert(&self, mut object: Value, from: &Version, to: &Version) -> Result<Value, Status> {
        if from.name == to.name && !self.third_party {
            return Ok(object);
        }
        if to.shipped.is_some() {
            return self.convert_only(object, to);
        }
        let Conversion::None = self.conversion else {
            return Err(Status::untyped(
                500,
                format!(
                    "conversion webhook for {}, Kind={} failed: webhooks are not called by this server yet",
                    self.api_version(from),
                    self.kind
                ),
            ));
        };
        let converted = self.convert_only(object, to)?;
        object = converted;
        to.program().schema.prune(&mut object, &mut vec![]);
        Ok(object)
    }

    /// What the converter alone does: nothing is pruned, as the field manager sees it.
    pub fn convert_only(&self, mut object: Value, to: &Version) -> Result<Value, Status> {
        if let Some(to) = to.shipped {
            let from = self.source(object.str_at(&["apiVersion"]))?.shipped.unwrap_or(to);
            return Ok(if from.version == to.version { object } else { to.to_shown(from.to_stored(object)) });
        }
        object.set_at(&["apiVersion"], Value::String(self.api_version(to)));
        Ok(object)
    }

    /// The stored form of an object of `version`.
    pub fn to_storage(&self, object: Value, version: &Version) -> Result<Value, Status> {
        if let Some(shipped) = version.shipped {
            return Ok(shipped.to_stored(object));
        }
        let storage = self.storage_version().clone();
        let mut object = self.convert(object, version, &storage)?;
        storage.program().schema.prune(&mut object, &mut vec![]);
        Ok(object)
    }

    /// An object in its stored form as one of `version`.
    pub fn out_of_storage(&self, stored: Value, version: &Version) -> Result<Value, Status> {
        match version.shipped {
            Some(shipped) => Ok(shipped.to_shown(stored)),
            None => self.convert(stored, self.storage_version(), version),
        }
    }

    /// The text of a field for field selectors; `None` if the field cannot be selected by.
    pub fn selectable(&self, version: &Version, label: &str) -> bool {
        match label {
            "metadata.name" => true,
            "metadata.namespace" => self.namespaced || !self.is_custom(),
            _ => {
                version.selectable.iter().any(|path| path == label)
                    || self.shipped().is_some_and(|s| s.selectable.iter().any(|(name, _)| *name == label))
            }
        }
    }

    /// The value of a selectable field as text; absent is empty.
    pub fn field_text(&self, object: &Value, label: &str) -> Text {
        if let Some(text) = self.shipped().and_then(|shipped| shipped.field_text(object, label)) {
            return text;
        }
        let mut node = object;
        for part in label.split('.') {
            match node.get(part) {
                Some(next) => node = next,
                None => return Text::default(),
            }
        }
        match node {
            Value::String(text) => text.clone(),
            Value::Null | Value::Array(_) | Value::Object(_) => Text::default(),
            scalar => Text::from(scalar.to_json()),
        }
    }
}
