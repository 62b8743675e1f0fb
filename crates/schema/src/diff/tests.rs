//! Tables of changes. Those of crdify's validations are marked: where both speak, both flag the same changes.

use machinery::{Value, yaml};

use super::{Severity, checks, compare};
use crate::definition::{ApiVersion, decode};

fn definition(spec: &str) -> Value {
    let text = format!(
        "apiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\nmetadata: {{name: boats.example.com}}\n\
         spec: {spec}\n"
    );
    let value = yaml::decode(text.as_bytes()).unwrap_or_else(|error| panic!("{error}: {text}")).value;
    let decoded = decode(&value, ApiVersion::V1).unwrap_or_else(|errors| panic!("{errors:?}"));
    assert_eq!(decoded.unknown, [""; 0], "{text}");
    decoded.definition
}

const NAMES: &str = "group: example.com, scope: Namespaced, names: {plural: boats, kind: Boat}";

/// A definition with a version of this schema of its field `f`.
fn with_field(field: &str) -> Value {
    with_object(&format!("properties: {{f: {{{field}}}}}"))
}

/// A definition whose `spec` has these keywords.
fn with_object(keywords: &str) -> Value {
    let schema = format!("{{type: object, properties: {{spec: {{type: object, {keywords}}}}}}}");
    with_versions(&format!("{{name: v1, served: true, storage: true, schema: {{openAPIV3Schema: {schema}}}}}"))
}

fn with_versions(versions: &str) -> Value {
    definition(&format!("{{{NAMES}, versions: [{versions}]}}"))
}

/// The changes as `severity check [version:]path`.
fn shown(old: &Value, new: &Value) -> Vec<String> {
    let line = |change: super::Change| {
        let version = if change.version.is_empty() { String::new() } else { format!("{}:", change.version) };
        format!("{} {} {version}{}", change.severity.as_str(), change.check.name, change.path)
    };
    compare(old, new).into_iter().map(line).collect()
}

/// Whether crdify would flag the change, which is so for everything but what is only information.
fn is_flagged(old: &Value, new: &Value) -> bool {
    compare(old, new).iter().any(|change| change.severity > Severity::Info)
}

#[test]
fn equal_definitions_have_no_changes() {
    let one = with_field("type: string, x-kubernetes-validations: [{rule: self != ''}]");
    assert_eq!(compare(&one, &one), []);
    let stored = crate::definition::to_stored(&one);
    assert_eq!(compare(&one, &stored), []);
}

#[test]
fn fields_change() {
    for (old, new, wanted) in [
        ("type: string, maxLength: 9", "type: string, maxLength: 5", "breaking bound-tightened v1:spec.f"),
        ("type: string, maxLength: 9", "type: string, maxLength: 10", "info bound-loosened v1:spec.f"),
        ("type: string", "type: string, maxLength: 9", "breaking bound-added v1:spec.f"),
        ("type: string", "type: string, minLength: 0", ""),
        (
            "type: integer, maximum: 9",
            "type: integer, maximum: 9, exclusiveMaximum: true",
            "breaking bound-tightened v1:spec.f",
        ),
        ("type: integer, multipleOf: 4", "type: integer, multipleOf: 2", "info bound-loosened v1:spec.f"),
        ("type: integer, multipleOf: 4", "type: integer, multipleOf: 6", "breaking bound-tightened v1:spec.f"),
        ("type: integer", "type: number", "breaking type-changed v1:spec.f"),
        ("type: string", "x-kubernetes-int-or-string: true", "breaking type-changed v1:spec.f"),
        ("type: string, enum: [a, b]", "type: string, enum: [b, a]", ""),
        ("type: string, enum: [a, b]", "type: string, enum: [b]", "breaking enum-value-removed v1:spec.f"),
        ("type: string, enum: [a]", "type: string", "warning enum-removed v1:spec.f"),
        ("type: string", "type: string, format: date", "breaking format-added v1:spec.f"),
        ("type: integer, format: int32", "type: integer, format: int64", "breaking format-changed v1:spec.f"),
        (
            "type: array, items: {type: string}",
            "type: array, items: {type: string}, x-kubernetes-list-type: atomic",
            "",
        ),
        (
            "type: array, items: {type: string}",
            "type: array, items: {type: string}, x-kubernetes-list-type: set",
            "breaking list-type-changed v1:spec.f",
        ),
        (
            "type: array, items: {type: string}, x-kubernetes-list-type: set",
            "type: array, items: {type: string}",
            "warning list-type-changed v1:spec.f",
        ),
        ("type: string, default: a", "type: string", "warning default-removed v1:spec.f"),
        (
            "type: array, items: {type: string}",
            "type: array, items: {type: string, maxLength: 4}",
            "breaking bound-added v1:spec.f[*]",
        ),
        (
            "type: object, additionalProperties: {type: string}",
            "type: object, additionalProperties: {type: string, maxLength: 4}",
            "breaking bound-added v1:spec.f[*]",
        ),
        (
            "type: object, x-kubernetes-preserve-unknown-fields: true",
            "type: object",
            "breaking unknown-fields-pruned v1:spec.f",
        ),
        ("type: object", "type: object, x-kubernetes-map-type: atomic", "warning map-type-changed v1:spec.f"),
        ("type: string", "type: string, not: {enum: [a]}", "breaking combination-added v1:spec.f"),
        (
            "type: string, anyOf: [{enum: [a]}]",
            "type: string, anyOf: [{enum: [a]}, {enum: [b]}]",
            "info combination-removed v1:spec.f",
        ),
        (
            "type: string, allOf: [{enum: [a]}]",
            "type: string, allOf: [{enum: [a]}, {enum: [b]}]",
            "breaking combination-changed v1:spec.f",
        ),
    ] {
        assert_eq!(shown(&with_field(old), &with_field(new)).join("\n"), wanted, "{old} to {new}");
    }
}

#[test]
fn objects_change() {
    for (old, new, wanted) in [
        ("properties: {a: {type: string}}", "properties: {}", "breaking field-removed v1:spec.a"),
        (
            "properties: {a: {type: string, description: d}}",
            "properties: {b: {type: string, description: e}}",
            "breaking field-renamed v1:spec.a",
        ),
        (
            "properties: {a: {type: string}}",
            "properties: {b: {type: string}, c: {type: string}}",
            "breaking field-removed v1:spec.a\ninfo field-added v1:spec.b\ninfo field-added v1:spec.c",
        ),
        (
            "properties: {a: {type: string}}",
            "x-kubernetes-preserve-unknown-fields: true",
            "info unknown-fields-preserved v1:spec\nwarning field-undeclared v1:spec.a",
        ),
        (
            "x-kubernetes-preserve-unknown-fields: true",
            "x-kubernetes-preserve-unknown-fields: true, properties: {a: {type: string}}",
            "warning field-declared v1:spec.a",
        ),
        (
            "properties: {a: {type: string}}",
            "properties: {a: {type: string}}, required: [a]",
            "breaking required-added v1:spec.a",
        ),
        (
            "properties: {a: {type: string}}, required: [a]",
            "properties: {a: {type: string}}",
            "info required-removed v1:spec.a",
        ),
        (
            "properties: {a: {type: string, default: x}}",
            "properties: {a: {type: string, default: x}}, required: [a]",
            "warning required-with-default v1:spec.a",
        ),
        (
            "properties: {a: {type: string, default: x}}, required: [a]",
            "properties: {a: {type: string}}, required: [a]",
            "breaking default-removed v1:spec.a",
        ),
        (
            "properties: {a: {type: string, description: d}, b: {type: string, description: d}}",
            "properties: {a: {type: string, description: e}, b: {type: string, description: e}}",
            "warning description-changed v1:",
        ),
    ] {
        assert_eq!(shown(&with_object(old), &with_object(new)).join("\n"), wanted, "{old} to {new}");
    }
}

#[test]
fn rules_change() {
    let rules = |rules: &str| with_field(&format!("type: string, maxLength: 9, x-kubernetes-validations: [{rules}]"));
    for (old, new, wanted) in [
        ("{rule: self != ''}", "{rule: \"self   !=   ''\"}", ""),
        ("{rule: self != 'a' && self != 'b'}", "{rule: self != 'b'}, {rule: (self != 'a')}", ""),
        ("{rule: self != 'a'}, {rule: self != 'b'}", "{rule: self != 'b'}, {rule: self != 'a'}", ""),
        ("", "{rule: self != ''}", "breaking rule-added v1:spec.f"),
        ("{rule: self != ''}", "", "info rule-removed v1:spec.f"),
        ("{rule: self != 'a'}", "{rule: self != 'a' && self != 'b'}", "breaking rule-tightened v1:spec.f"),
        ("{rule: self != 'a' && self != 'b'}", "{rule: self != 'a'}", "info rule-loosened v1:spec.f"),
        ("{rule: self == 'a'}", "{rule: self == 'a' || self == 'b'}", "info rule-loosened v1:spec.f"),
        ("{rule: self == 'a' || self == 'b'}", "{rule: self == 'a'}", "breaking rule-tightened v1:spec.f"),
        ("{rule: self == 'a', message: m}", "{rule: self == 'b', message: m}", "breaking rule-changed v1:spec.f"),
        (
            "{rule: self == 'a', message: m}",
            "{rule: self == 'a', message: other}",
            "info rule-message-changed v1:spec.f",
        ),
        (
            "{rule: self == 'a'}",
            "{rule: self == 'a', reason: FieldValueForbidden}",
            "warning rule-reason-changed v1:spec.f",
        ),
        (
            "{rule: oldSelf == self}",
            "{rule: '!oldSelf.hasValue() || oldSelf.value() == self', optionalOldSelf: true}",
            "breaking rule-added v1:spec.f\ninfo rule-removed v1:spec.f",
        ),
    ] {
        assert_eq!(shown(&rules(old), &rules(new)).join("\n"), wanted, "{old} to {new}");
    }
    let added = compare(&rules(""), &rules("{rule: self != ''}"));
    assert_eq!(added[0].reason, "the rule self != '' is added (estimated cost 1 of 10000000)");
}

#[test]
fn rules_that_cost_more() {
    let schema = |max: u32| {
        with_field(&format!(
            "type: array, maxItems: {max}, items: {{type: string, maxLength: 9}}, \
             x-kubernetes-validations: [{{rule: 'self.all(x, self.exists(y, x == y))'}}]"
        ))
    };
    assert_eq!(shown(&schema(10), &schema(20)), ["info bound-loosened v1:spec.f", "info rule-cost-raised v1:spec.f"]);
    let refused = shown(&schema(10), &schema(20000));
    let place = "spec.validation.openAPIV3Schema.properties[spec].properties[f].x-kubernetes-validations[0].rule";
    assert!(refused.contains(&format!("breaking refused {place}")), "{refused:?}");
}

#[test]
fn definitions_change() {
    let version = |name: &str, more: &str| {
        format!(
            "{{name: {name}, served: true, storage: {}, schema: {{openAPIV3Schema: {{type: object}}}}{more}}}",
            name == "v1"
        )
    };
    let one = |more: &str| with_versions(&version("v1", more));
    for (old, new, wanted) in [
        (one(""), one(", subresources: {status: {}}"), "breaking status-added v1:status"),
        (one(", subresources: {status: {}}"), one(""), "breaking status-removed v1:status"),
        (one(""), one(", deprecated: true"), "warning version-deprecated v1:"),
        (
            one(", additionalPrinterColumns: [{name: a, type: string, jsonPath: .a}]"),
            one(
                ", additionalPrinterColumns: [{name: a, type: string, jsonPath: .b}, {name: b, type: string, jsonPath: .b}]",
            ),
            "warning column-changed v1:\ninfo column-added v1:",
        ),
        (
            one(", additionalPrinterColumns: [{name: a, type: string, jsonPath: .a}]"),
            one(""),
            "warning column-removed v1:",
        ),
        (
            with_versions(&format!("{}, {}", version("v1", ""), version("v2", ""))),
            one(""),
            "breaking version-removed spec.versions",
        ),
        (
            one(""),
            with_versions(&format!("{}, {}", version("v1", ""), version("v2", ""))),
            "info version-added spec.versions",
        ),
        (
            one(""),
            with_versions("{name: v2, served: true, storage: true, schema: {openAPIV3Schema: {type: object}}}"),
            "breaking version-removed spec.versions\nbreaking stored-version-removed spec.versions\n\
             info version-added spec.versions",
        ),
    ] {
        assert_eq!(shown(&old, &new).join("\n"), wanted, "{} to {}", old.to_json(), new.to_json());
    }
    let names = |spec: &str| {
        let versions = version("v1", "");
        definition(&format!("{{group: example.com, {spec}, versions: [{versions}]}}"))
    };
    let before = names("scope: Namespaced, names: {plural: boats, kind: Boat, shortNames: [b, bo]}");
    let after = names("scope: Cluster, names: {plural: boats, kind: Boat, shortNames: [b], categories: [all]}");
    assert_eq!(
        shown(&before, &after),
        ["breaking scope-changed spec.scope", "warning name-removed spec.names.shortNames"]
    );
}

#[test]
fn versions_differ_from_each_other() {
    let versions = |second: &str, more: &str| {
        let version = |name: &str, field: &str| {
            format!(
                "{{name: {name}, served: true, storage: {}, schema: {{openAPIV3Schema: {{type: object, properties: \
                 {{f: {{type: {field}}}}}}}}}}}",
                name == "v1"
            )
        };
        definition(&format!("{{{NAMES}{more}, versions: [{}, {}]}}", version("v1", "string"), version("v2", second)))
    };
    let same = versions("string", "");
    assert_eq!(
        shown(&same, &versions("integer", "")),
        ["breaking type-changed v2:f", "breaking type-changed v1 -> v2:f"]
    );
    // known differences are not reported again
    assert_eq!(shown(&versions("integer", ""), &versions("integer", ", preserveUnknownFields: false")), [""; 0]);
    let webhook = ", conversion: {strategy: Webhook, webhook: {conversionReviewVersions: [v1], clientConfig: {url: 'https://a.example.com'}}}";
    assert_eq!(
        shown(&versions("string", webhook), &versions("integer", webhook)),
        ["breaking type-changed v2:f", "warning type-changed v1 -> v2:f"]
    );
}

/// Verdicts of crdify in its default configuration, on the cases of its documentation and tests.
#[test]
fn agrees_with_crdify() {
    let limits = [
        ("integer", "maximum", "minimum"),
        ("array, items: {type: string}", "maxItems", "minItems"),
        ("string", "maxLength", "minLength"),
        ("object, additionalProperties: {type: string}", "maxProperties", "minProperties"),
    ];
    for (kind, upper, lower) in limits {
        let with = |keyword: &str, number: u8| format!("type: {kind}, {keyword}: {number}");
        let none = format!("type: {kind}");
        for (old, new, flagged) in [
            (with(upper, 10), with(upper, 10), false),
            (none.clone(), with(upper, 10), true),
            (with(upper, 20), with(upper, 10), true),
            (with(upper, 20), with(upper, 30), false),
            (none.clone(), with(lower, 10), true),
            (with(lower, 20), with(lower, 10), false),
            (with(lower, 10), with(lower, 20), true),
        ] {
            assert_eq!(is_flagged(&with_field(&old), &with_field(&new)), flagged, "{old} to {new}");
        }
    }
    for (old, new, flagged) in [
        ("type: string", "type: string, default: a", true),
        ("type: string, default: a", "type: string", true),
        ("type: string, default: a", "type: string, default: b", true),
        ("type: string, default: a", "type: string, default: a", false),
        ("type: string", "type: string, enum: [a, b]", true),
        ("type: string, enum: [a]", "type: string, enum: [a, b]", true),
        ("type: string, enum: [a, b]", "type: string, enum: [a]", true),
        ("type: string, pattern: a", "type: string, pattern: a", false),
        ("type: string", "type: string, pattern: a", true),
        ("type: string, pattern: a", "type: string, pattern: b", true),
        ("type: string, pattern: a", "type: string", true),
        ("type: string", "type: string, nullable: true", true),
        ("type: string, nullable: true", "type: string", true),
        ("type: integer", "type: string", true),
        ("type: string, description: a", "type: string, description: b", true),
    ] {
        assert_eq!(is_flagged(&with_field(old), &with_field(new)), flagged, "{old} to {new}");
    }
    for (old, new, flagged) in [
        ("properties: {a: {type: string}}", "properties: {a: {type: string}}, required: [a]", true),
        ("properties: {a: {type: string}, b: {type: string}}", "properties: {a: {type: string}}", true),
        (
            "properties: {a: {type: string}}",
            "properties: {a: {type: string}, b: {type: string, enum: [x]}, \
             c: {type: object, properties: {g: {type: string}}, required: [g]}}",
            false,
        ),
    ] {
        assert_eq!(is_flagged(&with_object(old), &with_object(new)), flagged, "{old} to {new}");
    }
}

#[test]
fn checks_have_names_of_their_own() {
    let source = include_str!("checks.rs");
    let named = source.match_indices("pub const ").count();
    let names: std::collections::BTreeSet<&str> = source
        .split("breaking(")
        .chain(source.split("warning("))
        .chain(source.split("info("))
        .filter_map(|rest| rest.trim_start().strip_prefix('"')?.split('"').next())
        .collect();
    assert_eq!(names.len(), named);
    assert!(names.contains(checks::REFUSED.name));
}
