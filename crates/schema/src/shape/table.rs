//! Shapes of the Go types in `machinery::types`.

use std::sync::{LazyLock, OnceLock};

use machinery::types::{Container, GoBase, GoField, GoStruct, GoType, Printed, go_struct, names};

use super::{Field, Print, Shape, Struct};

/// The Go type of schemas, which contain schemas.
pub(super) const SCHEMA: &str = "apiextensions.v1.JSONSchemaProps";

static TEXT: Shape = Shape::Text("string");

/// The shape of a struct by its name, such as `core.v1.Pod`. Its fields are made when they are first used.
///
/// # Panics
///
/// The table has no struct of that name. Names are constants or come from the table itself, and a test looks up all of
/// them.
#[must_use]
pub fn named(name: &str) -> &'static Struct {
    static SHAPES: LazyLock<Vec<Struct>> =
        LazyLock::new(|| names().map(|go| Struct { go, fields: OnceLock::new() }).collect());
    let found = SHAPES.binary_search_by(|shape| shape.go.cmp(name)).ok().and_then(|at| SHAPES.get(at));
    found.unwrap_or_else(|| panic!("no Go type {name}"))
}

/// The shape of metadata.
#[must_use]
pub fn object_meta() -> &'static Struct {
    static METADATA: LazyLock<&Struct> = LazyLock::new(|| named("meta.v1.ObjectMeta"));
    *METADATA
}

/// The fields of a struct, sorted by name.
pub(super) fn fields(name: &'static str) -> Box<[Field]> {
    let mut fields = Vec::new();
    let Some(go) = go_struct(name) else { return Box::default() };
    if is_kind(go) {
        add_fields(go_struct("meta.v1.TypeMeta"), go.name, "TypeMeta.", &mut fields);
    }
    add_fields(Some(go), go.name, "", &mut fields);
    if is_kind(go) {
        // objects without metadata were refused earlier
        fields.iter_mut().filter(|field| field.name == "metadata").for_each(|field| field.print = Print::Given);
    }
    fields.sort_by_key(|field| field.name);
    fields.into()
}

/// Whether a struct is an object with `apiVersion` and `kind`.
fn is_kind(go: &GoStruct) -> bool {
    let metadata =
        |field: &GoField| matches!(field.go_type.base, GoBase::Struct("meta.v1.ObjectMeta" | "meta.v1.ListMeta"));
    if go.name == "meta.v1.DeleteOptions" {
        // an Eviction holds one
        return true;
    }
    let is_template = go.name.ends_with("TemplateSpec") || go.name == "core.v1.PersistentVolumeClaimTemplate";
    !is_template && go.fields.first().is_some_and(|field| field.name == "metadata" && metadata(field))
}

/// Adds the fields of a struct, including those of embedded structs, to those of `outer`.
fn add_fields(go: Option<&'static GoStruct>, outer: &'static str, embedded: &str, out: &mut Vec<Field>) {
    let Some(go) = go else { return };
    for field in &go.fields {
        match (field.go_type.container, field.go_type.base) {
            (Container::Embedded, GoBase::Struct(inner)) => {
                add_fields(go_struct(inner), outer, &format!("{embedded}{}.", field.name), out);
            }
            _ => out.push(field_of(outer, field, embedded)),
        }
    }
}

/// The field of the struct `outer`, or of one that is embedded in it.
fn field_of(outer: &'static str, go: &'static GoField, embedded: &str) -> Field {
    let print = match go.printed {
        Printed::NonEmpty => Print::NonEmpty,
        Printed::Always => Print::Always,
        Printed::Set | Printed::NonZero => Print::Given,
        Printed::SetOrNull => Print::OrNull,
    };
    Field { name: go.name, shape: shape(&go.go_type, outer), print, go, embedded: embedded.into() }
}

/// The shape of a field of the struct `outer`.
fn shape(go: &GoType, outer: &str) -> Shape {
    let single = |alias: Option<&'static str>| single(go.base, alias);
    let item = |alias: Option<&'static str>| -> &'static Shape { Box::leak(Box::new(single(alias))) };
    let name = |prefix: &str| -> &'static str {
        go.alias.unwrap_or_else(|| format!("{prefix}{}", go_name(go.base, go.item_alias)).leak())
    };
    match go.container {
        Container::None | Container::Embedded => single(go.alias),
        Container::List => Shape::List(name("[]"), item(go.item_alias)),
        // Kubernetes rounds the amounts of Pods and similar kinds, but not the overhead of RuntimeClasses
        Container::Map if go.alias == Some("v1.ResourceList") && outer != "node.v1.Overhead" => {
            Shape::Map("v1.ResourceList", &Shape::Amount)
        }
        Container::Map => Shape::Map(name("map[string]"), item(go.item_alias)),
        Container::MapOfLists => {
            let list = Shape::List(go.alias.unwrap_or("[]string"), item(None));
            Shape::Map("map[string][]string", Box::leak(Box::new(list)))
        }
    }
}

/// The shape of a single value.
fn single(base: GoBase, alias: Option<&'static str>) -> Shape {
    match base {
        GoBase::Text => Shape::Text(alias.unwrap_or("string")),
        GoBase::Bool => Shape::Bool,
        GoBase::Int32 => Shape::Int32,
        GoBase::Int64 => Shape::Int64,
        GoBase::Double => Shape::Float,
        GoBase::Bytes => Shape::Bytes,
        GoBase::Struct(name) => match name {
            "meta.v1.Time" => Shape::Time,
            "meta.v1.MicroTime" => Shape::MicroTime,
            "resource.Quantity" => Shape::Quantity,
            "intstr.IntOrString" => Shape::IntOrString,
            "meta.v1.FieldsV1" | "runtime.RawExtension" | "apiextensions.v1.JSON" => Shape::Any,
            "authentication.v1.AttestationValue" => Shape::List("v1.AttestationValue", &TEXT),
            name if name.ends_with("ExtraValue") => Shape::List("v1.ExtraValue", &TEXT),
            "apiextensions.v1.JSONSchemaPropsOrBool" => Shape::OrBool(named(SCHEMA)),
            "apiextensions.v1.JSONSchemaPropsOrArray" => Shape::OrList(named(SCHEMA)),
            "apiextensions.v1.JSONSchemaPropsOrStringArray" => Shape::OrTexts(named(SCHEMA)),
            name => Shape::Struct(named(name)),
        },
    }
}

/// The name of a type as Go's decoder shows it.
fn go_name(base: GoBase, alias: Option<&'static str>) -> String {
    match base {
        GoBase::Text => alias.unwrap_or("string").to_owned(),
        GoBase::Bool => "bool".to_owned(),
        GoBase::Int32 => "int32".to_owned(),
        GoBase::Int64 => "int64".to_owned(),
        GoBase::Double => "float64".to_owned(),
        GoBase::Bytes => "[]uint8".to_owned(),
        // the Go name has the package and the type, but not the group
        GoBase::Struct(name) => match name.split('.').collect::<Vec<_>>()[..] {
            [_, version, name] => format!("{version}.{name}"),
            _ => name.to_owned(),
        },
    }
}

#[cfg(test)]
mod tests {
    use machinery::json;

    use super::*;
    use crate::shape::read;

    #[test]
    fn reads_objects_as_their_go_types() {
        let pod = json!({
            "apiVersion": "v1", "kind": "Pod", "metadata": {"name": "a"},
            "spec": {
                "containers": [{"name": "c", "ports": [{"containerPort": 80}], "resources": {"limits": {"cpu": "1000m"}}}],
                "volumes": [{"name": "v", "emptyDir": {}}], "hostNetwork": false, "nothing": 1
            }
        });
        let got = read(&pod, named("core.v1.Pod"));
        assert_eq!(got.unknown, ["spec.nothing"]);
        assert_eq!(got.error, None);
        let want = json!({
            "apiVersion": "v1", "kind": "Pod", "metadata": {"name": "a"},
            "spec": {
                "containers": [{"name": "c", "ports": [{"containerPort": 80}], "resources": {"limits": {"cpu": "1"}}}],
                "volumes": [{"emptyDir": {}, "name": "v"}]
            },
            "status": {}
        });
        assert_eq!(got.value, want);
    }

    #[test]
    fn quantities_of_resource_lists_have_no_parts_below_a_thousandth() {
        let cases = [
            ("1.0005", "1001m"),
            ("-1.0005", "-1001m"),
            ("1.5", "1500m"),
            ("100u", "1m"),
            ("0.0000001Ki", "1m"),
            ("1Gi", "1Gi"),
            ("9223372036854775.8071", "9223372036854775808m"),
        ];
        for (given, want) in cases {
            let node = json!({"status": {"capacity": {"cpu": given}}});
            let got = read(&node, named("core.v1.Node"));
            assert_eq!(got.value.str_at(&["status", "capacity", "cpu"]), want, "{given}");
        }
        let class = json!({"overhead": {"podFixed": {"cpu": "0.1n"}}});
        let got = read(&class, named("node.v1.RuntimeClass"));
        assert_eq!(got.value.str_at(&["overhead", "podFixed", "cpu"]), "1n");
    }

    #[test]
    fn structs_hold_themselves() {
        let mut template = json!({"name": "a", "zog": 1});
        for _ in 0..20 {
            template = json!({"name": "a", "compositePodGroupTemplates": [template]});
        }
        let found =
            read(&json!({"spec": {"compositePodGroupTemplates": [template]}}), named("scheduling.v1alpha3.Workload"));
        assert_eq!((found.unknown.len(), found.error), (1, None));
        assert!(found.unknown[0].ends_with("[0].zog"));
    }

    #[test]
    fn every_type_has_its_fields_sorted() {
        for name in names() {
            let fields = named(name).fields();
            assert!(fields.is_sorted_by(|a, b| a.name < b.name), "{name}");
        }
    }

    #[test]
    fn names_types_in_errors_as_go_does() {
        let cases = [
            (
                json!({"spec": {"containers": 1}}),
                "json: cannot unmarshal number into Go struct field PodSpec.spec.containers of type []v1.Container",
            ),
            (
                json!({"spec": {"restartPolicy": 1}}),
                "json: cannot unmarshal number into Go struct field PodSpec.spec.restartPolicy of type v1.RestartPolicy",
            ),
            (
                json!({"spec": {"overhead": "x"}}),
                "json: cannot unmarshal string into Go struct field PodSpec.spec.overhead of type v1.ResourceList",
            ),
        ];
        for (pod, want) in cases {
            assert_eq!(read(&pod, named("core.v1.Pod")).error.as_deref(), Some(want));
        }
    }
}
