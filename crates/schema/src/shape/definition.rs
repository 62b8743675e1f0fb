//! The shapes of `CustomResourceDefinition` in v1 and v1beta1.

use super::{Field, Merge, OBJECT_META, Shape, Struct, TEXT, always, given, non_empty, texts};

const BOOL: Shape = Shape::Bool;

static SCHEMA: Shape = Shape::Struct(&SCHEMA_PROPS);
static COLUMN_ITEM: Shape = Shape::Struct(&COLUMN);
static COLUMN_BETA_ITEM: Shape = Shape::Struct(&COLUMN_BETA);
static SELECTABLE_ITEM: Shape = Shape::Struct(&SELECTABLE_FIELD);

const fn schema() -> Shape {
    Shape::Struct(&SCHEMA_PROPS)
}

const fn schemas() -> Shape {
    Shape::List("[]v1.JSONSchemaProps", &SCHEMA)
}

const fn schema_map() -> Shape {
    Shape::Map("map[string]v1.JSONSchemaProps", &SCHEMA)
}

const fn columns() -> Field {
    non_empty("additionalPrinterColumns", Shape::List("[]v1.CustomResourceColumnDefinition", &COLUMN_ITEM))
}

const fn columns_beta() -> Field {
    non_empty("additionalPrinterColumns", Shape::List("[]v1beta1.CustomResourceColumnDefinition", &COLUMN_BETA_ITEM))
}

const fn selectable_fields() -> Field {
    non_empty("selectableFields", Shape::List("[]v1.SelectableField", &SELECTABLE_ITEM))
}

pub static DEFINITION: Struct = Struct {
    name: "CustomResourceDefinition",
    fields: &[
        non_empty("apiVersion", TEXT),
        non_empty("kind", TEXT),
        always("metadata", Shape::Struct(&OBJECT_META)),
        always("spec", Shape::Struct(&SPEC)),
        always("status", Shape::Struct(&STATUS)),
    ],
};

static SPEC: Struct = Struct {
    name: "CustomResourceDefinitionSpec",
    fields: &[
        given("conversion", Shape::Struct(&CONVERSION)),
        always("group", TEXT),
        always("names", Shape::Struct(&NAMES)),
        non_empty("preserveUnknownFields", BOOL),
        always("scope", Shape::Text("v1.ResourceScope")),
        always("versions", Shape::List("[]v1.CustomResourceDefinitionVersion", &Shape::Struct(&VERSION))),
    ],
};

static NAMES: Struct = Struct {
    name: "CustomResourceDefinitionNames",
    fields: &[
        non_empty("categories", texts()),
        always("kind", TEXT),
        non_empty("listKind", TEXT),
        always("plural", TEXT),
        non_empty("shortNames", texts()),
        non_empty("singular", TEXT),
    ],
};

static CONVERSION: Struct = Struct {
    name: "CustomResourceConversion",
    fields: &[always("strategy", Shape::Text("v1.ConversionStrategyType")), given("webhook", Shape::Struct(&WEBHOOK))],
};

static WEBHOOK: Struct = Struct {
    name: "WebhookConversion",
    fields: &[given("clientConfig", Shape::Struct(&CLIENT_CONFIG)), always("conversionReviewVersions", texts())],
};

static CLIENT_CONFIG: Struct = Struct {
    name: "WebhookClientConfig",
    fields: &[non_empty("caBundle", Shape::Bytes), given("service", Shape::Struct(&SERVICE)), given("url", TEXT)],
};

static SERVICE: Struct = Struct {
    name: "ServiceReference",
    fields: &[always("name", TEXT), always("namespace", TEXT), given("path", TEXT), given("port", Shape::Int32)],
};

static VERSION: Struct = Struct {
    name: "CustomResourceDefinitionVersion",
    fields: &[
        columns(),
        non_empty("deprecated", BOOL),
        given("deprecationWarning", TEXT),
        always("name", TEXT),
        given("schema", Shape::Struct(&VALIDATION)),
        selectable_fields(),
        always("served", BOOL),
        always("storage", BOOL),
        given("subresources", Shape::Struct(&SUBRESOURCES)),
    ],
};

static SELECTABLE_FIELD: Struct = Struct { name: "SelectableField", fields: &[always("jsonPath", TEXT)] };

static COLUMN: Struct = Struct {
    name: "CustomResourceColumnDefinition",
    fields: &[
        non_empty("description", TEXT),
        non_empty("format", TEXT),
        always("jsonPath", TEXT),
        always("name", TEXT),
        non_empty("priority", Shape::Int32),
        always("type", TEXT),
    ],
};

pub static VALIDATION: Struct =
    Struct { name: "CustomResourceValidation", fields: &[given("openAPIV3Schema", schema())] };

static SUBRESOURCES: Struct = Struct {
    name: "CustomResourceSubresources",
    fields: &[given("scale", Shape::Struct(&SCALE)), given("status", Shape::Struct(&SUBRESOURCE_STATUS))],
};

static SUBRESOURCE_STATUS: Struct = Struct { name: "CustomResourceSubresourceStatus", fields: &[] };

static SCALE: Struct = Struct {
    name: "CustomResourceSubresourceScale",
    fields: &[given("labelSelectorPath", TEXT), always("specReplicasPath", TEXT), always("statusReplicasPath", TEXT)],
};

static STATUS: Struct = Struct {
    name: "CustomResourceDefinitionStatus",
    fields: &[
        always("acceptedNames", Shape::Struct(&NAMES)),
        always("conditions", Shape::List("[]v1.CustomResourceDefinitionCondition", &Shape::Struct(&CONDITION)))
            .merged(Merge::Keyed("type")),
        non_empty("observedGeneration", Shape::Int64),
        always("storedVersions", texts()),
    ],
};

static CONDITION: Struct = Struct {
    name: "CustomResourceDefinitionCondition",
    fields: &[
        always("lastTransitionTime", Shape::Time),
        non_empty("message", TEXT),
        non_empty("observedGeneration", Shape::Int64),
        non_empty("reason", TEXT),
        always("status", Shape::Text("v1.ConditionStatus")),
        always("type", Shape::Text("v1.CustomResourceDefinitionConditionType")),
    ],
};

pub(super) static SCHEMA_PROPS: Struct = Struct {
    name: "JSONSchemaProps",
    fields: &[
        given("$ref", TEXT),
        non_empty("$schema", Shape::Text("v1.JSONSchemaURL")),
        given("additionalItems", Shape::OrBool(&SCHEMA_PROPS)),
        given("additionalProperties", Shape::OrBool(&SCHEMA_PROPS)),
        non_empty("allOf", schemas()),
        non_empty("anyOf", schemas()),
        given("default", Shape::Any),
        non_empty("definitions", Shape::Map("v1.JSONSchemaDefinitions", &SCHEMA)),
        non_empty("dependencies", Shape::Map("v1.JSONSchemaDependencies", &Shape::OrTexts(&SCHEMA_PROPS))),
        non_empty("description", TEXT),
        non_empty("enum", Shape::List("[]v1.JSON", &Shape::Any)),
        given("example", Shape::Any),
        non_empty("exclusiveMaximum", BOOL),
        non_empty("exclusiveMinimum", BOOL),
        given("externalDocs", Shape::Struct(&EXTERNAL_DOCS)),
        non_empty("format", TEXT),
        non_empty("id", TEXT),
        given("items", Shape::OrList(&SCHEMA_PROPS)),
        given("maxItems", Shape::Int64),
        given("maxLength", Shape::Int64),
        given("maxProperties", Shape::Int64),
        given("maximum", Shape::Float),
        given("minItems", Shape::Int64),
        given("minLength", Shape::Int64),
        given("minProperties", Shape::Int64),
        given("minimum", Shape::Float),
        given("multipleOf", Shape::Float),
        given("not", schema()),
        non_empty("nullable", BOOL),
        non_empty("oneOf", schemas()),
        non_empty("pattern", TEXT),
        non_empty("patternProperties", schema_map()),
        non_empty("properties", schema_map()),
        non_empty("required", texts()),
        non_empty("title", TEXT),
        non_empty("type", TEXT),
        non_empty("uniqueItems", BOOL),
        non_empty("x-kubernetes-embedded-resource", BOOL),
        non_empty("x-kubernetes-int-or-string", BOOL),
        non_empty("x-kubernetes-list-map-keys", texts()),
        given("x-kubernetes-list-type", TEXT),
        given("x-kubernetes-map-type", TEXT),
        given("x-kubernetes-preserve-unknown-fields", BOOL),
        non_empty("x-kubernetes-validations", Shape::List("v1.ValidationRules", &Shape::Struct(&VALIDATION_RULE)))
            .merged(Merge::Patched("rule")),
    ],
};

static EXTERNAL_DOCS: Struct =
    Struct { name: "ExternalDocumentation", fields: &[non_empty("description", TEXT), non_empty("url", TEXT)] };

static VALIDATION_RULE: Struct = Struct {
    name: "ValidationRule",
    fields: &[
        non_empty("fieldPath", TEXT),
        non_empty("message", TEXT),
        non_empty("messageExpression", TEXT),
        given("optionalOldSelf", BOOL),
        given("reason", Shape::Text("v1.FieldValueErrorReason")),
        always("rule", TEXT),
    ],
};

pub static DEFINITION_BETA: Struct = Struct {
    name: "CustomResourceDefinition",
    fields: &[
        non_empty("apiVersion", TEXT),
        non_empty("kind", TEXT),
        always("metadata", Shape::Struct(&OBJECT_META)),
        always("spec", Shape::Struct(&SPEC_BETA)),
        always("status", Shape::Struct(&STATUS)),
    ],
};

static SPEC_BETA: Struct = Struct {
    name: "CustomResourceDefinitionSpec",
    fields: &[
        columns_beta(),
        given("conversion", Shape::Struct(&CONVERSION_BETA)),
        always("group", TEXT),
        always("names", Shape::Struct(&NAMES)),
        given("preserveUnknownFields", BOOL),
        always("scope", Shape::Text("v1beta1.ResourceScope")),
        selectable_fields(),
        given("subresources", Shape::Struct(&SUBRESOURCES)),
        given("validation", Shape::Struct(&VALIDATION)),
        non_empty("version", TEXT),
        non_empty("versions", Shape::List("[]v1beta1.CustomResourceDefinitionVersion", &Shape::Struct(&VERSION_BETA))),
    ],
};

static VERSION_BETA: Struct = Struct {
    name: "CustomResourceDefinitionVersion",
    fields: &[
        columns_beta(),
        non_empty("deprecated", BOOL),
        given("deprecationWarning", TEXT),
        always("name", TEXT),
        given("schema", Shape::Struct(&VALIDATION)),
        selectable_fields(),
        always("served", BOOL),
        always("storage", BOOL),
        given("subresources", Shape::Struct(&SUBRESOURCES)),
    ],
};

static COLUMN_BETA: Struct = Struct {
    name: "CustomResourceColumnDefinition",
    fields: &[
        always("JSONPath", TEXT),
        non_empty("description", TEXT),
        non_empty("format", TEXT),
        always("name", TEXT),
        non_empty("priority", Shape::Int32),
        always("type", TEXT),
    ],
};

static CONVERSION_BETA: Struct = Struct {
    name: "CustomResourceConversion",
    fields: &[
        non_empty("conversionReviewVersions", texts()),
        always("strategy", Shape::Text("v1beta1.ConversionStrategyType")),
        given("webhookClientConfig", Shape::Struct(&CLIENT_CONFIG)),
    ],
};

#[cfg(test)]
mod tests {
    use super::*;

    fn check(shape: &Struct) {
        assert!(shape.fields.is_sorted_by(|a, b| a.name < b.name), "{}", shape.name);
    }

    #[test]
    fn fields_are_sorted() {
        for shape in [
            &DEFINITION,
            &DEFINITION_BETA,
            &SPEC,
            &SPEC_BETA,
            &NAMES,
            &CONVERSION,
            &WEBHOOK,
            &CLIENT_CONFIG,
            &SERVICE,
            &VERSION,
            &VERSION_BETA,
            &COLUMN,
            &COLUMN_BETA,
            &SCALE,
            &STATUS,
            &CONDITION,
            &SCHEMA_PROPS,
            &VALIDATION_RULE,
            &SUBRESOURCES,
            &CONVERSION_BETA,
            &OBJECT_META,
        ] {
            check(shape);
        }
    }
}
