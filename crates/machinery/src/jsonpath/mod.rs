//! The JSONPath dialect of Kubernetes, for printer columns.
//!
//! A path is compiled once and evaluated often. Parsing fails with the texts of the reference implementation;
//! evaluation finds values, or fails where the reference fails. Fields of objects are visited in sorted order; the
//! reference visits them in random order.

pub mod columns;
mod eval;
mod parse;

use std::borrow::Cow;

use eval::Evaluation;

use crate::value::{Text, Value};

/// A compiled path.
#[derive(Clone, Debug, PartialEq)]
pub struct JsonPath {
    /// The steps of each action. The first action finds values; the others matter only for their errors.
    actions: Vec<Vec<PathStep>>,
}

/// One step of a path.
#[derive(Clone, Debug, PartialEq)]
enum PathStep {
    /// A literal: a quoted text, a number or a boolean.
    Literal(Value),
    Field(Text),
    Slice(Slice),
    Filter(Box<Filter>),
    Wildcard,
    Recursive,
    Union(Vec<Vec<PathStep>>),
    /// A bare word, at which evaluation fails.
    Word(Text),
}

/// `[from:to:step]`; an index is a slice whose end is derived from its start.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Slice {
    from: Option<i64>,
    to: Option<i64>,
    step: Option<i64>,
    is_index: bool,
}

/// `[?(left operator right)]`, or `[?(left)]`.
#[derive(Clone, Debug, PartialEq)]
struct Filter {
    left: Vec<PathStep>,
    comparison: Option<(Text, Vec<PathStep>)>,
}

impl JsonPath {
    /// Compiles a path as printer columns of CRDs hold it, without braces: `.spec.list[0].name`.
    pub fn parse(path: &str) -> Result<JsonPath, String> {
        parse::template(path).map(|actions| JsonPath { actions })
    }

    /// The values that the path finds, in order. A missing field is not an error. If the path visits very many values,
    /// those beyond a bound are left out.
    pub fn find<'v>(&self, value: &'v Value) -> Result<Vec<Cow<'v, Value>>, String> {
        self.find_within(value, &mut Evaluation::default())
    }

    /// The same without bounds, for paths of this program; none if the evaluation fails.
    pub fn find_all<'v>(&self, value: &'v Value) -> Vec<Cow<'v, Value>> {
        self.find_within(value, &mut Evaluation::unbounded()).unwrap_or_default()
    }

    fn find_within<'v>(&self, value: &'v Value, within: &mut Evaluation) -> Result<Vec<Cow<'v, Value>>, String> {
        let mut all = self.actions.iter().map(|nodes| match within.list(vec![Cow::Borrowed(value)], nodes) {
            (found, None) => Ok(found),
            (_, Some(why)) => Err(why),
        });
        let found = all.next().unwrap_or(Ok(vec![]))?;
        all.try_for_each(|other| other.map(drop))?;
        Ok(found)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::limits::JSONPATH_VISITS_MAX;
    use crate::value::decode;

    const OBJECT: &str = r#"{"kind":"K","spec":{"list":["x","y","z"],"items":[{"name":"a","size":1},{"name":"b","size":2}],
        "m":{"a.b":"dotted","c":"plain"},"one":1,"two":2,"n":null,"single":{"k":"plain"}}}"#;

    fn run(path: &str) -> String {
        let object = decode(OBJECT.as_bytes()).expect("JSON");
        match JsonPath::parse(path).and_then(|p| p.find(&object).map(|v| v.into_iter().map(Cow::into_owned).collect()))
        {
            Ok(values) => Value::Array(values).to_json(),
            Err(why) => why,
        }
    }

    #[test]
    fn json_paths_match_upstream() {
        let cases = [
            (".spec.list[0]", r#"["x"]"#),
            (".spec.one}", "[1]"),
            (".spec.one}{.spec.two", "[1]"),
            (".spec.one}{[0]", "map[string]interface {} is not array or slice"),
            (".spec.list[-1]", r#"["z"]"#),
            (".spec.list[-1:]", r#"["z"]"#),
            (".spec.list[1:3]", r#"["y","z"]"#),
            (".spec.list[0:3:2]", r#"["x","z"]"#),
            (".spec.list[*]", r#"["x","y","z"]"#),
            (".spec.list[]", r#"["x"]"#),
            (".spec.list[0,2]", r#"["x","z"]"#),
            (".spec.list[9]", "array index out of bounds: index 9, length 3"),
            (".spec.list.x", "[]"),
            (".spec.m[0]", "map[string]interface {} is not array or slice"),
            (".spec.items[*].name", r#"["a","b"]"#),
            (".spec.items[?(@.name==\"b\")].size", "[2]"),
            (".spec.items[?(@.name=='b')].size", "[2]"),
            (".spec.items[?(@.size>1)].name", r#"["b"]"#),
            (".spec.items[?(@.size>=1)].name", r#"["a","b"]"#),
            (".spec.items[?(@.nosuch)].name", "[]"),
            (".spec.items[?(@.name=b)].size", "unrecognized identifier b"),
            (".spec.items..name", r#"["a","b"]"#),
            (".spec.m.a\\.b", r#"["dotted"]"#),
            (".spec.m['a.b']", "[]"),
            (".spec['one','two']", "[1,2]"),
            (".spec.single.*", r#"["plain"]"#),
            (".spec.n", "[null]"),
            (".spec.nosuch.deeper", "[]"),
            (".", "[]"),
            (".spec.one }", "[1]"),
            (".spec.list[0].", "[]"),
            (".spec one", "unrecognized identifier one"),
        ];
        for (path, want) in cases {
            assert_eq!(run(path), want, "{path}");
        }
    }

    #[test]
    fn visits_of_a_path_are_bounded() {
        let items: Vec<Value> = (0..30_000).map(|i| Value::from([("name", Value::Int(i))])).collect();
        let nested = (0..200).fold(Value::Int(7), |inner, _| Value::from([("a", inner), ("b", Value::Int(1))]));
        let object = Value::from([("a", Value::Int(1)), ("items", Value::Array(items)), ("nested", nested)]);
        let (unions, recursive) = (format!(".items{}", "[0,0]".repeat(25)), format!(".nested{}", "..a".repeat(20)));
        let filters = format!(".items[?({}==1)].name", "@..name".to_owned() + &"..name".repeat(20));
        for path in [unions.as_str(), &recursive, &filters, ".items[*].name", "..name", "['items','items'][*]"] {
            let path = JsonPath::parse(path).unwrap();
            let mut within = Evaluation::default();
            let found = path.find_within(&object, &mut within).map_or(0, |found| found.len());
            assert!(found <= JSONPATH_VISITS_MAX && within.left <= JSONPATH_VISITS_MAX, "{found}");
        }
        let first = |path| JsonPath::parse(path).unwrap().find(&object).unwrap()[0].to_json();
        assert_eq!([first(".items[*].name"), first("..name"), first(".items[29999].name")], ["0", "0", "29999"]);
        assert_eq!(first(".items[?(@.name==17)].name"), "17");
    }

    #[test]
    fn invalid_paths_have_upstream_messages() {
        let cases = [
            (".spec.list[", "unterminated array"),
            (".spec.m[\"a.b\"]", "invalid array index \"a.b\""),
            (".spec.list[a]", "invalid array index a"),
            (".spec.one.{}", "unrecognized character in action: U+007B '{'"),
            (".spec\n", "unclosed action"),
            (".a....b", "invalid multiple recursive descent"),
            (".a[?(@.x==\"y]", "unterminated filter"),
            (".a[?(@.x)", "unclosed array expect ]"),
        ];
        for (path, want) in cases {
            assert_eq!(run(path), want, "{path}");
        }
    }
}
