//! The functions of all libraries. Each has its names and types, which are the interface of CEL and of Kubernetes, its
//! implementation and its costs.
//!
//! A line begins with the function, with a dot in front if it is called on a receiver. Its implementation and its costs
//! follow, then `always` if calls whose overload is not known cost the same. The rest of the line is the overloads with
//! their parameters and results, in which a single letter stands for any type. Overloads that differ in more than their
//! types have lines of their own.

use super::costs::Costs;
use super::{Function, Library};

/// A function, or those of its overloads that share an implementation and costs.
#[derive(Debug)]
pub struct Definition {
    pub name: &'static str,
    pub call: Function,
    pub costs: Costs,
    /// Whether calls whose overload is not known cost the same; they cost one unit otherwise.
    pub is_general: bool,
    pub overloads: &'static [&'static str],
}

macro_rules! functions {
    ($library:ident $($name:literal, $call:expr, $costs:expr $(, $always:ident)? => $($overload:literal)* $(($($made:expr),+))?;)*) => {
        pub static $library: &[Definition] = &[$(Definition {
            name: $name,
            call: $call,
            costs: $costs,
            is_general: $crate::library::functions::functions!(@general $($always)?),
            overloads: &[$($overload,)* $($($made),+)?],
        }),*];
    };
    (@general always) => { true };
    (@general) => { false };
}
use functions;

mod extensions;
mod kubernetes;
mod standard;

/// All functions, in the order in which overloads are tried.
pub static ALL: &[(Library, &[Definition])] = &[
    (Library::Standard, standard::STANDARD),
    (Library::Standard, standard::ORDERS),
    (Library::Strings, extensions::STRINGS),
    (Library::Authorization, kubernetes::AUTHORIZATION),
    (Library::Regex, kubernetes::REGEX),
    (Library::Urls, kubernetes::URLS),
    (Library::KubernetesLists, kubernetes::KUBERNETES_LISTS),
    (Library::Includes, kubernetes::INCLUDES),
    (Library::Optionals, standard::OPTIONALS),
    (Library::Quantity, kubernetes::QUANTITY),
    (Library::StringsFormat, extensions::STRINGS_FORMAT),
    (Library::Sets, extensions::SETS),
    (Library::Net, kubernetes::NET),
    (Library::Format, kubernetes::FORMAT),
    (Library::TwoVariables, standard::TWO_VARIABLES),
    (Library::Semver, kubernetes::SEMVER),
    (Library::Lists, extensions::LISTS),
    (Library::Encoders, extensions::ENCODERS),
    (Library::Math, extensions::MATH),
    (Library::RegexExtension, extensions::REGEX_EXTENSION),
    (Library::StringsReverse, extensions::STRINGS_REVERSE),
    (Library::StringsLatest, extensions::STRINGS_LATEST),
    (Library::JsonPatch, kubernetes::JSON_PATCH),
    (Library::Legacy, standard::LEGACY),
    (Library::Progress, extensions::PROGRESS),
];

#[cfg(test)]
mod tests {
    use super::*;
    use crate::decl::types::Type;

    #[test]
    fn every_overload_has_a_name_types_and_a_result() {
        let is_known = |text: &str| match Type::parse(text.to_owned().leak()) {
            Type::Named(name) => name.starts_with("kubernetes."),
            _ => true,
        };
        for overload in ALL.iter().flat_map(|(_, all)| *all).flat_map(|definition| definition.overloads) {
            let [_, params, result] = overload.split(" | ").collect::<Vec<_>>()[..] else { panic!("{overload}") };
            let mut words = params.split("; ").chain([result]).flat_map(|text| text.split(['(', ')', ',']));
            assert!(words.all(|word| is_known(word.trim()) || TYPES.contains(&word.trim())), "{overload}");
        }
    }

    /// The words around the types in a declaration: the names of types with parameters, and the empty text.
    const TYPES: [&str; 5] = ["", "list", "map", "optional_type", "type"];
}
