use super::*;
use crate::limits::TYPE_ERRORS_MAX;
use crate::shape::{named, object_meta, sees_duplicate};
use machinery::value::decode;

fn check(input: &str, value: &str, unknown: &[&str], error: Option<&str>) {
    let given = decode(input.as_bytes()).unwrap();
    let read = read(&given, object_meta());
    let is_same = read.error.is_none() && read.unknown.is_empty() && read.value.to_json() == given.to_json();
    assert!(is_same || !is_exact(&given, object_meta()), "{input}");
    assert_eq!(read.error.as_deref(), error, "{input}");
    if error.is_none() {
        assert_eq!(read.value.to_json(), value, "{input}");
    }
    assert_eq!(read.unknown, unknown, "{input}");
}

#[test]
fn metadata_that_needs_no_reading_is_found() {
    let cases = [
        (r#"{}"#, true),
        (r#"{"name": "a", "labels": {"a": ""}, "finalizers": ["f"], "generation": 1}"#, true),
        (r#"{"creationTimestamp": "2026-01-01T00:00:00Z"}"#, true),
        (
            r#"{"ownerReferences": [{"apiVersion": "v1", "kind": "A", "name": "a", "uid": "u", "controller": false}]}"#,
            true,
        ),
        (r#"{"managedFields": [{"manager": "m", "fieldsV1": {"f:a": {}}, "time": "2026-01-01T00:00:00Z"}]}"#, true),
        (r#"{"creationTimestamp": "2026-01-01T00:00:00+01:00"}"#, false),
        (r#"{"creationTimestamp": null}"#, false),
        (r#"{"generation": 1.0}"#, false),
        (r#"{"generation": 0}"#, false),
        (r#"{"labels": {}}"#, false),
        (r#"{"labels": {"a": null}}"#, false),
        (r#"{"name": ""}"#, false),
        (r#"{"names": "a"}"#, false),
        (r#"{"name": 1}"#, false),
        (r#"{"ownerReferences": [{"apiVersion": "v1", "kind": "A", "name": "a"}]}"#, false),
        (r#"{"ownerReferences": [null]}"#, false),
        ("[]", false),
    ];
    for (text, want) in cases {
        let given = decode(text.as_bytes()).unwrap();
        let read = read(&given, object_meta());
        let is_same = read.error.is_none() && read.unknown.is_empty() && read.value.to_json() == given.to_json();
        assert_eq!([is_exact(&given, object_meta()), is_same], [want; 2], "{text}");
    }
}

/// As in Go's decoder, this is the first error in the document, unless an error ends decoding.
#[test]
fn first_type_error_is_reported() {
    let reported = |text: &str| {
        let read = read(&decode(text.as_bytes()).unwrap(), object_meta());
        let order = machinery::value::key_order(text.as_bytes());
        let error = first_error(&read.errors, Some(&order)).unwrap();
        error.split("ObjectMeta.").last().unwrap_or_default().to_owned()
    };
    for (text, want) in [
        (r#"{"name": 1, "generation": "x"}"#, "name of type string"),
        (r#"{"generation": "x", "name": 1}"#, "generation of type int64"),
        (r#"{"name": "", "generation": "x", "name": 1}"#, "generation of type int64"),
        (r#"{"name": 1, "creationTimestamp": 2}"#, "creationTimestamp of type string"),
        (
            r#"{"ownerReferences": [{"uid": 1}, 2]}"#,
            "json: cannot unmarshal number into Go struct field OwnerReference.ownerReferences.uid of type types.UID",
        ),
    ] {
        assert_eq!(reported(text), want, "{text}");
    }
}

/// This was quadratic: for each error of a list, all keys and items before it were searched.
#[test]
fn type_errors_of_long_lists_are_bounded() {
    let text = format!(r#"{{"name": "a", "finalizers": [{}1], "labels": 2}}"#, "1,".repeat(200_000));
    let read = read(&decode(text.as_bytes()).unwrap(), object_meta());
    assert_eq!(read.errors.len(), TYPE_ERRORS_MAX);
    let error = first_error(&read.errors, Some(&machinery::value::key_order(text.as_bytes())));
    let want = "json: cannot unmarshal number into Go struct field ObjectMeta.finalizers of type string";
    assert_eq!(error.as_deref(), Some(want));
}

#[test]
fn duplicate_fields_are_reported_like_upstream() {
    let cases = [
        ("spec.scope", true),
        ("metadata.labels.a.b/c", true),
        ("spec.versions[0].name", true),
        ("spec.versions[0].schema.openAPIV3Schema.properties.spec.type", true),
        ("spec.versions[0].schema.openAPIV3Schema.properties.a", true),
        ("spec.versions[0].schema.openAPIV3Schema.properties.a.items.type", false),
        ("spec.versions[0].schema.openAPIV3Schema.default.x", false),
        ("spec.bogus", false),
    ];
    for (path, want) in cases {
        assert_eq!(sees_duplicate(path, named("apiextensions.v1.CustomResourceDefinition")), want, "{path}");
    }
}

/// A type that decodes itself reports its errors as those of the struct around it.
#[test]
fn errors_in_custom_decoders_have_full_paths() {
    let reported = |schema: &str| {
        read(&decode(schema.as_bytes()).unwrap(), named("apiextensions.v1.CustomResourceValidation")).error.unwrap()
    };
    for (schema, want) in [
        (
            r#"{"items": {"type": 1}}"#,
            "number into Go struct field JSONSchemaProps.openAPIV3Schema.items.type of type string",
        ),
        (
            r#"{"items": [1]}"#,
            "number into Go struct field JSONSchemaProps.openAPIV3Schema.items of type v1.JSONSchemaProps",
        ),
        (
            r#"{"not": {"additionalProperties": {"x-kubernetes-validations": [{"rule": []}]}}}"#,
            "array into Go struct field JSONSchemaProps.openAPIV3Schema.not.additionalProperties.x-kubernetes-validations.rule of type string",
        ),
        (
            r#"{"dependencies": {"a": [true]}}"#,
            "bool into Go struct field JSONSchemaProps.openAPIV3Schema.dependencies of type string",
        ),
    ] {
        let error = reported(&format!(r#"{{"openAPIV3Schema": {schema}}}"#));
        assert_eq!(error, format!("json: cannot unmarshal {want}"), "{schema}");
    }
    assert_eq!(reported(r#"{"openAPIV3Schema": {"additionalProperties": 1}}"#), "boolean or JSON schema expected");
}

#[test]
fn custom_decoders_report_inner_paths() {
    for (schema, want) in [
        (r#"{"type": 1}"#, "cannot convert int64 to string"),
        (
            r#"{"items": {"properties": {"a": {"pattern": 1}}}}"#,
            "json: cannot unmarshal number into Go struct field JSONSchemaProps.properties.pattern of type string",
        ),
        (
            r#"{"items": {"properties": {"a": {"items": {"properties": {"b": 1.5}}}}}}"#,
            "json: cannot unmarshal number into Go struct field JSONSchemaProps.properties.items.properties of type v1.JSONSchemaProps",
        ),
    ] {
        let value = decode(format!(r#"{{"openAPIV3Schema": {schema}}}"#).as_bytes()).unwrap();
        let found = crate::shape::first_conversion_error(
            &read(&value, named("apiextensions.v1.CustomResourceValidation")).errors,
            &value,
            "apiextensions.v1.CustomResourceValidation",
        );
        assert_eq!(found.as_deref(), Some(want), "{schema}");
    }
}

#[test]
fn bytes_decode_from_list_of_numbers() {
    let client = |bundle: &str| {
        let text = format!(
            r#"{{"spec": {{"conversion": {{"strategy": "", "webhook": {{"clientConfig": {{"caBundle": {bundle}}}}}}}}}}}"#
        );
        read(&decode(text.as_bytes()).unwrap(), named("apiextensions.v1.CustomResourceDefinition"))
    };
    let bundle = ["spec", "conversion", "webhook", "clientConfig", "caBundle"];
    assert_eq!(client("[104, 105, null]").value.str_at(&bundle), "aGkA");
    assert_eq!(client("[]").value.at(&bundle), None);
    for (given, what) in [("[256]", "number 256"), ("[1.5]", "number 1.5"), (r#"["x"]"#, "string"), ("[{}]", "object")]
    {
        let error = client(given).error.unwrap_or_default();
        assert!(
            error.starts_with(&format!("json: cannot unmarshal {what} into")) && error.ends_with("of type uint8"),
            "{error}"
        );
    }
}

#[test]
fn metadata_is_read() {
    check(r#"{"name":"a","labels":{"a":"b"}}"#, r#"{"labels":{"a":"b"},"name":"a"}"#, &[], None);
    check(r#"{"name":null,"creationTimestamp":null,"bogus":1}"#, "{}", &["bogus"], None);
    check("null", "{}", &[], None);
    check(
        r#"{"ownerReferences":[{"name":"x","q":1}]}"#,
        r#"{"ownerReferences":[{"apiVersion":"","kind":"","name":"x","uid":""}]}"#,
        &["ownerReferences[0].q"],
        None,
    );
    check(
        r#"{"zz":1,"ownerReferences":[{"name":"x","q":1}],"aa":2}"#,
        r#"{"ownerReferences":[{"apiVersion":"","kind":"","name":"x","uid":""}]}"#,
        &["aa", "ownerReferences[0].q", "zz"],
        None,
    );
    check(r#""x""#, "", &[], Some("json: cannot unmarshal string into Go value of type v1.ObjectMeta"));
    check(
        r#"{"labels":{"a":1}}"#,
        "",
        &[],
        Some("json: cannot unmarshal number into Go struct field ObjectMeta.labels of type string"),
    );
}
