//! Writes documents resource by resource, so that a large document never exists as a tree in memory.

use std::borrow::Cow;
use std::collections::{BTreeSet, HashSet};
use std::sync::Arc;

use bytes::Bytes;
use machinery::value::{write_json, write_json_string};
use machinery::{Map, Release, Value, json};

use super::definitions::{DocumentForm, Kinds};
use super::deflated::{Deflated, Joined};
use super::index::{Group, ServedResource};
use super::pieces::Pieces;
use super::remote::RemoteDocument;
use super::{Dialect, DocumentEncoding, definitions, proto, remote, routes, schema, standard};

/// `info` of documents with built-in kinds.
fn kubernetes(release: Release) -> Value {
    json!({"title": "Kubernetes", "version": (release.to_string())})
}

/// Encodes a v3 document.
pub fn group(group: &Group, encoding: DocumentEncoding, release: Release) -> Vec<u8> {
    let info = match group.is_built_in {
        true => kubernetes(release),
        false => json!({"title": "Kubernetes CRD Swagger", "version": "v0.1.0"}),
    };
    let kinds = match group.resources.first().filter(|_| group.is_built_in) {
        Some(served) => Kinds::Of(served.resource.group.to_string(), served.version.name.to_string()),
        None => Kinds::Clients,
    };
    let mut writer = Writer::new(DocumentForm { dialect: Dialect::V3, release, kinds }, encoding);
    writer.group(group);
    let mut rest = json!({"openapi": "3.0.0", "info": info});
    if group.is_built_in {
        rest.set_at(&["components", "securitySchemes"], security_schemes());
    }
    writer.finish(rest)
}

fn security_schemes() -> Value {
    json!({"BearerToken": {
        "description": "Bearer Token authentication", "in": "header", "name": "authorization", "type": "apiKey"
    }})
}

/// The part of a group in the v2 document, compressed.
#[derive(Clone)]
pub struct Part {
    /// The hash of the group; empty if the part depends on other groups, so that it is not reused.
    pub hash: String,
    paths: Deflated,
    schemas: Deflated,
    names: Arc<Names>,
}

/// The names of the schemas in a part, and of those that it refers to.
struct Names {
    own: HashSet<String>,
    references: BTreeSet<String>,
}

impl Part {
    /// The part of a group without the schemas that earlier parts have, whose names are `taken`.
    pub fn new(group: &Group, taken: &HashSet<String>, encoding: DocumentEncoding, release: Release) -> Part {
        let mut writer = Writer::merging(encoding, release);
        writer.names.clone_from(taken);
        writer.group(group);
        writer.names.retain(|name| !taken.contains(name));
        writer.into_part(if taken.is_empty() { &group.hash } else { "" })
    }

    /// The names of the schemas in this part.
    pub fn names(&self) -> &HashSet<String> {
        &self.names.own
    }
}

/// Encodes the v2 document from the parts of all groups, and adds those of aggregated API servers. The result is a
/// gzip stream, whose memory the parts share from then on.
pub fn merged(parts: &mut [Part], remotes: &[RemoteDocument], encoding: DocumentEncoding, release: Release) -> Bytes {
    let mut writer = Writer::merging(encoding, release);
    writer.names = parts.iter().flat_map(|part| part.names.own.iter().cloned()).collect();
    writer.references = parts.iter().flat_map(|part| part.names.references.iter().cloned()).collect();
    writer.referenced();
    remotes.iter().for_each(|remote| writer.part(&remote.v2));
    let rest = rest_v2(release, &writer.parameters);
    definitions::add_references(&rest, Dialect::V2, &mut writer.references);
    writer.referenced();
    let shared = [writer.into_part("")];
    let bytes_of = |pick: fn(&Part) -> &Deflated| parts.iter().chain(&shared).map(|part| pick(part).len()).sum();
    let (paths, schemas) = (bytes_of(|part| &part.paths), bytes_of(|part| &part.schemas));
    let frame = Frame::new(Dialect::V2, encoding, rest, paths, schemas);
    let separator = Deflated::new(match encoding {
        DocumentEncoding::Json => b",",
        DocumentEncoding::Protobuf => b"",
    });
    let mut gzip = Joined::default();
    gzip.push(&Deflated::new(&frame.head));
    let of_paths = gzip.list(parts.iter().chain(&shared).map(|part| &part.paths), &separator);
    gzip.push(&Deflated::new(&frame.middle));
    let of_schemas = gzip.list(parts.iter().chain(&shared).map(|part| &part.schemas), &separator);
    gzip.push(&Deflated::new(frame.tail));
    let document = gzip.finish();
    for (part, (paths, schemas)) in parts.iter_mut().zip(of_paths.into_iter().zip(of_schemas)) {
        part.paths.share(document.slice(paths));
        part.schemas.share(document.slice(schemas));
    }
    document
}

struct Writer {
    form: DocumentForm,
    encoding: DocumentEncoding,
    paths: Pieces,
    schemas: Pieces,
    /// Names of the schemas written so far, so that none is written twice.
    names: HashSet<String>,
    /// The names of schemas that are referred to.
    references: BTreeSet<String>,
    /// The definitions of aggregated API servers.
    remote: Map,
    /// The parameters of aggregated API servers.
    parameters: Map,
}

impl Writer {
    fn new(form: DocumentForm, encoding: DocumentEncoding) -> Writer {
        let (paths, schemas) = (Pieces::default(), Pieces::default());
        Writer {
            form,
            encoding,
            paths,
            schemas,
            names: HashSet::new(),
            references: BTreeSet::new(),
            remote: Map::new(),
            parameters: Map::new(),
        }
    }

    /// A writer of a part of the v2 document.
    fn merging(encoding: DocumentEncoding, release: Release) -> Writer {
        Writer::new(DocumentForm { dialect: Dialect::V2, release, kinds: Kinds::All }, encoding)
    }

    fn into_part(self, hash: &str) -> Part {
        let names = Arc::new(Names { own: self.names, references: self.references });
        let hash = hash.to_owned();
        Part { hash, paths: Deflated::of(self.paths), schemas: Deflated::of(self.schemas), names }
    }

    fn group(&mut self, group: &Group) {
        let mut known = if group.is_built_in { routes::of_document(&group.name) } else { vec![] };
        for served in &group.resources {
            let routes = routes::of_resource(served);
            if served.version.built_in.is_some() {
                known.extend(routes);
            } else {
                self.routes(&routes);
            }
            self.schemas_of(served);
        }
        self.routes(&known);
    }

    fn routes(&mut self, routes: &[routes::PathOperation]) {
        for (path, item) in routes::items(routes, self.form.dialect, self.form.release) {
            definitions::add_references(&item, self.form.dialect, &mut self.references);
            self.path(path, &item);
        }
    }

    /// Writes the schemas of a custom resource, and of kinds that are not in the table of types.
    fn schemas_of(&mut self, served: &ServedResource) {
        let resource = &served.resource;
        let (object, list) = (schema::name(served, &resource.kind), schema::name(served, &resource.list_kind));
        if served.version.built_in.is_none() || machinery::types::struct_of_openapi_name(&object).is_none() {
            self.schema(&object, &schema::object(served, self.form.dialect));
            self.schema(&list, &schema::list(served, self.form.dialect));
        }
    }

    fn path(&mut self, path: &str, item: &Value) {
        match self.encoding {
            DocumentEncoding::Json => json_field(path, item, &mut self.paths),
            DocumentEncoding::Protobuf => self.paths.write(|out| proto::path(self.form.dialect, path, item, out)),
        }
    }

    fn schema(&mut self, name: &str, schema: &Value) {
        if !self.names.insert(name.to_owned()) {
            return;
        }
        definitions::add_references(schema, self.form.dialect, &mut self.references);
        match self.encoding {
            DocumentEncoding::Json => json_field(name, schema, &mut self.schemas),
            DocumentEncoding::Protobuf => self.schemas.write(|out| proto::schema(self.form.dialect, name, schema, out)),
        }
    }

    /// Writes the schemas that are referred to and not written yet.
    fn referenced(&mut self) {
        while let Some(name) = self.references.pop_first() {
            if self.names.contains(&name) {
                continue;
            }
            if let Some(schema) = self.form.schema(&name) {
                self.schema(&name, &schema);
            }
        }
    }

    /// Writes the part of an aggregated API server. Equal definitions of several servers are written once.
    fn part(&mut self, part: &Value) {
        for (name, parameter) in part.fields_at(&["parameters"]) {
            // the name contains a hash of the parameter
            self.parameters.insert(name.as_str(), parameter.clone());
        }
        let known = |name: &str| match self.remote.get(name) {
            Some(remote) => Some(Cow::Borrowed(remote)),
            None => self.form.schema(name).map(Cow::Owned),
        };
        let part = remote::without_conflicts(part, &self.names, known);
        let entries = |key: &str| part.fields_at(&[key]);
        entries("paths").for_each(|(path, item)| self.path(path, item));
        for (name, schema) in entries("definitions") {
            self.schema(name, schema);
            self.remote.insert(name.as_str(), schema.clone());
        }
    }

    fn finish(mut self, rest: Value) -> Vec<u8> {
        self.referenced();
        let (paths, schemas) = (self.paths.len(), self.schemas.len());
        let frame = Frame::new(self.form.dialect, self.encoding, rest, paths, schemas);
        let mut out = frame.head;
        out.reserve(paths + frame.middle.len() + schemas + frame.tail.len());
        self.paths.each(|piece| out.extend_from_slice(piece));
        out.extend_from_slice(&frame.middle);
        self.schemas.each(|piece| out.extend_from_slice(piece));
        out.extend_from_slice(frame.tail);
        out
    }
}

/// The bytes of a document before its paths, between paths and schemas, and after the schemas.
struct Frame {
    head: Vec<u8>,
    middle: Vec<u8>,
    tail: &'static [u8],
}

impl Frame {
    fn new(dialect: Dialect, encoding: DocumentEncoding, rest: Value, paths: usize, schemas: usize) -> Frame {
        match encoding {
            DocumentEncoding::Json => Frame::json(dialect, rest, schemas > 0),
            DocumentEncoding::Protobuf => {
                let (head, middle) = proto::around(dialect, &rest, paths, schemas);
                Frame { head, middle, tail: b"" }
            }
        }
    }

    fn json(dialect: Dialect, mut rest: Value, has_schemas: bool) -> Frame {
        let components = rest.remove_at(&["components"]).unwrap_or_else(Value::object);
        let mut head = vec![];
        write_json(&rest, &mut head);
        head.pop();
        head.extend_from_slice(b",\"paths\":{");
        if dialect == Dialect::V2 {
            return Frame { head, middle: b"},\"definitions\":{".to_vec(), tail: b"}}" };
        }
        let mut middle = b"},\"components\":".to_vec();
        write_json(&components, &mut middle);
        if !has_schemas {
            return Frame { head, middle, tail: b"}" };
        }
        middle.pop();
        let is_first = components.as_object().is_none_or(Map::is_empty);
        middle.extend_from_slice(if is_first { b"\"schemas\":{" } else { b",\"schemas\":{" });
        Frame { head, middle, tail: b"}}}" }
    }
}

/// The fields of a v2 document other than `paths` and `definitions`, with further parameters.
fn rest_v2(release: Release, further: &Map) -> Value {
    let mut parameters = further.clone();
    let own = standard::parameters(release).fields();
    own.for_each(|(name, parameter)| drop(parameters.insert(name.as_str(), parameter.clone())));
    json!({
        "swagger": "2.0",
        "info": (kubernetes(release)),
        "parameters": (Value::Object(parameters)),
        "securityDefinitions": (security_schemes()),
        "security": [{"BearerToken": []}]
    })
}

fn json_field(key: &str, value: &Value, out: &mut Pieces) {
    let follows = out.len() > 0;
    out.write(|out| {
        if follows {
            out.push(b',');
        }
        write_json_string(key, out);
        out.push(b':');
        write_json(value, out);
    });
}
