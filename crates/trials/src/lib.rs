//! What a change would do, and what faults break: forks of one state in which something happens, compared with forks
//! in which it does not.

pub mod compare;
pub mod engine;
mod limits;
pub mod plan;
pub mod trial;
