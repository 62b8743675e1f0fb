//! Tokens, errors and recovery, as in ANTLR's default error strategy.

use super::*;
use crate::lexer::{escape_blanks, kind_name};
use crate::limits::SYNTAX_ERRORS_MAX;

fn set_text(set: Set) -> String {
    let names: Vec<&str> = (0..38).filter(|k| set & (1 << k) != 0).map(kind_name).collect();
    if names.len() == 1 { names[0].to_owned() } else { format!("{{{}}}", names.join(", ")) }
}

impl<'a> Parser<'a> {
    pub(super) fn token(&self) -> Token {
        self.ahead(0)
    }

    pub(super) fn ahead(&self, count: usize) -> Token {
        self.tokens[(self.at + count).min(self.tokens.len() - 1)]
    }

    pub(super) fn la(&self) -> u8 {
        self.token().kind
    }

    pub(super) fn is(&self, set: Set) -> bool {
        set & (1 << self.la()) != 0
    }

    pub(super) fn text_of(&self, token: Token) -> &'a str {
        &self.text[token.start..token.end]
    }

    pub(super) fn shown(&self, token: Token) -> String {
        if token.kind == EOF { "'<EOF>'".to_owned() } else { format!("'{}'", escape_blanks(self.text_of(token))) }
    }

    pub(super) fn consume(&mut self) -> Token {
        let token = self.token();
        self.at = (self.at + 1).min(self.tokens.len() - 1);
        token
    }

    pub(super) fn syntax_error(&mut self, token: Token, message: String) -> Parsed<()> {
        if self.syntax_errors < SYNTAX_ERRORS_MAX {
            self.syntax_errors += 1;
            self.issues.push(Issue::new(token.offset, format!("Syntax error: {message}")));
            return Ok(());
        }
        self.issues
            .push(Issue::new(token.offset, format!("Syntax error: More than {SYNTAX_ERRORS_MAX} syntax errors")));
        Err(Stop::Abort)
    }

    /// The tokens that may follow where the rule expects `set`, given all open rules.
    pub(super) fn expected(&self, set: Set) -> Set {
        let mut out = set;
        for follow in self.follow.iter().rev() {
            if out & EPSILON == 0 {
                return out;
            }
            out = (out & !EPSILON) | follow;
        }
        if out & EPSILON != 0 { (out & !EPSILON) | 1 } else { out }
    }

    pub(super) fn attempt(&mut self) -> Parsed<()> {
        if self.recoveries == RECOVERIES_MAX {
            self.recoveries += 1;
            let token = self.token();
            self.syntax_error(token, format!("error recovery attempt limit exceeded: {RECOVERIES_MAX}"))?;
            return Err(Stop::Abort);
        }
        self.recoveries += 1;
        Ok(())
    }

    pub(super) fn delete_one(&mut self, set: Set) -> Parsed<bool> {
        if self.expected(set) & (1 << self.ahead(1).kind) == 0 {
            return Ok(false);
        }
        self.unwanted(set)?;
        self.consume();
        self.matched();
        Ok(true)
    }

    pub(super) fn unwanted(&mut self, set: Set) -> Parsed<()> {
        if self.recovering {
            return Ok(());
        }
        self.recovering = true;
        let token = self.token();
        let message = format!("extraneous input {} expecting {}", self.shown(token), set_text(self.expected(set)));
        self.syntax_error(token, message)
    }

    pub(super) fn matched(&mut self) {
        self.recovering = false;
        self.last_error = None;
    }

    pub(super) fn mismatch(&mut self, set: Set) -> Stop {
        let token = self.token();
        if !self.recovering {
            self.recovering = true;
            let message = format!("mismatched input {} expecting {}", self.shown(token), set_text(self.expected(set)));
            if let Err(stop) = self.syntax_error(token, message) {
                return stop;
            }
        }
        Stop::Mismatch
    }

    /// Synchronizes before a choice between the tokens of `set`.
    pub(super) fn sync(&mut self, set: Set) -> Parsed<()> {
        if self.is(set) || self.recovering || self.delete_one(set)? { Ok(()) } else { Err(self.mismatch(set)) }
    }

    /// Consumes the token `want`, which `after` may follow. `None` if it was missing and recovery has inserted it.
    pub(super) fn expect(&mut self, want: u8, after: Set) -> Parsed<Option<Token>> {
        if self.la() == want {
            self.matched();
            return Ok(Some(self.consume()));
        }
        self.attempt()?;
        if self.delete_one(1 << want)? {
            return Ok(Some(self.consume()));
        }
        let token = self.token();
        if self.expected(after) & (1 << token.kind) != 0 {
            if !self.recovering {
                self.recovering = true;
                let message = format!("missing {} at {}", kind_name(want), self.shown(token));
                self.syntax_error(token, message)?;
            }
            return Ok(None);
        }
        Err(self.mismatch(1 << want))
    }

    /// Ends a rule after an error: reports it and skips to a token with which an open rule can continue.
    pub(super) fn recover(&mut self, stop: Stop, rule: u64) -> Parsed<()> {
        match stop {
            Stop::Abort => return Err(Stop::Abort),
            Stop::Mismatch => {}
            Stop::NoViable(start, offending) => self.no_viable(start, offending)?,
        }
        self.attempt()?;
        let mut skipped = 0;
        let states = match self.last_error {
            Some((at, states)) if at == self.at => states,
            _ => 0,
        };
        if states & (1 << rule) != 0 {
            self.consume();
            skipped += 1;
        }
        self.last_error = Some((self.at, states | 1 << rule));
        let follow = self.follow.iter().fold(0, |all, set| all | set) & !EPSILON;
        while self.la() != EOF && !self.is(follow) {
            if skipped >= SKIPPED_TOKENS_MAX {
                let message = format!("error recovery token lookahead limit exceeded: {SKIPPED_TOKENS_MAX}");
                self.issues.push(Issue::new(NOWHERE, message));
                return Err(Stop::Abort);
            }
            skipped += 1;
            self.consume();
        }
        Ok(())
    }

    pub(super) fn no_viable(&mut self, start: usize, offending: usize) -> Parsed<()> {
        if self.recovering {
            return Ok(());
        }
        self.recovering = true;
        let last = self.tokens.len() - 1;
        let (first, token) = (self.tokens[start.min(last)], self.tokens[offending.min(last)]);
        if first.kind == EOF {
            return self.syntax_error(token, "no viable alternative at input '<EOF>'".to_owned());
        }
        let end = if token.kind == EOF { self.tokens[last.saturating_sub(1)].end } else { token.end };
        let mut input = String::new();
        let mut at = first.start;
        for &(start, stop) in self.unread.iter().filter(|(start, _)| *start >= first.start && *start < end) {
            input.push_str(&self.text[at..start]);
            at = stop;
        }
        input.push_str(&self.text[at..end.max(first.end).max(at)]);
        let input = escape_blanks(&input);
        if matches!(token.kind, TRUE | FALSE | NULL) && input.ends_with(self.text_of(token)) {
            // cel-go has the message of an older parser for reserved words that are used as names
            let word = self.text_of(token);
            if input.len() == word.len() + 1 {
                return self.syntax_error(token, format!("mismatched input '{word}' expecting IDENTIFIER"));
            }
        }
        self.syntax_error(token, format!("no viable alternative at input '{input}'"))
    }

    pub(super) fn check_depths(&mut self) -> Parsed<()> {
        let Depths { expr, relation, calc, member } = self.depths;
        if expr.max(relation).max(calc).max(member) > DEPTH_MAX {
            let message = format!("expression recursion limit exceeded: {DEPTH_MAX}");
            self.issues.push(Issue::new(NOWHERE, message));
            return Err(Stop::Abort);
        }
        Ok(())
    }
}
