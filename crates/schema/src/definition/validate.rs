//! The validation of whole definitions, in this order: metadata, spec, names in the status, stored versions, API
//! approval, preserveUnknownFields.

use std::collections::{HashMap, HashSet};

use machinery::field::FieldErrors;
use machinery::{FieldError, FieldPath, Release, Value, names as label};

use super::conditions::{Approval, approval};
use super::hoist::{Hoisted, schema_has};
use super::options::Options;
use super::ratchet::has_extensions;
use super::{conversion, names, openapi, schema, subresources, versions};
use crate::metadata;

/// All errors of a new definition.
pub fn validate_create(definition: &Value, release: Release) -> Vec<FieldError> {
    let mut errors = validate_metadata(definition, release);
    validate_rest(definition, None, &Options::for_create(release), &mut errors);
    errors
}

/// The errors of an update that only definitions have. They follow those of
/// [`validate_before_update`](crate::metadata::validate_before_update). What the stored definition already violates is
/// tolerated.
pub fn validate_update(new: &Value, old: &Value, release: Release) -> Vec<FieldError> {
    let mut errors = validate_metadata_update(new, old, release);
    validate_rest(new, Some(old), &Options::for_update(new, old, release), &mut errors);
    errors
}

/// As [`validate_create`], for a v1beta1 definition.
pub fn validate_beta_create(beta: &Value, release: Release) -> Vec<FieldError> {
    let definition = super::from_beta(beta);
    let mut errors = validate_metadata(&definition, release);
    validate_rest(&definition, None, &Options::for_create(release).of_beta(beta, None), &mut errors);
    errors
}

/// As [`validate_update`], for two v1beta1 definitions.
pub fn validate_beta_update(beta: &Value, old: &Value, release: Release) -> Vec<FieldError> {
    let (new, old) = (super::from_beta(beta), super::from_beta(old));
    let mut errors = validate_metadata_update(&new, &old, release);
    let options = Options::for_update(&new, &old, release).of_beta(beta, Some(&old));
    validate_rest(&new, Some(&old), &options, &mut errors);
    errors
}

/// The errors of an update of the status. They follow those that every object can have.
pub fn validate_status_update(new: &Value, old: &Value, release: Release) -> Vec<FieldError> {
    let mut errors = validate_metadata_update(new, old, release);
    accepted_names(new, &mut errors);
    errors
}

fn meta(definition: &Value) -> &Value {
    definition.get("metadata").unwrap_or(&Value::Null)
}

fn validate_metadata_update(new: &Value, old: &Value, release: Release) -> Vec<FieldError> {
    let mut errors = vec![];
    metadata::validate_update(meta(new), meta(old), &FieldPath::new("metadata"), release, &mut errors);
    without_repetitions(errors, release)
}

/// Since 1.37, CRDs have declarative validation, which drops errors that were found twice.
fn without_repetitions(mut errors: Vec<FieldError>, release: Release) -> Vec<FieldError> {
    if release >= Release::V1_37 {
        machinery::field::drop_repetitions(&mut errors);
    }
    errors
}

fn validate_metadata(definition: &Value, release: Release) -> Vec<FieldError> {
    let (path, mut errors) = (FieldPath::new("metadata"), vec![]);
    let meta = meta(definition);
    let required =
        format!("{}.{}", definition.str_at(&["spec", "names", "plural"]), definition.str_at(&["spec", "group"]));
    let problems = |name: &str, syntax: &str| {
        let mut problems = label::dns1123_subdomain(syntax);
        if name != required {
            problems.push("must be spec.names.plural+\".\"+spec.group".to_owned());
        }
        problems
    };
    let generate = meta.str_at(&["generateName"]);
    if !generate.is_empty() {
        let problems = problems(generate, &label::masked_prefix(generate));
        metadata::invalid_each(&path.child("generateName"), &Value::from(generate), problems, &mut errors);
    }
    let name = meta.str_at(&["name"]);
    if name.is_empty() {
        errors.push(FieldError::required(&path.child("name"), "name or generateName is required"));
    } else {
        metadata::invalid_each(&path.child("name"), &Value::from(name), problems(name, name), &mut errors);
    }
    if !meta.str_at(&["namespace"]).is_empty() {
        errors.push(FieldError::forbidden(&path.child("namespace"), "not allowed on this type"));
    }
    metadata::validate_common(meta, &path, release, &mut errors);
    without_repetitions(errors, release)
}

fn validate_rest(definition: &Value, old: Option<&Value>, options: &Options, errors: &mut Vec<FieldError>) {
    let spec = Hoisted::of(definition.get("spec").unwrap_or(&Value::Null));
    validate_spec(&spec, options, errors);
    if let Some(old) = old {
        immutable(definition, old, options, errors);
    }
    accepted_names(definition, errors);
    stored_versions(definition, &spec, errors);
    if options.beta.is_some() {
        return;
    }
    api_approval(definition, old, errors);
    let was_preserving = old.is_some_and(|old| old.is_true_at(&["spec", "preserveUnknownFields"]));
    if spec.flag("preserveUnknownFields") && !was_preserving {
        let detail =
            "cannot set to true, set x-kubernetes-preserve-unknown-fields to true in spec.versions[*].schema instead";
        errors.push(FieldError::invalid(&FieldPath::new("spec.preserveUnknownFields"), &Value::Bool(true), detail));
    }
}

fn validate_spec(spec: &Hoisted<'_>, options: &Options, errors: &mut Vec<FieldError>) {
    let path = FieldPath::new("spec");
    names::validate_group(spec.spec.str_at(&["group"]), &path.child("group"), errors);
    let scope = spec.spec.str_at(&["scope"]);
    openapi::one_of(scope, &["Cluster", "Namespaced"], &path.child("scope"), errors);
    let preserving = spec.flag("preserveUnknownFields");
    schema_presence(spec, options, &path, errors);
    let has_defaults = options.allow_defaults && spec.has_defaults();
    if has_defaults && preserving {
        let detail = "must be false in order to use defaults in the schema";
        errors.push(FieldError::invalid(&path.child("preserveUnknownFields"), &Value::Bool(true), detail));
    }
    let force = !preserving || has_defaults || spec.schemas().any(|s| schema_has(s, &has_extensions));
    let context = schema::ValidationContext { options, structural: options.require_structural || force };
    versions::validate(spec, &context, &path.child("versions"), errors);
    names::validate_required(spec.spec, &path.child("names"), errors);
    names::validate(spec.spec.get("names").unwrap_or(&Value::Null), &path.child("names"), errors);
    top_level(spec, &context, &path, errors);
    conversion::validate(spec, options, &path.child("conversion"), errors);
}

fn schema_presence(spec: &Hoisted<'_>, options: &Options, path: &FieldPath, errors: &mut Vec<FieldError>) {
    let preserving = spec.flag("preserveUnknownFields");
    if spec.top("schema").is_some_and(|s| s.get("openAPIV3Schema").is_some()) {
        return;
    }
    for (i, version) in spec.versions.iter().enumerate() {
        if spec.own(version, "schema").is_some_and(|s| s.get("openAPIV3Schema").is_some()) {
            continue;
        }
        let place = path.child("versions").index(i).child("schema").child("openAPIV3Schema");
        if options.require_schema {
            errors.push(FieldError::required(&place, ""));
        } else if !preserving && version.is_true_at(&["served"]) {
            errors.push(FieldError::required(&place, "because otherwise all fields are pruned"));
        }
    }
}

/// The top-level fields of the internal view.
fn top_level(
    spec: &Hoisted<'_>,
    context: &schema::ValidationContext<'_>,
    path: &FieldPath,
    errors: &mut Vec<FieldError>,
) {
    let first = spec.versions.first().map(|v| v.str_at(&["name"])).unwrap_or_default();
    if let Some(validation) = spec.top("schema") {
        let has_status = spec.versions.iter().any(|v| v.at(&["subresources", "status"]).is_some());
        let version = schema::SchemaVersion { name: first, has_status };
        schema::validate_version(validation, version, context, &path.child("validation"), errors);
    }
    if let Some(sub) = spec.top("subresources") {
        subresources::validate(sub, &path.child("subresources"), errors);
    }
    let columns = spec.top("additionalPrinterColumns");
    subresources::validate_columns(columns, &path.child("additionalPrinterColumns"), errors);
    let fields = spec.top("selectableFields").and_then(Value::as_array).unwrap_or_default();
    if fields.is_empty() {
        return;
    }
    let place = path.child("selectableFields");
    match spec.top("schema").and_then(|s| s.get("openAPIV3Schema")) {
        None => {
            let detail = "may only be set when validations.schema is included";
            errors.push(FieldError::invalid(&place, &Value::from(""), detail));
        }
        Some(schema) => {
            let broken = path.child("schema.openAPIV3Schema");
            versions::selectable(fields, schema, &place, &broken, context.options, "", errors);
        }
    }
}

fn immutable(new: &Value, old: &Value, options: &Options, errors: &mut Vec<FieldError>) {
    let fixed: &[&[&str]] =
        &[&["spec", "scope"], &["spec", "names", "kind"], &["spec", "group"], &["spec", "names", "plural"]];
    let fixed = if options.require_immutable_names { fixed } else { &fixed[2..] };
    for path in fixed {
        let (now, before) = (new.str_at(path), old.str_at(path));
        if now != before {
            let place = FieldPath::new(path.join("."));
            errors.push(FieldError::invalid(&place, &Value::from(now), "field is immutable"));
        }
    }
}

fn accepted_names(definition: &Value, errors: &mut Vec<FieldError>) {
    let accepted = definition.at(&["status", "acceptedNames"]).unwrap_or(&Value::Null);
    names::validate(accepted, &FieldPath::new("status.acceptedNames"), errors);
}

fn stored_versions(definition: &Value, spec: &Hoisted<'_>, errors: &mut Vec<FieldError>) {
    let path = FieldPath::new("status.storedVersions");
    let null = Value::Null;
    let value = definition.at(&["status", "storedVersions"]).unwrap_or(&null);
    let stored = value.as_array().unwrap_or_default();
    if stored.is_empty() {
        errors.push(FieldError::invalid(&path, value, "must have at least one stored version"));
        return;
    }
    // upstream crosses off each name that it finds, so that a second version with the same name is not found
    let names: HashSet<&str> = stored.iter().filter_map(Value::as_str).collect();
    let mut met = HashSet::new();
    let mut missing = FieldErrors::default();
    for version in spec.versions {
        let name = version.str_at(&["name"]);
        let again = !met.insert(name);
        let is_storage = version.is_true_at(&["storage"]);
        // each error shows the whole list, so their total size is bounded
        if is_storage && (again || !names.contains(name)) && !missing.is_full() {
            missing.push(FieldError::invalid(&path, value, format!("must have the storage version {name}")));
        }
    }
    errors.extend(missing.into_list());
    // if a name is stored twice, upstream reports the last occurrence
    let last_index: HashMap<&str, usize> =
        stored.iter().enumerate().filter_map(|(i, name)| Some((name.as_str()?, i))).collect();
    for (i, name) in stored.iter().enumerate() {
        let text = name.as_str().unwrap_or_default();
        if !met.contains(text) && last_index.get(text) == Some(&i) {
            let detail = format!(
                "missing from spec.versions; {text} was previously a storage version, and must remain in spec.versions until a storage migration ensures no data remains persisted in {text} and removes {text} from status.storedVersions"
            );
            errors.push(FieldError::invalid(&path.index(i), name, detail));
        }
    }
}

fn api_approval(new: &Value, old: Option<&Value>, errors: &mut Vec<FieldError>) {
    if !super::conditions::is_protected(new.str_at(&["spec", "group"])) {
        return;
    }
    let (state, reason) = approval(new);
    if old.is_some_and(|old| approval(old).0 == state) {
        return;
    }
    let path = FieldPath::new("metadata.annotations").key(super::APPROVAL_ANNOTATION);
    let value = new.at(&["metadata", "annotations", super::APPROVAL_ANNOTATION]).cloned().unwrap_or_default();
    match state {
        Approval::Missing => errors.push(FieldError::required(&path, reason)),
        Approval::Invalid => errors.push(FieldError::invalid(&path, &value, reason)),
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
