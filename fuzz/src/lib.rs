//! What is fuzzed, and a driver that needs no libFuzzer: it changes known inputs at random, always the same way.

use cel::value::from_json;
use cel::{Environment, Program};
use machinery::value::decode;
use std::time::{Duration, Instant};

/// Expressions to start from.
pub const CEL_SEEDS: &[&str] = &[
    "self.list.all(x, x.port > 0 && x.name.matches('^[a-z]+$'))",
    "self.map.transformMap(k, v, v + 1).size() == [1, 2u, 3.0].map(y, y).size() ? 'a' : r'\\b' + \"\\u00e9\"",
    "duration('1h30m') < timestamp('2020-01-01T00:00:00Z') - timestamp(0)",
    "'%s %.3f %x'.format([self.list, 1.5, b'\\xff']).split(' ').join('|').replace('a', 'b')",
    "optional.of({'a': [1]}).?a[?0].optMap(x, x * 2).orValue(-9223372036854775808)",
    "cel.bind(x, math.greatest(1, 2.5, 3u), lists.range(10).sortBy(i, -i).slice(1, 3) == [8, 7])",
    "quantity('1.5Gi').isGreaterThan(quantity('1G')) && cidr('10.0.0.0/8').containsIP(ip('10.1.2.3')) || isURL('x://y')",
    "[[1]].map(a, [a, a]).map(a, [a, a]) == [[1]].flatten(3) || {1: {2: 3}}[1][2] in [1, 2, 3]",
];

/// Parses, checks, estimates and evaluates any bytes, as rules of Kubernetes and with everything there is.
///
/// # Panics
/// If an evaluation costs more than it may and gives a value all the same.
pub fn cel(data: &[u8]) {
    const COST_MAX: u64 = 100_000;
    let Ok(text) = std::str::from_utf8(data) else { return };
    let schema = br#"{"type":"object","properties":{
        "map":{"type":"object","additionalProperties":{"type":"integer"}},
        "list":{"type":"array","items":{"type":"object","properties":{
            "name":{"type":"string"},"port":{"type":"integer"}}}}}}"#;
    let (Ok(schema), Ok(object)) = (decode(schema), decode(br#"{"map":{"a":1},"list":[{"name":"a","port":1}]}"#))
    else {
        return;
    };
    let decl = cel::decl::from_schema(&schema, false);
    for env in [Environment::kubernetes(34), Environment::standard()] {
        let env = env.declared("self", &decl);
        for checked in [env.check(text), env.unchecked(text)].into_iter().flatten() {
            cel::estimate(&env, &checked);
            let Ok(program) = Program::new(&env, &checked) else { continue };
            let outcome = program.eval(&[from_json(&object, &decl).ok()], COST_MAX);
            assert!(outcome.cost <= COST_MAX || outcome.result.is_err(), "{text}");
        }
    }
}

/// Feeds `fuzz` changed seeds for as many seconds as the first argument says, 20 without one; or the files that are
/// named, to see what became of a crash.
pub fn run(fuzz: fn(&[u8]), seeds: &[&str]) {
    let words: Vec<String> = std::env::args().skip(1).collect();
    if let Some(Err(_)) = words.first().map(|word| word.parse::<u64>()) {
        words.iter().for_each(|file| fuzz(&std::fs::read(file).unwrap_or_default()));
        return;
    }
    let seconds = words.first().and_then(|word| word.parse().ok()).unwrap_or(20);
    let (end, mut state, mut count) = (Instant::now() + Duration::from_secs(seconds), 1_u64, 0_u64);
    let mut below = move |bound: usize| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) as usize % bound
    };
    while Instant::now() < end {
        let mut bytes = seeds[below(seeds.len())].as_bytes().to_vec();
        for _ in 0..1 + below(6) {
            let other = seeds[below(seeds.len())].as_bytes();
            let (from, at) = (below(other.len()), below(bytes.len().max(1)));
            let piece = &other[from..(from + below(12)).min(other.len())];
            let till = (at + below(12)).min(bytes.len());
            match below(4) {
                0 => drop(bytes.splice(at..at, piece.iter().copied())),
                1 => drop(bytes.splice(at..till, piece.iter().copied())),
                2 => drop(bytes.splice(at..till, [])),
                _ => bytes[at..till].iter_mut().for_each(|byte| *byte = below(128) as u8),
            }
            if bytes.is_empty() {
                bytes.push(b'1');
            }
        }
        fuzz(&bytes);
        count += 1;
    }
    println!("{count} inputs in {seconds} s");
}
