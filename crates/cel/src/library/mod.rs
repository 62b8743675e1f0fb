//! The libraries: declarations for the checker, functions for the evaluator.
//!
//! `functions` lists all functions, each other file implements some of them.
//! Functions never panic, charge nothing (see `cost`), and do not depend on their caller.

/// Functions of a library, each with what it returns for the arguments that it accepts. For others it has no overload.
macro_rules! overloads {
    ($($(#[$doc:meta])* $name:ident: $($args:pat $(if $condition:expr)? => $result:expr),+;)*) => {$(
        $(#[$doc])*
        #[allow(unreachable_patterns, reason = "some functions accept any arguments")]
        pub fn $name<'a>(args: &[Val<'a>]) -> Result<Val<'a>> {
            match args {
                $($args $(if $condition)? => $result,)+
                _ => Err(Error::overload()),
            }
        }
    )*};
}

pub mod authorization;
pub(crate) mod costs;
pub(crate) mod format;
mod functions;
pub(crate) mod lists;
pub(crate) mod math;
pub(crate) mod net;
pub(crate) mod progress;
pub(crate) mod quantity;
pub(crate) mod semver;
pub(crate) mod standard;
pub(crate) mod string_format;
pub(crate) mod strings;
pub(crate) mod time;
pub(crate) mod urls;

use self::costs::{Costs, UNIT};
use self::functions::Definition;
use crate::decl::types::{Param, Type};
use crate::value::{Result, Val};
use std::collections::HashMap;
use std::sync::OnceLock;

/// The implementation of a function.
pub(crate) type Function = for<'a> fn(&[Val<'a>]) -> Result<Val<'a>>;

/// A library of functions and macros.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
#[repr(u8)]
pub enum Library {
    /// The functions and operators of the language itself.
    Standard,
    /// cel-go's strings: `charAt`, `indexOf`, `split`, `join`, …
    Strings,
    /// `format` as Kubernetes keeps it.
    StringsFormat,
    /// `reverse` of strings.
    StringsReverse,
    /// `format` of the current language specification; Kubernetes has an older version.
    StringsLatest,
    /// `authorizer` (KEP-3488).
    Authorization,
    /// `find` and `findAll` of Kubernetes.
    Regex,
    /// cel-go's `regex.extract`, `regex.replace`, ….
    RegexExtension,
    /// `url` and `isURL`.
    Urls,
    /// `sum`, `min`, `isSorted`, `indexOf`, … of lists.
    KubernetesLists,
    /// `includes` of lists and values.
    Includes,
    /// Optional values: `?.`, `[?_]`, `optional.of`, ….
    Optionals,
    /// `quantity` and `isQuantity`.
    Quantity,
    /// cel-go's `sets.contains`, `sets.equivalent`, `sets.intersects`.
    Sets,
    /// `ip`, `cidr`, `isIP`, ….
    Net,
    /// Named formats: `format.dns1123Label().validate(…)`.
    Format,
    /// Macros with two variables: `all(k, v, …)`.
    TwoVariables,
    /// `semver` and `isSemver`.
    Semver,
    /// cel-go's lists: `sort`, `distinct`, `flatten`, `lists.range`, ….
    Lists,
    /// cel-go's `base64.encode` and `base64.decode`.
    Encoders,
    /// cel-go's `math.greatest`, `math.bitAnd`, ….
    Math,
    /// `cel.bind`.
    Bindings,
    /// Mutations: messages of type `Object` and `JSONPatch`, `jsonpatch.escapeKey` (KEP-3962).
    JsonPatch,
    /// Functions that cel-go had until Kubernetes 1.36: `duration` of an integer, `or` and `orValue` of a value that is not optional,
    /// and type parameters in the types of `list` and `map`.
    Legacy,
    /// Pintle's own functions: `hash`, `merge`, `scaledUp`, `address`, `nextTime`, ….
    Progress,
}

/// A set of libraries.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Libraries(u32);

impl Libraries {
    /// The set of these libraries.
    pub const fn of(libraries: &[Library]) -> Libraries {
        let mut bits = 0;
        let mut i = 0;
        while i < libraries.len() {
            bits |= 1 << libraries[i] as u8;
            i += 1;
        }
        Libraries(bits)
    }

    /// The set with one more library.
    #[must_use]
    pub fn with(self, library: Library) -> Libraries {
        Libraries(self.0 | 1 << library as u8)
    }

    /// Whether the library is in the set.
    pub fn has(self, library: Library) -> bool {
        self.0 & (1 << library as u8) != 0
    }

    /// All libraries, each in its latest version.
    pub const LATEST: Libraries = Libraries(
        !(1 << Library::StringsFormat as u8
            | 1 << Library::JsonPatch as u8
            | 1 << Library::Legacy as u8
            | 1 << Library::Progress as u8),
    );
}

/// Number of an overload in the registry.
pub(crate) type OverloadIndex = u16;

/// A function with certain types of parameters.
#[derive(Debug)]
pub(crate) struct Overload {
    pub id: &'static str,
    pub function: &'static str,
    pub member: bool,
    pub params: Vec<Type>,
    pub result: Type,
    /// The letters of its type parameters.
    pub letters: Vec<u8>,
    pub library: Library,
    pub definition: &'static Definition,
}

/// All overloads of all libraries.
#[derive(Debug)]
pub(crate) struct Registry {
    pub overloads: Vec<Overload>,
    pub functions: HashMap<&'static str, Vec<OverloadIndex>>,
}

pub(crate) fn registry() -> &'static Registry {
    static REGISTRY: OnceLock<Registry> = OnceLock::new();
    REGISTRY.get_or_init(|| {
        let mut registry = Registry { overloads: vec![], functions: HashMap::new() };
        for (library, definitions) in functions::ALL {
            definitions.iter().for_each(|definition| registry.declare(*library, definition));
        }
        registry
    })
}

impl Registry {
    fn declare(&mut self, library: Library, definition: &'static Definition) {
        let name = definition.name;
        let (member, function) = name.strip_prefix('.').map_or((false, name), |rest| (true, rest));
        for overload in definition.overloads {
            let mut parts = overload.split(" | ");
            let mut part = || parts.next().unwrap_or_default();
            let (id, params, result) = (part(), part(), part());
            let params: Vec<Type> = params.split("; ").filter(|p| !p.is_empty()).map(Type::parse).collect();
            let result = Type::parse(result);
            let mut letters = vec![];
            params.iter().chain([&result]).for_each(|t| collect_letters(t, &mut letters));
            let index = self.overloads.len() as OverloadIndex;
            self.overloads.push(Overload { id, function, member, params, result, letters, library, definition });
            self.functions.entry(function).or_default().push(index);
        }
    }

    /// The costs of a function if the called overload is not known.
    pub fn costs_of(&self, function: &str) -> &'static Costs {
        let mut overloads = self.functions.get(function).into_iter().flatten().map(|index| self.overload(*index));
        let general = overloads.find(|overload| overload.definition.is_general);
        general.map_or(&UNIT, |overload| &overload.definition.costs)
    }

    pub fn overload(&self, index: OverloadIndex) -> &Overload {
        &self.overloads[usize::from(index)]
    }
}

fn collect_letters(t: &Type, letters: &mut Vec<u8>) {
    match t {
        Type::Param(Param::Named(letter)) if !letters.contains(letter) => letters.push(*letter),
        Type::List(item) | Type::Type(Some(item)) | Type::Wrapper(item) => collect_letters(item, letters),
        Type::Map(pair) => {
            collect_letters(&pair.0, letters);
            collect_letters(&pair.1, letters);
        }
        Type::Opaque(_, params) => params.iter().for_each(|p| collect_letters(p, letters)),
        _ => {}
    }
}

/// Whether cel-go has an operation for the type of an operand, whatever the other operands are. If not, the error names
/// the function. Types with methods count as having all operations.
pub(crate) fn has_operation(function: &str, operand: &Val<'_>) -> bool {
    if matches!(operand, Val::String(_) | Val::Duration(_) | Val::Timestamp(_)) {
        return true;
    }
    match function {
        "_+_" => matches!(operand, Val::Int(_) | Val::Uint(_) | Val::Double(_) | Val::Bytes(_) | Val::List(_)),
        "_-_" | "_*_" | "_/_" => matches!(operand, Val::Int(_) | Val::Uint(_) | Val::Double(_)),
        "_%_" => matches!(operand, Val::Int(_) | Val::Uint(_)),
        "-_" => matches!(operand, Val::Int(_) | Val::Double(_) | Val::Bool(_)),
        "_<_" | "_<=_" | "_>_" | "_>=_" => {
            matches!(operand, Val::Int(_) | Val::Uint(_) | Val::Double(_) | Val::Bool(_) | Val::Bytes(_))
        }
        "size" => matches!(operand, Val::Bytes(_) | Val::List(_) | Val::Map(_)),
        "sort" => matches!(operand, Val::List(_)),
        "matches" => false,
        _ => true,
    }
}

/// Whether cel-go calls a function whatever the types of its arguments are.
pub(crate) fn checks_itself(function: &str) -> bool {
    matches!(function, "sort" | "@sortByAssociatedKeys" | "flatten")
}

/// Whether a function checks the types of its arguments itself, as cel-go's standard functions do.
pub(crate) fn is_plain(function: &str) -> bool {
    !function.as_bytes()[0].is_ascii_alphabetic()
        || matches!(
            function,
            "size" | "type" | "dyn" | "sort" | "matches" | "contains" | "startsWith" | "endsWith" | "cel.@mapInsert"
        )
}
