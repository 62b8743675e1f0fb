//! CEL expressions that select devices. This server compiles them; schedulers evaluate them.

use std::sync::{Arc, LazyLock};

use cel::{Decl, Environment, Library, Selected, Type};
use machinery::field::FieldError;

use crate::admissionregistration::expressions::{MINOR, type_name};
use crate::devices::fields::Novelty;
use schema::at::At;

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
pub fn check(object: At, novelty: Novelty) {
    if !object.field("selectors").max_items(SELECTORS_MAX) {
        return;
    }
    for selector in object.items_of("selectors") {
        let cel = selector.field("cel");
        if !cel.is_given() {
            cel.required("");
        } else if novelty == Novelty::New {
            expression(cel.field_or_empty("expression"));
        }
    }
}

fn expression(at: At) {
    if at.as_text().len() > EXPRESSION_BYTES_MAX {
        return at.too_long(EXPRESSION_BYTES_MAX);
    }
    let checked = match ENVIRONMENT.check(at.as_text()) {
        Ok(checked) => checked,
        Err(error) => return at.invalid(format!("compilation failed: {error}")),
    };
    let returned = checked.output_type();
    if !matches!(returned, Type::Bool | Type::Any) {
        return at.invalid(format!("must evaluate to bool or the unknown type, not {}", type_name(returned)));
    }
    if let Err(error) = cel::Program::new(&ENVIRONMENT, &checked) {
        return at.push(FieldError::internal(&at.path(), format!("program instantiation failed: {error}")));
    }
    at.forbidden_if(cel::estimate(&ENVIRONMENT, &checked).max > COST_MAX, "too complex, exceeds cost limit");
}

/// The environment of selectors: the variable `device`, with attributes and capacities by domain and name.
static ENVIRONMENT: LazyLock<Environment> = LazyLock::new(|| {
    let text = |bytes| Decl::of_type(Type::String, bytes);
    let by_name = |value: &Arc<Decl>, selected| {
        let names = Decl::entries(&text(IDENTIFIER_BYTES_MAX), value, ENTRIES_MAX, selected);
        Decl::entries(&text(DOMAIN_BYTES_MAX), &names, ENTRIES_MAX, Selected::Unsized)
    };
    let fields = [
        ("driver", text(DOMAIN_BYTES_MAX)),
        ("allowMultipleAllocations", Decl::of_type(Type::Bool, 1)),
        ("attributes", by_name(&Decl::of_type(Type::Any, VALUE_BYTES_MAX), Selected::Sized)),
        ("capacity", by_name(&Decl::of_type(Type::Named("kubernetes.Quantity"), 0), Selected::Unsized)),
    ];
    let mut environment =
        Environment::kubernetes(MINOR).declared("device", &Decl::object("kubernetes.DRADevice", &fields));
    environment.libraries = environment.libraries.with(Library::Bindings);
    environment
});

#[cfg(test)]
mod tests {
    use machinery::{Release, Value};

    use super::*;
    use schema::at::errors_of;

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
            let errors = errors_of(&Value::from(text), None, Release::NEWEST, expression);
            let found = errors.first().map(ToString::to_string);
            match want {
                None => assert_eq!(found, None, "{text}"),
                Some(want) => assert!(found.as_ref().is_some_and(|found| found.contains(want)), "{text}: {found:?}"),
            }
        }
    }
}
