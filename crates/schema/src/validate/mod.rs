//! Validation of values: the schema, then scale paths, embedded resources, list types and rules.
//!
//! Pipeline: after admission has changed the object for the last time. On update, errors of values that the old object
//! has too are dropped. Invariants: nothing is allocated for a valid value; the order of errors is that of upstream, with
//! properties sorted by name.

mod node;
mod number;
mod scale;

use machinery::{FieldError, FieldPath, Release, Value};

use crate::path::Path;
use crate::program::{Node, Schema};
use crate::report::Report;
use crate::{embedded, lists, rules};

/// Errors found before: of the metadata, or of the type, which hide those of the schema.
#[derive(Debug, Default)]
pub enum Prior {
    #[default]
    Nothing,
    Metadata(Vec<FieldError>),
    TypeMeta(Vec<FieldError>),
}

impl Prior {
    fn hides_schema(&self) -> bool {
        matches!(self, Prior::TypeMeta(_))
    }

    fn into_errors(self) -> Vec<FieldError> {
        match self {
            Prior::Nothing => vec![],
            Prior::Metadata(errors) | Prior::TypeMeta(errors) => errors,
        }
    }
}

/// All errors, and warnings about errors that are tolerated.
#[derive(Debug, Default)]
pub struct Outcome {
    pub errors: Vec<FieldError>,
    pub warnings: Vec<String>,
}

impl Schema {
    /// The errors of an object that is new or replaces `old`.
    pub fn validate(&self, new: &Value, old: Option<&Value>) -> Vec<FieldError> {
        self.validate_after(Prior::Nothing, new, old).errors
    }

    /// As [`Schema::validate`], for one response with the errors that were found before.
    pub fn validate_after(&self, prior: Prior, new: &Value, old: Option<&Value>) -> Outcome {
        let program = &*self.program;
        let hides_schema = prior.hides_schema();
        let mut errors = prior.into_errors();
        if !hides_schema {
            errors.extend(schema_errors(&program.root, new, old, "", program.options.release));
            scale::validate_spec(program.options.scale.as_ref(), new, &mut errors);
            scale::validate_status(program.options.scale.as_ref(), new, &mut errors);
        }
        if program.structural {
            let root = &program.root;
            embedded::validate(new, root, root.schema_of(), &Path::Root, program.options.release, &mut errors);
            self.validate_lists(new, old, &mut errors);
        }
        self.run_rules(new, old, errors)
    }

    /// The errors of a write to the status subresource, for which only the schema of `status` counts.
    pub fn validate_status(&self, prior: Prior, new: &Value, old: &Value) -> Outcome {
        let program = &*self.program;
        let hides_schema = prior.hides_schema();
        let mut errors = prior.into_errors();
        if !hides_schema {
            if let (Some(node), Some(status)) = (program.root.field("status"), new.get("status")) {
                let old_status = if program.structural { old.get("status") } else { None };
                // a null status where there was none is not a change, and errors of unchanged values are tolerated
                let is_tolerated = program.structural && status.is_null() && old_status.is_none_or(Value::is_null);
                if !is_tolerated {
                    errors.extend(schema_errors(node, status, old_status, "status", program.options.release));
                }
            }
            scale::validate_status(program.options.scale.as_ref(), new, &mut errors);
        }
        if program.structural {
            self.validate_lists(new, Some(old), &mut errors);
        }
        self.run_rules(new, Some(old), errors)
    }

    fn validate_lists(&self, new: &Value, old: Option<&Value>, errors: &mut Vec<FieldError>) {
        let root = &self.program.root;
        let before = errors.len();
        lists::validate(new, root, &Path::Root, errors);
        let Some(old) = old.filter(|_| errors.len() > before) else { return };
        let mut tolerated = vec![];
        lists::validate(old, root, &Path::Root, &mut tolerated);
        if !tolerated.is_empty() {
            errors.truncate(before);
        }
    }

    fn run_rules(&self, new: &Value, old: Option<&Value>, mut errors: Vec<FieldError>) -> Outcome {
        let Some(compiled) = &self.program.rules else { return Outcome { errors, warnings: vec![] } };
        if errors.iter().any(blocks_rules) {
            let detail = "some validation rules were not checked because the object was invalid; \
                          correct the existing errors to complete validation";
            errors.push(FieldError::invalid(&FieldPath::new("<nil>"), &Value::Null, detail));
            return Outcome { errors, warnings: vec![] };
        }
        let (found, warnings) = rules::validate(compiled, new, old, &self.program.root);
        errors.extend(found);
        Outcome { errors, warnings }
    }
}

fn blocks_rules(error: &FieldError) -> bool {
    use machinery::field::FieldErrorKind as Kind;
    matches!(error.kind, Kind::NotSupported | Kind::Required | Kind::TooLong | Kind::TooMany | Kind::TypeInvalid)
}

/// The schema errors of a value at `node`. The old value is only correlated if there are any, since that is expensive.
pub(crate) fn schema_errors(
    node: &Node,
    new: &Value,
    old: Option<&Value>,
    prefix: &str,
    release: Release,
) -> Vec<FieldError> {
    let check = |old| {
        let mut report = Report::new(release);
        cel::bounded_patterns(|| node::check(node, new, old, &Path::Root, &mut report));
        report
    };
    let report = check(None);
    let report = if report.is_valid() || old.is_none() { report } else { check(old) };
    report.into_errors(prefix)
}

/// The errors of an object's type, which Kubernetes reports before all others; see [`Prior::TypeMeta`].
pub fn type_meta_errors(object: &Value, api_version: &str, kind: &str) -> Vec<FieldError> {
    let mut errors = vec![];
    for (key, want) in [("kind", kind), ("apiVersion", api_version)] {
        let given = object.str_at(&[key]);
        if given != want {
            let detail = format!("must be {want}");
            errors.push(FieldError::invalid(&FieldPath::new(key), &Value::from(given), detail));
        }
    }
    errors
}

#[cfg(test)]
mod tests;
