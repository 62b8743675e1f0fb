//! The validation of whole definitions, in this order: metadata, spec, names in the status, stored versions, API
//! approval, preserveUnknownFields.

use std::collections::{HashMap, HashSet};

use machinery::field::FieldErrors;
use machinery::{FieldError, Release, Value, names as label};

use super::conditions::{Approval, approval};
use super::hoist::{Hoisted, schema_has};
use super::options::Options;
use super::ratchet::has_extensions;
use super::{conversion, names, schema, subresources, versions};
use crate::at::{At, errors_of};
use crate::metadata;

pub fn validate_create(definition: &Value, release: Release) -> Vec<FieldError> {
    create_errors(definition, &Options::for_create(release), release)
}

/// The errors of an update that only definitions have. They follow those of
/// [`validate_before_update`](crate::metadata::validate_before_update). What the stored definition already violates is
/// tolerated.
pub fn validate_update(new: &Value, old: &Value, release: Release) -> Vec<FieldError> {
    update_errors(new, old, &Options::for_update(new, old, release), release)
}

/// As [`validate_create`], for a v1beta1 definition.
pub fn validate_beta_create(beta: &Value, release: Release) -> Vec<FieldError> {
    let definition = super::from_beta(beta);
    create_errors(&definition, &Options::for_create(release).of_beta(beta, None), release)
}

/// As [`validate_update`], for two v1beta1 definitions.
pub fn validate_beta_update(beta: &Value, old: &Value, release: Release) -> Vec<FieldError> {
    let (new, old) = (super::from_beta(beta), super::from_beta(old));
    update_errors(&new, &old, &Options::for_update(&new, &old, release).of_beta(beta, Some(&old)), release)
}

/// The errors of an update of the status. They follow those that every object can have.
pub fn validate_status_update(new: &Value, old: &Value, release: Release) -> Vec<FieldError> {
    let mut errors = metadata_errors(new, Some(old), release, metadata_update);
    errors.extend(errors_of(new, Some(old), release, accepted_names));
    errors
}

fn create_errors(definition: &Value, options: &Options, release: Release) -> Vec<FieldError> {
    let mut errors = metadata_errors(definition, None, release, new_metadata);
    errors.extend(errors_of(definition, None, release, |definition| validate_rest(definition, options)));
    errors
}

fn update_errors(new: &Value, old: &Value, options: &Options, release: Release) -> Vec<FieldError> {
    let mut errors = metadata_errors(new, Some(old), release, metadata_update);
    errors.extend(errors_of(new, Some(old), release, |definition| validate_rest(definition, options)));
    errors
}

fn metadata_errors(new: &Value, old: Option<&Value>, release: Release, check: fn(At)) -> Vec<FieldError> {
    let mut errors = errors_of(new, old, release, check);
    // since 1.37, CRDs have declarative validation, which drops errors that were found twice
    if release >= Release::V1_37 {
        machinery::field::drop_repetitions(&mut errors);
    }
    errors
}

fn metadata_update(definition: At) {
    metadata::validate_update(definition.field("metadata"));
}

fn new_metadata(definition: At) {
    let required = format!("{}.{}", definition.text("spec.names.plural"), definition.text("spec.group"));
    let problems = |name: &str, syntax: &str| {
        let mut problems = label::dns1123_subdomain(syntax);
        if name != required {
            problems.push("must be spec.names.plural+\".\"+spec.group".to_owned());
        }
        problems
    };
    let metadata = definition.field("metadata");
    let generate = metadata.field("generateName");
    generate.check_text_unless_empty(|generate| problems(generate, &label::masked_prefix(generate)));
    let name = metadata.field("name");
    name.require_text("name or generateName is required");
    name.check_text_unless_empty(|name| problems(name, name));
    let has_namespace = !metadata.text("namespace").is_empty();
    metadata.field("namespace").forbidden_if(has_namespace, "not allowed on this type");
    metadata::validate_common(metadata);
}

fn validate_rest(definition: At, options: &Options) {
    let spec = Hoisted::of(definition.field("spec").value);
    validate_spec(definition.field("spec"), &spec, options);
    let fixed = ["spec.scope", "spec.names.kind", "spec.group", "spec.names.plural"];
    let fixed = if options.require_immutable_names { &fixed } else { &fixed[2..] };
    fixed.iter().for_each(|path| definition.field_or_empty(path).immutable());
    accepted_names(definition);
    stored_versions(definition.field("status.storedVersions"), &spec);
    if options.beta.is_some() {
        return;
    }
    api_approval(definition);
    let preserving = definition.field("spec.preserveUnknownFields");
    if spec.flag("preserveUnknownFields") && preserving.old != Some(&Value::Bool(true)) {
        let detail =
            "cannot set to true, set x-kubernetes-preserve-unknown-fields to true in spec.versions[*].schema instead";
        preserving.invalid(detail);
    }
}

fn validate_spec<'v>(at: At<'_, 'v>, spec: &Hoisted<'v>, options: &Options) {
    names::validate_group(at.field("group"));
    at.field("scope").require_one_of(&["Cluster", "Namespaced"]);
    let preserving = spec.flag("preserveUnknownFields");
    schema_presence(at, spec, options);
    let has_defaults = options.allow_defaults && spec.has_defaults();
    let is_unpruned = has_defaults && preserving;
    let detail = "must be false in order to use defaults in the schema";
    at.field("preserveUnknownFields").invalid_if(is_unpruned, detail);
    let force = !preserving || has_defaults || spec.schemas().any(|s| schema_has(s, &has_extensions));
    let context = schema::ValidationContext { options, structural: options.require_structural || force };
    versions::validate(at, spec, &context);
    names::validate_required(at.field("names"));
    names::validate(at.field("names"));
    top_level(at, spec, &context);
    conversion::validate(at.field("conversion"), spec, options);
}

fn schema_presence(at: At, spec: &Hoisted<'_>, options: &Options) {
    let preserving = spec.flag("preserveUnknownFields");
    if spec.top("schema").is_some_and(|s| s.get("openAPIV3Schema").is_some()) {
        return;
    }
    for (place, version) in at.items_of("versions").zip(spec.versions) {
        let has_schema = spec.own(version, "schema").is_some_and(|s| s.get("openAPIV3Schema").is_some());
        let schema = place.field("schema.openAPIV3Schema");
        if options.require_schema {
            schema.required_if(!has_schema, "");
        } else {
            let is_pruned = !has_schema && !preserving && place.is_true("served");
            schema.required_if(is_pruned, "because otherwise all fields are pruned");
        }
    }
}

/// The top-level fields of the internal view.
fn top_level<'v>(at: At<'_, 'v>, spec: &Hoisted<'v>, context: &schema::ValidationContext<'_>) {
    let top = |key| at.field(key).with_value(spec.top(key).unwrap_or(&Value::Null));
    let name = spec.versions.first().map(|v| v.str_at(&["name"])).unwrap_or_default();
    let has_status = spec.versions.iter().any(|v| v.at(&["subresources", "status"]).is_some());
    schema::validate_version(
        top("schema").with_name("validation"),
        schema::SchemaVersion { name, has_status },
        context,
    );
    subresources::validate(top("subresources"));
    top("additionalPrinterColumns").items().for_each(|column| subresources::validate_column(column));
    let absent = "may only be set when validations.schema is included";
    versions::selectable(top("selectableFields"), top("schema"), absent, context.options, "");
}

fn accepted_names(definition: At) {
    names::validate(definition.field("status.acceptedNames"));
}

fn stored_versions(stored: At, spec: &Hoisted<'_>) {
    if stored.items().len() == 0 {
        return stored.invalid("must have at least one stored version");
    }
    // upstream crosses off each name that it finds, so that a second version with the same name is not found
    let names: HashSet<&str> = stored.items().map(|name| name.as_text()).collect();
    let mut met = HashSet::new();
    let (path, mut missing) = (stored.path(), FieldErrors::default());
    for version in spec.versions {
        let name = version.str_at(&["name"]);
        let again = !met.insert(name);
        let is_storage = version.is_true_at(&["storage"]);
        // each error shows the whole list, so their total size is bounded
        if is_storage && (again || !names.contains(name)) && !missing.is_full() {
            missing.push(FieldError::invalid(&path, stored.value, format!("must have the storage version {name}")));
        }
    }
    stored.extend(missing.into_list());
    // if a name is stored twice, upstream reports the last occurrence
    let last_index: HashMap<&str, usize> = stored.items().enumerate().map(|(i, name)| (name.as_text(), i)).collect();
    for (i, name) in stored.items().enumerate() {
        let text = name.as_text();
        if !met.contains(text) && last_index.get(text) == Some(&i) {
            name.invalid(format!(
                "missing from spec.versions; {text} was previously a storage version, and must remain in spec.versions until a storage migration ensures no data remains persisted in {text} and removes {text} from status.storedVersions"
            ));
        }
    }
}

fn api_approval(definition: At) {
    if !super::conditions::is_protected(definition.text("spec.group")) {
        return;
    }
    let (state, reason) = approval(definition.value);
    if definition.old.is_some_and(|old| approval(old).0 == state) {
        return;
    }
    let annotations = definition.field("metadata.annotations");
    let annotation = annotations.entry(super::APPROVAL_ANNOTATION);
    match state {
        Approval::Missing => annotation.required(reason),
        Approval::Invalid => annotation.invalid(reason),
        Approval::Approved | Approval::Bypassed => {}
    }
}

#[cfg(test)]
mod tests {
    use machinery::value::decode;

    use super::super::{ApiVersion, decode as read, prepare_for_create, prepare_for_update, to_stored};
    use super::*;

    fn definition(schema: &str) -> Value {
        let text = format!(
            r#"{{"metadata":{{"name":"xs.g.io","resourceVersion":"1"}},"spec":{{"group":"g.io","scope":"Cluster",
                "names":{{"plural":"xs","kind":"X"}},"versions":[{{"name":"v1","served":true,"storage":true,
                "schema":{{"openAPIV3Schema":{schema}}}}}]}}}}"#
        );
        read(&decode(text.as_bytes()).unwrap(), ApiVersion::V1).unwrap().definition
    }

    fn check(schema: &str, want: &[&str]) {
        let mut new = definition(schema);
        prepare_for_create(&mut new);
        let got: Vec<String> = validate_create(&new, Release::NEWEST).iter().map(ToString::to_string).collect();
        assert_eq!(got, want, "{schema}");
    }

    #[test]
    fn schemas_are_validated() {
        const ROOT: &str = "spec.validation.openAPIV3Schema";
        check(r#"{"type":"object"}"#, &[]);
        check(
            r#"{"type":"array"}"#,
            &[
                &format!("{ROOT}.items: Required value: must be specified"),
                &format!("{ROOT}.type: Invalid value: \"array\": must be object at the root"),
            ],
        );
        check(
            r#"{"type":"object","properties":{"a":{"type":"integer","default":"x"}}}"#,
            &[&format!(
                "{ROOT}.properties[a].default: Invalid value: \"string\":  in body must be of type integer: \"string\""
            )],
        );
    }

    #[test]
    fn stored_violations_are_tolerated() {
        let bad = r#"{"type":"object","properties":{"a":{"type":"strange"}}}"#;
        let mut old = definition(bad);
        prepare_for_create(&mut old);
        assert_eq!(validate_create(&old, Release::NEWEST).len(), 1);
        let mut new = definition(bad);
        prepare_for_update(&mut new, &old);
        assert_eq!(validate_update(&new, &old, Release::NEWEST), []);
        assert_eq!(new.at(&["metadata", "generation"]), Some(&Value::Int(1)));
        assert_eq!(to_stored(&new).get("spec"), to_stored(&old).get("spec"));
    }

    #[test]
    fn deep_schemas_do_not_overflow_the_stack() {
        let run = || {
            let mut schema = r#"{"type":"string","default":"x"}"#.to_owned();
            for _ in 0..4_000 {
                schema = format!(r#"{{"type":"array","items":{schema}}}"#);
            }
            check(&format!(r#"{{"type":"object","properties":{{"a":{schema}}}}}"#), &[]);
        };
        std::thread::Builder::new().stack_size(64 << 20).spawn(run).unwrap().join().unwrap();
    }
}
