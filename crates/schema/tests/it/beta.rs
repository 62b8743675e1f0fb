//! v1beta1 definitions: what only they may contain, and that conversion between the versions loses nothing.

use machinery::{Release, Value, json};
use schema::definition::{
    ApiVersion, beta_to_stored, decode, from_beta, prepare_beta_for_create, prepare_beta_for_update, to_beta,
    to_stored, validate_beta_create, validate_beta_update, validate_create,
};

fn read(definition: &Value, version: ApiVersion) -> Value {
    decode(definition, version).unwrap().definition
}

/// The definition of `kites.example.com` with these fields in its spec.
fn beta(fields: Value) -> Value {
    let mut spec = json!({"group": "example.com", "names": {"plural": "kites", "kind": "Kite"}});
    for (key, value) in fields.as_object().unwrap().iter() {
        spec.set_at(&[key.as_str()], value.clone());
    }
    read(&json!({"metadata": {"name": "kites.example.com"}, "spec": spec}), ApiVersion::V1Beta1)
}

fn texts(errors: &[machinery::FieldError]) -> Vec<String> {
    errors.iter().map(ToString::to_string).collect()
}

fn check(fields: Value, want: &[&str]) {
    let mut definition = beta(fields.clone());
    prepare_beta_for_create(&mut definition);
    let got = texts(&validate_beta_create(&definition, Release::NEWEST));
    let fits = got.len() == want.len() && got.iter().zip(want).all(|(got, want)| got.starts_with(want));
    assert!(fits, "{}\ngot  {got:#?}\nwant {want:#?}", fields.to_json());
}

const DEFAULTS: &str = "must not be set (cannot set default values in apiextensions.k8s.io/v1beta1 CRDs, must use apiextensions.k8s.io/v1)";

#[test]
fn v1beta1_requires_no_structural_schema() {
    // a schema is optional and need not be structural unless fields are pruned
    check(json!({"version": "v1"}), &[]);
    check(json!({"version": "v1", "validation": {"openAPIV3Schema": {"properties": {"a": {"minimum": 1}}}}}), &[]);
    check(json!({"version": "v1", "validation": {"openAPIV3Schema": {"type": "odd"}}}), &[]);
    check(
        json!({"version": "v1", "preserveUnknownFields": false}),
        &["spec.versions[0].schema.openAPIV3Schema: Required value: because otherwise all fields are pruned"],
    );
    let untyped = json!({"openAPIV3Schema": {"type": "object", "properties": {"a": {"minimum": 1}}}});
    check(
        json!({"version": "v1", "preserveUnknownFields": false, "validation": (untyped.clone())}),
        &["spec.validation.openAPIV3Schema.properties[a].type: Required value: must not be empty"],
    );
    let extended = json!({"openAPIV3Schema": {"type": "object", "properties": {"a": {"x-kubernetes-int-or-string": true}, "b": {}}}});
    check(
        json!({"version": "v1", "validation": extended}),
        &["spec.validation.openAPIV3Schema.properties[b].type: Required value: must not be empty"],
    );
    let conversion = json!({"strategy": "Webhook", "webhookClientConfig": {"url": "https://example.com/"}});
    check(
        json!({"version": "v1", "conversion": (conversion.clone())}),
        &["spec.conversion.strategy: Invalid value: \"Webhook\": must be None if spec.preserveUnknownFields is true"],
    );
    let schema = json!({"openAPIV3Schema": {"type": "object"}});
    check(
        json!({"version": "v1", "preserveUnknownFields": false, "validation": schema, "conversion": conversion}),
        &[],
    );
}

#[test]
fn defaults_require_v1() {
    let schema =
        json!({"openAPIV3Schema": {"type": "object", "properties": {"a": {"type": "string", "default": "x"}}}});
    let field = json!({"version": "v1", "preserveUnknownFields": false, "validation": (schema.clone())});
    check(field.clone(), &[&format!("spec.validation.openAPIV3Schema.properties[a].default: Forbidden: {DEFAULTS}")]);
    // stored fields may stay
    let mut old = beta(field.clone());
    prepare_beta_for_create(&mut old);
    old.set_at(&["metadata", "resourceVersion"], "1".into());
    let mut new = old.clone();
    new.set_at(&["spec", "names", "shortNames"], json!(["ki"]));
    prepare_beta_for_update(&mut new, &old);
    assert_eq!(texts(&validate_beta_update(&new, &old, Release::NEWEST)), [""; 0]);
    assert_eq!(new.at(&["metadata", "generation"]), Some(&Value::Int(2)));
    new.set_at(&["spec", "preserveUnknownFields"], Value::Bool(true));
    assert_eq!(
        texts(&validate_beta_update(&new, &old, Release::NEWEST)),
        ["spec.preserveUnknownFields: Invalid value: true: must be false in order to use defaults in the schema"]
    );
}

#[test]
fn top_level_and_version_schemas_are_exclusive() {
    let version = |name: &str, more: Value| {
        let mut version = json!({"name": name, "served": true, "storage": (name == "v1")});
        more.as_object().unwrap().iter().for_each(|(key, value)| version.set_at(&[key.as_str()], value.clone()));
        version
    };
    let (one, other) = (json!({"schema": {"openAPIV3Schema": {"type": "object"}}}), json!({"schema": {}}));
    let versions = |a: &Value, b: &Value| json!([(version("v1", a.clone())), (version("v2", b.clone()))]);
    check(json!({"versions": (versions(&one, &other))}), &[]);
    check(
        json!({"versions": (versions(&one, &other)), "validation": {}}),
        &["spec.validation: Forbidden: top-level and per-version schemas are mutually exclusive"],
    );
    check(
        json!({"versions": (versions(&one, &one))}),
        &["spec.versions: Invalid value: [{\"Name\":\"v1\",\"Served\":true,\"Storage\":true,"],
    );
    let column = json!({"additionalPrinterColumns": [{"name": "a", "type": "string", "JSONPath": ".a"}]});
    check(json!({"versions": (versions(&column, &column))}), &["spec.versions: Invalid value: [{"]);
    check(
        json!({"versions": (versions(&json!({}), &json!({}))), "version": "v2"}),
        &["spec.version: Invalid value: \"v2\": must match the first version in spec.versions"],
    );
    check(
        json!({}),
        &[
            "spec.versions: Invalid value: null: must have exactly one version marked as storage version",
            "status.storedVersions: Invalid value: null: must have at least one stored version",
        ],
    );
}

#[test]
fn approval_annotation_is_required_only_in_v1() {
    let mut definition = beta(json!({"group": "x.k8s.io", "version": "v1"}));
    definition.set_at(&["metadata", "name"], "kites.x.k8s.io".into());
    prepare_beta_for_create(&mut definition);
    assert_eq!(texts(&validate_beta_create(&definition, Release::NEWEST)), [""; 0]);
    assert!(
        texts(&validate_create(&from_beta(&definition), Release::NEWEST))
            .iter()
            .any(|e| e.contains("api-approved.kubernetes.io"))
    );
}

/// A xorshift generator. The same seed always yields the same definition.
struct Random(u64);

impl Random {
    fn below(&mut self, n: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % n
    }

    fn yes(&mut self) -> bool {
        self.below(2) == 0
    }

    fn schema(&mut self) -> Value {
        let leaf = json!({"type": "string", "maxLength": (self.below(3) as i64)});
        json!({"openAPIV3Schema": {"type": "object", "properties": {"a": leaf}}})
    }

    /// Sets fields of a version. There are so few values that versions are often equal.
    fn shared(&mut self, version: &mut Value) {
        if self.below(4) > 0 {
            version.set_at(&["schema"], self.schema());
        }
        if self.yes() {
            let status = json!({"status": {}});
            let scale = json!({"scale": {"specReplicasPath": ".spec.n", "statusReplicasPath": ".status.n"}});
            version.set_at(&["subresources"], if self.yes() { status } else { scale });
        }
        if self.yes() {
            let priority = self.below(2) as i64;
            let column = json!({"name": "A", "type": "string", "jsonPath": ".a", "priority": priority});
            version.set_at(&["additionalPrinterColumns"], Value::Array(vec![column]));
        }
        if self.yes() {
            version.set_at(&["selectableFields"], json!([{"jsonPath": ".a"}]));
        }
    }

    fn definition(&mut self) -> Value {
        let count = 1 + self.below(3);
        let versions = (0..count).map(|i| {
            let mut version = json!({"name": (format!("v{i}")), "served": (self.yes()), "storage": (i == 0)});
            self.shared(&mut version);
            if self.yes() {
                version.set_at(&["deprecated"], Value::Bool(true));
                version.set_at(&["deprecationWarning"], "old".into());
            }
            version
        });
        let versions: Value = versions.collect();
        let mut spec = json!({
            "group": "example.com", "scope": (if self.yes() { "Cluster" } else { "Namespaced" }),
            "names": {"plural": "kites", "kind": "Kite", "shortNames": ["ki"]}, "versions": versions
        });
        if self.yes() {
            spec.set_at(&["preserveUnknownFields"], Value::Bool(true));
        }
        if self.yes() {
            let config = match self.below(3) {
                0 => json!({"url": "https://example.com/"}),
                1 => json!({"service": {"namespace": "a", "name": "b"}, "caBundle": "YQ=="}),
                _ => json!({"service": {"namespace": "a", "name": "b", "path": "/c", "port": 8443}}),
            };
            let webhook = json!({"clientConfig": config, "conversionReviewVersions": ["v1", "v1beta1"]});
            spec.set_at(&["conversion"], json!({"strategy": "Webhook", "webhook": webhook}));
        }
        json!({
            "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
            "metadata": {"name": "kites.example.com", "labels": {"a": "b"}}, "spec": spec,
            "status": {"acceptedNames": {"plural": "kites", "kind": "Kite"}, "conditions": [], "storedVersions": ["v0"]}
        })
    }
}

#[test]
fn conversion_between_versions_is_lossless() {
    for seed in 1..2_000_u64 {
        let mut random = Random(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1);
        let v1 = to_stored(&read(&random.definition(), ApiVersion::V1));
        let beta = to_beta(&v1);
        assert_eq!(from_beta(&beta), v1, "seed {seed}: {}", beta.to_json());
        // the definition as a client sends it back
        let read = read(&beta, ApiVersion::V1Beta1);
        assert_eq!(read, beta, "seed {seed}");
        assert_eq!(beta_to_stored(&read), v1, "seed {seed}");
        assert_eq!(to_beta(&beta_to_stored(&read)), beta, "seed {seed}");
    }
}
