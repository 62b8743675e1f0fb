//! Types of the checker, and their names in messages.

use super::ObjectType;
use machinery::Text;
use std::sync::Arc;

/// The types of the elements of a list or a map whose type an expression names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Elements {
    /// Any type.
    Dyn,
    /// A parameter of the type.
    Parameters,
}

/// A type of the language.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum Type {
    /// The type of an expression that has errors.
    Error,
    /// Any type, checked when the expression is evaluated.
    Dyn,
    /// `google.protobuf.Any`.
    Any,
    /// `null_type`.
    Null,
    /// `bool`.
    Bool,
    /// `int`: 64 bits with a sign.
    Int,
    /// `uint`: 64 bits without a sign.
    Uint,
    /// `double`.
    Double,
    /// `string`.
    String,
    /// `bytes`.
    Bytes,
    /// `google.protobuf.Duration`.
    Duration,
    /// `google.protobuf.Timestamp`.
    Timestamp,
    /// A primitive or null.
    Wrapper(Arc<Type>),
    /// A list of items of a type.
    List(Arc<Type>),
    /// A map from keys of a type to values of a type.
    Map(Arc<(Type, Type)>),
    /// The type of types.
    Type(Option<Arc<Type>>),
    /// Types known by name and parameters, as `optional_type(int)` and `net.IP`.
    Opaque(&'static str, Arc<[Type]>),
    /// Messages that libraries declare, as `kubernetes.Quantity`.
    Named(&'static str),
    /// Objects of a schema.
    Object(Arc<ObjectType>),
    /// Messages that expressions construct: `Object`, `Object.spec` and so on, whose fields are not declared, and `JSONPatch`.
    Made(Text),
    /// A type parameter.
    Param(Param),
}

/// A type parameter: of a declaration, or a variable of the checker.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Param {
    /// A letter in the declaration of a function.
    Named(u8),
    /// A variable that the checker solves for.
    Fresh(u32),
}

pub(crate) const OPTIONAL: &str = "optional_type";

impl PartialEq for Type {
    fn eq(&self, other: &Type) -> bool {
        match (self, other) {
            (Type::Wrapper(a), Type::Wrapper(b)) | (Type::List(a), Type::List(b)) => a == b,
            (Type::Map(a), Type::Map(b)) => a == b,
            (Type::Type(a), Type::Type(b)) => a == b,
            (Type::Opaque(a, p), Type::Opaque(b, q)) => a == b && p == q,
            (Type::Named(a), Type::Named(b)) => a == b,
            (Type::Object(a), Type::Object(b)) => Arc::ptr_eq(a, b),
            (Type::Made(a), Type::Made(b)) => a == b,
            (Type::Param(a), Type::Param(b)) => a == b,
            _ => std::mem::discriminant(self) == std::mem::discriminant(other),
        }
    }
}

impl Type {
    /// The type of lists of `item`.
    pub fn list(item: Type) -> Type {
        Type::List(Arc::new(item))
    }

    /// The type of maps from `key` to `value`.
    pub fn map(key: Type, value: Type) -> Type {
        Type::Map(Arc::new((key, value)))
    }

    /// The type of optional values of `value`.
    pub fn optional(value: Type) -> Type {
        Type::Opaque(OPTIONAL, Arc::new([value]))
    }

    /// The type of the type `inner`.
    pub fn type_of(inner: Type) -> Type {
        Type::Type(Some(Arc::new(inner)))
    }

    pub(crate) fn is_dyn(&self) -> bool {
        matches!(self, Type::Dyn | Type::Any)
    }

    pub(crate) fn is_dyn_or_error(&self) -> bool {
        matches!(self, Type::Dyn | Type::Any | Type::Error)
    }

    /// The type in an optional type.
    pub(crate) fn unwrapped(&self) -> Option<&Type> {
        match self {
            Type::Opaque(OPTIONAL, params) => params.first(),
            _ => None,
        }
    }

    /// The type in messages; names of schema objects begin at `scope`.
    pub fn format(&self, scope: &str) -> String {
        match self {
            Type::Error => "!error!".to_owned(),
            Type::Dyn => "dyn".to_owned(),
            Type::Any => "any".to_owned(),
            Type::Null => "null".to_owned(),
            Type::Bool => "bool".to_owned(),
            Type::Int => "int".to_owned(),
            Type::Uint => "uint".to_owned(),
            Type::Double => "double".to_owned(),
            Type::String => "string".to_owned(),
            Type::Bytes => "bytes".to_owned(),
            Type::Duration => "duration".to_owned(),
            Type::Timestamp => "timestamp".to_owned(),
            Type::Wrapper(inner) => format!("wrapper({})", inner.format(scope)),
            Type::List(item) => format!("list({})", item.format(scope)),
            Type::Map(pair) => format!("map({}, {})", pair.0.format(scope), pair.1.format(scope)),
            Type::Type(None) => "type".to_owned(),
            Type::Type(Some(inner)) => format!("type({})", inner.format(scope)),
            Type::Opaque(name, params) if params.is_empty() => (*name).to_owned(),
            Type::Opaque(name, params) => {
                let params: Vec<String> = params.iter().map(|p| p.format(scope)).collect();
                format!("{name}({})", params.join(", "))
            }
            Type::Named(name) => (*name).to_owned(),
            Type::Object(object) => object.name(scope),
            Type::Made(name) => name.to_string(),
            Type::Param(Param::Named(letter)) => char::from(*letter).to_string(),
            Type::Param(Param::Fresh(number)) => format!("_var{number}"),
        }
    }

    /// The name a value of this type has at run time, as `type(x)` returns it.
    pub fn runtime_name(&self) -> Text {
        Text::new_static(match self {
            Type::Null => "null_type",
            Type::Bool => "bool",
            Type::Int => "int",
            Type::Uint => "uint",
            Type::Double => "double",
            Type::String => "string",
            Type::Bytes => "bytes",
            Type::Duration => "google.protobuf.Duration",
            Type::Timestamp => "google.protobuf.Timestamp",
            Type::List(_) => "list",
            Type::Map(_) | Type::Object(_) => "map",
            Type::Made(name) => return name.clone(),
            Type::Type(_) => "type",
            Type::Opaque(name, _) | Type::Named(name) => name,
            Type::Any => "google.protobuf.Any",
            Type::Wrapper(inner) => return inner.runtime_name(),
            Type::Dyn | Type::Error | Type::Param(_) => "dyn",
        })
    }

    /// The types of the fields of a message that expressions can construct (KEP-3962), by its name; `None` for other names.
    pub(crate) fn made(name: &str) -> Option<fn(&str) -> Option<Type>> {
        match name {
            "JSONPatch" => Some(|field| match field {
                "op" | "path" | "from" => Some(Type::String),
                "value" => Some(Type::Dyn),
                _ => None,
            }),
            "Object" => Some(|_| Some(Type::Dyn)),
            name if name.starts_with("Object.") => Some(|_| Some(Type::Dyn)),
            _ => None,
        }
    }

    /// The type that an expression may refer to by name.
    pub fn named(name: &str, elements: Elements) -> Option<Type> {
        Some(match name {
            "bool" => Type::Bool,
            "bytes" => Type::Bytes,
            "double" => Type::Double,
            "int" => Type::Int,
            "uint" => Type::Uint,
            "string" => Type::String,
            "null_type" => Type::Null,
            "list" => Type::parse(match elements {
                Elements::Parameters => "list(A)",
                Elements::Dyn => "list(dyn)",
            }),
            "map" => Type::parse(match elements {
                Elements::Parameters => "map(A, B)",
                Elements::Dyn => "map(dyn, dyn)",
            }),
            "type" => Type::Type(None),
            "google.protobuf.Timestamp" => Type::Timestamp,
            "google.protobuf.Duration" => Type::Duration,
            OPTIONAL if elements == Elements::Dyn => Type::optional(Type::Dyn),
            OPTIONAL => Type::Opaque(OPTIONAL, Arc::new([])),
            "net.IP"
            | "net.CIDR"
            | "kubernetes.Quantity"
            | "kubernetes.URL"
            | "kubernetes.Semver"
            | "kubernetes.NamedFormat" => {
                const NAMES: [&str; 6] = [
                    "net.IP", "net.CIDR", "kubernetes.Quantity", "kubernetes.URL", "kubernetes.Semver",
                    "kubernetes.NamedFormat",
                ];
                Type::parse(NAMES.into_iter().find(|n| *n == name)?)
            }
            _ => return None,
        })
    }

    /// Parses a type in the notation of the declarations, such as `list(A)` or `map(string, int)`.
    pub(crate) fn parse(text: &'static str) -> Type {
        let inner = |prefix: &str| text.strip_prefix(prefix).and_then(|rest| rest.strip_suffix(')'));
        if let Some(item) = inner("list(") {
            return Type::list(Type::parse(item));
        }
        if let Some(pair) = inner("map(") {
            let (key, value) = pair.split_once(',').unwrap_or((pair, "dyn"));
            return Type::map(Type::parse(key.trim()), Type::parse(value.trim()));
        }
        if let Some(value) = inner("optional_type(") {
            return Type::optional(Type::parse(value));
        }
        if let Some(value) = inner("type(") {
            return Type::type_of(Type::parse(value));
        }
        match text {
            "dyn" => Type::Dyn,
            "any" => Type::Any,
            "null" => Type::Null,
            "bool" => Type::Bool,
            "int" => Type::Int,
            "uint" => Type::Uint,
            "double" => Type::Double,
            "string" => Type::String,
            "bytes" => Type::Bytes,
            "duration" => Type::Duration,
            "timestamp" => Type::Timestamp,
            "net.IP" | "net.CIDR" => Type::Opaque(text, Arc::new([])),
            letter if letter.len() == 1 => Type::Param(Param::Named(letter.as_bytes()[0])),
            name => Type::Named(name),
        }
    }
}
