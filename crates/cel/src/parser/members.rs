//! Rules for what follows an operand: fields, method calls and indices.

use super::{EPSILON, EXPR, IDENTS, MEMBERS, OPT_EXPR, OPT_FIELD, Parsed, Parser, Set, Stop, Tree, set};
use crate::ast::{Expr, Issue, Kind, Literal, Offset};
use crate::lexer::{Token, kind::*};
use machinery::Text;

impl Parser<'_> {
    pub(super) fn member(&mut self) -> Parsed<Tree> {
        self.depths.member += 1;
        self.check_depths()?;
        let mut operand = self.rule(MEMBERS | EPSILON, 8, Self::primary)?;
        while self.is(MEMBERS) {
            self.depths.member += 1;
            self.check_depths()?;
            operand = self.qualified(operand)?;
        }
        Ok(operand)
    }

    /// Parses `.field`, `.?field`, `.call(…)` or `[index]` after an operand.
    fn qualified(&mut self, operand: Tree) -> Parsed<Tree> {
        if self.la() == LBRACKET {
            return self.index(*operand);
        }
        let next = self.ahead(1).kind;
        if OPT_FIELD & (1 << next) == 0 {
            return Err(Stop::NoViable(self.at, self.at + 1));
        }
        self.matched();
        let dot = self.consume();
        if next == IDENT && self.ahead(1).kind == LPAREN {
            let name = self.consume();
            let open = self.consume();
            let args = self.arguments()?;
            let name = self.text_of(name);
            return self.call(open.offset, name, Some(*operand), args);
        }
        let optional = next == QUESTION;
        if optional {
            self.consume();
        }
        let (name, offset) = self.escape_ident(MEMBERS | EPSILON)?;
        let Some(name) = name else { return Ok(Box::new(self.node(dot.offset, Kind::Error))) };
        let height = self.height(&operand) + 1;
        if !optional {
            let select = Kind::Select { operand, field: name, test_only: false };
            let expr = self.node(dot.offset, select);
            return self.raised(expr, height);
        }
        if !self.syntax.optional {
            return Ok(Box::new(self.error(dot.offset, "unsupported syntax '.?'")));
        }
        let call = self.id(dot.offset);
        let field = self.node(offset, Kind::Literal(Literal::String(name)));
        let function = Text::new_static("_?._");
        let kind = Kind::Call { function, target: None, args: vec![*operand, field] };
        self.raised(Expr { id: call, kind }, height)
    }

    fn index(&mut self, operand: Expr) -> Parsed<Tree> {
        self.matched();
        let open = self.consume();
        self.sync(OPT_EXPR)?;
        let optional = self.la() == QUESTION;
        if optional {
            self.matched();
            self.consume();
        }
        let index = self.rule(set(&[RBRACKET]), 1, Self::expr)?;
        self.expect(RBRACKET, MEMBERS | EPSILON)?;
        if optional && !self.syntax.optional {
            return Ok(Box::new(self.error(open.offset, "unsupported syntax '[?'")));
        }
        self.operation(open, if optional { "_[?_]" } else { "_[_]" }, vec![operand, *index])
    }

    /// Parses a name. Returns it with its position; `None` after an error.
    pub(super) fn escape_ident(&mut self, follow: Set) -> Parsed<(Option<Text>, Offset)> {
        self.follow.push(follow);
        let offset = self.token().offset;
        let result = match self.sync(IDENTS) {
            Ok(()) if self.is(IDENTS) => {
                self.matched();
                let token = self.consume();
                Ok((Some(self.field_name(token)), token.offset))
            }
            Ok(()) => self.recover(Stop::Mismatch, 9).map(|()| (None, offset)),
            Err(stop) => self.recover(stop, 9).map(|()| (None, offset)),
        };
        self.follow.pop();
        result
    }

    fn field_name(&mut self, token: Token) -> Text {
        let text = self.text_of(token);
        if token.kind == IDENT {
            return Text::new(text);
        }
        if !self.syntax.quoted_identifiers {
            self.issues.push(Issue::new(token.offset, "unsupported syntax: '`'"));
        }
        Text::new(text.trim_matches('`'))
    }

    /// Parses the arguments of a call after the opening parenthesis.
    pub(super) fn arguments(&mut self) -> Parsed<Vec<Expr>> {
        let close = set(&[RPAREN]);
        let mut args = vec![];
        self.sync(EXPR | close)?;
        if self.is(EXPR) {
            self.follow.push(close);
            let result = self.expr_list(&mut args);
            self.follow.pop();
            result?;
        }
        self.expect(RPAREN, MEMBERS | EPSILON)?;
        Ok(args)
    }

    fn expr_list(&mut self, args: &mut Vec<Expr>) -> Parsed<()> {
        let follow = set(&[COMMA]) | EPSILON;
        args.push(*self.rule(follow, 1, Self::expr)?);
        while self.la() == COMMA {
            self.matched();
            self.consume();
            args.push(*self.rule(follow, 1, Self::expr)?);
        }
        Ok(())
    }
}
