//! Shard selectors (KEP-5866): ranges of the hash of an object's uid or namespace, which select a part of a collection.
//!
//! A selector is an expression: calls of `shardRange(field, start, end)` joined by `||`. It is parsed but never evaluated.

use std::fmt;
use std::ops::Range;

use machinery::value::quote;

use crate::ast::{Expr, Issue, Kind, Literal};
use crate::parser::{self, Syntax, macros};

machinery::text_enum! {
    /// The hashed field.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    enum Hashed {
        Uid = "object.metadata.uid",
        Namespace = "object.metadata.namespace",
    }
}

/// A shard selector. Its `Display` is the normalized expression, as `shardInfo` of a list shows it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ShardSelector {
    field: Hashed,
    /// Ranges of hashes; the greatest end is 2^64.
    ranges: Vec<Range<u128>>,
}

impl ShardSelector {
    /// Parses the text of a `shardSelector` parameter. The error is kube-apiserver's.
    pub fn parse(text: &str) -> Result<ShardSelector, String> {
        let text = text.trim();
        if text.is_empty() {
            return Err("empty shard selector is not allowed; omit the parameter for unfiltered lists".to_owned());
        }
        let syntax = Syntax { optional: false, quoted_identifiers: true, macros: macros::Known::default() };
        let ast = parser::parse(text, syntax).map_err(|(_, issues)| format!("CEL parse error: {}", first(&issues)))?;
        let ranges = ranges_of(&ast.root)?;
        let field = ranges.first().map_or(Hashed::Uid, |(field, _)| *field);
        if let Some((other, _)) = ranges.iter().find(|(other, _)| *other != field) {
            let [one, other] = [field, *other].map(|field| quote(field.as_str()));
            return Err(format!("all shard ranges must use the same field, got {one} and {other}"));
        }
        Ok(ShardSelector { field, ranges: ranges.into_iter().map(|(_, range)| range).collect() })
    }

    /// Whether an object with this uid and this namespace is selected.
    pub fn matches(&self, uid: &str, namespace: &str) -> bool {
        let hash = u128::from(hash(match self.field {
            Hashed::Uid => uid,
            Hashed::Namespace => namespace,
        }));
        self.ranges.iter().any(|range| range.contains(&hash))
    }
}

impl fmt::Display for ShardSelector {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, Range { start, end }) in self.ranges.iter().enumerate() {
            let or = if index == 0 { "" } else { " || " };
            write!(f, "{or}shardRange({}, '0x{start:016x}', '0x{end:016x}')", self.field.as_str())?;
        }
        Ok(())
    }
}

/// FNV-1a in 64 bits.
pub(crate) fn hash(text: &str) -> u64 {
    text.bytes().fold(0xcbf2_9ce4_8422_2325, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3))
}

/// The message of the issue that cel-go finds first: it reads the whole text before it looks at the values of literals.
fn first(issues: &[Issue]) -> &str {
    let of_syntax = issues.iter().filter(|issue| issue.message.starts_with("Syntax error:"));
    of_syntax.min_by_key(|issue| issue.offset).or(issues.first()).map_or("", |issue| &issue.message)
}

/// The ranges of the calls that `||` joins, from left to right.
fn ranges_of(root: &Expr) -> Result<Vec<(Hashed, Range<u128>)>, String> {
    let (mut open, mut ranges) = (vec![root], vec![]);
    while let Some(expr) = open.pop() {
        match &expr.kind {
            Kind::Call { function, args, .. } if function == "_||_" => open.extend(args.iter().rev()),
            Kind::Call { function, args, .. } if function == "shardRange" => ranges.push(range_of(args)?),
            Kind::Call { function, .. } => {
                let function = quote(function);
                return Err(format!("unsupported function {function}; only shardRange() and || are allowed"));
            }
            other => {
                let kind = number_of(other);
                return Err(format!("unexpected expression kind {kind}; expected shardRange() call or || operator"));
            }
        }
    }
    Ok(ranges)
}

/// The range that the arguments of a call of `shardRange` mean.
fn range_of(args: &[Expr]) -> Result<(Hashed, Range<u128>), String> {
    let [field, start, end] = args else {
        return Err(format!("shardRange() requires exactly 3 arguments, got {}", args.len()));
    };
    let path = path_of(field).map_err(|why| format!("shardRange() first argument: {why}"))?;
    let Some(field) = Hashed::ALL.into_iter().find(|known| known.as_str() == path) else {
        let supported = Hashed::ALL.map(Hashed::as_str).join(", ");
        return Err(format!("unsupported field path {}; supported: {supported}", quote(&path)));
    };
    let range = bound_of(start, "hexStart")?..bound_of(end, "hexEnd")?;
    if range.is_empty() {
        let Range { start, end } = range;
        return Err(format!("shard range start 0x{start:016x} must be less than end 0x{end:016x}"));
    }
    Ok((field, range))
}

/// The names of a chain of selections, joined by dots.
fn path_of(expr: &Expr) -> Result<String, String> {
    let (mut names, mut expr) = (vec![], expr);
    loop {
        match &expr.kind {
            Kind::Select { operand, field, .. } => {
                names.push(field.as_str());
                expr = operand;
            }
            Kind::Ident(name) => {
                names.push(name);
                names.reverse();
                return Ok(names.join("."));
            }
            other => {
                let kind = number_of(other);
                return Err(format!("expected field path (e.g. object.metadata.uid), got expression kind {kind}"));
            }
        }
    }
}

/// The number that a literal such as `'0x8000000000000000'` means: 16 hexadecimal digits, or 2^64.
fn bound_of(expr: &Expr, name: &str) -> Result<u128, String> {
    let text = match &expr.kind {
        Kind::Literal(Literal::String(text)) => text,
        Kind::Literal(other) => return Err(format!("{name} must be a string literal, got {}", go_type(other))),
        other => {
            let kind = number_of(other);
            return Err(format!("{name} must be a string literal (e.g. '0xff'), got expression kind {kind}"));
        }
    };
    let quoted = quote(text);
    let digits = text.strip_prefix("0x").ok_or_else(|| format!("{name} must have '0x' prefix, got {quoted}"))?;
    let length = digits.len();
    if length == 0 {
        return Err(format!("{name}: hex value is required after '0x'"));
    }
    if length > 17 {
        return Err(format!("{name}: hex value too long ({length} chars, max 17): {}", quote(digits)));
    }
    if let Some(other) = digits.chars().find(|c| !matches!(c, '0'..='9' | 'a'..='f')) {
        return Err(format!("{name}: invalid hex character {} in {quoted}", quote(&other.to_string())));
    }
    let number = u128::from_str_radix(digits, 16).map_err(|error| error.to_string())?;
    match length {
        17 if number != 1 << 64 => {
            Err(format!("{name}: 17-digit hex value must be '0x10000000000000000' (2^64), got {quoted}"))
        }
        16 | 17 => Ok(number),
        _ => {
            let padded = quote(&format!("0x{number:016x}"));
            Err(format!("{name} must be a 0x-prefixed 16-digit hex value, got {quoted} (did you mean {padded}?)"))
        }
    }
}

/// The number that cel-go gives a kind of expression, which messages show.
fn number_of(kind: &Kind) -> u8 {
    match kind {
        Kind::Error => 0,
        Kind::Call { .. } => 1,
        Kind::Comprehension(_) => 2,
        Kind::Ident(_) => 3,
        Kind::List { .. } => 4,
        Kind::Literal(_) => 5,
        Kind::Map(_) => 6,
        Kind::Select { .. } => 7,
        Kind::Struct { .. } => 8,
    }
}

/// The type of the value of a literal in Go, which messages show.
fn go_type(literal: &Literal) -> &'static str {
    match literal {
        Literal::Null => "structpb.NullValue",
        Literal::Bool(_) => "bool",
        Literal::Int(_) => "int64",
        Literal::Uint(_) => "uint64",
        Literal::Double(_) => "float64",
        Literal::String(_) => "string",
        Literal::Bytes(_) => "[]uint8",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Expressions, each with the error of kube-apiserver 1.37.2 in the line after it.
    const ERRORS: &str = include_str!("errors.txt");
    const LOW: &str = "'0x0000000000000000', '0x8000000000000000'";
    const HIGH: &str = "'0x8000000000000000', '0x10000000000000000'";

    /// The hashes are those of the test vectors of FNV.
    #[test]
    fn hash_is_fnv_1a() {
        for (text, want) in
            [("", 0xcbf2_9ce4_8422_2325), ("a", 0xaf63_dc4c_8601_ec8c), ("foobar", 0x8594_4171_f739_67e8)]
        {
            assert_eq!(hash(text), want, "{text}");
        }
    }

    #[test]
    fn shards_select_by_hash() {
        let selects = |text: &str, uid, namespace| ShardSelector::parse(text).unwrap().matches(uid, namespace);
        let [uid, namespace] = ["uid", "namespace"].map(|field| format!("object.metadata.{field}"));
        // the hash of "" begins with 0xcb, those of "a" and "foobar" with 0xaf and 0x85
        let exactly = "'0xaf63dc4c8601ec8c', '0xaf63dc4c8601ec8d'";
        let before = "'0xaf63dc4c8601ec8b', '0xaf63dc4c8601ec8c'";
        for (text, of_a, of_nothing) in [
            (format!("shardRange({uid}, {LOW})"), false, false),
            (format!("shardRange({uid}, {HIGH})"), true, true),
            (format!("shardRange({uid}, {LOW}) || shardRange({uid}, {HIGH})"), true, true),
            (format!("shardRange({uid}, {exactly})"), true, false),
            (format!("shardRange({uid}, {before})"), false, false),
            (format!("shardRange({uid}, '0xcb00000000000000', '0x10000000000000000')"), false, true),
        ] {
            assert_eq!(selects(&text, "a", "foobar"), of_a, "{text}");
            assert_eq!(selects(&text, "", "foobar"), of_nothing, "{text}");
            let of_namespace = text.replace(&uid, &namespace);
            assert_eq!(selects(&of_namespace, "foobar", "a"), of_a, "{of_namespace}");
        }
    }

    #[test]
    fn shown_selectors_are_normalized() {
        let low = format!("shardRange(object.metadata.uid, {LOW})");
        let two = format!("{low} || shardRange(object.metadata.uid, {HIGH})");
        let four = format!("{two} || {two}");
        for (text, want) in [
            (low.clone(), &low),
            (format!("  ({low}) // all"), &low),
            (low.replace('\'', "\""), &low),
            (low.replace('\'', "'''"), &low),
            (low.replace("'0x", "r'0x"), &low),
            (low.replace("00', ", "0\\x30', "), &low),
            (format!("x.y.{low}"), &low),
            (low.replace(".metadata.", ".`metadata`."), &low),
            (low.replace("metadata.uid", "`metadata.uid`"), &low),
            (two.replace("||", "\n||\n"), &two),
            (format!("({two}) || {two}"), &four),
            (format!("{low} || ({} || {low}) || {}", &two[low.len() + 4..], &two[low.len() + 4..]), &four),
        ] {
            let parsed = ShardSelector::parse(&text).map(|shards| shards.to_string());
            assert_eq!(parsed.as_ref(), Ok(want), "{text}");
        }
    }

    #[test]
    fn errors_match_kube_apiserver() {
        let lines: Vec<&str> = ERRORS.lines().collect();
        for case in lines.chunks(2) {
            let [text, want] = case else { panic!("{case:?} has no error") };
            assert_eq!(ShardSelector::parse(text).map(|shards| shards.to_string()), Err((*want).to_owned()), "{text}");
        }
    }

    #[test]
    fn deep_and_long_selectors_are_parsed() {
        let low = format!("shardRange(object.metadata.uid, {LOW})");
        let many = vec![low.as_str(); 1000].join(" || ");
        assert_eq!(ShardSelector::parse(&many).unwrap().to_string(), many);
        for text in [format!("{}{low}", "(".repeat(10_000)), "a.".repeat(40_000), vec![low; 2000].join(" || ")] {
            assert!(ShardSelector::parse(&text).is_err());
        }
    }
}
