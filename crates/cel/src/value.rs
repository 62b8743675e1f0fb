//! Values at run time. They borrow from their inputs where possible.
//!
//! A list or an object of JSON stays JSON, with the declaration of its parts. Lifetime `'a` is that of the inputs and of the
//! program.

pub(crate) mod authorization;
mod configuration;
mod convert;
mod equal;
pub(crate) mod format;
mod native;
pub(crate) mod net;
pub(crate) mod semver;
pub(crate) mod time;

use crate::decl::types::Type;
use crate::decl::{Decl, ListKind, ObjectType};
use machinery::quantity::Quantity;
use machinery::{Text, Value};
use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;

use authorization::Authorization;
use format::Format;
use net::{Cidr, Ip};
use semver::Version;

pub use configuration::{Configuration, Foreign};
pub use convert::from_json;
pub(crate) use convert::untyped;
pub(crate) use equal::{compare, equal, item_key, member_text, members};
pub use native::{misnamed, to_json};

/// Why an evaluation failed. Displayed as by cel-go.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Error(std::sync::Arc<Failure>);

#[derive(Debug, PartialEq, Eq)]
struct Failure {
    text: Text,
    reach: Reach,
}

/// The extent of a failure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Reach {
    /// `&&`, `||` and folds may absorb it.
    Here,
    /// As `Here`; no overload of the function accepts the arguments.
    Overload,
    /// It ends the evaluation.
    Evaluation,
    /// The budget is used up.
    Budget,
}

impl Error {
    #[cold]
    pub(crate) fn new(text: impl Into<Text>) -> Error {
        Error(std::sync::Arc::new(Failure { text: text.into(), reach: Reach::Here }))
    }

    /// The error of a function whose overloads do not accept the arguments.
    #[cold]
    pub(crate) fn overload() -> Error {
        Error::overload_of("no such overload")
    }

    /// As [`Error::overload`], with a text that names the function.
    #[cold]
    pub(crate) fn overload_of(text: impl Into<Text>) -> Error {
        Error(std::sync::Arc::new(Failure { text: text.into(), reach: Reach::Overload }))
    }

    /// Whether no overload of a function accepts the arguments.
    pub fn is_overload(&self) -> bool {
        self.0.reach == Reach::Overload
    }

    #[cold]
    pub(crate) fn cancelled() -> Error {
        let text = Text::new_static("operation cancelled: actual cost limit exceeded");
        Error(std::sync::Arc::new(Failure { text, reach: Reach::Budget }))
    }

    /// An error that ends the evaluation, where cel-go panics.
    #[cold]
    pub(crate) fn broken(text: &'static str) -> Error {
        Error(std::sync::Arc::new(Failure { text: Text::new_static(text), reach: Reach::Evaluation }))
    }

    /// Whether the error ends the evaluation, so that `&&` and `||` do not absorb it.
    pub(crate) fn is_fatal(&self) -> bool {
        !matches!(self.0.reach, Reach::Here | Reach::Overload)
    }

    /// Whether the evaluation ended because of its cost limit, its work limit or its interrupt.
    pub fn is_cancelled(&self) -> bool {
        self.0.reach == Reach::Budget
    }

    /// The message.
    pub fn text(&self) -> &str {
        &self.0.text
    }
}

impl std::fmt::Display for Error {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.text())
    }
}

impl std::error::Error for Error {}

/// The result of an operation on values.
pub type Result<T> = std::result::Result<T, Error>;

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
    /// Seconds east of Greenwich, for printing only.
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
    /// A value of a library.
    Opaque(Rc<Opaque>),
    /// An intermediate value between an authorizer and its decision.
    Authorization(Rc<Authorization<'a>>),
    /// Data without a type, which can only be compared.
    Preserved(&'a Value),
}

/// Values of the libraries.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum Opaque {
    /// A quantity that was parsed.
    Quantity(Quantity),
    /// The sum or difference of quantities.
    Sum(Quantity),
    /// A URL.
    Url(machinery::url::Url),
    /// An IP address.
    Ip(Ip),
    /// A range of IP addresses.
    Cidr(Cidr),
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
        /// The declaration of the items.
        item: &'a Decl,
        /// How the list compares and adds up.
        kind: &'a ListKind,
    },
    /// A concatenation of lists, one of which has a declaration.
    Typed {
        /// The items.
        items: Rc<Vec<Val<'a>>>,
        /// How the list compares and adds up.
        kind: &'a ListKind,
        /// The members of a set by which it compares, as texts.
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
    /// An object whose values have one declaration.
    Json(&'a machinery::Map, &'a Decl),
    /// Made by an expression.
    Owned(Rc<BTreeMap<Key<'a>, Val<'a>>>),
    /// A constructed message: its type and the fields that are set.
    Made(machinery::Text, Rc<BTreeMap<Key<'a>, Val<'a>>>),
}

/// A key of a map that an expression created.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum Key<'a> {
    /// A `bool`.
    Bool(bool),
    /// An `int`.
    Int(i64),
    /// Only for numbers beyond `i64`: smaller ones are `Int`, as keys are equal across types.
    Uint(u64),
    /// A small unsigned key, which keeps its type.
    SmallUint(i64),
    /// A `string`.
    String(Str<'a>),
}

impl Key<'_> {
    fn rank(&self) -> (u8, i128, &str) {
        match self {
            Key::Bool(b) => (0, i128::from(*b), ""),
            Key::Int(i) | Key::SmallUint(i) => (1, i128::from(*i), ""),
            Key::Uint(u) => (1, i128::from(*u), ""),
            Key::String(s) => (2, 0, s),
        }
    }
}

impl PartialEq for Key<'_> {
    fn eq(&self, other: &Self) -> bool {
        self.rank() == other.rank()
    }
}

impl Eq for Key<'_> {}

impl PartialOrd for Key<'_> {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Key<'_> {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        self.rank().cmp(&other.rank())
    }
}

impl<'a> Key<'a> {
    /// The key for a value; none if it can't be one.
    pub(crate) fn of(value: &Val<'a>) -> Option<Key<'a>> {
        Some(match value {
            Val::Bool(b) => Key::Bool(*b),
            Val::Int(i) => Key::Int(*i),
            Val::Uint(u) => i64::try_from(*u).map_or(Key::Uint(*u), Key::SmallUint),
            Val::String(s) => Key::String(s.clone()),
            Val::Double(d) if d.fract() == 0.0 && d.abs() < 9.3e18 => Key::Int(*d as i64),
            _ => return None,
        })
    }

    pub(crate) fn value(&self) -> Val<'a> {
        match self {
            Key::Bool(b) => Val::Bool(*b),
            Key::Int(i) => Val::Int(*i),
            Key::SmallUint(i) => Val::Uint(*i as u64),
            Key::Uint(u) => Val::Uint(*u),
            Key::String(s) => Val::String(s.clone()),
        }
    }
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

    /// Whether `==` holds: false where it is an error, as between data without a type.
    pub fn equals(&self, other: &Val<'a>) -> bool {
        equal(self, other).unwrap_or(false)
    }

    pub(crate) fn some(value: Val<'a>) -> Val<'a> {
        Val::Optional(Some(Rc::new(value)))
    }

    pub(crate) fn opaque(value: Opaque) -> Val<'a> {
        Val::Opaque(Rc::new(value))
    }

    /// The type at run time; lists and maps don't know their parameters.
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
            Val::Opaque(_) | Val::Authorization(_) => "cel.Value",
            Val::Preserved(_) => "*common.unknownPreserved",
        }
    }

    /// The size from which costs are computed; 1 for values without a size.
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
                Opaque::Cidr(cidr) => cidr.bytes_len(),
                _ => 1,
            },
            _ => 1,
        }
    }
}

impl<'a> List<'a> {
    /// The number of items.
    pub fn len(&self) -> usize {
        match self {
            List::Json { items, .. } => items.len(),
            List::Typed { items, .. } | List::Owned(items) => items.len(),
        }
    }

    /// Whether there are no items.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The item at an index; an error if it does not fit its declaration.
    pub fn get(&self, index: usize) -> Option<Result<Val<'a>>> {
        match self {
            List::Json { items, item, .. } => items.get(index).map(|value| from_json(value, item)),
            List::Typed { items, .. } | List::Owned(items) => items.get(index).map(|value| Ok(value.clone())),
        }
    }

    /// All items.
    pub fn iter(&self) -> impl Iterator<Item = Result<Val<'a>>> + '_ {
        (0..self.len()).filter_map(|i| self.get(i))
    }

    pub(crate) fn kind(&self) -> Option<&'a ListKind> {
        match self {
            List::Json { kind, .. } | List::Typed { kind, .. } => Some(kind),
            List::Owned(_) => None,
        }
    }

    /// All items.
    pub(crate) fn to_vec(&self) -> Result<Vec<Val<'a>>> {
        crate::work::step(self.len()).ok_or_else(Error::cancelled)?;
        match self {
            List::Typed { items, .. } | List::Owned(items) => Ok(items.to_vec()),
            List::Json { .. } => self.iter().collect(),
        }
    }
}

impl<'a> Map<'a> {
    /// The number of entries.
    pub fn len(&self) -> usize {
        match self {
            Map::Object(map, _) | Map::Json(map, _) => map.len(),
            Map::Owned(map) | Map::Made(_, map) => map.len(),
        }
    }

    /// Whether there are no entries.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The value of a string key.
    pub fn get_str(&self, key: &str) -> Option<Result<Val<'a>>> {
        match self {
            Map::Object(map, object) => {
                let field = object.keyed(key)?;
                let value = map.get(&field.name)?;
                if value.is_null() { None } else { Some(from_json(value, &field.decl)) }
            }
            Map::Json(map, value) => map.get(key).map(|v| from_json(v, value)),
            // look up with a key of a shorter lifetime than that of the map
            Map::Owned(map) | Map::Made(_, map) => lookup(map, &Key::String(Str::Borrowed(key))),
        }
    }

    /// The value of a key; an error if a value of that type can't be a key.
    pub(crate) fn get(&self, key: &Val<'a>) -> Option<Result<Val<'a>>> {
        match (self, key) {
            (_, Val::String(s)) => self.get_str(s),
            (Map::Object(..) | Map::Json(..), _) => match self {
                Map::Json(_, decl) if matches!(decl.kind, crate::decl::DeclKind::Json) => None,
                _ => Some(Err(Error::overload())),
            },
            (Map::Owned(map) | Map::Made(_, map), key) => map.get(&Key::of(key)?).map(|v| Ok(v.clone())),
        }
    }

    /// Keys and values; an error for a value that does not fit its declaration.
    pub fn entries(&self) -> Vec<(Val<'a>, Result<Val<'a>>)> {
        let value = |key: &Val<'a>| self.get(key).unwrap_or_else(|| Err(Error::overload()));
        self.keys().into_iter().map(|key| (key.clone(), value(&key))).collect()
    }

    /// The keys, as expressions see them.
    pub(crate) fn keys(&self) -> Vec<Val<'a>> {
        match self {
            Map::Object(map, object) => map
                .keys()
                .filter_map(|key| object.named(key))
                .map(|field| Val::borrowed(field.escaped.as_ref().unwrap_or(&field.name)))
                .collect(),
            Map::Json(map, _) => map.keys().map(|key| Val::borrowed(key)).collect(),
            Map::Owned(map) | Map::Made(_, map) => map.keys().map(Key::value).collect(),
        }
    }
}

fn lookup<'a>(map: &BTreeMap<Key<'a>, Val<'a>>, key: &Key<'_>) -> Option<Result<Val<'a>>> {
    // shortening the lifetimes of the map makes the comparison possible
    fn find<'k, 'a: 'k>(map: &'k BTreeMap<Key<'a>, Val<'a>>, key: &'k Key<'_>) -> Option<&'k Val<'a>> {
        let want = key.rank();
        let range = map.iter();
        if map.len() <= 8 {
            return range.into_iter().find(|(k, _)| k.rank() == want).map(|(_, v)| v);
        }
        let Key::String(s) = key else { return None };
        map.get(&Key::String(Str::Shared((**s).into())))
    }
    find(map, key).map(|value| Ok(value.clone()))
}
