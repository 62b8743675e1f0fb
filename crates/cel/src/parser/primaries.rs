//! Rules of operands: names, messages, lists, maps and literals.

use super::literal::literal_value;
use super::{EPSILON, EXPR, OPT_EXPR, OPT_FIELD, PRIMARY, Parsed, Parser, RESERVED, Set, Stop, Tree, set};
use crate::ast::{Entry, Expr, Field, Issue, Kind};
use crate::lexer::kind::*;
use machinery::Text;

impl Parser<'_> {
    pub(super) fn primary(&mut self) -> Parsed<Tree> {
        self.sync(PRIMARY)?;
        match self.la() {
            IDENT | DOT => self.name(),
            LPAREN => {
                self.matched();
                self.consume();
                let inner = self.rule(set(&[RPAREN]), 1, Self::expr)?;
                self.expect(RPAREN, EPSILON)?;
                Ok(inner)
            }
            LBRACKET => self.list(),
            LBRACE => self.map(),
            _ if self.is(PRIMARY) => self.literal(),
            _ => Err(Stop::NoViable(self.at, self.at)),
        }
    }

    /// A variable, a call or a message.
    fn name(&mut self) -> Parsed<Tree> {
        let first = self.token();
        let dot = first.kind == DOT;
        if self.ahead(usize::from(dot)).kind != IDENT {
            return Err(Stop::NoViable(self.at, self.at + 1));
        }
        let mut next = usize::from(dot) + 1;
        while self.ahead(next).kind == DOT && self.ahead(next + 1).kind == IDENT {
            next += 2;
        }
        if self.ahead(next).kind == LBRACE {
            return self.message(next);
        }
        self.matched();
        if dot {
            self.consume();
        }
        let token = self.consume();
        let text = self.text_of(token);
        let name = if dot { Text::from(format!(".{text}")) } else { Text::new(text) };
        let reserved = RESERVED.contains(&text);
        if self.la() == LPAREN {
            let open = self.consume();
            let args = self.arguments()?;
            if reserved {
                return Ok(Box::new(self.error(first.offset, format!("reserved identifier: {text}"))));
            }
            return self.call(open.offset, &name, None, args);
        }
        if reserved {
            return Ok(Box::new(self.error(first.offset, format!("reserved identifier: {text}"))));
        }
        Ok(Box::new(self.node(token.offset, Kind::Ident(name))))
    }

    /// `pkg.Message{field: value}` whose brace is `brace` tokens ahead.
    fn message(&mut self, brace: usize) -> Parsed<Tree> {
        self.matched();
        let mut name = String::new();
        for _ in 0..brace {
            let token = self.consume();
            name.push_str(self.text_of(token));
        }
        let open = self.consume();
        let id = self.id(open.offset);
        let close = set(&[COMMA, RBRACE]);
        self.sync(OPT_FIELD | close)?;
        let mut fields = vec![];
        if self.is(OPT_FIELD) {
            self.follow.push(close);
            let result = self.fields(&mut fields);
            self.follow.pop();
            result?;
        }
        self.end_of_list(RBRACE)?;
        let height = self.tallest(fields.iter().map(|f| &f.value));
        self.raised(Expr { id, kind: Kind::Struct { name: Text::from(name), fields } }, height)
    }

    fn fields(&mut self, fields: &mut Vec<Field>) -> Parsed<()> {
        loop {
            self.sync(OPT_FIELD)?;
            let optional = self.la() == QUESTION;
            if optional {
                self.matched();
                let token = self.consume();
                if !self.syntax.optional {
                    self.issues.push(Issue::new(token.offset, "unsupported syntax '?'"));
                }
            }
            let (name, _) = self.escape_ident(set(&[COLON]))?;
            let offset = self.token().offset;
            self.expect(COLON, EXPR)?;
            let id = self.id(offset);
            let value = self.rule(set(&[COMMA]) | EPSILON, 1, Self::expr)?;
            fields.push(Field { id, name: name.unwrap_or_default(), value: *value, optional });
            if self.la() != COMMA || OPT_FIELD & (1 << self.ahead(1).kind) == 0 {
                return Ok(());
            }
            self.matched();
            self.consume();
        }
    }

    /// An optional comma and the closing token.
    fn end_of_list(&mut self, close: u8) -> Parsed<()> {
        self.sync(set(&[COMMA, close]))?;
        if self.la() == COMMA {
            self.matched();
            self.consume();
        }
        self.expect(close, EPSILON).map(|_| ())
    }

    fn list(&mut self) -> Parsed<Tree> {
        self.matched();
        let open = self.consume();
        let id = self.id(open.offset);
        let close = set(&[COMMA, RBRACKET]);
        let (mut items, mut optional) = (vec![], vec![]);
        self.sync(OPT_EXPR | close)?;
        if self.is(OPT_EXPR) {
            // errors in items end the items; any other error ends parsing
            self.follow.push(close);
            loop {
                let (item, is_optional) = self.opt_expr(set(&[COMMA]) | EPSILON)?;
                if is_optional {
                    optional.push(items.len() as u32);
                }
                items.push(*item);
                if self.la() != COMMA || OPT_EXPR & (1 << self.ahead(1).kind) == 0 {
                    break;
                }
                self.matched();
                self.consume();
            }
            self.follow.pop();
        }
        self.end_of_list(RBRACKET)?;
        let height = self.tallest(&items);
        self.raised(Expr { id, kind: Kind::List { items, optional } }, height)
    }

    fn opt_expr(&mut self, follow: Set) -> Parsed<(Tree, bool)> {
        if self.is(EXPR) {
            return Ok((self.rule(follow, 1, Self::expr)?, false));
        }
        let optional = self.la() == QUESTION;
        let expr = self.rule(follow, 10, |p| {
            p.sync(OPT_EXPR)?;
            if p.la() == QUESTION {
                p.matched();
                let token = p.consume();
                if !p.syntax.optional {
                    p.issues.push(Issue::new(token.offset, "unsupported syntax '?'"));
                }
            }
            p.rule(EPSILON, 1, Self::expr)
        })?;
        Ok((expr, optional))
    }

    fn map(&mut self) -> Parsed<Tree> {
        self.matched();
        let open = self.consume();
        let id = self.id(open.offset);
        let close = set(&[COMMA, RBRACE]);
        let mut entries = vec![];
        self.sync(OPT_EXPR | close)?;
        if self.is(OPT_EXPR) {
            self.follow.push(close);
            let result = self.map_entries(&mut entries);
            self.follow.pop();
            if let Err(stop) = result {
                self.follow.push(close);
                let recovered = self.recover(stop, 11);
                self.follow.pop();
                recovered?;
            }
        }
        self.end_of_list(RBRACE)?;
        let height = self.tallest(entries.iter().flat_map(|e| [&e.key, &e.value]));
        self.raised(Expr { id, kind: Kind::Map(entries) }, height)
    }

    fn map_entries(&mut self, entries: &mut Vec<Entry>) -> Parsed<()> {
        loop {
            let (key, optional) = self.opt_expr(set(&[COLON]))?;
            let offset = self.token().offset;
            self.expect(COLON, EXPR)?;
            let id = self.id(offset);
            let value = self.rule(set(&[COMMA]) | EPSILON, 1, Self::expr)?;
            entries.push(Entry { id, key: *key, value: *value, optional });
            if self.la() != COMMA || OPT_EXPR & (1 << self.ahead(1).kind) == 0 {
                return Ok(());
            }
            self.matched();
            self.consume();
        }
    }

    fn literal(&mut self) -> Parsed<Tree> {
        let first = self.token();
        if first.kind == MINUS && !matches!(self.ahead(1).kind, INT | FLOAT) {
            return Err(Stop::NoViable(self.at, self.at + 1));
        }
        self.matched();
        let sign = if first.kind == MINUS { "-" } else { "" };
        if first.kind == MINUS {
            self.consume();
        }
        let token = self.consume();
        let text = self.text_of(token);
        match literal_value(token.kind, sign, text) {
            Ok(value) => Ok(Box::new(self.node(first.offset, Kind::Literal(value)))),
            Err(message) => Ok(Box::new(self.error(first.offset, message))),
        }
    }
}
