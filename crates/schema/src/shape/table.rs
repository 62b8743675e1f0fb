//! Shapes of the Go types in `machinery::types`, which are built when they are first used and then kept.

use std::collections::HashMap;
use std::sync::{Mutex, OnceLock, PoisonError};

use machinery::types::{Container, GoBase, GoField, GoStruct, GoType, Printed, go_struct};

use super::{Field, Merge, OBJECT_META, Print, Shape, Struct};
use crate::limits::LEVELS_MAX;

/// The shape of a struct by its name, such as `core.v1.Pod`.
///
/// # Panics
///
/// The table has no struct of that name. Names are constants or come from the table itself, and a test looks up all of them.
#[must_use]
pub fn named(name: &'static str) -> &'static Struct {
    nested(name, 1)
}

/// The shape of a struct, at a level of nesting in itself.
fn nested(name: &'static str, level: usize) -> &'static Struct {
    static SHAPES: OnceLock<Mutex<HashMap<(&'static str, usize), &'static Struct>>> = OnceLock::new();
    let shapes = SHAPES.get_or_init(Mutex::default);
    let kept = |key| shapes.lock().unwrap_or_else(PoisonError::into_inner).get(&key).copied();
    kept((name, level)).unwrap_or_else(|| {
        let found = go_struct(name).unwrap_or_else(|| panic!("no Go type {name}"));
        let built: &'static Struct = Box::leak(Box::new(build(found, level)));
        *shapes.lock().unwrap_or_else(PoisonError::into_inner).entry((name, level)).or_insert(built)
    })
}

fn build(go: &'static GoStruct, level: usize) -> Struct {
    let mut fields = Vec::new();
    if is_kind(go) {
        let of_type = |name| super::non_empty(name, super::TEXT).embedded("TypeMeta.");
        fields.extend(["apiVersion", "kind"].map(of_type));
    }
    add_fields(go, (go.name, level), "", &mut fields);
    if is_kind(go) {
        // objects without metadata have been refused before
        fields.iter_mut().filter(|field| field.name == "metadata").for_each(|field| field.print = Print::Given);
    }
    fields.sort_by_key(|field| field.name);
    Struct { name: bare(go.name), fields: fields.leak() }
}

/// Whether a struct is that of an object, which has a type.
fn is_kind(go: &GoStruct) -> bool {
    let metadata =
        |field: &GoField| matches!(field.go_type.base, GoBase::Struct("meta.v1.ObjectMeta" | "meta.v1.ListMeta"));
    let is_template = go.name.ends_with("TemplateSpec") || go.name == "core.v1.PersistentVolumeClaimTemplate";
    !is_template && go.fields.first().is_some_and(|field| field.name == "metadata" && metadata(field))
}

/// Adds the fields of a struct, and those of the structs that it embeds, to those of `outer`, which has a level of nesting.
fn add_fields(go: &'static GoStruct, outer: (&'static str, usize), embedded: &'static str, out: &mut Vec<Field>) {
    for field in &go.fields {
        match (field.go_type.container, field.go_type.base) {
            (Container::Embedded, GoBase::Struct(inner)) => {
                let path = format!("{embedded}{}.", field.name);
                go_struct(inner).into_iter().for_each(|inner| add_fields(inner, outer, path.clone().leak(), out));
            }
            _ => out.push(field_of(outer, field, embedded)),
        }
    }
}

/// The field of the struct `outer`, or of one that is embedded in it.
fn field_of(outer: (&'static str, usize), field: &'static GoField, embedded: &'static str) -> Field {
    let print = match field.printed {
        Printed::NonEmpty => Print::NonEmpty,
        Printed::Always => Print::Always,
        Printed::Set | Printed::NonZero => Print::Given,
        Printed::SetOrNull => Print::OrNull,
    };
    let item_is_atomic = match field.go_type.base {
        _ if field.merging.map_type == "granular" => false,
        GoBase::Struct("runtime.RawExtension") => true,
        GoBase::Struct(name) => go_struct(name).is_some_and(|inner| inner.is_atomic),
        _ => false,
    };
    Field {
        name: field.name,
        shape: shape(&field.go_type, outer),
        print,
        merge: Merge::Table(&field.merging, item_is_atomic),
        key_default: field.default.map(|json| json.trim_matches('"')),
        embedded,
    }
}

/// The shape of a field of the struct `outer`, which has a level of nesting.
fn shape(go: &GoType, outer: (&'static str, usize)) -> Shape {
    let single = |alias: Option<&'static str>| single(go.base, alias, outer);
    let item = |alias: Option<&'static str>| -> &'static Shape { Box::leak(Box::new(single(alias))) };
    let name = |prefix: &str| -> &'static str {
        go.alias.unwrap_or_else(|| format!("{prefix}{}", go_name(go.base, go.item_alias)).leak())
    };
    match go.container {
        Container::None | Container::Embedded => single(go.alias),
        Container::List => Shape::List(name("[]"), item(go.item_alias)),
        // Kubernetes rounds amounts of Pods and the like, but not what RuntimeClasses add to them
        Container::Map if go.alias == Some("v1.ResourceList") && outer.0 != "node.v1.Overhead" => {
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
fn single(base: GoBase, alias: Option<&'static str>, (outer, level): (&'static str, usize)) -> Shape {
    match base {
        GoBase::Text => Shape::Text(alias.unwrap_or("string")),
        GoBase::Bool => Shape::Bool,
        GoBase::Int32 => Shape::Int32,
        GoBase::Int64 => Shape::Int64,
        GoBase::Double => Shape::Float,
        GoBase::Bytes => Shape::Bytes,
        GoBase::Struct(name) => match name {
            "meta.v1.ObjectMeta" => Shape::Struct(&OBJECT_META),
            "meta.v1.Time" => Shape::Time,
            "meta.v1.MicroTime" => Shape::MicroTime,
            "resource.Quantity" => Shape::Quantity,
            "intstr.IntOrString" => Shape::IntOrString,
            "meta.v1.FieldsV1" | "runtime.RawExtension" | "apiextensions.v1.JSON" => Shape::Any,
            "authentication.v1.AttestationValue" => Shape::List("v1.AttestationValue", &super::TEXT),
            name if name.ends_with("ExtraValue") => Shape::List("v1.ExtraValue", &super::TEXT),
            name if name == outer && level == LEVELS_MAX => Shape::Any,
            name if name == outer => Shape::Struct(nested(name, level + 1)),
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
        // package and type, without the group
        GoBase::Struct(name) => match name.split('.').collect::<Vec<_>>()[..] {
            [_, version, name] => format!("{version}.{name}"),
            _ => name.to_owned(),
        },
    }
}

/// The name of a type without its package.
fn bare(name: &'static str) -> &'static str {
    name.rsplit('.').next().unwrap_or(name)
}

#[cfg(test)]
mod tests {
    use machinery::{Value, json};

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
    fn structs_hold_themselves_to_a_depth() {
        let mut workload = json!({"name": "a", "priority": 1});
        for _ in 1..LEVELS_MAX {
            workload = json!({"name": "a", "compositePodGroupTemplates": [workload]});
        }
        let spec = |inner: Value| json!({"spec": {"compositePodGroupTemplates": [inner]}});
        let of = |inner: Value| read(&spec(inner), named("scheduling.v1alpha3.Workload"));
        let found = of(workload.clone());
        assert_eq!((found.unknown.len(), found.error), (0, None));
        assert!(of(json!({"compositePodGroupTemplates": [{"zog": 1}]})).unknown[0].ends_with("[0].zog"));
        let deeper = of(json!({"name": "a", "compositePodGroupTemplates": [workload]}));
        assert_eq!(deeper.error, None);
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
