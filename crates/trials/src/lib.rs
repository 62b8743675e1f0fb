//! What a change would do, and what faults break: forks of one state in which something happens, compared with forks
//! in which it does not.
//!
//! [`engine`] loads sources and makes the forks, [`mod@plan`] shows what a change would do to their objects and has an example, and
//! [`mod@trial`] tries what faults break.

pub mod compare;
pub mod engine;
mod limits;
pub mod plan;
pub mod trial;
