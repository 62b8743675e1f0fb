//! The selection of a list, a watch or a deletecollection.

use base::request::{Feature, ListOptions};
use cel::ShardSelector;
use machinery::{Result, Status, Text, names};
use objects::{Meta, Scope, Stored};

use super::request::Request;
use crate::limits;

/// The selection of a list, a watch or a deletecollection.
#[derive(Clone)]
pub struct Selection {
    pub options: ListOptions,
    /// The scope: everything, a namespace, or one object if a field selector names it.
    pub scope: Scope,
    /// Whether a field selector needs more than the name and the namespace.
    pub needs_content: bool,
    /// The shards to which the selection is limited, if any.
    pub shards: Option<ShardSelector>,
}

impl Selection {
    /// The selection by all options. Without the feature gate, shards are ignored.
    pub fn new(request: &Request, options: &ListOptions) -> Result<Selection> {
        let mut selection = Selection::without_shards(request, options)?;
        if request.resource.gates.has(Feature::ShardedLists) && !options.shard_selector.is_empty() {
            let shards = ShardSelector::parse(&options.shard_selector);
            let shards = shards.map_err(|why| Status::untyped(500, format!("invalid shard selector: {why}")))?;
            selection.shards = Some(shards);
        }
        Ok(selection)
    }

    /// The selection by labels and fields only.
    pub fn without_shards(request: &Request, options: &ListOptions) -> Result<Selection> {
        let mut needs_content = false;
        for term in &options.field_selector.requirements {
            let label = term.field.as_str();
            if !request.resource.selectable(&request.version, label) {
                return Err(request.resource.unsupported_label(&request.version, label));
            }
            needs_content |= !matches!(label, "metadata.name" | "metadata.namespace");
        }
        let namespace = if request.resource.namespaced { request.namespace().clone() } else { Text::default() };
        let scope = scope(request, options, &namespace);
        Ok(Selection { options: options.clone(), scope, needs_content, shards: None })
    }

    /// How many objects to select from at a time. `most` is the number if objects are only visited.
    pub fn batch(&self, most: usize) -> usize {
        let terms = self.options.field_selector.requirements.len();
        // evaluating eight terms takes about as long as a visit
        let weight = 1 + terms / 8 + if self.needs_content { limits::LIST_SCAN_DECODE } else { 0 };
        (most / weight).max(1)
    }

    /// Whether an object is selected.
    pub fn matches(&self, request: &Request, stored: &Stored) -> Result<bool> {
        if self.shards.as_ref().is_some_and(|shards| !shards.matches(&stored.meta.uid, &stored.meta.namespace)) {
            return Ok(false);
        }
        if !self.matches_labels(&stored.meta) {
            return Ok(false);
        }
        if self.options.field_selector.is_empty() {
            return Ok(true);
        }
        let object =
            if self.needs_content { request.resource.read(stored, &request.version)? } else { machinery::Value::Null };
        Ok(self.matches_fields(&stored.meta, |label| request.resource.field_text(&object, label)))
    }

    /// Whether an object is selected whose only selectable fields are name and namespace.
    pub fn matches_metadata(&self, meta: &Meta) -> bool {
        self.matches_labels(meta) && self.matches_fields(meta, |_| Text::default())
    }

    fn matches_labels(&self, meta: &Meta) -> bool {
        self.options.label_selector.selects(&meta.labels)
    }

    fn matches_fields(&self, meta: &Meta, other: impl Fn(&str) -> Text) -> bool {
        self.options.field_selector.matches(|label| match label {
            "metadata.name" => meta.name.clone(),
            "metadata.namespace" => meta.namespace.clone(),
            label => other(label),
        })
    }

    /// Fails if the namespace of the request cannot be part of a key in kube-apiserver. The key of a selection ends
    /// with the name in the path or, on the first page, with the name that a field selector requires.
    pub fn check_path(&self, request: &Request) -> Result<()> {
        let in_path = Some(request.name()).filter(|name| !name.is_empty());
        let is_first_page = self.options.continue_token.is_empty();
        let selected = || self.options.field_selector.exact("metadata.name").filter(|_| is_first_page);
        let name = in_path.or_else(selected);
        request.check_path(name.filter(|name| names::path_segment(name).is_empty()).map_or("", Text::as_str))
    }
}

fn scope(request: &Request, options: &ListOptions, namespace: &Text) -> Scope {
    let name = options.field_selector.exact("metadata.name").filter(|name| !name.is_empty());
    match name {
        Some(name) if !request.resource.namespaced || !namespace.is_empty() => {
            Scope::Path(request.resource.key(namespace, name).path)
        }
        _ if namespace.is_empty() => Scope::All,
        _ => Scope::Namespace(namespace.clone()),
    }
}

#[cfg(test)]
mod tests {
    use machinery::selector::FieldSelector;

    use super::*;

    #[test]
    fn large_selections_are_applied_to_few_objects_at_a_time() {
        let batch = |fields: &str, needs_content| {
            let options =
                ListOptions { field_selector: FieldSelector::parse(fields).unwrap(), ..ListOptions::default() };
            Selection { options, scope: Scope::All, needs_content, shards: None }.batch(limits::LIST_SCAN)
        };
        let many: Vec<String> = (0..7_000).map(|i| format!("metadata.name!=l{i}")).collect();
        assert_eq!((batch("", false), batch("metadata.name=b", false)), (limits::LIST_SCAN, limits::LIST_SCAN));
        assert!(batch(&many.join(","), false) < 16 && batch("a=b", true) < 16);
    }
}
