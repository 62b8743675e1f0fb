//! Rules of the operators, from `?:` to the signs.

use super::{EPSILON, EXPR, FACTORS, PRIMARY, Parsed, Parser, RELATIONS, Set, Stop, TERMS, Tree, set};
use crate::ast::{Expr, Id, Kind};
use crate::lexer::{Token, kind::*};
use machinery::Text;

impl Parser<'_> {
    /// Parses a `conditionalOr` that is followed by `follow`.
    fn operand(&mut self, follow: Set) -> Parsed<Tree> {
        self.follow.push(follow);
        let expr = self.binary()?;
        self.follow.pop();
        Ok(expr)
    }

    pub(super) fn expr(&mut self) -> Parsed<Tree> {
        self.depths.expr += 1;
        self.check_depths()?;
        self.follow.push(set(&[QUESTION]) | EPSILON);
        let condition = self.binary()?;
        self.follow.pop();
        if self.la() != QUESTION {
            return Ok(condition);
        }
        self.matched();
        let operator = self.consume();
        let yes = self.operand(set(&[COLON]))?;
        self.expect(COLON, EXPR)?;
        let no = self.rule(EPSILON, 1, Self::expr)?;
        self.operation(operator, "_?_:_", vec![*condition, *yes, *no])
    }

    /// Parses `conditionalOr` down to `calc` in one stack frame. These rules cannot fail by themselves; for the recovery of
    /// inner rules only their follow sets matter.
    fn binary(&mut self) -> Parsed<Tree> {
        let base = self.follow.len();
        let depths = self.depths;
        self.follow.extend([set(&[OR]), set(&[AND]), RELATIONS, FACTORS | TERMS].map(|follow| follow | EPSILON));
        let (mut or_terms, mut or_operators) = (vec![], vec![]);
        let (mut and_terms, mut and_operators) = (vec![], vec![]);
        loop {
            and_terms.push(Some(self.relation()?));
            self.depths = depths;
            let operator = self.la();
            if operator == AND {
                self.matched();
                let token = self.consume();
                and_operators.push(self.id(token.offset));
                continue;
            }
            let term = self.balanced("_&&_", &mut and_terms, &and_operators);
            (and_terms, and_operators) = (vec![], vec![]);
            or_terms.push(Some(term));
            if operator != OR {
                self.follow.truncate(base);
                return Ok(self.balanced("_||_", &mut or_terms, &or_operators));
            }
            self.matched();
            let token = self.consume();
            or_operators.push(self.id(token.offset));
        }
    }

    /// A balanced tree of the terms, as cel-go builds it.
    fn balanced(&mut self, function: &str, terms: &mut [Option<Tree>], operators: &[Id]) -> Tree {
        if operators.is_empty() {
            return terms[0].take().unwrap_or_else(|| Box::new(Expr { id: 0, kind: Kind::Error }));
        }
        let middle = operators.len() / 2;
        let (left, right) = terms.split_at_mut(middle + 1);
        let left = self.balanced(function, left, &operators[..middle]);
        let right = self.balanced(function, right, &operators[middle + 1..]);
        let height = self.height(&left).max(self.height(&right));
        let id = operators[middle];
        if let Some(slot) = self.heights.get_mut(id as usize) {
            *slot = height;
        }
        let args = vec![*left, *right];
        Box::new(Expr { id, kind: Kind::Call { function: Text::new(function), target: None, args } })
    }

    /// Parses comparisons, sums and products with a stack of operators. Depths are counted as if each operand of a level were
    /// a rule.
    fn relation(&mut self) -> Parsed<Tree> {
        let before = self.depths;
        let mut operands: Vec<Tree> = Vec::with_capacity(2);
        let mut waiting: Vec<(Token, u8)> = vec![];
        let mut relations = 1;
        // Open invocations of `calc`: for sums, for operands of sums, for operands of products.
        let mut calcs = [1, 0, 0];
        loop {
            self.depths.relation = before.relation + relations;
            self.depths.calc = before.calc + calcs.iter().sum::<u32>();
            self.check_depths()?;
            // a token that is not an operator ends the rule
            let simple = self.is(PRIMARY) && self.la() != MINUS;
            operands.push(self.rule(EPSILON, 7, if simple { Self::member } else { Self::unary })?);
            let Some(level) = self.operator_level() else { break };
            self.reduce(&mut operands, &mut waiting, level)?;
            self.matched();
            let operator = self.consume();
            let in_right_side = waiting.iter().any(|(_, level)| *level == 0);
            waiting.push((operator, level));
            match level {
                0 => {
                    relations = if in_right_side { relations + 1 } else { relations + 2 };
                    calcs = [1, 0, 0];
                }
                1 => calcs = [calcs[0] + 1, 1, 0],
                _ if calcs[1] > 0 => calcs = [calcs[0], calcs[1] + 1, 1],
                _ => calcs = [calcs[0] + 1, 0, 1],
            }
        }
        self.reduce(&mut operands, &mut waiting, 0)?;
        operands.pop().ok_or(Stop::Mismatch)
    }

    /// 0 for comparisons, 1 for sums, 2 for products.
    fn operator_level(&self) -> Option<u8> {
        if self.is(RELATIONS) {
            Some(0)
        } else if self.is(TERMS) {
            Some(1)
        } else {
            self.is(FACTORS).then_some(2)
        }
    }

    /// Makes nodes of all waiting operators that bind at least as tightly as `level`.
    fn reduce(&mut self, operands: &mut Vec<Tree>, waiting: &mut Vec<(Token, u8)>, level: u8) -> Parsed<()> {
        while let Some((operator, _)) = waiting.pop_if(|(_, tight)| *tight >= level) {
            let (Some(right), Some(left)) = (operands.pop(), operands.pop()) else { return Err(Stop::Mismatch) };
            let function = match operator.kind {
                EQUALS => "_==_",
                NOT_EQUALS => "_!=_",
                IN => "@in",
                LESS => "_<_",
                LESS_EQUALS => "_<=_",
                GREATER_EQUALS => "_>=_",
                GREATER => "_>_",
                STAR => "_*_",
                SLASH => "_/_",
                PERCENT => "_%_",
                PLUS => "_+_",
                _ => "_-_",
            };
            let node = self.operation(operator, function, vec![*left, *right])?;
            operands.push(node);
        }
        Ok(())
    }

    fn unary(&mut self) -> Parsed<Tree> {
        self.sync(EXPR)?;
        let number = |kind| matches!(kind, INT | FLOAT);
        let first = self.token();
        let negative = first.kind == MINUS && !number(self.ahead(1).kind);
        if first.kind != EXCLAM && !negative {
            return self.rule(EPSILON, 7, Self::member);
        }
        if negative && (PRIMARY & (1 << self.ahead(1).kind) == 0) {
            return Err(Stop::NoViable(self.at, self.at + 1));
        }
        let mut count = 0;
        while self.la() == first.kind {
            self.matched();
            self.consume();
            count += 1;
            if !self.is(EXPR) && !self.recovering && !negative {
                self.unwanted(EXPR)?;
                let follow = self.follow.iter().fold(0, |all, set| all | set) & !EPSILON | EXPR;
                while self.la() != EOF && !self.is(follow) {
                    self.consume();
                }
            }
        }
        let operand = self.rule(EPSILON, 7, Self::member)?;
        if count % 2 == 0 {
            return Ok(operand);
        }
        let height = self.height(&operand);
        let function = if first.kind == EXCLAM { "!_" } else { "-_" };
        let expr = self.operation(first, function, vec![*operand])?;
        self.raised(*expr, height)
    }
}
