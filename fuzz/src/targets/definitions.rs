//! Definitions: any document is decoded and validated without a panic. The stored form of a valid definition is its own stored
//! form, and a conversion to v1beta1 and back loses nothing.

use machinery::{Value, value};
use schema::definition::{self, ApiVersion};

use super::Target;

pub const TARGET: Target = Target { name: "definitions", seeds: SEEDS, check };

const SEEDS: &[&[u8]] = &[
    br#"{"apiVersion":"apiextensions.k8s.io/v1","kind":"CustomResourceDefinition","metadata":{"name":"kites.example.com","labels":{"a":"b"}},"spec":{"group":"example.com","scope":"Namespaced","names":{"plural":"kites","kind":"Kite","shortNames":["k"],"categories":["all"]},"versions":[{"name":"v1","served":true,"storage":true,"schema":{"openAPIV3Schema":{"type":"object","properties":{"spec":{"type":"object","properties":{"n":{"type":"integer","default":1}}}}}},"subresources":{"status":{},"scale":{"specReplicasPath":".spec.n","statusReplicasPath":".status.n"}},"additionalPrinterColumns":[{"name":"N","type":"integer","jsonPath":".spec.n","priority":1}],"selectableFields":[{"jsonPath":".spec.n"}]},{"name":"v1beta1","served":true,"storage":false,"deprecated":true,"deprecationWarning":"old","schema":{"openAPIV3Schema":{"type":"object","x-kubernetes-preserve-unknown-fields":true}}}],"conversion":{"strategy":"Webhook","webhook":{"conversionReviewVersions":["v1"],"clientConfig":{"service":{"namespace":"a","name":"b","path":"/c"}}}}},"status":{"storedVersions":["v1"]}}"#,
    br#"{"apiVersion":"apiextensions.k8s.io/v1beta1","kind":"CustomResourceDefinition","metadata":{"name":"kites.example.com"},"spec":{"group":"example.com","version":"v1","names":{"plural":"kites","kind":"Kite"},"validation":{"openAPIV3Schema":{"type":"object","properties":{"spec":{"minimum":1,"not":{"enum":[1]}}}}},"subresources":{"status":{}},"additionalPrinterColumns":[{"name":"a","type":"date","JSONPath":".metadata.x"}],"preserveUnknownFields":true,"conversion":{"strategy":"None"}}}"#,
    br#"{"metadata":{"name":5},"spec":{"versions":[{"served":"x","schema":[]},null,5],"names":[],"conversion":{"webhook":{"clientConfig":{"caBundle":"!"}}}},"status":{"conditions":{}}}"#,
];

fn check(input: &[u8]) {
    let Ok(mut body) = value::decode(input) else { return };
    if body.as_object().is_some() {
        // the type is checked before decoding
        body.set_at(&["apiVersion"], Value::from("apiextensions.k8s.io/v1"));
    }
    if let Ok(decoded) = definition::decode(&body, ApiVersion::V1) {
        let mut new = decoded.definition;
        definition::prepare_for_create(&mut new);
        let errors = definition::validate_create(&new, machinery::Release::default());
        let _ = definition::validate_update(&new, &new, machinery::Release::default());
        if errors.is_empty() {
            check_stored(&definition::to_stored(&new));
        }
    }
    if let Ok(decoded) = definition::decode(&body, ApiVersion::V1Beta1) {
        let mut new = decoded.definition;
        definition::prepare_beta_for_create(&mut new);
        let errors = definition::validate_beta_create(&new, machinery::Release::default());
        let _ = definition::validate_beta_update(&new, &new, machinery::Release::default());
        if errors.is_empty() {
            check_stored(&definition::beta_to_stored(&new));
        }
    }
}

/// Checks the stored form of a valid definition.
fn check_stored(stored: &Value) {
    assert_eq!(definition::to_stored(stored).to_json(), stored.to_json(), "stored again");
    let beta = definition::to_beta(stored);
    assert_eq!(definition::beta_to_stored(&beta).to_json(), stored.to_json(), "by way of v1beta1: {}", beta.to_json());
    let _ = definition::non_structural(stored);
    let _ = definition::establish(stored);
}
