//! CEL expressions that select devices. This server compiles them; schedulers evaluate them.

use std::sync::{Arc, LazyLock};

use cel::{Decl, Environment, Library, Type};
use machinery::Value;
use machinery::field::{FieldError, FieldPath};

use super::super::checks::{is_oversized, is_set, items};
use super::super::expressions::{MINOR, type_name};
use super::fields::Errors;

const SELECTORS_MAX: usize = 32;
const EXPRESSION_BYTES_MAX: usize = 10 * 1024;
/// The maximum cost, in CEL's units.
const COST_MAX: u64 = 1_000_000;
const DOMAIN_BYTES_MAX: u64 = 63;
const IDENTIFIER_BYTES_MAX: u64 = 32;
/// The most attributes and capacities of a device.
const ENTRIES_MAX: u64 = 32;
const VALUE_BYTES_MAX: u64 = 64;

/// Validates the selectors of a request or a class. Stored ones are not compiled again.
pub fn check(object: &Value, is_stored: bool, path: &FieldPath, errors: &mut Errors) {
    if is_oversized(object, "selectors", SELECTORS_MAX, path, errors) {
        return;
    }
    for (path, selector) in items(object, "selectors", path) {
        let path = path.child("cel");
        if !is_set(selector, "cel") {
            errors.push(FieldError::required(&path, ""));
        } else if !is_stored {
            errors.extend(expression_error(selector.str_at(&["cel", "expression"]), &path.child("expression")));
        }
    }
}

fn expression_error(text: &str, path: &FieldPath) -> Option<FieldError> {
    if text.len() > EXPRESSION_BYTES_MAX {
        return Some(FieldError::too_long(path, EXPRESSION_BYTES_MAX));
    }
    let invalid = |why: String| Some(FieldError::invalid(path, &Value::from(text), why));
    let checked = match ENVIRONMENT.check(text) {
        Ok(checked) => checked,
        Err(error) => return invalid(format!("compilation failed: {error}")),
    };
    let returned = checked.output_type();
    if !matches!(returned, Type::Bool | Type::Any) {
        return invalid(format!("must evaluate to bool or the unknown type, not {}", type_name(returned)));
    }
    if let Err(error) = cel::Program::new(&ENVIRONMENT, &checked) {
        return Some(FieldError::internal(path, format!("program instantiation failed: {error}")));
    }
    let is_expensive = cel::estimate(&ENVIRONMENT, &checked).max > COST_MAX;
    is_expensive.then(|| FieldError::forbidden(path, "too complex, exceeds cost limit"))
}

/// The environment of selectors: the variable `device`, with attributes and capacities by domain and name.
static ENVIRONMENT: LazyLock<Environment> = LazyLock::new(|| {
    let text = |bytes| Decl::of_type(Type::String, bytes);
    let by_name = |value: &Arc<Decl>, selected| {
        let names = Decl::entries(&text(IDENTIFIER_BYTES_MAX), value, ENTRIES_MAX, selected);
        Decl::entries(&text(DOMAIN_BYTES_MAX), &names, ENTRIES_MAX, false)
    };
    let fields = [
        ("driver", text(DOMAIN_BYTES_MAX)),
        ("allowMultipleAllocations", Decl::of_type(Type::Bool, 1)),
        ("attributes", by_name(&Decl::of_type(Type::Any, VALUE_BYTES_MAX), true)),
        ("capacity", by_name(&Decl::of_type(Type::Named("kubernetes.Quantity"), 0), false)),
    ];
    let mut environment =
        Environment::kubernetes(MINOR).declared("device", &Decl::object("kubernetes.DRADevice", &fields));
    environment.libraries = environment.libraries.with(Library::Bindings);
    environment
});

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn selectors_compile_to_a_bool() {
        let cases = [
            ("device.driver == 'd'", None),
            ("device.attributes['d.example.com'].ready", None),
            ("cel.bind(d, device.attributes['d'], d.a && d.b)", None),
            ("device.capacity['d'].memory.isGreaterThan(quantity('1Gi'))", None),
            ("device.allowMultipleAllocations", None),
            ("'x'", Some("must evaluate to bool or the unknown type, not string")),
            ("device.attributes['d']", Some("not map(string, google.protobuf.Any)")),
            ("", Some("compilation failed: ERROR: <input>:1:0: Syntax error: mismatched input '<EOF>'")),
            ("device.zog", Some("undefined field 'zog'")),
            (
                "device.attributes.all(a, device.attributes.all(b, device.attributes.all(c, device.attributes.all(d, \
                 a + b + c + d != 'x'))))",
                Some("too complex, exceeds cost limit"),
            ),
        ];
        for (text, want) in cases {
            let found = expression_error(text, &FieldPath::new("e")).map(|error| error.to_string());
            match want {
                None => assert_eq!(found, None, "{text}"),
                Some(want) => assert!(found.as_ref().is_some_and(|found| found.contains(want)), "{text}: {found:?}"),
            }
        }
    }
}
