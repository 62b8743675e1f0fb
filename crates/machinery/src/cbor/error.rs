//! Errors of the CBOR decoder, in the words of kube-apiserver's.

use std::borrow::Cow;

/// Why bytes could not be decoded, and where.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[error("{problem} (at byte {offset})")]
pub struct CborError {
    /// The offset at which the problem was noticed, in bytes.
    pub offset: usize,
    /// The violation at the offset.
    pub problem: CborProblem,
}

/// The problem of an invalid CBOR document.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum CborProblem {
    /// There are no bytes at all.
    #[error("EOF")]
    Empty,
    /// The input ends within an item.
    #[error("unexpected EOF")]
    UnexpectedEnd,
    /// The bytes are not well-formed, too large, or have no form in JSON.
    #[error("{0}")]
    Invalid(Cow<'static, str>),
}
