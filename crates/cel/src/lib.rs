//! The Common Expression Language with the Kubernetes libraries: parse, check, cost, evaluate.

pub mod ast;
mod lexer;
mod macros;
pub mod parser;
pub mod regex;
