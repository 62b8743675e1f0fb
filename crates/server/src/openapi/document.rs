//! Writes documents resource by resource, so that a large document never exists as a tree in memory.

use std::collections::{HashMap, HashSet};

use machinery::value::{write_json, write_json_string};
use machinery::{Map, Release, Value, json};

use super::index::Group;
use super::pieces::Pieces;
use super::remote::RemoteDocument;
use super::{Dialect, DocumentEncoding, paths, proto, remote, schema, standard};

/// `info.version` of documents with built-in kinds.
const KUBERNETES: &str = "v1.37.2";

/// Encodes the v3 document of a group version.
pub fn group(group: &Group, encoding: DocumentEncoding) -> Vec<u8> {
    let info = if group.resources.iter().any(|served| served.resource.built_in().is_some()) {
        json!({"title": "Kubernetes", "version": KUBERNETES})
    } else {
        json!({"title": "Kubernetes CRD Swagger", "version": "v0.1.0"})
    };
    let release = group.resources.first().map_or(Release::default(), |served| served.resource.release);
    let mut writer = Writer::new(Dialect::V3, encoding, release);
    writer.group(group);
    writer.finish(&info)
}

/// Encodes the v2 document of all groups, and of the parts of aggregated API servers.
pub fn merged(groups: &[&Group], remotes: &[RemoteDocument], encoding: DocumentEncoding, release: Release) -> Vec<u8> {
    let mut writer = Writer::new(Dialect::V2, encoding, release);
    groups.iter().for_each(|group| writer.group(group));
    if !remotes.is_empty() {
        writer.standard();
    }
    remotes.iter().for_each(|remote| writer.part(&remote.v2));
    writer.finish(&json!({"title": "Kubernetes", "version": KUBERNETES}))
}

struct Writer {
    release: Release,
    dialect: Dialect,
    encoding: DocumentEncoding,
    paths: Pieces,
    schemas: Pieces,
    /// Names of the schemas written so far: a name is written once.
    names: HashSet<String>,
    /// The definitions of aggregated API servers.
    remote: Map,
    /// Their parameters.
    parameters: Map,
    /// Whether a resource has the scale subresource, so that its schemas are needed.
    scales: bool,
}

impl Writer {
    fn new(dialect: Dialect, encoding: DocumentEncoding, release: Release) -> Writer {
        let (paths, schemas) = (Pieces::default(), Pieces::default());
        Writer {
            release,
            dialect,
            encoding,
            paths,
            schemas,
            names: HashSet::new(),
            remote: Map::new(),
            parameters: Map::new(),
            scales: false,
        }
    }

    fn group(&mut self, group: &Group) {
        for served in &group.resources {
            for (path, item) in paths::items(served, self.dialect) {
                self.path(&path, &item);
            }
            let resource = &served.resource;
            self.schema(&schema::name(served, &resource.kind), &schema::object(served, self.dialect));
            self.schema(&schema::name(served, &resource.list_kind), &schema::list(served, self.dialect));
            self.scales |= served.version.scale.is_some();
        }
    }

    fn path(&mut self, path: &str, item: &Value) {
        match self.encoding {
            DocumentEncoding::Json => json_field(path, item, &mut self.paths),
            DocumentEncoding::Protobuf => self.paths.write(|out| proto::path(self.dialect, path, item, out)),
        }
    }

    fn schema(&mut self, name: &str, schema: &Value) {
        if !self.names.insert(name.to_owned()) {
            return;
        }
        match self.encoding {
            DocumentEncoding::Json => json_field(name, schema, &mut self.schemas),
            DocumentEncoding::Protobuf => self.schemas.write(|out| proto::schema(self.dialect, name, schema, out)),
        }
    }

    /// Writes the shared schemas that are not written yet.
    fn standard(&mut self) {
        for (name, schema) in standard::schemas(self.dialect, self.release, self.scales) {
            self.schema(name, schema);
        }
    }

    /// Writes the part of an aggregated API server. Parts of servers with equal definitions share them.
    fn part(&mut self, part: &Value) {
        let standard: HashMap<_, _> = standard::schemas(self.dialect, self.release, true).collect();
        let known = |name: &str| self.remote.get(name).or_else(|| standard.get(name).copied());
        for (name, parameter) in part.get("parameters").and_then(Value::as_object).into_iter().flat_map(Map::iter) {
            // the name contains a hash of the parameter
            self.parameters.insert(name.as_str(), parameter.clone());
        }
        let part = remote::without_conflicts(part, &self.names, known);
        let entries = |key: &str| part.get(key).and_then(Value::as_object).into_iter().flat_map(Map::iter);
        entries("paths").for_each(|(path, item)| self.path(path, item));
        for (name, schema) in entries("definitions") {
            self.schema(name, schema);
            self.remote.insert(name.as_str(), schema.clone());
        }
    }

    fn finish(mut self, info: &Value) -> Vec<u8> {
        self.standard();
        let rest = match self.dialect {
            Dialect::V2 => rest_v2(info, self.release, &self.parameters),
            Dialect::V3 => json!({"openapi": "3.0.0", "info": (info.clone())}),
        };
        match self.encoding {
            DocumentEncoding::Json => self.json(&rest),
            DocumentEncoding::Protobuf => proto::document(self.dialect, &rest, self.paths, self.schemas),
        }
    }

    fn json(self, rest: &Value) -> Vec<u8> {
        let mut out = Vec::with_capacity(self.paths.len() + self.schemas.len() + 32 * 1024);
        write_json(rest, &mut out);
        out.pop();
        out.extend_from_slice(b",\"paths\":{");
        self.paths.append_to(&mut out);
        let (open, close): (&[u8], &[u8]) = match self.dialect {
            Dialect::V2 => (b"},\"definitions\":{", b"}}"),
            Dialect::V3 => (b"},\"components\":{\"schemas\":{", b"}}}"),
        };
        out.extend_from_slice(open);
        self.schemas.append_to(&mut out);
        out.extend_from_slice(close);
        out
    }
}

/// The fields of a v2 document other than `paths` and `definitions`, with further parameters.
fn rest_v2(info: &Value, release: Release, further: &Map) -> Value {
    let mut parameters = further.clone();
    let own = standard::parameters(release).as_object().into_iter().flat_map(Map::iter);
    own.for_each(|(name, parameter)| drop(parameters.insert(name.as_str(), parameter.clone())));
    json!({
        "swagger": "2.0",
        "info": (info.clone()),
        "parameters": (Value::Object(parameters)),
        "securityDefinitions": {"BearerToken": {
            "description": "Bearer Token authentication", "in": "header", "name": "authorization", "type": "apiKey"
        }},
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
