//! YAML in and out, as the reference server's library has it.

mod decode;
mod encode;

pub use decode::{DEPTH_MAX, NODES_MAX, decode};
pub use encode::encode;
