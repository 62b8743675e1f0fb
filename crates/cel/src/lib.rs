//! The Common Expression Language with the Kubernetes libraries: parse, check, cost, evaluate.
//!
//! An [`Environment`] declares the variables and functions that expressions may use. [`Environment::check`] returns a
//! checked expression or all its problems with the texts of kube-apiserver; [`Program::new`] makes it ready for
//! evaluation; [`estimate`] bounds its cost. [`rules`] has the validation rules of custom resources, [`regex`] the regular
//! expressions of Go.
//!
//! Layers, each of which uses only those before it: syntax (`ast`, `lexer`, `parser`); types and values (`decl`, `regex`,
//! `value`, `library`); environments (`env`); checking (`check`) and estimates (`cost::estimate`); programs (`node`, `eval`,
//! `program`); rules. Shard selectors (`shards`) need syntax only.
//!
//! Invariants: no I/O, no clock, no threads. No input panics or overflows the stack; the time and memory of an evaluation
//! are bounded by its cost and by its work (`work`).

#![deny(missing_docs)]

mod ast;
mod check;
mod cost;
mod decl;
mod env;
mod eval;
mod lexer;
mod library;
mod limits;
mod node;
mod normal;
mod parser;
mod program;
pub mod regex;
pub mod rules;
mod shards;
mod supply;
mod trace;
mod value;
mod work;

pub use ast::{Issue, Source};
pub use check::{Checked, CompileError};
pub use cost::estimate::{Part, Range, estimate, explain};
pub use decl::types::{Elements, Param, Type};
pub use decl::{Decl, DeclField, DeclKind, ListKind, ObjectType, SchemaOf, Selected};
pub use env::{Environment, Variable, VariableNames};
pub use library::{Libraries, Library};
pub use machinery::work::interruptible;
pub use node::Program;
pub use normal::{conjuncts, disjuncts};
pub use parser::is_identifier;
pub use program::{Activation, Outcome};
pub use shards::ShardSelector;
pub use supply::LazyValue;
pub use trace::{Traced, shown, trace};
pub use value::authorization::{Authorization, Authorizer, Check, Decision};
pub use value::semver::Version;
pub use value::time::is_date_time;
pub use value::{
    Configuration, Error, Foreign, Key, List, Map, Opaque, Result, Str, Timestamp, Val, from_json, misnamed, to_json,
};
pub use work::{are_patterns_exhausted, bounded_patterns};

/// The examples of the README.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
