//! Writes documents resource by resource, so that a large document never exists as a tree in memory.

use std::collections::HashSet;

use machinery::value::{write_json, write_json_string};
use machinery::{Release, Value, json};

use super::index::Group;
use super::pieces::Pieces;
use super::{Dialect, DocumentEncoding, paths, proto, schema, standard};

/// `info.version` of documents with built-in kinds.
const KUBERNETES: &str = "v1.37.2";

/// Encodes the v3 document of a group version.
pub fn group(group: &Group, encoding: DocumentEncoding) -> Vec<u8> {
    let info = match group.members.iter().any(|member| member.resource.built_in().is_some()) {
        true => json!({"title": "Kubernetes", "version": KUBERNETES}),
        false => json!({"title": "Kubernetes CRD Swagger", "version": "v0.1.0"}),
    };
    let release = group.members.first().map_or(Release::default(), |member| member.resource.release);
    let mut writer = Writer::new(Dialect::V3, encoding, release);
    writer.group(group);
    writer.finish(&info)
}

/// Encodes the v2 document of all groups.
pub fn merged(groups: &[&Group], encoding: DocumentEncoding, release: Release) -> Vec<u8> {
    let mut writer = Writer::new(Dialect::V2, encoding, release);
    groups.iter().for_each(|group| writer.group(group));
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
    /// Whether a resource has the scale subresource, so that its schemas are needed.
    scales: bool,
}

impl Writer {
    fn new(dialect: Dialect, encoding: DocumentEncoding, release: Release) -> Writer {
        let (paths, schemas) = (Pieces::default(), Pieces::default());
        Writer { release, dialect, encoding, paths, schemas, names: HashSet::new(), scales: false }
    }

    fn group(&mut self, group: &Group) {
        for member in &group.members {
            for (path, item) in paths::items(member, self.dialect) {
                self.path(&path, &item);
            }
            let resource = &member.resource;
            self.schema(&schema::name(member, &resource.kind), &schema::object(member, self.dialect));
            self.schema(&schema::name(member, &resource.list_kind), &schema::list(member, self.dialect));
            self.scales |= member.version.scale.is_some();
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

    fn finish(mut self, info: &Value) -> Vec<u8> {
        for (name, schema) in standard::schemas(self.dialect, self.release, self.scales) {
            self.schema(name, schema);
        }
        let rest = match self.dialect {
            Dialect::V2 => rest_v2(info, self.release),
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

/// The fields of a v2 document other than `paths` and `definitions`.
fn rest_v2(info: &Value, release: Release) -> Value {
    json!({
        "swagger": "2.0",
        "info": (info.clone()),
        "parameters": (standard::parameters(release).clone()),
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
