//! Validation rules of custom resources: `x-kubernetes-validations`.
//!
//! [`Rules::compile`] checks and compiles the rules of one version's schema and estimates their cost, as kube-apiserver
//! does when a CustomResourceDefinition is written. [`Rules::validate`] evaluates them on an object. Texts, paths and
//! numbers are those of Kubernetes; see
//! <https://kubernetes.io/docs/tasks/extend-kubernetes/custom-resources/custom-resource-definitions/#validation-rules>.

mod define;
mod explain;
mod path;
mod run;

use crate::decl::{Decl, SchemaOf};
pub use crate::limits::CALL_COST_MAX;
pub use crate::limits::DEFINITION_COST_MAX;
pub use crate::limits::EXPRESSION_COST_MAX;
pub use crate::limits::MESSAGE_BYTES_MAX;
pub use crate::limits::OBJECT_COST_MAX;
use crate::node::Program;
pub use explain::{Bound, Estimate, Explanation};
use machinery::value::find_sorted;
use machinery::{FieldError, FieldPath, Release, Text, Value};
pub use path::{Notation, resolve_field_path};
use std::sync::{Arc, LazyLock};

/// How the rules of a CRD are checked.
///
/// ```
/// let mut options = cel::rules::Options::default();
/// options.expensive_expressions = true;
/// ```
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Options {
    /// The release whose functions new expressions may use.
    pub new_minor: u32,
    /// The release whose functions stored expressions may use.
    pub stored_minor: u32,
    /// Texts of rules and message expressions of the stored CRD.
    pub stored: Vec<Text>,
    /// Whether expressions above the cost limit are accepted, as when the stored schema is unchanged.
    pub expensive_expressions: bool,
    /// Whether the parts of estimates are returned, for an explanation.
    pub parts: bool,
}

impl Default for Options {
    fn default() -> Options {
        Options::of(Release::default())
    }
}

impl Options {
    /// Options for a release. New expressions may use only the functions of the release before, so that a server can be
    /// downgraded.
    pub fn of(release: Release) -> Options {
        Options {
            new_minor: release.minor() - 1,
            stored_minor: release.minor(),
            stored: vec![],
            expensive_expressions: false,
            parts: false,
        }
    }
}

/// The rules of one version of a CRD.
#[derive(Debug)]
pub struct Rules {
    root: RuleNode,
}

/// A schema node with rules, or with descendants that have rules.
#[derive(Debug)]
struct RuleNode {
    decl: Arc<Decl>,
    schema_type: Text,
    /// If set, no rule of the node can be evaluated, and a validation reports this error instead.
    broken: Option<&'static str>,
    rules: LazyLock<Vec<Rule>, CompileRules>,
    /// Sorted by name, as the next list is.
    properties: Vec<(Text, RuleNode)>,
    /// Fields that the validation of an object skips, as upstream does for fields without a type. Only [`RulesAt::field`] reaches
    /// them, to test their defaults.
    own_properties: Vec<(Text, RuleNode)>,
    additional: Option<Box<RuleNode>>,
    items: Option<Box<RuleNode>>,
    /// The keys by which items of a list are correlated with old ones.
    list_keys: Option<Vec<Text>>,
    correlatable_map: bool,
}

/// Compiles the rules of a node, when a value is first tested by them: most servers never see an object of most kinds.
type CompileRules = Box<dyn FnOnce() -> Vec<Rule> + Send>;

#[derive(Debug)]
struct Rule {
    /// The name of the rule in messages: its message or its text.
    name: String,
    message: Option<String>,
    message_expression: Text,
    reason: Reason,
    field_path: String,
    optional_old_self: bool,
    uses_old_self: bool,
    program: Result<Program, String>,
    message_program: Option<Program>,
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Reason {
    Invalid,
    Forbidden,
    Required,
    Duplicate,
}

/// A node of a schema, by which values before and after an update are compared.
pub trait SchemaNode {
    /// The node of a field; `None` if the schema does not declare it.
    fn field(&self, name: &str) -> Option<&dyn SchemaNode>;
    /// The node of the items of a list.
    fn items(&self) -> Option<&dyn SchemaNode>;
    /// Whether an update has left the value of the node unchanged.
    fn unchanged(&self, new: &Value, old: &Value) -> bool;
}

/// Options of a validation.
#[derive(Clone, Copy, Default)]
#[non_exhaustive]
pub struct Validation<'a> {
    /// The object before an update.
    pub old: Option<&'a Value>,
    /// The root node, if failures of unchanged parts are only warnings (ratcheting).
    pub ratcheting: Option<&'a dyn SchemaNode>,
    /// Cost that may be spent; `None`: [`OBJECT_COST_MAX`].
    pub cost_max: Option<u64>,
    /// The path of the value, with which the paths of its errors begin; `None` for an object.
    pub path: Option<&'a FieldPath>,
}

impl<'a> Validation<'a> {
    /// The validation of an object that is created, or updated from `old`.
    #[must_use]
    pub fn of(old: Option<&'a Value>) -> Validation<'a> {
        Validation { old, ..Validation::default() }
    }

    /// Turns failures of unchanged parts into warnings; `place` is the root node.
    #[must_use]
    pub fn ratcheting(self, place: &'a dyn SchemaNode) -> Validation<'a> {
        Validation { ratcheting: Some(place), ..self }
    }

    /// Bounds the cost that may be spent.
    #[must_use]
    pub fn cost_max(self, cost: u64) -> Validation<'a> {
        Validation { cost_max: Some(cost), ..self }
    }

    /// Places the value at a path.
    #[must_use]
    pub fn at(self, path: &'a FieldPath) -> Validation<'a> {
        Validation { path: Some(path), ..self }
    }
}

/// The result of a validation.
#[derive(Debug, Default)]
#[non_exhaustive]
pub struct Verdict {
    /// Failed rules and rules that could not be evaluated, in the order of the schema.
    pub errors: Vec<FieldError>,
    /// Failures in unchanged parts, as `Warning` headers show them.
    pub warnings: Vec<String>,
    /// Cost that was spent.
    pub cost: u64,
}

/// The errors of the rules of a schema.
#[derive(Debug, Default)]
#[non_exhaustive]
pub struct RuleErrors {
    /// The errors of their fields, such as an empty message, which kube-apiserver reports among those of the schema.
    pub fields: Vec<FieldError>,
    /// The errors of their expressions: what does not compile, and what may be too expensive.
    pub expressions: Vec<FieldError>,
}

/// The rules at and below a node of a schema.
#[derive(Clone, Copy)]
pub struct RulesAt<'a>(&'a RuleNode);

impl<'a> RulesAt<'a> {
    /// The rules of a field, including one that the validation of an object skips.
    pub fn field(self, name: &str) -> Option<RulesAt<'a>> {
        let RuleNode { properties, own_properties, .. } = self.0;
        let of =
            |fields: &'a [(Text, RuleNode)]| Some(RulesAt(&fields[find_sorted(fields, name, |(field, _)| field)?].1));
        of(properties).or_else(|| of(own_properties))
    }

    /// The rules of the items of a list.
    pub fn items(self) -> Option<RulesAt<'a>> {
        self.0.items.as_deref().map(RulesAt)
    }

    /// Runs the rules on a value.
    pub fn validate(self, value: &Value, validation: &Validation<'_>) -> Verdict {
        run::validate(self.0, value, validation)
    }
}

impl Rules {
    /// The rules of a schema that has been accepted, with the functions of a release; `None` if there are none. They are compiled
    /// when values are tested. Rules of a resource can use its `apiVersion`, `kind` and `metadata`.
    pub fn of(schema: &Value, schema_of: SchemaOf, release: Release) -> Option<Rules> {
        define::running(schema, schema_of, release.minor())
    }

    /// Checks the rules of a schema of a resource. `path` is the schema's, such as `spec.validation.openAPIV3Schema`.
    pub fn check(schema: &Value, path: &FieldPath, options: &Options) -> RuleErrors {
        define::check(schema, path, options).0
    }

    /// The rules of the root.
    pub fn root(&self) -> RulesAt<'_> {
        RulesAt(&self.root)
    }

    /// Explains the estimated cost of each expression of a schema: its parts, and bounds of the schema that would lower it.
    pub fn explain(schema: &Value, path: &FieldPath) -> Explanation {
        explain::explain(schema, path)
    }

    /// The estimated cost of each expression of a schema that compiles, for all values that it is evaluated for, by the path
    /// of the expression below `path`.
    pub fn costs(schema: &Value, path: &FieldPath) -> Vec<(FieldPath, u64)> {
        let (_, observed) = define::check(schema, path, &Options::default());
        observed.into_iter().map(|one| (one.path, one.cost.saturating_mul(one.times))).collect()
    }

    /// Runs the rules on an object of a request.
    pub fn validate(&self, object: &Value, validation: &Validation<'_>) -> Verdict {
        self.root().validate(object, validation)
    }
}
