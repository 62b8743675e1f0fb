//! The specs of claims: of PersistentVolumeClaims, and of the templates in StatefulSets and ephemeral volumes.

use machinery::quantity::Quantity;
use machinery::{Value, names};
use schema::metadata::annotations;

use resource::builtin::checks::{labels, selector_operators};
use schema::at::At;

/// Whether the API groups of data sources are checked.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum ApiGroups {
    Checked,
    /// The stored object has API groups, which may be invalid: they are not checked.
    AsStored,
}

/// Validates the spec of a claim or of a template of claims.
pub fn spec(spec: At, groups: ApiGroups) {
    selector_operators(spec.field("selector"));
    storage(spec.field("resources").entry("storage").with_value(spec.field("resources.requests.storage").value));
    let (source, reference) = (spec.field("dataSource"), spec.field("dataSourceRef"));
    if source.is_given() && reference.is_given() {
        let is_equal =
            ["apiGroup", "kind", "name"].iter().all(|name| source.value.get(name) == reference.value.get(name));
        if !reference.text("namespace").is_empty() {
            spec.shown_verbatim("{}").invalid("may not be specified when dataSourceRef.namespace is specified");
        } else if !is_equal {
            spec.shown_verbatim("{}").invalid("must match dataSourceRef");
        }
    }
    for source in [source, reference].into_iter().filter(At::is_given) {
        data_source(source, groups);
    }
}

/// The group and the kind of the source of a claim, and the namespace of a reference.
fn data_source(source: At, groups: ApiGroups) {
    let (group, namespace) = (source.field("apiGroup"), source.field("namespace"));
    let has_group = !group.as_text().is_empty();
    if !has_group && source.text("kind") != "PersistentVolumeClaim" {
        let why = "must be 'PersistentVolumeClaim' when referencing the default apiGroup";
        source.shown_as_text(source.text("kind")).invalid(why);
    }
    if has_group && groups == ApiGroups::Checked {
        group.check_text(names::dns1123_subdomain);
    }
    namespace.check_text_unless_empty(names::dns1123_label);
}

/// The storage that a claim requests must be at least one byte, in whole bytes.
fn storage(amount: At) {
    if !amount.is_given() {
        amount.required("");
    } else if Quantity::of(amount.value).is_ok_and(|amount| amount.signum() <= 0) {
        amount.invalid("must be greater than zero");
    }
}

/// The template of the claim of an ephemeral volume, whose metadata may have annotations and labels only.
pub fn template(source: At) {
    let Some(template) = source.field_if_given("volumeClaimTemplate") else { return };
    let metadata = template.field("metadata");
    annotations(metadata.field("annotations"));
    labels(metadata.field("labels"));
    for name in FORBIDDEN_METADATA.into_iter().filter(|name| is_not_zero(metadata.value, name)) {
        // kube-apiserver derives the name from that of the Go field
        metadata.field(if name == "uid" { "uID" } else { name }).forbidden("cannot be set");
    }
    spec(template.field("spec"), ApiGroups::Checked);
}

/// The fields that the metadata of a template of claims cannot have, in the order in which they are reported.
const FORBIDDEN_METADATA: [&str; 13] = [
    "name", "generateName", "namespace", "selfLink", "uid", "resourceVersion", "generation", "creationTimestamp",
    "deletionTimestamp", "deletionGracePeriodSeconds", "ownerReferences", "finalizers", "managedFields",
];

/// Whether a field differs from the zero value of its Go type. Empty lists differ from it, and so does zero behind
/// a pointer.
fn is_not_zero(metadata: &Value, name: &str) -> bool {
    metadata.get(name).is_some_and(|value| match value {
        Value::Null => false,
        Value::String(text) => !text.is_empty(),
        value => name != "generation" || value.as_int() != Some(0),
    })
}
