//! Checks of literal arguments: durations, timestamps, patterns and format strings.

use super::Checked;
use crate::ast::{Expr, Issue, Kind, Literal};
use crate::decl::types::Type;
use crate::library::standard;
use crate::library::string_format::{FormatPart, parts, wrong_type};
use crate::regex::Regex;
use crate::value::{Val, time};

/// Reports literal arguments that are always invalid. As in cel-go, `matches` has its first argument checked, with or
/// without a receiver: in `matches(text, pattern)` the text is checked as if it were a pattern, and the pattern is
/// checked only when the program compiles it.
pub(crate) fn literals(checked: &Checked, issues: &mut Vec<Issue>) {
    let root = &checked.ast.root;
    for function in ["duration", "timestamp", "matches"] {
        root.walk(|expr| {
            if let Kind::Call { function: name, args, .. } = &expr.kind
                && name == function
                && let Some(Expr { kind: Kind::Literal(literal), id, .. }) = args.first()
                && !is_good(function, literal)
            {
                issues.push(Issue::new(checked.ast.offset(*id), format!("invalid {function} argument")));
            }
        });
    }
    root.walk(|expr| {
        if let Kind::Call { function, target: Some(target), args } = &expr.kind
            && function == "format"
            && let Kind::Literal(Literal::String(text)) = &target.kind
            && let [Expr { kind: Kind::List { items, .. }, .. }] = args.as_slice()
        {
            format_call(checked, expr, text, items, issues);
        }
    });
}

/// Reports list and map literals with elements of different types, except in arguments of `format`.
pub(crate) fn aggregates(checked: &Checked, scope: &str, issues: &mut Vec<Issue>) {
    let mut found = vec![];
    let mut open = vec![(&checked.ast.root, false)];
    while let Some((expr, exempt)) = open.pop() {
        let inside = exempt || matches!(&expr.kind, Kind::Call { function, .. } if function == "format");
        let start = open.len();
        expr.children(|child| open.push((child, inside)));
        open[start..].reverse();
        if !exempt {
            found.push(expr);
        }
    }
    for expr in &found {
        if let Kind::List { items, optional } = &expr.kind {
            let elements = items.iter().enumerate().map(|(i, item)| (item, optional.contains(&(i as u32))));
            issues.extend(differing_types(checked, scope, elements).next());
        }
    }
    for expr in &found {
        if let Kind::Map(entries) = &expr.kind {
            issues.extend(differing_types(checked, scope, entries.iter().map(|e| (&e.key, false))));
            issues.extend(differing_types(checked, scope, entries.iter().map(|e| (&e.value, e.optional))));
        }
    }
}

/// The issues of elements, which may be optional, whose type is not that of the first.
fn differing_types<'e>(
    checked: &'e Checked,
    scope: &str,
    elements: impl Iterator<Item = (&'e Expr, bool)>,
) -> impl Iterator<Item = Issue> {
    let mut first: Option<&Type> = None;
    elements.filter_map(move |(element, optional)| {
        let t = checked.type_of(element.id);
        let t = if optional { t.unwrapped().unwrap_or(t) } else { t };
        let want = *first.get_or_insert(t);
        (want != t).then(|| {
            let message = format!("expected type '{}' but found '{}'", want.format(scope), t.format(scope));
            Issue::new(checked.ast.offset(element.id), message)
        })
    })
}

fn is_good(function: &str, literal: &Literal) -> bool {
    match (function, literal) {
        ("matches", Literal::String(pattern)) => Regex::new(pattern).is_ok(),
        ("duration", Literal::String(text)) => time::parse_duration(text).is_some(),
        ("timestamp", Literal::String(text)) => standard::to_timestamp(&[Val::borrowed(text)]).is_ok(),
        ("timestamp", Literal::Int(i)) => standard::to_timestamp(&[Val::Int(*i)]).is_ok(),
        _ => true,
    }
}

fn format_call(checked: &Checked, call: &Expr, text: &str, items: &[Expr], issues: &mut Vec<Issue>) {
    let mut bad = None;
    let result = parts(text, items.len(), |part, index| {
        let (FormatPart::Clause(clause), Some(item)) = (part, items.get(index)) else { return Ok(()) };
        match unprintable(checked, clause.verb, item) {
            None => Ok(()),
            Some(id) => {
                bad = Some(id);
                Err(wrong_type(clause.verb, &checked.type_of(id).runtime_name()))
            }
        }
    });
    match result {
        Err(message) => issues.push(Issue::new(checked.ast.offset(bad.unwrap_or(call.id)), message)),
        Ok(used) if items.len() > used => {
            let given = items.len();
            let message = format!("too many arguments supplied to string.format (expected {used}, got {given})");
            issues.push(Issue::new(checked.ast.offset(call.id), message));
        }
        Ok(_) => {}
    }
}

/// The node whose type a clause cannot format, if there is one.
fn unprintable(checked: &Checked, verb: char, item: &Expr) -> Option<u32> {
    let t = checked.type_of(item.id);
    let good = match verb {
        _ if *t == Type::Dyn => true,
        's' => {
            !matches!(t, Type::Opaque(..) | Type::Named(_) | Type::Object(_) | Type::Made(_) | Type::Any | Type::Error)
        }
        'd' | 'o' => matches!(t, Type::Int | Type::Uint),
        'f' | 'e' => matches!(t, Type::Double | Type::String),
        'b' => matches!(t, Type::Int | Type::Uint | Type::Bool),
        _ => matches!(t, Type::Int | Type::Uint | Type::String | Type::Bytes),
    };
    if !good {
        return Some(item.id);
    }
    if verb != 's' {
        return None;
    }
    match &item.kind {
        Kind::List { items, .. } => items.iter().find_map(|item| unprintable(checked, verb, item)),
        Kind::Map(entries) => entries
            .iter()
            .find_map(|e| unprintable(checked, verb, &e.key).or_else(|| unprintable(checked, verb, &e.value))),
        _ => None,
    }
}
