//! Finds the paths in Rust code: in `use` items, expressions, types and patterns.

use super::source::line_of;

/// A path in code, such as `crate::clock::instant`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Named {
    pub line: usize,
    pub path: Vec<String>,
    /// The name that a `use` item introduces, or `*`; `None` outside `use` items.
    pub alias: Option<String>,
}

fn is_word(c: char) -> bool {
    c.is_alphanumeric() || c == '_'
}

/// Every path of two or more segments, and the path of every `use` item. The code must not have comments and strings.
pub fn read(code: &str) -> Vec<Named> {
    let mut found = vec![];
    let mut rest = code.to_owned();
    for (at, _) in code.match_indices("use ") {
        if code[..at].chars().next_back().is_some_and(|c| is_word(c) || c == ':') {
            continue;
        }
        let end = code[at..].find(';').map_or(code.len(), |length| at + length);
        let line = line_of(code, at);
        expand(&[], &code[at + 4..end], &mut |path, alias| {
            found.push(Named { line, path, alias: Some(alias) });
        });
        let blanked: String = code[at..end].bytes().map(|b| if b == b'\n' { '\n' } else { ' ' }).collect();
        rest.replace_range(at..end, &blanked);
    }
    found.extend(inline(&rest));
    found
}

/// The paths of a use tree such as `crate::{a, b::{self, c as d}}`, each with the name that it introduces.
fn expand(prefix: &[String], tree: &str, found: &mut impl FnMut(Vec<String>, String)) {
    let tree = tree.trim();
    if let Some(group) = tree.strip_prefix('{').and_then(|tree| tree.strip_suffix('}')) {
        let mut depth = 0;
        let parts = group.split(|c| {
            depth += i32::from(c == '{') - i32::from(c == '}');
            c == ',' && depth == 0
        });
        parts.filter(|part| !part.trim().is_empty()).for_each(|part| expand(prefix, part, &mut *found));
        return;
    }
    if let Some((head, rest)) = tree.split_once("::") {
        // a path that begins with `::` belongs to another crate
        let path = [prefix, &[head.trim().to_owned()]].concat();
        expand(&path, rest, found);
        return;
    }
    let (name, alias) = tree.split_once(" as ").unwrap_or((tree, tree));
    let (name, alias) = (name.trim(), alias.trim());
    let path =
        if name == "self" && !prefix.is_empty() { prefix.to_vec() } else { [prefix, &[name.to_owned()]].concat() };
    let alias = if alias == "self" { path.last().cloned().unwrap_or_default() } else { alias.to_owned() };
    found(path, alias);
}

/// The paths outside `use` items.
fn inline(code: &str) -> Vec<Named> {
    let mut found = vec![];
    let mut from = 0;
    while let Some(at) = code[from..].find(is_word).map(|at| from + at) {
        let before = code[..at].chars().next_back();
        let mut end = at;
        let mut path = vec![];
        loop {
            let word = code[end..].find(|c| !is_word(c)).map_or(code.len(), |length| end + length);
            path.push(code[end..word].to_owned());
            end = word;
            match code[word..].strip_prefix("::") {
                Some(rest) if rest.starts_with(is_word) => end = word + 2,
                _ => break,
            }
        }
        from = end;
        // `$crate::a` belongs to a macro, `::a` to another crate
        if path.len() > 1 && !matches!(before, Some('$' | ':')) {
            found.push(Named { line: line_of(code, at), path, alias: None });
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_read() {
        let cases = [
            ("use crate::a;", "crate::a=a"),
            ("pub use crate::{a, b::{self, C as D, e::*}};", "crate::a=a crate::b=b crate::b::C=D crate::b::e::*=*"),
            ("use super::super::{\n a,\n};", "super::super::a=a"),
            ("use ::http::Method;", "::http::Method=Method"),
            ("fn f(x: a::B) { self::c::d(x); E::F; $crate::g::h; ::i::j }", "a::B self::c::d E::F"),
            ("reuse x::y", "x::y"),
            ("pub(in crate::verbs) fn f<'a>() -> impl A + use<'a> { Vec::<u8>::new() }", "crate::verbs"),
        ];
        for (code, want) in cases {
            let shown = |named: Named| {
                let alias = named.alias.map(|alias| format!("={alias}")).unwrap_or_default();
                format!("{}{alias}", named.path.join("::"))
            };
            let found: Vec<String> = read(code).into_iter().map(shown).collect();
            assert_eq!(found.join(" "), want, "{code}");
        }
    }

    #[test]
    fn paths_have_lines() {
        let lines: Vec<usize> =
            read("use a::b;\n\nuse c::{\n d,\n};\nfn f() { e::f }").iter().map(|n| n.line).collect();
        assert_eq!(lines, [1, 3, 6]);
    }
}
