//! How values merge: the type of every node of a resource, compiled from its OpenAPI v3 structural schema.
//!
//! A node may be a scalar, a list or a map, or all three where the schema names no type. Maps are granular or atomic;
//! lists are atomic, sets, or maps by keys.

use super::fields_v1::KnownSets;
use crate::limits::TYPE_DEPTH_MAX;
use machinery::value::find_sorted;
use machinery::{Map, Text, Value};

/// The values that a scalar allows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Scalar {
    Numeric,
    String,
    Boolean,
    Untyped,
}

/// A node of a [`TypeSchema`].
pub(crate) type TypeId = u32;

#[derive(Debug)]
pub(crate) struct TypeField {
    pub name: Text,
    pub node: TypeId,
    pub default: Option<Value>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum MapRelation {
    /// Each field has owners of its own.
    Granular,
    /// The owners of the map own all of it.
    Atomic,
}

impl MapRelation {
    /// By the name in `x-kubernetes-map-type`.
    pub fn named(name: &str) -> MapRelation {
        if name == "atomic" { MapRelation::Atomic } else { MapRelation::Granular }
    }
}

#[derive(Debug)]
pub(crate) struct MapType {
    /// Declared fields, sorted by name.
    pub fields: Vec<TypeField>,
    /// The type of fields that are not declared. If there is none, such fields are not allowed.
    pub element: Option<TypeId>,
    pub kind: MapRelation,
    /// Whether this is the metadata of an object, whose managedFields every walk skips.
    pub is_object_metadata: bool,
    /// The type of `metadata` in an object whose schema declares no fields.
    pub metadata: Option<TypeId>,
}

impl MapType {
    pub fn is_atomic(&self) -> bool {
        self.kind == MapRelation::Atomic
    }

    pub fn field(&self, name: &str) -> Option<&TypeField> {
        self.fields.get(find_sorted(&self.fields, name, |field| &field.name)?)
    }

    /// The type of a field; `None` if the field is not allowed.
    pub fn child(&self, name: &str) -> Option<TypeId> {
        match (self.field(name), self.metadata) {
            (Some(field), _) => Some(field.node),
            (None, Some(metadata)) if name == "metadata" => Some(metadata),
            _ => self.element,
        }
    }

    /// Whether every walk skips a field.
    pub fn skips(&self, name: &str) -> bool {
        self.is_object_metadata && name == "managedFields"
    }
}

#[derive(Debug)]
pub(crate) enum ListRelation {
    Atomic,
    Set,
    Map(Vec<Text>),
}

#[derive(Debug)]
pub(crate) struct ListType {
    pub element: TypeId,
    pub kind: ListRelation,
}

impl ListType {
    pub fn is_atomic(&self) -> bool {
        matches!(self.kind, ListRelation::Atomic)
    }
}

/// A node. Each part is its type as a scalar, a list or a map, if it may be one.
#[derive(Debug, Default)]
pub(crate) struct Atom {
    pub scalar: Option<Scalar>,
    pub list: Option<ListType>,
    pub map: Option<MapType>,
}

/// The selected part of an atom: scalar, list or map.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Parts {
    map: bool,
    scalar: bool,
    list: bool,
}

/// The part of an atom that a walk takes.
pub(crate) enum Part<'a> {
    Map(&'a MapType),
    Scalar(Scalar),
    List(&'a ListType),
}

impl Part<'_> {
    /// Whether both values are taken as a whole: the part is a scalar or atomic, or both have nothing in them.
    pub fn is_whole(&self, a: Option<&Value>, b: Option<&Value>) -> bool {
        let are_empty = |is_empty: fn(&Value) -> bool| [a, b].into_iter().flatten().all(is_empty);
        match self {
            Part::Scalar(_) => true,
            Part::Map(map) => map.is_atomic() || are_empty(|value| value.as_object().is_none_or(Map::is_empty)),
            Part::List(list) => list.is_atomic() || are_empty(|value| value.as_array().is_none_or(<[_]>::is_empty)),
        }
    }
}

impl Atom {
    /// The part that fits the value, or all parts if the value is null, absent or of another type.
    pub fn parts(&self, value: Option<&Value>) -> Parts {
        let none = Parts { map: false, scalar: false, list: false };
        match value {
            Some(Value::Int(_) | Value::Float(_) | Value::String(_) | Value::Bool(_)) if self.scalar.is_some() => {
                Parts { scalar: true, ..none }
            }
            Some(Value::Array(_)) if self.list.is_some() => Parts { list: true, ..none },
            Some(Value::Object(_) | Value::Encoded(_)) if self.map.is_some() => Parts { map: true, ..none },
            _ => Parts { map: self.map.is_some(), scalar: self.scalar.is_some(), list: self.list.is_some() },
        }
    }

    /// The part to walk. A map is preferred to a scalar, and a scalar to a list.
    pub fn part(&self, parts: Parts) -> Option<Part<'_>> {
        match (&self.map, self.scalar, &self.list) {
            (Some(map), _, _) if parts.map => Some(Part::Map(map)),
            (_, Some(scalar), _) if parts.scalar => Some(Part::Scalar(scalar)),
            (_, _, Some(list)) if parts.list => Some(Part::List(list)),
            _ => None,
        }
    }

    pub fn part_of(&self, value: &Value) -> Option<Part<'_>> {
        self.part(self.parts(Some(value)))
    }
}

/// The type of any value, which is atomic.
pub(crate) const UNTYPED: TypeId = 0;
/// The type of any value: maps are granular, lists atomic.
pub(super) const DEDUCED: TypeId = 1;

/// The types of all nodes of a resource in one version.
#[derive(Debug)]
pub struct TypeSchema {
    atoms: Vec<Atom>,
    root: TypeId,
    known_sets: KnownSets,
}

impl TypeSchema {
    /// The type of a resource that has no schema: maps are granular, lists atomic.
    pub fn schemaless() -> TypeSchema {
        let mut compiler = Compiler::new();
        let deduced_map = |is_object_metadata, metadata| MapType {
            fields: vec![],
            element: Some(DEDUCED),
            kind: MapRelation::Granular,
            is_object_metadata,
            metadata,
        };
        let metadata = compiler.add(Atom { map: Some(deduced_map(true, None)), ..Atom::any(UNTYPED) });
        let root = compiler.add(Atom { map: Some(deduced_map(false, Some(metadata))), ..Atom::any(UNTYPED) });
        compiler.finish(root)
    }

    /// Compiles an OpenAPI v3 structural schema. `apiVersion`, `kind` and `metadata` of the object and of embedded
    /// resources have their built-in types, whatever the schema says about them.
    pub fn compile(schema: &Value) -> TypeSchema {
        let mut compiler = Compiler::new();
        let root = compiler.node(schema, TypeContext { preserve: false, object: Some(Object::Root), depth: 0 });
        compiler.finish(root)
    }

    pub(crate) fn root(&self) -> TypeId {
        self.root
    }

    pub(crate) fn known_sets(&self) -> &KnownSets {
        &self.known_sets
    }

    pub(crate) fn atom(&self, id: TypeId) -> &Atom {
        &self.atoms[id as usize]
    }

    /// The default of a key field of the items of a list.
    pub(crate) fn key_default(&self, list: &ListType, key: &str) -> Option<&Value> {
        self.atom(list.element).map.as_ref()?.field(key)?.default.as_ref()
    }

    /// Whether the items of the list may be maps, which alone can have keys.
    pub(crate) fn has_map_items(&self, list: &ListType) -> bool {
        self.atom(list.element).map.is_some()
    }
}

impl Atom {
    fn any(element: TypeId) -> Atom {
        Atom { scalar: Some(Scalar::Untyped), list: Some(ListType { element, kind: ListRelation::Atomic }), map: None }
    }
}

#[derive(Clone, Copy)]
pub(super) enum Object {
    Root,
    Embedded,
}

#[derive(Clone, Copy)]
struct TypeContext {
    /// Whether an object on the way to the node preserves unknown fields. The objects below then do so, too.
    preserve: bool,
    object: Option<Object>,
    depth: usize,
}

pub(super) struct Compiler {
    atoms: Vec<Atom>,
    /// The type of the metadata of each [`Object`], once it has been added.
    metadata: [Option<TypeId>; 2],
}

pub(super) fn plain_map(fields: Vec<TypeField>, element: Option<TypeId>, kind: MapRelation) -> MapType {
    MapType { fields, element, kind, is_object_metadata: false, metadata: None }
}

impl Compiler {
    pub(super) fn new() -> Compiler {
        let untyped = Atom { map: Some(plain_map(vec![], Some(UNTYPED), MapRelation::Atomic)), ..Atom::any(UNTYPED) };
        let deduced = Atom { map: Some(plain_map(vec![], Some(DEDUCED), MapRelation::Granular)), ..Atom::any(UNTYPED) };
        Compiler { atoms: vec![untyped, deduced], metadata: [None; 2] }
    }

    pub(super) fn add(&mut self, atom: Atom) -> TypeId {
        let id = self.atoms.len() as TypeId;
        self.atoms.push(atom);
        id
    }

    /// Sets a node whose number was reserved before, since the type is recursive.
    pub(super) fn set(&mut self, id: TypeId, atom: Atom) {
        if let Some(known) = self.atoms.get_mut(id as usize) {
            *known = atom;
        }
    }

    pub(super) fn finish(self, root: TypeId) -> TypeSchema {
        TypeSchema { atoms: self.atoms, root, known_sets: KnownSets::default() }
    }

    fn node(&mut self, schema: &Value, mut context: TypeContext) -> TypeId {
        if context.depth > TYPE_DEPTH_MAX {
            return UNTYPED;
        }
        context.depth += 1;
        context.preserve |= schema.is_true_at(&["x-kubernetes-preserve-unknown-fields"]);
        if schema.is_true_at(&["x-kubernetes-embedded-resource"]) && context.object.is_none() {
            context.object = Some(Object::Embedded);
        }
        let kind = match schema.get("type") {
            Some(Value::Array(types)) => types.first().and_then(Value::as_str).unwrap_or_default(),
            Some(Value::String(kind)) => kind,
            _ => "",
        };
        let atom = match kind {
            "" => {
                let list = Some(self.list(schema, context));
                Atom { scalar: Some(Scalar::Untyped), list, map: Some(self.map(schema, context)) }
            }
            "object" => Atom { map: Some(self.map(schema, context)), ..Atom::default() },
            "array" => Atom { list: Some(self.list(schema, context)), ..Atom::default() },
            "integer" | "number" => Atom { scalar: Some(Scalar::Numeric), ..Atom::default() },
            "boolean" => Atom { scalar: Some(Scalar::Boolean), ..Atom::default() },
            "string" => {
                let plain = matches!(schema.str_at(&["format"]), "" | "byte");
                Atom { scalar: Some(if plain { Scalar::String } else { Scalar::Untyped }), ..Atom::default() }
            }
            _ => Atom { scalar: Some(Scalar::Untyped), ..Atom::default() },
        };
        self.add(atom)
    }

    fn map(&mut self, schema: &Value, context: TypeContext) -> MapType {
        let below = TypeContext { object: None, ..context };
        let none = Map::new();
        let properties = schema.get("properties").and_then(Value::as_object).unwrap_or(&none);
        let mut fields = Vec::with_capacity(properties.len() + 3);
        for (name, property) in properties.iter() {
            if context.object.is_some() && matches!(name.as_str(), "apiVersion" | "kind" | "metadata") {
                continue;
            }
            let default = property.get("default").filter(|d| !d.is_null()).cloned();
            fields.push(TypeField { name: name.clone(), node: self.node(property, below), default });
        }
        if let Some(object) = context.object {
            fields.extend(self.type_and_metadata(object));
            fields.sort_by(|a, b| a.name.as_str().cmp(b.name.as_str()));
        }
        let element = match schema.get("additionalProperties") {
            None | Some(Value::Null) => (context.preserve || fields.is_empty()).then_some(DEDUCED),
            Some(Value::Bool(allowed)) => allowed.then_some(DEDUCED),
            Some(values) => Some(self.node(values, below)),
        };
        plain_map(fields, element, MapRelation::named(schema.str_at(&["x-kubernetes-map-type"])))
    }

    fn list(&mut self, schema: &Value, context: TypeContext) -> ListType {
        let below = TypeContext { object: None, ..context };
        let element = schema.get("items").filter(|i| !i.is_null()).map_or(UNTYPED, |items| self.node(items, below));
        let text = |name: &str| schema.get(name).and_then(Value::as_str);
        let keys = |value: Option<&Value>| -> Vec<Text> {
            let items = value.and_then(Value::as_array).unwrap_or_default();
            items.iter().filter_map(|k| k.as_str().map(Text::from)).collect()
        };
        let kind = match (text("x-kubernetes-list-type"), text("x-kubernetes-patch-strategy")) {
            (Some("set"), _) => ListRelation::Set,
            (Some("map"), _) => match keys(schema.get("x-kubernetes-list-map-keys")) {
                keys if keys.is_empty() => ListRelation::Set,
                keys => ListRelation::Map(keys),
            },
            (None, Some("merge" | "merge,retainKeys")) => match text("x-kubernetes-patch-merge-key") {
                Some(key) => ListRelation::Map(vec![key.into()]),
                None => ListRelation::Set,
            },
            _ => ListRelation::Atomic,
        };
        ListType { element, kind }
    }

    /// The fields that every object has.
    pub(super) fn type_and_metadata(&mut self, object: Object) -> Vec<TypeField> {
        let text = self.scalar(Scalar::String);
        let metadata = self.metadata(object);
        let fields = [("apiVersion", text), ("kind", text), ("metadata", metadata)];
        fields.map(|(name, node)| TypeField { name: name.into(), node, default: None }).into()
    }

    pub(super) fn scalar(&mut self, scalar: Scalar) -> TypeId {
        self.add(Atom { scalar: Some(scalar), ..Atom::default() })
    }

    fn object(&mut self, fields: &[(&str, TypeId)], kind: MapRelation) -> TypeId {
        let mut fields: Vec<TypeField> =
            fields.iter().map(|(name, node)| TypeField { name: (*name).into(), node: *node, default: None }).collect();
        fields.sort_by(|a, b| a.name.as_str().cmp(b.name.as_str()));
        self.add(Atom { map: Some(plain_map(fields, None, kind)), ..Atom::default() })
    }

    /// Makes an absent key field count as the empty text.
    fn default_key(&mut self, id: TypeId, key: &str) {
        let fields = self.atoms.get_mut(id as usize).and_then(|atom| atom.map.as_mut()).map(|map| &mut map.fields);
        if let Some(field) = fields.and_then(|fields| fields.iter_mut().find(|field| field.name == key)) {
            field.default = Some(Value::from(""));
        }
    }

    fn metadata(&mut self, object: Object) -> TypeId {
        if let Some(known) = self.metadata[object as usize] {
            return known;
        }
        let text = self.scalar(Scalar::String);
        let time = self.scalar(Scalar::Untyped);
        let number = self.scalar(Scalar::Numeric);
        let boolean = self.scalar(Scalar::Boolean);
        let texts =
            self.add(Atom { map: Some(plain_map(vec![], Some(text), MapRelation::Granular)), ..Atom::default() });
        let list = |element, kind| Atom { list: Some(ListType { element, kind }), ..Atom::default() };
        let finalizers = self.add(list(text, ListRelation::Set));
        let names = ["apiVersion", "kind", "name", "uid"].map(|n| (n, text));
        let flags = [("blockOwnerDeletion", boolean), ("controller", boolean)];
        let owner = self.object(&[&names[..], &flags].concat(), MapRelation::Atomic);
        self.default_key(owner, "uid");
        let owners = self.add(list(owner, ListRelation::Map(vec!["uid".into()])));
        let names = ["apiVersion", "fieldsType", "manager", "operation", "subresource"].map(|n| (n, text));
        let any = plain_map(vec![], Some(DEDUCED), MapRelation::Granular);
        let any = self.add(Atom { map: Some(any), ..Atom::default() });
        let entry = self.object(&[&names[..], &[("fieldsV1", any), ("time", time)]].concat(), MapRelation::Granular);
        let entries = self.add(list(entry, ListRelation::Atomic));
        let names = ["generateName", "name", "namespace", "resourceVersion", "selfLink", "uid"].map(|n| (n, text));
        let others = [
            ("annotations", texts),
            ("creationTimestamp", time),
            ("deletionGracePeriodSeconds", number),
            ("deletionTimestamp", time),
            ("finalizers", finalizers),
            ("generation", number),
            ("labels", texts),
            ("managedFields", entries),
            ("ownerReferences", owners),
        ];
        let id = self.object(&[&names[..], &others[..]].concat(), MapRelation::Granular);
        self.metadata[object as usize] = Some(id);
        if let (Object::Root, Some(map)) = (object, self.atoms.get_mut(id as usize).and_then(|a| a.map.as_mut())) {
            map.is_object_metadata = true;
        }
        id
    }
}
