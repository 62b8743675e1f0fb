//! The syntax tree and its source.
//!
//! Every node has an id. Ids count up in the order in which the nodes are created, and index the side tables: positions
//! here, types and references in `check`.

use machinery::Text;

/// Index of a node.
pub type Id = u32;

/// A node.
#[derive(Clone, Debug, PartialEq)]
pub struct Expr {
    pub id: Id,
    pub kind: Kind,
}

/// A literal.
#[derive(Clone, Debug, PartialEq)]
pub enum Literal {
    Null,
    Bool(bool),
    Int(i64),
    Uint(u64),
    Double(f64),
    String(Text),
    Bytes(std::sync::Arc<[u8]>),
}

/// The kind of a node.
#[derive(Clone, Debug, PartialEq)]
pub enum Kind {
    /// The place of a syntax error.
    Error,
    Literal(Literal),
    Ident(Text),
    Select {
        operand: Box<Expr>,
        field: Text,
        test_only: bool,
    },
    Call {
        function: Text,
        target: Option<Box<Expr>>,
        args: Vec<Expr>,
    },
    List {
        items: Vec<Expr>,
        optional: Vec<u32>,
    },
    Map(Vec<Entry>),
    Struct {
        name: Text,
        fields: Vec<Field>,
    },
    Comprehension(Box<Comprehension>),
}

/// An entry of a map literal.
#[derive(Clone, Debug, PartialEq)]
pub struct Entry {
    pub id: Id,
    pub key: Expr,
    pub value: Expr,
    pub optional: bool,
}

/// A field of a message literal.
#[derive(Clone, Debug, PartialEq)]
pub struct Field {
    pub id: Id,
    pub name: Text,
    pub value: Expr,
    pub optional: bool,
}

/// A comprehension (fold), to which macros are expanded.
#[derive(Clone, Debug, PartialEq)]
pub struct Comprehension {
    pub range: Expr,
    pub var: Text,
    pub var2: Option<Text>,
    pub accu: Text,
    pub init: Expr,
    pub condition: Expr,
    pub step: Expr,
    pub result: Expr,
}

impl Expr {
    /// Calls `visit` for this node and all below, parents first, in the order of the source. Not recursive.
    pub fn walk<'a>(&'a self, mut visit: impl FnMut(&'a Expr)) {
        let mut open = vec![self];
        while let Some(expr) = open.pop() {
            visit(expr);
            let start = open.len();
            expr.children(|child| open.push(child));
            open[start..].reverse();
        }
    }

    /// Calls `visit` for the children of the node.
    pub fn children<'a>(&'a self, mut visit: impl FnMut(&'a Expr)) {
        match &self.kind {
            Kind::Error | Kind::Literal(_) | Kind::Ident(_) => {}
            Kind::Select { operand, .. } => visit(operand),
            Kind::Call { target, args, .. } => {
                target.iter().for_each(|t| visit(t));
                args.iter().for_each(visit);
            }
            Kind::List { items, .. } => items.iter().for_each(visit),
            Kind::Map(entries) => entries.iter().for_each(|entry| {
                visit(&entry.key);
                visit(&entry.value);
            }),
            Kind::Struct { fields, .. } => fields.iter().for_each(|field| visit(&field.value)),
            Kind::Comprehension(c) => [&c.range, &c.init, &c.condition, &c.step, &c.result].into_iter().for_each(visit),
        }
    }
}

/// The text of an expression, addressed by code points.
#[derive(Clone, Debug)]
pub struct Source {
    text: String,
    /// Code point offsets of the line starts.
    lines: Vec<u32>,
}

/// An offset in a source, in code points, or [`NOWHERE`].
pub type Offset = u32;
/// The offset of nodes and issues without a position.
pub const NOWHERE: Offset = u32::MAX;

/// A problem, with its position.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Issue {
    /// The position, in code points; [`Source::place`] returns its line and column.
    pub offset: Offset,
    /// The message, as cel-go words it.
    pub message: String,
}

impl Issue {
    pub(crate) fn new(offset: Offset, message: impl Into<String>) -> Issue {
        Issue { offset, message: message.into() }
    }
}

impl Source {
    pub(crate) fn new(text: &str) -> Source {
        let starts = text.chars().zip(1..).filter(|(c, _)| *c == '\n').map(|(_, next)| next);
        Source { text: text.to_owned(), lines: std::iter::once(0).chain(starts).collect() }
    }

    /// The text of the expression.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// Line and column, both from 1; `None` for `NOWHERE`.
    pub fn place(&self, offset: Offset) -> Option<(usize, usize)> {
        if offset == NOWHERE {
            return None;
        }
        let (line, column) = self.location(offset);
        Some((line, column as usize + 1))
    }

    /// Line (from 1) and column (from 0).
    fn location(&self, offset: Offset) -> (usize, u32) {
        let line = self.lines.partition_point(|&start| start <= offset);
        (line, offset - self.lines[line - 1])
    }

    /// The issues in the order of their positions, as cel-go displays them; at most a hundred.
    pub(crate) fn display(&self, issues: &[Issue]) -> String {
        let mut sorted: Vec<&Issue> = issues.iter().collect();
        sorted.sort_by_key(|issue| issue.offset.wrapping_add(1));
        let shown: Vec<String> = sorted.iter().take(100).map(|issue| self.display_one(issue)).collect();
        let mut text = shown.join("\n");
        if sorted.len() > 100 {
            text.push_str(&format!("\n{} more errors were truncated", sorted.len() - 100));
        }
        text
    }

    fn display_one(&self, issue: &Issue) -> String {
        if issue.offset == NOWHERE {
            return format!("ERROR: <input>:-1:0: {}", issue.message);
        }
        if self.text.is_empty() {
            // an empty text has no line to show
            return format!("ERROR: <input>:1:0: {}", issue.message);
        }
        let (line, column) = self.location(issue.offset);
        let mut text = format!("ERROR: <input>:{line}:{}: {}", column + 1, issue.message);
        let snippet = self.text.split('\n').nth(line - 1).unwrap_or_default().replace('\t', " ");
        text.push_str("\n | ");
        text.push_str(&snippet);
        text.push_str("\n | ");
        let mut chars = snippet.chars();
        for c in chars.by_ref().take(column as usize) {
            text.push_str(if c.len_utf8() > 1 { "．" } else { "." });
        }
        text.push_str(if chars.next().is_some_and(|c| c.len_utf8() > 1) { "＾" } else { "^" });
        text
    }
}

/// A parsed expression.
#[derive(Clone, Debug)]
pub struct Ast {
    pub source: Source,
    pub root: Expr,
    /// The position of each node.
    pub offsets: Vec<Offset>,
}

impl Ast {
    /// The position of a node.
    pub fn offset(&self, id: Id) -> Offset {
        self.offsets.get(id as usize).copied().unwrap_or(NOWHERE)
    }
}
