//! Tests of the view of a CRD that requests for custom resources use.

use machinery::{Release, Text, Value};
use schema::{CompileOptions, ScalePaths, Schema};

pub struct View<'a> {
    pub group: &'a str,
    pub kind: &'a str,
    pub preserve_unknown_fields: bool,
    versions: Vec<VersionView<'a>>,
}

pub struct VersionView<'a> {
    pub name: &'a str,
    /// Whether the status subresource is enabled.
    pub status: bool,
    definition: &'a Value,
}

impl<'a> View<'a> {
    pub fn new(definition: &'a Value) -> View<'a> {
        let versions = definition.items_at(&["spec", "versions"]);
        View {
            group: definition.str_at(&["spec", "group"]),
            kind: definition.str_at(&["spec", "names", "kind"]),
            preserve_unknown_fields: definition.is_true_at(&["spec", "preserveUnknownFields"]),
            versions: versions.iter().map(VersionView::new).collect(),
        }
    }

    pub fn version(&self, name: &str) -> Option<&VersionView<'a>> {
        self.versions.iter().find(|version| version.name == name)
    }

    pub fn storage_version(&self) -> Option<&VersionView<'a>> {
        self.versions.iter().find(|version| version.definition.is_true_at(&["storage"]))
    }
}

impl<'a> VersionView<'a> {
    fn new(definition: &'a Value) -> VersionView<'a> {
        let status = definition.at(&["subresources", "status"]).is_some();
        VersionView { name: definition.str_at(&["name"]), status, definition }
    }

    pub fn compile(&self, preserve_unknown_fields: bool, release: Release) -> Schema {
        let scale = self.definition.at(&["subresources", "scale"]).map(|scale| ScalePaths {
            spec_replicas: scale.str_at(&["specReplicasPath"]).into(),
            status_replicas: scale.str_at(&["statusReplicasPath"]).into(),
            label_selector: scale.get("labelSelectorPath").and_then(Value::as_str).map(Text::from),
        });
        let schema = self.definition.at(&["schema", "openAPIV3Schema"]).unwrap_or(&Value::Null);
        Schema::compile(schema, &CompileOptions { preserve_unknown_fields, scale, release })
    }
}
