//! No input panics, overflows the stack or takes more than it may.

use cel::{Environment, Program};

fn run(env: &Environment, text: &str) -> Option<u64> {
    let checked = env.check(text).ok()?;
    let program = Program::new(env, &checked).ok()?;
    Some(program.eval(&[], 1_000_000).cost)
}

#[test]
fn nesting_is_bounded() {
    for env in [Environment::kubernetes(34), Environment::standard()] {
        for depth in [1, 84, 250, 300] {
            for (open, inner, close) in [
                ("(", "1", ")"),
                ("[", "1", "]"),
                ("{1:", "1", "}"),
                ("!", "true", ""),
                ("-", "1", ""),
                ("1+(", "1", ")"),
                ("true ? true : ", "true", ""),
                ("[1].map(x, ", "1", ")"),
                ("size([", "1", "])"),
                ("true && (", "true", ")"),
            ] {
                run(&env, &format!("{}{inner}{}", open.repeat(depth), close.repeat(depth)));
                run(&env, &open.repeat(depth));
            }
            for chain in [".a", "[0]", " + 1", " && true", " == 1", ".f()", ".optMap(x, x)"] {
                run(&env, &format!("[]{}", chain.repeat(depth)));
            }
        }
    }
}

#[test]
fn excessive_depth_has_upstream_message() {
    let env = Environment::kubernetes(34);
    let error = env.check(&"[".repeat(300)).unwrap_err().to_string();
    assert!(error.contains("ERROR: <input>:-1:0: expression recursion limit exceeded: 250"), "{error}");
    let error = env.check(&"1".repeat(100_001)).unwrap_err().to_string();
    assert!(error.contains("expression code point size exceeds limit: size: 100001, limit 100000"), "{error}");
}

#[test]
fn cost_limit_ends_evaluation() {
    let env = Environment::kubernetes(34);
    for text in [
        "lists.range(100000).all(x, lists.range(100000).all(y, x + y > -1))",
        "lists.range(100000).map(x, lists.range(1000)).size() > 0",
        "[1,2,3,4,5,6,7,8,9,10].map(a, [1,2,3,4,5,6,7,8,9,10].map(b, [1,2,3,4,5,6,7,8,9,10].map(c, \
         [1,2,3,4,5,6,7,8,9,10].map(d, [1,2,3,4,5,6,7,8,9,10].map(e, [1,2,3,4,5,6,7,8,9,10].map(f, a)))))).size() > 1",
    ] {
        let checked = env.check(text).unwrap();
        let program = Program::new(&env, &checked).unwrap();
        let outcome = program.eval(&[], 1_000_000);
        assert_eq!(outcome.result.unwrap_err().text(), "operation cancelled: actual cost limit exceeded", "{text}");
    }
}

/// Pieces of source text in every order: any result will do, as long as there is one.
#[test]
fn unusual_texts_do_not_panic() {
    let pieces = [
        "self", ".", "?", "[", "]", "{", "}", "(", ")", ",", ":", "1", "-", "!", "'a'", "'", "\"", "`", "in", "true",
        "\\", "é", "has", "all", "x", "&&", "|", "=", "b'\\xff'", "0x", "1e", "/", "\n", "\u{10ffff}", "optMap", "r'",
        "%",
    ];
    let env = Environment::standard();
    let mut seed: u64 = 7;
    for _ in 0..8_000 {
        let mut text = String::new();
        for _ in 0..1 + seed % 9 {
            seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            text.push_str(pieces[(seed >> 33) as usize % pieces.len()]);
        }
        run(&env, &text);
    }
}

/// Values share their parts, so an immense list may have a small cost. Comparing, printing and flattening it must end
/// nevertheless.
#[test]
fn oversized_values_end_evaluation() {
    let env = Environment::standard();
    let doubled = format!("[[1, 1]]{}", ".map(a, [a, a])".repeat(60));
    for text in [
        format!("{doubled} == {doubled}"),
        format!("'%s'.format([{doubled}]).size() > 0"),
        format!("{doubled}.flatten(100).size() > 0"),
        format!("{doubled}.indexOf([]) > 0"),
        format!("({doubled} + {doubled}).distinct().size() == 1"),
        "lists.range(900000).distinct().size() > 0".to_owned(),
    ] {
        let program = Program::new(&env, &env.check(&text).unwrap()).unwrap();
        let outcome = program.eval(&[], 1_000_000);
        assert_eq!(outcome.result.unwrap_err().text(), "operation cancelled: actual cost limit exceeded", "{text}");
    }
}

/// The output of a call is counted, though upstream charges its input.
#[test]
fn growing_strings_end_evaluation() {
    let env = Environment::standard();
    let (short, long) = ("a".repeat(1_000), "b".repeat(10_000));
    for text in [
        format!("lists.range(2000).map(i, '{short}'.replace('a', '{long}')).size() > 0"),
        format!("lists.range(2000).all(i, '{short}'.replace('a', '{long}').size() > 0)"),
        format!("lists.range(2000).all(i, lists.range(1000).map(j, '{short}').join('{long}').size() > 0)"),
        format!("lists.range(2000).all(i, '%s%s%s'.format(['{long}', '{long}', '{long}']).size() > 0)"),
    ] {
        let program = Program::new(&env, &env.check(&text).unwrap()).unwrap();
        let outcome = program.eval(&[], 1_000_000);
        assert_eq!(outcome.result.unwrap_err().text(), "operation cancelled: actual cost limit exceeded", "{text:.90}");
    }
}

#[test]
fn pattern_compilation_is_bounded() {
    let env = Environment::standard();
    let text = "lists.range(20000).all(i, !'a'.matches('(\\\\pL{900})' + string(i)))";
    let program = Program::new(&env, &env.check(text).unwrap()).unwrap();
    let outcome = program.eval(&[], 1_000_000);
    assert_eq!(outcome.result.unwrap_err().text(), "operation cancelled: actual cost limit exceeded");
}

/// Arithmetic at the ends of its ranges, and values without an order.
#[test]
fn extreme_numbers_do_not_panic() {
    let env = Environment::standard();
    for (text, want) in [
        ("lists.range(64).map(i, i % 3 == 0 ? 0.0 / 0.0 : double(i)).sort().size() == 64".to_owned(), "true"),
        ("lists.range(64).map(i, i % 3 == 0 ? 0.0 / 0.0 : double(64 - i)).sort()[0] == 2.0".to_owned(), "true"),
        ("[[1]].flatten(9223372036854775807) == [1]".to_owned(), "operation cancelled: actual cost limit exceeded"),
        (format!("duration('{}') == duration('1s')", "9223372036h".repeat(100)), "type conversion error"),
        ("-9223372036854775808 / -1 == 0".to_owned(), "integer overflow"),
        ("-9223372036854775808 % -1 == 0".to_owned(), "integer overflow"),
        ("-(-9223372036854775808) == 0".to_owned(), "integer overflow"),
        ("duration('9223372036s') + duration('1s') == duration('0s')".to_owned(), "overflow"),
        ("lists.range(-9223372036854775808).size() == 0".to_owned(), "size must be non-negative"),
        ("'abc'.substring(9223372036854775807) == ''".to_owned(), "index out of range"),
        ("'abc'.lastIndexOf('c', 9223372036854775807) == -1".to_owned(), "true"),
        ("'abc'.indexOf('c', -9223372036854775808) == -1".to_owned(), "index out of range"),
        ("[1, 2].slice(0, 9223372036854775807).size() == 0".to_owned(), "cannot slice"),
    ] {
        let program = Program::new(&env, &env.check(&text).unwrap());
        let found = match program.map(|program| match program.eval(&[], 1_000_000).result {
            Ok(value) => value.equals(&cel::Val::Bool(true)).to_string(),
            Err(error) => error.to_string(),
        }) {
            Ok(found) => found,
            Err(error) => error.to_string(),
        };
        assert!(found.contains(want), "{text:.90}: {found}");
    }
}

thread_local! {
    static INTERRUPT_CALLS: std::cell::Cell<usize> = const { std::cell::Cell::new(0) };
}

/// The interrupt ends evaluations that are bounded by cost and those that are bounded by work, soon after it returns true.
#[test]
fn interrupt_ends_evaluation() {
    let env = Environment::standard();
    let doubled = format!("[[1, 1]]{}", ".map(a, [a, a])".repeat(20));
    for text in
        ["lists.range(1000).all(x, lists.range(1000).all(y, x + y > -1))".to_owned(), format!("{doubled} == {doubled}")]
    {
        let program = Program::new(&env, &env.check(&text).unwrap()).unwrap();
        INTERRUPT_CALLS.set(0);
        let interrupt = || {
            INTERRUPT_CALLS.set(INTERRUPT_CALLS.get() + 1);
            INTERRUPT_CALLS.get() == 3
        };
        let outcome = cel::interruptible(interrupt, || program.eval(&[], u64::MAX));
        assert_eq!(outcome.result.unwrap_err().text(), "operation cancelled: actual cost limit exceeded", "{text:.90}");
        assert_eq!(INTERRUPT_CALLS.get(), 3, "{text:.90}");
    }
}
