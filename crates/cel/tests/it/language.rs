//! The language outside Kubernetes: a selection of what the conformance tests, which need Go, cover.

use cel::{Environment, Program, Type, Val};

/// The value of an expression as text, or its error.
fn reported(env: &Environment, text: &str) -> String {
    let checked = match env.check(text) {
        Ok(checked) => checked,
        Err(error) => return error.issues.iter().map(|issue| issue.message.as_str()).collect::<Vec<_>>().join("; "),
    };
    value(env, &checked)
}

fn value(env: &Environment, checked: &cel::Checked) -> String {
    let program = match Program::new(env, checked) {
        Ok(program) => program,
        Err(error) => return error.to_string(),
    };
    match program.eval(&[], 1_000_000).result {
        Ok(Val::String(text)) => text.to_string(),
        Ok(value) => cel::to_json(&value).map_or_else(|_| "no JSON".to_owned(), |json| json.to_json()),
        Err(error) => error.to_string(),
    }
}

#[test]
fn expressions_of_the_standard_environment() {
    let env = Environment::standard();
    for (text, want) in [
        ("math.greatest(1, 2u, 3.5)", "3.5"),
        ("math.least([3, 1, 2])", "1"),
        ("math.greatest(-5)", "-5"),
        ("math.greatest()", "math.greatest() requires at least one argument"),
        ("math.least('a')", "math.least() invalid single argument value"),
        ("math.least(1, 'a')", "math.least() simple literal arguments must be numeric"),
        ("math.least(dyn([]))", "math.@min(list) argument must not be empty"),
        ("cel.bind(x, 2, x * x)", "4"),
        ("cel.block([1, cel.index(0) + 1], cel.index(1) * 10)", "20"),
        ("cel.block(1, 2)", "cel.block() requires a list literal and an expression"),
        ("[1, 2].map(cel.iterVar(0, 0), cel.iterVar(0, 0) + 1)", "[2,3]"),
        (
            "'%e %f %s'.format([1052.032911275, 2, {'b': [1.5], 'a': null}])",
            "1.052033e+03 2.000000 {a: null, b: [1.5]}",
        ),
        ("'%d %s'.format([double('-Infinity'), duration('2h')])", "-Infinity 7200s"),
        ("'ta©o©αT'.lastIndexOf('©', 3)", "2"),
        ("'aaa'.lastIndexOf('aa', 5)", "-1"),
        ("'aaa'.lastIndexOf('aa', 2)", "1"),
    ] {
        assert_eq!(reported(&env, text), want, "{text}");
    }
}

#[test]
fn kubernetes_environment_lacks_math_extension() {
    let env = Environment::kubernetes(34);
    assert!(reported(&env, "math.greatest(1, 2)").contains("undeclared reference to 'math'"));
    assert_eq!(reported(&env, "'%e'.format([2.71828])"), "2.718280×10⁰⁰");
}

#[test]
fn names_resolve_in_container_first() {
    let mut env = Environment::standard().variable("a.b.x", Type::Int).variable("x", Type::String);
    env.container = "a.b.c".into();
    for (text, want) in [
        ("x", "int"),
        (".x", "string"),
        ("b.x", "int"),
        (".a.b.x", "int"),
        ("[1.5].map(x, x)[0]", "double"),
        ("[1.5].map(x, .x)[0]", "string"),
    ] {
        assert_eq!(env.check(text).unwrap().output_type().format(""), want, "{text}");
    }
}

#[test]
fn errors_name_operations_that_a_type_does_not_have() {
    let env = Environment::kubernetes(37);
    for (text, want) in [
        ("dyn(null) + 1 == 1", "no such overload: _+_"),
        ("dyn('a') + 1 == 1", "no such overload"),
        ("dyn({}) - 1 == 1", "no such overload: _-_"),
        ("dyn(duration('1s')) * 2 == 1", "no such overload"),
        ("dyn(1.5) % 2 == 1", "no such overload: _%_"),
        ("-dyn(1u) == 1", "no such overload: -_"),
        ("-dyn(duration('1s')) == duration('-1s')", "true"),
        ("dyn([1]) < 1", "no such overload: _<_"),
        ("dyn(true) < 1", "no such overload"),
        ("size(dyn(1)) == 1", "no such overload: size"),
        ("size(dyn(duration('1s'))) == 1", "no such overload"),
        ("{1: 2}[[dyn(null)][size('')]] == 2", "invalid qualifier type: types.Null"),
        ("dyn(1).matches([dyn('a')][size('')])", "no such overload: matches"),
        ("dyn(1).matches('a')", "no such overload"),
        ("dyn(int).matches('^int$')", "true"),
        ("duration(dyn(1)) == duration('1s')", "no such overload: duration(int)"),
        ("dyn(['a']).sum() == 1", "no such overload: sum(list)"),
        ("[dyn(1), dyn('a')].sum() == 1", "no such overload"),
        ("dyn([null]).min() == 1", "no such overload: min(list)"),
        ("dyn([1]).join() == ''", "no such overload: join(list)"),
        ("[dyn('a'), dyn(1)].join() == ''", "join: invalid input: 1"),
        ("dyn(1).sort() == [1]", "no such overload: sort"),
        ("dyn(1).flatten() == [1]", "no such overload: int.flatten()"),
    ] {
        assert_eq!(value(&env, &env.check(text).unwrap()), want, "{text}");
    }
}

#[test]
fn unchecked_expressions_fail_at_evaluation() {
    let env = Environment::standard();
    for (text, want) in [
        ("true || nothing", "true"),
        ("nothing && false", "false"),
        ("nothing", "no such attribute: nothing"),
        ("unknown(1) ? 1 : 2", "no such overload"),
        ("'a' + 1", "no such overload"),
        ("[1, 'a'].exists(x, x == 'a')", "true"),
        ("'tacocat'.substring(0, false)", "no such overload: substring(string, int, bool)"),
    ] {
        assert_eq!(value(&env, &env.unchecked(text).unwrap()), want, "{text}");
    }
    assert!(env.unchecked("1 +").is_err());
}
