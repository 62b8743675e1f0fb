//! Values at run time. They borrow from their inputs where possible.
//!
//! A list or an object of JSON stays JSON: the value refers to it and to its declaration, by which parts are converted
//! when they are accessed. Lifetime `'a` is that of the inputs and of the program.

pub(crate) mod authorization;
mod configuration;
mod convert;
mod equal;
mod error;
pub(crate) mod format;
mod key;
mod list;
mod map;
mod native;
pub(crate) mod net;
pub(crate) mod semver;
pub(crate) mod time;

use crate::decl::types::Type;
use crate::decl::{Decl, ListKind, ObjectType};
use machinery::Value;
use machinery::quantity::Quantity;
use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;

use authorization::Authorization;
use format::Format;
use machinery::network::Network;
use net::Ip;
use semver::Version;

pub use configuration::{Configuration, Foreign};
pub use convert::from_json;
pub(crate) use convert::untyped;
pub(crate) use equal::{compare, equal, item_key, member_text, members};
pub use error::{Error, Result};
pub use key::Key;
pub use native::{misnamed, to_json};

/// A string, borrowed or shared.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum Str<'a> {
    /// Text of an object or a program.
    Borrowed(&'a str),
    /// Text that a function made.
    Shared(Rc<str>),
}

impl std::ops::Deref for Str<'_> {
    type Target = str;

    fn deref(&self) -> &str {
        match self {
            Str::Borrowed(s) => s,
            Str::Shared(s) => s,
        }
    }
}

/// A point in time.
#[derive(Clone, Copy, Debug)]
pub struct Timestamp {
    /// Seconds since 1970-01-01T00:00:00Z.
    pub seconds: i64,
    /// Nanoseconds since the beginning of the second.
    pub nanoseconds: u32,
    /// The offset from UTC in seconds, positive to the east, for printing only: comparisons ignore it.
    pub offset: i32,
}

impl Timestamp {
    pub(crate) fn utc(seconds: i64, nanoseconds: u32) -> Timestamp {
        Timestamp { seconds, nanoseconds, offset: 0 }
    }
}

impl PartialEq for Timestamp {
    fn eq(&self, other: &Timestamp) -> bool {
        self.cmp(other).is_eq()
    }
}

impl Eq for Timestamp {}

impl PartialOrd for Timestamp {
    fn partial_cmp(&self, other: &Timestamp) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Timestamp {
    fn cmp(&self, other: &Timestamp) -> std::cmp::Ordering {
        (self.seconds, self.nanoseconds).cmp(&(other.seconds, other.nanoseconds))
    }
}

/// A value.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum Val<'a> {
    /// `null`.
    Null,
    /// A `bool`.
    Bool(bool),
    /// An `int`.
    Int(i64),
    /// A `uint`.
    Uint(u64),
    /// A `double`.
    Double(f64),
    /// A `string`.
    String(Str<'a>),
    /// A `bytes`.
    Bytes(std::sync::Arc<[u8]>),
    /// Nanoseconds.
    Duration(i64),
    /// A timestamp.
    Timestamp(Timestamp),
    /// A list.
    List(List<'a>),
    /// A map, an object or a message.
    Map(Map<'a>),
    /// A type.
    Type(std::sync::Arc<Type>),
    /// An optional value.
    Optional(Option<Rc<Val<'a>>>),
    /// A value of a type that a library adds.
    Opaque(Rc<Opaque>),
    /// A step between `authorizer` and a decision, such as `authorizer.group('apps')`.
    Authorization(Rc<Authorization<'a>>),
    /// Data without a type, which can only be compared.
    Preserved(&'a Value),
}

/// Values of the types that libraries add.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum Opaque {
    /// A quantity that was parsed.
    Quantity(Quantity),
    /// The sum or difference of quantities. As upstream, it cannot be the right operand of `==`.
    Sum(Quantity),
    /// A URL.
    Url(machinery::url::Url),
    /// An IP address.
    Ip(Ip),
    /// A range of IP addresses.
    Cidr(Network),
    /// A semantic version.
    Semver(Version),
    /// A named format.
    Format(&'static Format),
}

impl Opaque {
    pub(crate) fn type_of(&self) -> Type {
        Type::parse(match self {
            Opaque::Quantity(_) | Opaque::Sum(_) => "kubernetes.Quantity",
            Opaque::Url(_) => "kubernetes.URL",
            Opaque::Ip(_) => "net.IP",
            Opaque::Cidr(_) => "net.CIDR",
            Opaque::Semver(_) => "kubernetes.Semver",
            Opaque::Format(_) => "kubernetes.NamedFormat",
        })
    }
}

/// A list.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum List<'a> {
    /// An array of JSON.
    Json {
        /// The items.
        items: &'a [Value],
        /// The declaration of each item.
        item: &'a Decl,
        /// How the list is compared and concatenated.
        kind: &'a ListKind,
    },
    /// A concatenation of lists, the first of which has a declaration.
    Typed {
        /// The items.
        items: Rc<Vec<Val<'a>>>,
        /// How the list is compared and concatenated.
        kind: &'a ListKind,
        /// The members of a set as texts, by which sets are compared; empty for other kinds.
        members: Rc<BTreeSet<String>>,
    },
    /// A list that an expression created.
    Owned(Rc<Vec<Val<'a>>>),
}

/// A map.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum Map<'a> {
    /// An object whose fields are declared.
    Object(&'a machinery::Map, &'a ObjectType),
    /// An object whose values all have this declaration.
    Json(&'a machinery::Map, &'a Decl),
    /// A map that an expression created.
    Owned(Rc<BTreeMap<Key<'a>, Val<'a>>>),
    /// A constructed message: its type and the fields that are set.
    Made(machinery::Text, Rc<BTreeMap<Key<'a>, Val<'a>>>),
}

impl<'a> Val<'a> {
    /// A string that owns its text.
    pub fn string(text: impl AsRef<str>) -> Val<'a> {
        Val::String(Str::Shared(text.as_ref().into()))
    }

    /// A string that borrows its text.
    pub fn borrowed(text: &'a str) -> Val<'a> {
        Val::String(Str::Borrowed(text))
    }

    /// A list of any values.
    pub fn list(items: Vec<Val<'a>>) -> Val<'a> {
        Val::List(List::Owned(Rc::new(items)))
    }

    /// A map; `None` if a key is not a bool, number or string. Of entries with equal keys, the last one counts.
    pub fn map(entries: Vec<(Val<'a>, Val<'a>)>) -> Option<Val<'a>> {
        let entries = entries.into_iter().map(|(key, value)| Some((Key::of(&key)?, value)));
        Some(Val::Map(Map::Owned(Rc::new(entries.collect::<Option<_>>()?))))
    }

    /// The bytes that a function has allocated for its result.
    pub(crate) fn owned_bytes(&self) -> usize {
        match self {
            Val::String(Str::Shared(text)) => text.len(),
            Val::Bytes(bytes) => bytes.len(),
            Val::List(List::Owned(items) | List::Typed { items, .. }) => items.len() * size_of::<Val<'_>>(),
            _ => 0,
        }
    }

    /// Whether created lists and maps nest deeper than `levels`; also true if they cannot be walked within the work limit.
    pub(crate) fn nests_deeper(&self, levels: u32) -> bool {
        if crate::work::step(1).is_none() {
            return true;
        }
        let deeper = |value: &Val<'a>| levels == 0 || value.nests_deeper(levels - 1);
        match self {
            Val::List(List::Owned(items) | List::Typed { items, .. }) => items.iter().any(deeper),
            Val::Map(Map::Owned(map) | Map::Made(_, map)) => map.values().any(deeper),
            Val::Optional(Some(value)) => deeper(value),
            _ => false,
        }
    }

    /// Whether `==` is true. Where it is an error, such as between a declared object and a string, this is false.
    pub fn equals(&self, other: &Val<'a>) -> bool {
        equal(self, other).unwrap_or(false)
    }

    pub(crate) fn some(value: Val<'a>) -> Val<'a> {
        Val::Optional(Some(Rc::new(value)))
    }

    pub(crate) fn opaque(value: Opaque) -> Val<'a> {
        Val::Opaque(Rc::new(value))
    }

    /// The type at run time, at which lists and maps do not know the types of their items.
    pub fn type_of(&self) -> Type {
        match self {
            Val::Null => Type::Null,
            Val::Bool(_) => Type::Bool,
            Val::Int(_) => Type::Int,
            Val::Uint(_) => Type::Uint,
            Val::Double(_) => Type::Double,
            Val::String(_) => Type::String,
            Val::Bytes(_) => Type::Bytes,
            Val::Duration(_) => Type::Duration,
            Val::Timestamp(_) => Type::Timestamp,
            Val::List(_) => Type::list(Type::Dyn),
            Val::Map(Map::Made(name, _)) => Type::Made(name.clone()),
            Val::Map(_) => Type::map(Type::Dyn, Type::Dyn),
            Val::Type(_) => Type::Type(None),
            Val::Optional(_) => Type::optional(Type::Dyn),
            Val::Opaque(opaque) => opaque.type_of(),
            Val::Authorization(part) => part.type_of(),
            Val::Preserved(_) => Type::Dyn,
        }
    }

    /// The Go type that cel-go names in messages.
    pub(crate) fn go_type(&self) -> &'static str {
        match self {
            Val::Null => "types.Null",
            Val::Bool(_) => "types.Bool",
            Val::Int(_) => "types.Int",
            Val::Uint(_) => "types.Uint",
            Val::Double(_) => "types.Double",
            Val::String(_) => "types.String",
            Val::Bytes(_) => "types.Bytes",
            Val::Duration(_) => "types.Duration",
            Val::Timestamp(_) => "types.Timestamp",
            Val::List(_) => "*types.baseList",
            Val::Map(_) => "*types.baseMap",
            Val::Type(_) => "*types.Type",
            Val::Optional(_) => "*types.Optional",
            Val::Opaque(opaque) => match &**opaque {
                Opaque::Quantity(_) | Opaque::Sum(_) => "cel.Quantity",
                Opaque::Url(_) => "cel.URL",
                Opaque::Ip(_) => "cel.IP",
                Opaque::Cidr(_) => "cel.CIDR",
                Opaque::Semver(_) => "cel.Semver",
                Opaque::Format(_) => "cel.Value",
            },
            Val::Authorization(_) => "cel.Value",
            Val::Preserved(_) => "*common.unknownPreserved",
        }
    }

    /// The size from which costs are computed: characters, bytes or entries; 1 for values without a size.
    pub(crate) fn cost_size(&self) -> u64 {
        match self {
            Val::String(s) => {
                if s.is_ascii() {
                    s.len() as u64
                } else {
                    s.chars().count() as u64
                }
            }
            Val::Bytes(b) => b.len() as u64,
            Val::List(list) => list.len() as u64,
            Val::Map(map) => map.len() as u64,
            Val::Optional(Some(value)) => value.cost_size(),
            Val::Opaque(opaque) => match &**opaque {
                Opaque::Ip(ip) => ip.bytes_len(),
                Opaque::Cidr(network) => u64::from(network.bits).div_ceil(8),
                _ => 1,
            },
            _ => 1,
        }
    }
}
