//! From storage to a version: pruned, defaulted, converted.

use std::collections::BTreeMap;
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

    /// Whether objects have to be prepared before they are read.
    pub fn is_prepared(&self) -> bool {
        matches!(self.conversion, Conversion::Webhook(_))
    }

    /// Makes sure that `rendition` answers for objects, which webhooks convert all in one call.
    pub async fn prepare(&self, items: &[&Arc<Stored>], version: &Version) -> Result<(), Status> {
        let Conversion::Webhook(webhook) = &self.conversion else { return Ok(()) };
        let mut pending: BTreeMap<Text, (Vec<&Arc<Stored>>, Vec<Value>)> = BTreeMap::new();
        for stored in items.iter().filter(|stored| !stored.remembers(version.id)) {
            let (object, source) = self.sourced(stored.body.to_value(0))?;
            if source.name != version.name {
                let (of_source, objects) = pending.entry(source.name.clone()).or_default();
                of_source.push(stored);
                objects.push(object);
            }
        }
        for (stored, objects) in pending.into_values() {
            let converted = Box::pin(webhook.convert(self, objects, version)).await?;
            for (stored, mut object) in stored.into_iter().zip(converted) {
                version.program().schema.prune(&mut object, &mut vec![]);
                stored.remember(version.id, Some(Arc::new(Body::encode(&object))));
            }
        }
        Ok(())
    }

    /// The object in `version`, whatever it takes.
    pub async fn read_converted(&self, stored: &Arc<Stored>, version: &Version) -> Result<Value, Status> {
        self.prepare(&[stored], version).await?;
        self.read(stored, version)
    }

    /// A stored tree in `version`.
    fn transform(&self, object: Value, version: &Version) -> Result<Value, Status> {
        if let Some(built_in) = version.built_in {
            return Ok(built_in.to_shown(object));
        }
        let (object, source) = self.sourced(object)?;
        match &self.conversion {
            _ if source.name == version.name && !self.third_party => Ok(object),
            Conversion::None => Ok(self.renamed(object, version)),
            // `prepare` comes before every read; what it made may be forgotten when many versions are read at once
            Conversion::Webhook(_) => Err(Status::internal("the object changed while it was converted")),
        }
    }

    /// A stored tree of a custom resource as its version has it: pruned and defaulted; and that version.
    fn sourced(&self, mut object: Value) -> Result<(Value, &Arc<Version>), Status> {
        let source = self.source(object.str_at(&["apiVersion"]))?;
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
        // what is stored stays readable, without the defaults that are too many
        let _ = program.schema.default(&mut object);
        Ok((object, source))
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

    /// Whether objects of one version are those of the other as they are.
    pub fn is_same_form(&self, from: &Version, to: &Version) -> bool {
        from.name == to.name && !self.third_party
    }

    /// An object of version `from` as one of version `to`.
    pub async fn convert(&self, object: Value, from: &Version, to: &Version) -> Result<Value, Status> {
        if self.is_same_form(from, to) {
            return Ok(object);
        }
        if to.built_in.is_some() {
            return self.convert_only(object, to);
        }
        if !self.is_prepared() {
            return Ok(self.renamed(object, to));
        }
        let mut object = Box::pin(self.convert_outside(object, to)).await?;
        to.program().schema.prune(&mut object, &mut vec![]);
        Ok(object)
    }

    /// An object in another version by strategy None: what that doesn't know is gone.
    fn renamed(&self, mut object: Value, to: &Version) -> Value {
        object.set_at(&["apiVersion"], Value::String(self.api_version(to)));
        to.program().schema.prune(&mut object, &mut vec![]);
        object
    }

    /// Whether a webhook brings an object to a version.
    pub fn is_converted_outside(&self, object: &Value, to: &Version) -> bool {
        self.is_prepared() && to.built_in.is_none() && object.str_at(&["apiVersion"]) != self.api_version(to)
    }

    /// What the webhook alone does: nothing is pruned, as the field manager sees it.
    pub async fn convert_outside(&self, object: Value, to: &Version) -> Result<Value, Status> {
        let Conversion::Webhook(webhook) = &self.conversion else { return self.convert_only(object, to) };
        let converted = webhook.convert(self, vec![object], to).await?;
        Ok(converted.into_iter().next().unwrap_or_default())
    }

    /// What the converter alone does where it is no webhook: nothing is pruned.
    pub fn convert_only(&self, mut object: Value, to: &Version) -> Result<Value, Status> {
        if let Some(to) = to.built_in {
            let from = self.source(object.str_at(&["apiVersion"]))?.built_in.unwrap_or(to);
            return Ok(if from.version == to.version { object } else { to.to_shown(from.to_stored(object)) });
        }
        object.set_at(&["apiVersion"], Value::String(self.api_version(to)));
        Ok(object)
    }

    /// The stored form of an object of `version`.
    pub async fn to_storage(&self, object: Value, version: &Version) -> Result<Value, Status> {
        if let Some(built_in) = version.built_in {
            return Ok(built_in.to_stored(object));
        }
        let storage = self.storage_version();
        let mut object = self.convert(object, version, storage).await?;
        storage.program().schema.prune(&mut object, &mut vec![]);
        Ok(object)
    }

    /// An object in its stored form as one of `version`.
    pub async fn out_of_storage(&self, mut stored: Value, version: &Version) -> Result<Value, Status> {
        if let Some(built_in) = version.built_in {
            return Ok(built_in.to_shown(stored));
        }
        let storage = self.storage_version();
        let _ = storage.program().schema.default(&mut stored);
        self.convert(stored, storage, version).await
    }

    /// The text of a field for field selectors; `None` if the field cannot be selected by.
    pub fn selectable(&self, version: &Version, label: &str) -> bool {
        match label {
            "metadata.name" => true,
            // kinds that say what is selectable, as Namespace does, know no namespace unless they have one
            "metadata.namespace" => self.namespaced || self.built_in().is_some_and(|s| s.selectable.is_empty()),
            _ => {
                version.selectable.iter().any(|path| path == label)
                    || self.built_in().is_some_and(|s| s.selectable.iter().any(|(name, _)| *name == label))
            }
        }
    }

    /// The refusal of a field selector.
    pub fn unsupported_label(&self, label: &str) -> Status {
        if self.built_in().is_none_or(|row| !row.selectable.is_empty()) {
            return Status::bad_request(format!("field label not supported: {label}"));
        }
        let known = "only \"metadata.name\", \"metadata.namespace\"";
        Status::bad_request(format!("{} is not a known field selector: {known}", machinery::value::quote(label)))
    }

    /// The value of a selectable field as text; absent is empty.
    pub fn field_text(&self, object: &Value, label: &str) -> Text {
        if let Some(text) = self.built_in().and_then(|built_in| built_in.field_text(object, label)) {
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
