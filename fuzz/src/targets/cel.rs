//! CEL: parsing, checking, estimating and evaluating terminate, and an evaluation above the cost limit has no value.

use cel::{Environment, Program, from_json};
use machinery::json;

use super::Target;

pub const TARGET: Target = Target { name: "cel", seeds: SEEDS, check };

const COST_MAX: u64 = 100_000;

const SEEDS: &[&[u8]] = &[
    b"self.list.all(x, x.port > 0 && x.name.matches('^[a-z]+$'))",
    br#"self.map.transformMap(k, v, v + 1).size() == [1, 2u, 3.0].map(y, y).size() ? 'a' : r'\b' + "\u00e9""#,
    b"duration('1h30m') < timestamp('2020-01-01T00:00:00Z') - timestamp(0)",
    br"'%s %.3f %x'.format([self.list, 1.5, b'\xff']).split(' ').join('|').replace('a', 'b')",
    b"optional.of({'a': [1]}).?a[?0].optMap(x, x * 2).orValue(-9223372036854775808)",
    b"cel.bind(x, math.greatest(1, 2.5, 3u), lists.range(10).sortBy(i, -i).slice(1, 3) == [8, 7])",
    b"quantity('1.5Gi').isGreaterThan(quantity('1G')) && cidr('10.0.0.0/8').containsIP(ip('10.1.2.3')) || isURL('x://y')",
    b"[[1]].map(a, [a, a]).map(a, [a, a]) == [[1]].flatten(3) || {1: {2: 3}}[1][2] in [1, 2, 3]",
];

fn check(input: &[u8]) {
    let Ok(text) = std::str::from_utf8(input) else { return };
    let item = json!({"type": "object", "properties": {"name": {"type": "string"}, "port": {"type": "integer"}}});
    let schema = json!({"type": "object", "properties": {
        "map": {"type": "object", "additionalProperties": {"type": "integer"}},
        "list": {"type": "array", "items": (item)}
    }});
    let object = json!({"map": {"a": 1}, "list": [{"name": "a", "port": 1}]});
    let decl = cel::Decl::from_schema(&schema);
    for env in [Environment::kubernetes(34), Environment::standard()] {
        let env = env.declared("self", &decl);
        for checked in [env.check(text), env.unchecked(text)].into_iter().flatten() {
            cel::estimate(&env, &checked);
            let Ok(program) = Program::new(&env, &checked) else { continue };
            let outcome = program.eval(&[("self", from_json(&object, &decl).expect("a value"))], COST_MAX);
            assert!(outcome.cost <= COST_MAX || outcome.result.is_err(), "{text}");
        }
    }
}
