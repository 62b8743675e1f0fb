//! YAML in and out, as the reference server's library has it.

mod decode;
mod encode;
mod words;

pub use decode::{DEPTH_MAX, NODES_MAX, decode, reread};
pub use encode::encode;
