//! Nodes of the tree, and their heights.

use super::{Parsed, Parser, Stop, Tree, macros};
use crate::ast::{Expr, Id, Issue, Kind, NOWHERE, Offset};
use crate::lexer::Token;
use crate::limits::{NODES_MAX, PARSE_DEPTH_MAX as DEPTH_MAX};
use machinery::Text;

impl Parser<'_> {
    pub(crate) fn id(&mut self, offset: Offset) -> Id {
        self.offsets.push(offset);
        self.heights.push(0);
        (self.offsets.len() - 1) as Id
    }

    pub(crate) fn node(&mut self, offset: Offset, kind: Kind) -> Expr {
        Expr { id: self.id(offset), kind }
    }

    pub(crate) fn error(&mut self, offset: Offset, message: impl Into<String>) -> Expr {
        self.issues.push(Issue::new(offset, message));
        self.node(offset, Kind::Error)
    }

    pub(super) fn height(&self, expr: &Expr) -> u32 {
        self.heights.get(expr.id as usize).copied().unwrap_or(0)
    }

    pub(super) fn tallest<'e>(&self, parts: impl IntoIterator<Item = &'e Expr>) -> u32 {
        parts.into_iter().map(|part| self.height(part)).max().unwrap_or(0)
    }

    /// Records the height of a node's tree, as cel-go counts it.
    pub(super) fn raised(&mut self, expr: Expr, height: u32) -> Parsed<Tree> {
        if let Some(slot) = self.heights.get_mut(expr.id as usize) {
            *slot = height;
        }
        if height > DEPTH_MAX {
            self.issues.push(Issue::new(NOWHERE, "max recursion depth exceeded"));
            return Err(Stop::Abort);
        }
        if self.offsets.len() > NODES_MAX {
            self.issues.push(Issue::new(NOWHERE, "expression has too many nodes"));
            return Err(Stop::Abort);
        }
        Ok(Box::new(expr))
    }

    pub(super) fn call(
        &mut self,
        offset: Offset,
        function: &str,
        target: Option<Expr>,
        args: Vec<Expr>,
    ) -> Parsed<Tree> {
        let height = self.tallest(args.iter().chain(&target)) + 1;
        let expr = macros::expand(self, offset, function, target, args);
        let height = height + self.height(&expr);
        self.raised(expr, height)
    }

    pub(super) fn operation(&mut self, operator: Token, function: &str, args: Vec<Expr>) -> Parsed<Tree> {
        let height = self.tallest(&args) + 1;
        let kind = Kind::Call { function: Text::new(function), target: None, args };
        let expr = self.node(operator.offset, kind);
        self.raised(expr, height)
    }
}
