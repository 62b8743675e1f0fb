//! The parts of an estimate: the nodes of the expression, with the cost of each and how often it is evaluated.

use crate::ast::{Ast, Expr, Id, Kind, Offset, Source};
use crate::limits::EXPLAINED_PARTS_MAX;
use std::collections::{BTreeMap, HashMap};

/// The share of one part of an expression in its estimated cost.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Part {
    /// The piece of the source: a call with its receiver and arguments, or an operator.
    pub text: String,
    /// The line of the piece, from 1.
    pub line: usize,
    /// The column of the piece, from 1, in code points.
    pub column: usize,
    /// The number of iterations, if the piece is a loop.
    pub rounds: Option<u64>,
    /// The cost of one evaluation, without nested pieces.
    pub each: u64,
    /// How often it is evaluated: the product of the iterations of all enclosing loops.
    pub times: u64,
}

impl Part {
    /// The total cost of the part.
    pub fn cost(&self) -> u64 {
        self.each.saturating_mul(self.times)
    }
}

#[derive(Default)]
pub(super) struct Trace {
    /// The maximum cost of each node, children included.
    pub costs: HashMap<Id, u64>,
    pub rounds: HashMap<Id, u64>,
}

impl Trace {
    /// The pieces with a cost, and loops, the most expensive first; pieces of equal cost in the order of the source.
    pub fn parts(&self, ast: &Ast) -> Vec<Part> {
        // the nodes of a macro have the position of the macro, so they form one piece
        let mut parts: BTreeMap<(u32, u64), Part> = BTreeMap::new();
        let mut open = vec![(&ast.root, 1_u64)];
        while let Some((expr, times)) = open.pop() {
            let rounds = self.rounds.get(&expr.id).copied();
            let mut below = 0_u64;
            self.children(expr, |child, again| {
                let cost = self.costs.get(&child.id).copied().unwrap_or(0);
                below = below.saturating_add(cost.saturating_mul(again));
                open.push((child, times.saturating_mul(again)));
            });
            let each = self.costs.get(&expr.id).map_or(0, |cost| cost.saturating_sub(below));
            if each > 0 || rounds.is_some() {
                let empty = Part { text: String::new(), line: 1, column: 1, rounds, each: 0, times };
                let part = parts.entry((ast.offset(expr.id), times)).or_insert(empty);
                part.each = part.each.saturating_add(each);
                part.rounds = part.rounds.or(rounds);
            }
        }
        let mut parts: Vec<(u32, Part)> = parts.into_iter().map(|((offset, _), part)| (offset, part)).collect();
        parts.sort_by_key(|(_, part)| std::cmp::Reverse(part.cost()));
        parts.truncate(EXPLAINED_PARTS_MAX);
        let chars: Vec<char> = ast.source.text().chars().collect();
        let shown = parts.into_iter().map(|(offset, part)| {
            let (line, column) = ast.source.place(offset).unwrap_or((1, 1));
            Part { text: snippet(&chars, offset as usize), line, column, ..part }
        });
        shown.collect()
    }

    /// The children of a node, and how often each is evaluated per evaluation of the node.
    fn children<'a>(&self, expr: &'a Expr, mut visit: impl FnMut(&'a Expr, u64)) {
        match (&expr.kind, self.rounds.get(&expr.id)) {
            (Kind::Comprehension(fold), Some(rounds)) => {
                [&fold.range, &fold.init, &fold.result].into_iter().for_each(|child| visit(child, 1));
                [&fold.condition, &fold.step].into_iter().for_each(|child| visit(child, *rounds));
            }
            _ => expr.children(|child| visit(child, 1)),
        }
    }
}

/// The piece of the source at an offset.
pub(crate) fn piece(source: &Source, offset: Offset) -> String {
    let chars: Vec<char> = source.text().chars().collect();
    snippet(&chars, offset as usize)
}

/// The source of the call whose opening parenthesis or bracket is at `offset`, with its receiver; otherwise the word or
/// operator at `offset`.
fn snippet(chars: &[char], offset: usize) -> String {
    let is_word = |c: char| c.is_alphanumeric() || c == '_';
    match chars.get(offset) {
        None => String::new(),
        Some('(' | '[' | '{') => {
            let start = receiver(chars, offset);
            let end = closing(chars, offset).unwrap_or(chars.len());
            chars[start..end].iter().collect()
        }
        Some('.') => {
            let end = (offset + 1..chars.len()).find(|i| !is_word(chars[*i])).unwrap_or(chars.len());
            chars[receiver(chars, offset)..end].iter().collect()
        }
        Some(c) if is_word(*c) => chars[offset..].iter().take_while(|c| is_word(**c)).collect(),
        Some(_) => {
            let operator =
                |c: &&char| matches!(**c, '=' | '!' | '<' | '>' | '&' | '|' | '+' | '-' | '*' | '/' | '%' | '?');
            chars[offset..].iter().take_while(operator).collect()
        }
    }
}

/// The start of the receiver that ends at `end`: names, dots, calls and indices.
fn receiver(chars: &[char], end: usize) -> usize {
    let mut at = end;
    while at > 0 {
        match chars[at - 1] {
            c if c.is_alphanumeric() || matches!(c, '_' | '.' | '?') => at -= 1,
            ')' | ']' | '}' => match opening(chars, at - 1) {
                Some(open) => at = open,
                None => break,
            },
            '\'' | '"' => match (0..at - 1).rev().find(|i| chars[*i] == chars[at - 1]) {
                Some(open) => at = open,
                None => break,
            },
            _ => break,
        }
    }
    at
}

/// The end of the bracket that opens at `open`.
fn closing(chars: &[char], open: usize) -> Option<usize> {
    balanced(chars, open..chars.len()).map(|at| at + 1)
}

/// The position of the bracket that matches the one at `close`.
fn opening(chars: &[char], close: usize) -> Option<usize> {
    balanced(chars, (0..=close).rev())
}

/// The first position at which all brackets are balanced, ignoring those in strings.
fn balanced(chars: &[char], places: impl Iterator<Item = usize>) -> Option<usize> {
    let (mut depth, mut quote) = (0_i32, None);
    for i in places {
        match (quote, chars[i]) {
            (Some(q), c) if q == c && (i == 0 || chars[i - 1] != '\\') => quote = None,
            (Some(_), _) => {}
            (None, c @ ('\'' | '"')) => quote = Some(c),
            (None, '(' | '[' | '{') => depth += 1,
            (None, ')' | ']' | '}') => depth -= 1,
            _ => {}
        }
        if depth == 0 && quote.is_none() {
            return Some(i);
        }
    }
    None
}
