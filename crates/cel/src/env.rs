//! Environments: which variables, functions and syntax expressions may use.

use crate::decl::Decl;
use crate::library::{Libraries, Library};
use crate::macros::Known;
use crate::parser::Syntax;
use crate::types::Type;
use machinery::Text;
use std::sync::Arc;

/// A variable.
#[derive(Clone, Debug)]
pub struct Variable {
    pub name: Text,
    pub r#type: Type,
    /// Where sizes are known from, for the estimate of costs.
    pub decl: Option<Arc<Decl>>,
}

/// What expressions may use. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Environment {
    pub libraries: Libraries,
    pub variables: Vec<Variable>,
    /// Whether elements of list and map literals must be of one type.
    pub homogeneous_literals: bool,
    /// Whether literals given to `matches`, `duration`, `timestamp` and `format` are checked.
    pub checked_literals: bool,
    /// Names of schema objects are told from this path on.
    pub scope: Text,
    /// Where names are looked for first: in `a.b`, `x` is `a.b.x`, `a.x` or `x`.
    pub container: Text,
}

/// Libraries by the minor release of Kubernetes 1 that brought them.
const SINCE: &[(u32, Library)] = &[
    (0, Library::Standard),
    (0, Library::Strings),
    (0, Library::Regex),
    (0, Library::Urls),
    (0, Library::KubernetesLists),
    (27, Library::Authorization),
    (28, Library::Optionals),
    (28, Library::Quantity),
    (29, Library::StringsFormat),
    (29, Library::Sets),
    (30, Library::Net),
    (31, Library::Format),
    (32, Library::TwoVariables),
    (33, Library::Semver),
    (34, Library::Lists),
];

impl Environment {
    /// What Kubernetes 1.`minor` offers, without variables.
    pub fn kubernetes(minor: u32) -> Environment {
        let known = SINCE.iter().filter(|(since, _)| *since <= minor);
        Environment {
            libraries: known.fold(Libraries::default(), |all, (_, library)| all.with(*library)),
            variables: vec![],
            homogeneous_literals: true,
            checked_literals: minor >= 29,
            scope: Text::default(),
            container: Text::default(),
        }
    }

    /// The language with all extensions.
    pub fn standard() -> Environment {
        Environment {
            libraries: Libraries::LATEST,
            homogeneous_literals: false,
            checked_literals: false,
            ..Environment::kubernetes(0)
        }
    }

    /// The same with what mutations are written with.
    #[must_use]
    pub fn with_mutations(mut self) -> Environment {
        self.libraries = self.libraries.with(Library::JsonPatch);
        self
    }

    /// The same with one more variable.
    #[must_use]
    pub fn variable(mut self, name: &str, r#type: Type) -> Environment {
        self.variables.push(Variable { name: Text::new(name), r#type, decl: None });
        self
    }

    /// The same with one more variable which a schema describes.
    #[must_use]
    pub fn declared(mut self, name: &str, decl: &Arc<Decl>) -> Environment {
        let r#type = decl.exposed.clone().unwrap_or(Type::Dyn);
        self.variables.push(Variable { name: Text::new(name), r#type, decl: Some(decl.clone()) });
        self
    }

    pub(crate) fn syntax(&self) -> Syntax {
        let optionals = self.libraries.has(Library::Optionals);
        Syntax {
            optional: optionals,
            quoted_identifiers: self.libraries == Libraries::LATEST,
            macros: Known {
                two_variables: self.libraries.has(Library::TwoVariables),
                optionals,
                lists: self.libraries.has(Library::Lists),
                bindings: self.libraries.has(Library::Bindings),
                math: self.libraries.has(Library::Math),
            },
        }
    }
}
