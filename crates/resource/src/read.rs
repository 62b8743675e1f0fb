//! Reading stored objects in a version: pruning, defaulting, conversion.

use std::collections::BTreeMap;
use std::sync::Arc;

use machinery::{Result, Status, Text, Value};
use objects::{Body, Rendition, Stored};
use schema::Malformed;

use super::builtin::Labels;
use super::conversion::{Conversion, Webhook};
use super::model::Resource;
use super::version::Version;
use crate::limits;

impl Resource {
    /// The object in `version`, with its resourceVersion.
    pub fn read(&self, stored: &Stored, version: &Version) -> Result<Value> {
        let body = self.rendition(stored, version)?;
        Ok(body.as_deref().unwrap_or(&stored.body).to_value(stored.revision))
    }

    /// The encoded object in `version`, cached with the stored object; `None` if it equals the stored form.
    pub fn rendition(&self, stored: &Stored, version: &Version) -> Result<Rendition> {
        stored.rendition(version.id, || {
            let before = stored.body.to_value(0);
            let after = self.transform(before.clone(), version)?;
            Ok(if after == before { None } else { Some(Arc::new(Body::encode(&after))) })
        })
    }

    /// Whether [`Resource::prepare`] must run before objects are read, since a webhook converts them.
    pub fn is_prepared(&self) -> bool {
        matches!(self.conversion, Conversion::Webhook(_))
    }

    /// Converts objects for [`Resource::rendition`]. Each call of the webhook converts objects of one source version,
    /// and at most about [`limits::CONVERSION_BYTES`].
    pub async fn prepare(&self, items: &[&Arc<Stored>], version: &Version) -> Result<()> {
        let Conversion::Webhook(webhook) = &self.conversion else { return Ok(()) };
        let unknown: Vec<&Arc<Stored>> = items.iter().copied().filter(|stored| !stored.remembers(version.id)).collect();
        let mut rest = unknown.as_slice();
        while !rest.is_empty() {
            let (mut count, mut bytes) = (0, 0);
            while count < rest.len() && bytes < limits::CONVERSION_BYTES {
                bytes += rest[count].body.bytes.len();
                count += 1;
            }
            let (few, others) = rest.split_at(count);
            self.convert_stored(webhook, few, version).await?;
            rest = others;
        }
        Ok(())
    }

    /// Converts objects and remembers their renditions.
    async fn convert_stored(&self, webhook: &Webhook, items: &[&Arc<Stored>], version: &Version) -> Result<()> {
        let mut pending: BTreeMap<Text, (Vec<&Arc<Stored>>, Vec<Value>)> = BTreeMap::new();
        for stored in items {
            let (object, source) = self.sourced(stored.body.to_value(0))?;
            if source.name != version.name {
                let (of_source, objects) = pending.entry(source.name.clone()).or_default();
                of_source.push(stored);
                objects.push(object);
            }
        }
        for (stored, objects) in pending.into_values() {
            let converted = Box::pin(webhook.convert(objects, &self.api_version(version))).await?;
            for (stored, mut object) in stored.into_iter().zip(converted) {
                version.program().schema.prune(&mut object, &mut vec![]);
                stored.remember(version.id, Some(Arc::new(Body::encode(&object))));
            }
        }
        Ok(())
    }

    /// As [`Resource::read_converted`], for a change: `fieldsV1` of its managers stays encoded, see [`Value::Encoded`].
    pub async fn read_managed(&self, stored: &Arc<Stored>, version: &Version) -> Result<Value> {
        self.prepare(&[stored], version).await?;
        let body = self.rendition(stored, version)?;
        Ok(body.as_deref().unwrap_or(&stored.body).to_managed_value(stored.revision))
    }

    /// The object in `version`, converted by the webhook if necessary.
    pub async fn read_converted(&self, stored: &Arc<Stored>, version: &Version) -> Result<Value> {
        self.prepare(&[stored], version).await?;
        self.read(stored, version)
    }

    /// A stored object in `version`.
    fn transform(&self, object: Value, version: &Version) -> Result<Value> {
        if let Some(built_in) = version.built_in {
            return Ok(built_in.to_shown(object));
        }
        let (object, source) = self.sourced(object)?;
        match &self.conversion {
            _ if source.name == version.name && !self.third_party => Ok(object),
            Conversion::None => Ok(self.renamed(object, version)),
            // `prepare` precedes every read; its result may have been evicted if many versions are read at once
            Conversion::Webhook(_) => Err(Status::internal("the object changed while it was converted")),
        }
    }

    /// Prunes and defaults a stored custom resource in its own version. Returns the object with that version.
    fn sourced(&self, mut object: Value) -> Result<(Value, &Arc<Version>)> {
        let source = self.source(object.str_at(&["apiVersion"]))?;
        if let Value::Object(map) = &mut object {
            // a stored object stays readable: malformed fields are dropped
            let _ = schema::metadata::coerce(map, Malformed::Drop);
        }
        if object.int_at(&["metadata", "generation"]) == 0 {
            object.set_at(&["metadata", "generation"], Value::Int(1));
        }
        let program = source.program();
        program.schema.prune(&mut object, &mut vec![]);
        let _ = program.schema.coerce_embedded(&mut object, Malformed::Drop, &mut vec![]);
        // a stored object stays readable: defaults beyond the limit are left out
        let _ = program.schema.default(&mut object);
        Ok((object, source))
    }

    /// The version that a stored object is in.
    fn source(&self, api_version: &str) -> Result<&Arc<Version>> {
        let name = match api_version.rsplit_once('/') {
            Some((group, name)) if group == self.group => name,
            _ => "",
        };
        // a ThirdPartyResource may drop versions, but its objects are the same in all of them
        let any = || self.third_party.then(|| self.storage_version());
        self.version(name).or_else(any).ok_or_else(|| {
            Status::untyped(500, format!("request to convert CR from an invalid group/version: {api_version}"))
        })
    }

    /// Whether objects of version `from` are also valid in version `to` without conversion.
    pub fn is_same_form(&self, from: &Version, to: &Version) -> bool {
        from.name == to.name && !self.third_party
    }

    /// Converts an object from version `from` to `to`, and prunes it.
    pub async fn convert(&self, object: Value, from: &Version, to: &Version) -> Result<Value> {
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

    /// Converts a custom resource from the version that its `apiVersion` names, and leaves what `to` does not declare.
    pub async fn convert_unpruned(&self, object: Value, to: &Version) -> Result<Value> {
        if object.str_at(&["apiVersion"]) == self.api_version(to).as_str() {
            return Ok(object);
        }
        Box::pin(self.convert_outside(object, to)).await
    }

    /// Converts by strategy `None`: sets `apiVersion` and prunes fields that `to` does not declare.
    fn renamed(&self, mut object: Value, to: &Version) -> Value {
        object.set_at(&["apiVersion"], Value::String(self.api_version(to)));
        to.program().schema.prune(&mut object, &mut vec![]);
        object
    }

    /// Whether converting `object` to `to` calls a webhook.
    pub fn is_converted_outside(&self, object: &Value, to: &Version) -> bool {
        self.is_prepared() && to.built_in.is_none() && object.str_at(&["apiVersion"]) != self.api_version(to)
    }

    /// Calls the webhook to convert an object for the field manager, without pruning.
    pub async fn convert_outside(&self, object: Value, to: &Version) -> Result<Value> {
        let Conversion::Webhook(webhook) = &self.conversion else { return self.convert_only(object, to) };
        let converted = webhook.convert(vec![object], &self.api_version(to)).await?;
        Ok(converted.into_iter().next().unwrap_or_default())
    }

    /// Converts an object without calling a webhook and without pruning.
    pub fn convert_only(&self, mut object: Value, to: &Version) -> Result<Value> {
        if let Some(to) = to.built_in {
            let from = self.source(object.str_at(&["apiVersion"]))?.built_in.unwrap_or(to);
            return Ok(if from.version == to.version { object } else { to.to_shown(from.to_stored(object)) });
        }
        object.set_at(&["apiVersion"], Value::String(self.api_version(to)));
        Ok(object)
    }

    /// Converts an object of `version` to its stored form.
    pub async fn to_storage(&self, mut object: Value, version: &Version) -> Result<Value> {
        if let Some(built_in) = version.built_in {
            (built_in.behaviour.complete_stored)(&mut object);
            return Ok(built_in.to_stored(object));
        }
        let storage = self.storage_version();
        let mut object = self.convert(object, version, storage).await?;
        storage.program().schema.prune(&mut object, &mut vec![]);
        Ok(object)
    }

    /// Converts an object in its stored form to `version`.
    pub async fn out_of_storage(&self, mut stored: Value, version: &Version) -> Result<Value> {
        if let Some(built_in) = version.built_in {
            return Ok(built_in.to_shown(stored));
        }
        let storage = self.storage_version();
        let _ = storage.program().schema.default(&mut stored);
        self.convert(stored, storage, version).await
    }

    /// Whether field selectors may use `label`.
    pub fn selectable(&self, version: &Version, label: &str) -> bool {
        match label {
            "metadata.name" => true,
            // cluster-scoped kinds with selectable fields of their own, such as Namespace, do not accept it
            "metadata.namespace" => self.namespaced || self.built_in().is_some_and(|s| s.selectable.is_empty()),
            _ => {
                version.selectable.iter().any(|path| path == label)
                    || self.built_in().is_some_and(|s| s.selectable.iter().any(|field| field.label == label))
            }
        }
    }

    /// The error for a field selector that uses an unsupported `label`.
    pub fn unsupported_label(&self, version: &Version, label: &str) -> Status {
        if let Some(row) = version.built_in.filter(|row| row.labels != Labels::Default) {
            let why = match row.labels {
                Labels::OfVersion => {
                    let (group, version, kind) = (row.group, row.version, row.kind);
                    format!("field label not supported for {group}/{version}, Kind={kind}: {label}")
                }
                _ => format!("field label {} not supported for {}", machinery::value::quote(label), row.kind),
            };
            return Status::bad_request(why);
        }
        if self.built_in().is_none_or(|row| !row.selectable.is_empty()) {
            return Status::bad_request(format!("field label not supported: {label}"));
        }
        let known = "only \"metadata.name\", \"metadata.namespace\"";
        Status::bad_request(format!("{} is not a known field selector: {known}", machinery::value::quote(label)))
    }

    /// The value of a selectable field as text; empty if absent.
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
