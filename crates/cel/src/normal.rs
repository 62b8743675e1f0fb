//! Expressions in a form that does not depend on white space, comments and outer parentheses, to compare their texts.

use crate::lexer::{Token, kind, tokens};

/// The terms of a conjunction: the expressions between the outermost `&&`, each with one blank between its tokens. An
/// expression that is no conjunction is the only term. `None` if the text has parts that are not tokens.
pub fn conjuncts(text: &str) -> Option<Vec<String>> {
    terms(text, kind::AND)
}

/// As [`conjuncts`], for the terms between the outermost `||`.
pub fn disjuncts(text: &str) -> Option<Vec<String>> {
    terms(text, kind::OR)
}

fn terms(text: &str, operator: u8) -> Option<Vec<String>> {
    let (mut all, issues, _) = tokens(text);
    if !issues.is_empty() {
        return None;
    }
    all.retain(|token| token.kind != kind::EOF);
    let mut out = vec![];
    let mut waiting = vec![all.as_slice()];
    while let Some(part) = waiting.pop() {
        let part = without_parentheses(part);
        let pieces = split(part, operator);
        match pieces.as_slice() {
            [only] => out.push(only.iter().map(|token| &text[token.start..token.end]).collect::<Vec<_>>().join(" ")),
            pieces => waiting.extend(pieces.iter().rev()),
        }
    }
    Some(out)
}

/// How deep each token is in brackets; an opening and a closing bracket are as deep as what surrounds them.
fn depths(tokens: &[Token]) -> impl Iterator<Item = (usize, &Token)> {
    tokens.iter().scan(0_usize, |depth, token| {
        let opens = matches!(token.kind, kind::LPAREN | kind::LBRACKET | kind::LBRACE);
        let closes = matches!(token.kind, kind::RPAREN | kind::RBRACKET | kind::RBRACE);
        *depth = depth.saturating_sub(usize::from(closes));
        let own = *depth;
        *depth += usize::from(opens);
        Some((own, token))
    })
}

/// The tokens between the outermost operators. Where an operator that binds less is outside as well, there is one piece.
fn split(tokens: &[Token], operator: u8) -> Vec<&[Token]> {
    let binds_less = |kind: u8| kind == kind::QUESTION || operator == kind::AND && kind == kind::OR;
    let mut outer = depths(tokens).filter(|(depth, _)| *depth == 0);
    // `?` is also a part of `.?`, `[?` and of optional entries, of which only `.?` is not in brackets
    let is_select = |token: &Token| {
        token.kind == kind::QUESTION
            && tokens.iter().any(|before| before.kind == kind::DOT && before.end == token.start)
    };
    if outer.any(|(_, token)| binds_less(token.kind) && !is_select(token)) {
        return vec![tokens];
    }
    let mut pieces = vec![];
    let mut start = 0;
    for (i, (depth, token)) in depths(tokens).enumerate() {
        if depth == 0 && token.kind == operator {
            pieces.push(&tokens[start..i]);
            start = i + 1;
        }
    }
    pieces.push(&tokens[start..]);
    pieces
}

/// The tokens without parentheses around all of them.
fn without_parentheses(mut tokens: &[Token]) -> &[Token] {
    while let [first, inner @ .., last] = tokens
        && first.kind == kind::LPAREN
        && last.kind == kind::RPAREN
        && depths(tokens).skip(1).take(inner.len()).all(|(depth, _)| depth > 0)
    {
        tokens = inner;
    }
    tokens
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn terms_of_expressions() {
        for (text, wanted) in [
            ("a", vec!["a"]),
            ("a&&b // more", vec!["a", "b"]),
            ("(a && (b && c)) && d", vec!["a", "b", "c", "d"]),
            ("(a) && (b)", vec!["a", "b"]),
            ("a && b || c", vec!["a && b || c"]),
            ("a && b ? c : d", vec!["a && b ? c : d"]),
            ("self.?a.orValue(true) && b", vec!["self . ? a . orValue ( true )", "b"]),
            ("l.all(x, x > 0 && x < 9)", vec!["l . all ( x , x > 0 && x < 9 )"]),
            ("'&&' == a", vec!["'&&' == a"]),
            ("", vec![""]),
            ("(", vec!["("]),
            (") && (", vec![")", "("]),
        ] {
            assert_eq!(conjuncts(text), Some(wanted.into_iter().map(str::to_owned).collect()), "{text}");
        }
        assert_eq!(disjuncts("a && b || (c || d)"), Some(vec!["a && b".into(), "c".into(), "d".into()]));
        assert_eq!(conjuncts("a && 'b"), None);
    }
}
