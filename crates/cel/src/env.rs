//! Environments: which variables, functions and syntax expressions may use.

use crate::decl::Decl;
use crate::decl::types::Type;
use crate::library::{Libraries, Library};
use crate::parser::Syntax;
use crate::parser::macros::Known;
use machinery::Text;
use std::sync::Arc;

/// A variable that expressions may use.
#[derive(Clone, Debug)]
pub struct Variable {
    /// The name, which may have dots.
    pub name: Text,
    /// The type that the checker gives it.
    pub r#type: Type,
    /// The schema that bounds the sizes from which costs are estimated.
    pub decl: Option<Arc<Decl>>,
}

/// The variables, functions and syntax that expressions may use.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Environment {
    /// The libraries whose functions and macros may be used.
    pub libraries: Libraries,
    /// The variables, in the order in which programs keep their values.
    pub variables: Vec<Variable>,
    /// Whether elements of list and map literals must be of one type.
    pub homogeneous_literals: bool,
    /// Whether literals given to `matches`, `duration`, `timestamp` and `format` are checked.
    pub checked_literals: bool,
    /// Whether identifiers may be in backquotes.
    pub quoted_identifiers: bool,
    /// The path of the schema node that a rule belongs to; error messages name types from there on.
    pub scope: Text,
    /// The namespace that names are resolved in: in `a.b`, `x` is `a.b.x`, `a.x` or `x`.
    pub container: Text,
}

/// The names of the variables of an environment, by which an [`Activation`](crate::Activation) is filled. Cheap to clone.
#[derive(Clone, Debug, Default)]
pub struct VariableNames(Arc<[Text]>);

impl VariableNames {
    pub(crate) fn as_slice(&self) -> &[Text] {
        &self.0
    }
}

/// Libraries, with the minor release of Kubernetes 1 that introduced them.
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
    (37, Library::Includes),
];

impl Environment {
    /// The names of the variables, for activations.
    #[must_use]
    pub fn variable_names(&self) -> VariableNames {
        VariableNames(self.variables.iter().map(|variable| variable.name.clone()).collect())
    }

    /// The libraries and rules of Kubernetes 1.`minor`, without variables.
    ///
    /// See <https://kubernetes.io/docs/reference/using-api/cel/> for the libraries of each release.
    pub fn kubernetes(minor: u32) -> Environment {
        let known = SINCE.iter().filter(|(since, _)| *since <= minor);
        Environment {
            libraries: known.fold(Libraries::default(), |all, (_, library)| all.with(*library)),
            variables: vec![],
            homogeneous_literals: true,
            checked_literals: minor >= 29,
            // since Kubernetes 1.37; new expressions are compiled for the release before the served one
            quoted_identifiers: minor >= 36,
            scope: Text::default(),
            container: Text::default(),
        }
    }

    /// The language of <https://github.com/google/cel-spec> with all libraries in their latest versions, without variables.
    pub fn standard() -> Environment {
        Environment {
            libraries: Libraries::LATEST,
            homogeneous_literals: false,
            checked_literals: false,
            quoted_identifiers: true,
            ..Environment::kubernetes(0)
        }
    }

    /// [`Environment::standard`] with the functions that expressions of `Progress` may use.
    pub fn progress() -> Environment {
        let standard = Environment::standard();
        Environment { libraries: standard.libraries.with(Library::Progress), ..standard }
    }

    /// Adds the types of mutations: `Object`, `JSONPatch` and `jsonpatch.escapeKey` (KEP-3962).
    #[must_use]
    pub fn with_mutations(mut self) -> Environment {
        self.libraries = self.libraries.with(Library::JsonPatch);
        self
    }

    /// Follows cel-go as it was until Kubernetes 1.36.
    #[must_use]
    pub fn with_legacy(mut self) -> Environment {
        self.libraries = self.libraries.with(Library::Legacy);
        self
    }

    /// Adds a variable.
    #[must_use]
    pub fn variable(mut self, name: &str, r#type: Type) -> Environment {
        self.variables.push(Variable { name: Text::new(name), r#type, decl: None });
        self
    }

    /// Adds a variable whose type and sizes come from a schema.
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
            quoted_identifiers: self.quoted_identifiers,
            macros: Known {
                standard: true,
                two_variables: self.libraries.has(Library::TwoVariables),
                optionals,
                lists: self.libraries.has(Library::Lists),
                bindings: self.libraries.has(Library::Bindings),
                math: self.libraries.has(Library::Math),
            },
        }
    }
}
