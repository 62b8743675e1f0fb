//! Random expressions of given types.

/// Numbers that only look random: the same for the same seed.
pub struct Random(pub u64);

impl Random {
    /// Below `bound`.
    pub fn below(&mut self, bound: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) as usize % bound
    }

    pub fn pick<T: Copy>(&mut self, of: &[T]) -> T {
        of[self.below(of.len())]
    }
}

/// Expressions without parts, by type.
const LEAVES: &[(&str, &[&str])] = &[
    ("bool", &["true", "false", "self.bool", "has(self.absent)", "has(self.map)"]),
    ("int", &["0", "1", "-3", "9223372036854775807", "self.int", "self.absent", "self.map['a']", "size(self.ints)"]),
    ("uint", &["0u", "7u", "18446744073709551615u"]),
    ("double", &["0.5", "-1e300", "self.double", "double(self.int)"]),
    ("string", &["''", "'a'", "'a,b,,c'", "'\\u00e9-x'", "self.string", "self.map.map(k, k)[0]", "self.strings[1]"]),
    ("bytes", &["b''", "b'ab\\xff'", "self.bytes"]),
    ("duration", &["duration('90s')", "self.duration"]),
    ("timestamp", &["timestamp('2020-01-01T00:00:00Z')", "self.timestamp"]),
    ("list(int)", &["[1, 2, 2]", "self.ints", "lists.range(3)"]),
    ("list(string)", &["['a', 'b']", "self.strings", "'x y'.split(' ')"]),
    ("map", &["{'a': 1, 'z': 26}", "self.map"]),
    ("optional", &["self.?absent", "self.?int", "optional.of(4)", "self.ints[?9]", "self.map[?'b']"]),
    ("dyn", &["dyn(1)", "dyn('a')", "dyn([1])", "dyn(self.map)"]),
];

/// Expressions with parts: the type, the text with `{}` for each part, the types of the parts. `@int:bool` is a `bool` in
/// which the variable `@` of type int is known.
const FORMS: &[(&str, &str, &[&str])] = &[
    ("bool", "({} && {})", &["bool", "bool"]),
    ("bool", "({} || {})", &["bool", "bool"]),
    ("bool", "!{}", &["bool"]),
    ("bool", "({} ? {} : {})", &["bool", "bool", "bool"]),
    ("bool", "({} == {})", &["int", "int"]),
    ("bool", "({} == {})", &["list(string)", "list(string)"]),
    ("bool", "({} != {})", &["map", "map"]),
    ("bool", "({} < {})", &["string", "string"]),
    ("bool", "({} >= {})", &["int", "double"]),
    ("bool", "({} < {})", &["timestamp", "timestamp"]),
    ("bool", "({} > {})", &["duration", "duration"]),
    ("bool", "({} in {})", &["int", "list(int)"]),
    ("bool", "({} in {})", &["string", "map"]),
    ("bool", "({} == {})", &["dyn", "dyn"]),
    ("bool", "{}.startsWith({})", &["string", "string"]),
    ("bool", "{}.contains({})", &["string", "string"]),
    ("bool", "{}.matches('^[a-z]+$')", &["string"]),
    ("bool", "{}.hasValue()", &["optional"]),
    ("bool", "{}.isSorted()", &["list(int)"]),
    ("bool", "sets.contains({}, {})", &["list(int)", "list(int)"]),
    ("bool", "isQuantity({})", &["string"]),
    ("bool", "isIP({})", &["string"]),
    ("bool", "{}.all(@, {})", &["list(int)", "@int:bool"]),
    ("bool", "{}.exists(@, {})", &["list(string)", "@string:bool"]),
    ("bool", "{}.exists_one(@, {})", &["list(int)", "@int:bool"]),
    ("bool", "{}.all(@, {})", &["map", "@string:bool"]),
    ("int", "({} + {})", &["int", "int"]),
    ("int", "({} * {})", &["int", "int"]),
    ("int", "({} / {})", &["int", "int"]),
    ("int", "({} % {})", &["int", "int"]),
    ("int", "size({})", &["string"]),
    ("int", "{}.size()", &["list(string)"]),
    ("int", "size({})", &["map"]),
    ("int", "int({})", &["double"]),
    ("int", "int({})", &["uint"]),
    ("int", "int({})", &["string"]),
    ("int", "{}.indexOf({})", &["string", "string"]),
    ("int", "{}.getHours()", &["duration"]),
    ("int", "{}.getFullYear()", &["timestamp"]),
    ("int", "{}.sum()", &["list(int)"]),
    ("int", "{}.max()", &["list(int)"]),
    ("int", "{}[{}]", &["list(int)", "int"]),
    ("int", "{}.orValue({})", &["optional", "int"]),
    ("int", "{}.value()", &["optional"]),
    ("int", "({} ? {} : {})", &["bool", "int", "int"]),
    ("uint", "({} + {})", &["uint", "uint"]),
    ("uint", "uint({})", &["int"]),
    ("double", "({} / {})", &["double", "double"]),
    ("double", "({} - {})", &["double", "double"]),
    ("double", "double({})", &["string"]),
    ("string", "({} + {})", &["string", "string"]),
    ("string", "string({})", &["int"]),
    ("string", "string({})", &["double"]),
    ("string", "string({})", &["bytes"]),
    ("string", "string({})", &["timestamp"]),
    ("string", "{}.substring({})", &["string", "int"]),
    ("string", "{}.lowerAscii()", &["string"]),
    ("string", "{}.trim()", &["string"]),
    ("string", "{}.replace({}, 'x')", &["string", "string"]),
    ("string", "{}.join(',')", &["list(string)"]),
    ("string", "{}.charAt({})", &["string", "int"]),
    ("string", "'%s=%d'.format([{}, {}])", &["string", "int"]),
    ("string", "strings.quote({})", &["string"]),
    ("bytes", "bytes({})", &["string"]),
    ("bytes", "({} + {})", &["bytes", "bytes"]),
    ("duration", "({} + {})", &["duration", "duration"]),
    ("duration", "({} - {})", &["timestamp", "timestamp"]),
    ("timestamp", "({} + {})", &["timestamp", "duration"]),
    ("list(int)", "({} + {})", &["list(int)", "list(int)"]),
    ("list(int)", "[{}, {}]", &["int", "int"]),
    ("list(int)", "[{}, ?{}]", &["int", "optional"]),
    ("list(int)", "{}.map(@, {})", &["list(int)", "@int:int"]),
    ("list(int)", "{}.map(@, {})", &["list(string)", "@string:int"]),
    ("list(int)", "{}.filter(@, {})", &["list(int)", "@int:bool"]),
    ("list(int)", "{}.sort()", &["list(int)"]),
    ("list(int)", "{}.distinct()", &["list(int)"]),
    ("list(int)", "{}.reverse()", &["list(int)"]),
    ("list(int)", "[{}, {}].flatten()", &["list(int)", "list(int)"]),
    ("list(int)", "{}.sortBy(@, {})", &["list(int)", "@int:int"]),
    ("list(string)", "({} + {})", &["list(string)", "list(string)"]),
    ("list(string)", "{}.split({})", &["string", "string"]),
    ("list(string)", "{}.findAll('[a-z]')", &["string"]),
    ("list(string)", "{}.map(@, {})", &["map", "@string:string"]),
    ("list(string)", "{}.filter(@, {})", &["list(string)", "@string:bool"]),
    ("map", "{ {}: {} }", &["string", "int"]),
    ("map", "{}.transformMap(@, v, {})", &["map", "@string:int"]),
    ("optional", "optional.of({})", &["int"]),
    ("optional", "{}.or({})", &["optional", "optional"]),
    ("optional", "{}.optMap(@, {})", &["optional", "@int:int"]),
    ("optional", "{}[?{}]", &["list(int)", "int"]),
    ("optional", "{}.first()", &["list(int)"]),
    ("dyn", "dyn({})", &["list(string)"]),
    ("dyn", "dyn({})", &["double"]),
];

/// The variables that an expression may use, with their types.
#[derive(Default)]
pub struct Scope(Vec<(String, &'static str)>);

impl Scope {
    /// An expression of a type whose parts nest at most `depth` levels deep.
    pub fn expression(&mut self, random: &mut Random, t: &str, depth: usize) -> String {
        let forms: Vec<_> = FORMS.iter().filter(|(of, _, _)| *of == t).collect();
        if depth == 0 || forms.is_empty() || random.below(5) == 0 {
            return self.leaf(random, t);
        }
        let (_, form, parts) = *random.pick(&forms);
        let name = format!("x{}", self.0.len());
        let mut pieces = form.split("{}");
        let mut text = pieces.next().unwrap_or_default().to_owned();
        for (part, piece) in parts.iter().zip(pieces) {
            match part.strip_prefix('@').and_then(|part| part.split_once(':')) {
                Some((of, inner)) => {
                    self.0.push((name.clone(), of));
                    text.push_str(&self.expression(random, inner, depth - 1));
                    self.0.pop();
                }
                None => text.push_str(&self.expression(random, part, depth - 1)),
            }
            text.push_str(piece);
        }
        text.replace('@', &name)
    }

    fn leaf(&self, random: &mut Random, t: &str) -> String {
        let variables: Vec<_> = self.0.iter().filter(|(_, of)| *of == t).collect();
        if !variables.is_empty() && random.below(2) == 0 {
            return random.pick(&variables).0.clone();
        }
        let leaves = LEAVES.iter().find(|(of, _)| *of == t).map_or(&[][..], |(_, leaves)| *leaves);
        random.pick(leaves).to_owned()
    }
}

/// The text with a few characters left out, doubled, swapped or replaced.
pub fn mutated(random: &mut Random, text: &str) -> String {
    let mut chars: Vec<char> = text.chars().collect();
    for _ in 0..1 + random.below(4) {
        if chars.len() < 2 {
            break;
        }
        let (at, other) = (random.below(chars.len()), random.below(chars.len()));
        match random.below(4) {
            0 => drop(chars.remove(at)),
            1 => chars.insert(at, chars[other]),
            2 => chars.swap(at, other),
            _ => chars[at] = random.pick(&['\'', '"', '\\', '(', ']', '{', '?', '.', '9', '\u{0}', 'é', '\u{10ffff}']),
        }
    }
    chars.into_iter().collect()
}
