//! Access control: authentication, authorization, priority and fairness, admission, audit.

pub mod admission;
pub mod audit;
pub mod authentication;
pub mod authorization;
pub mod flow;
pub mod limits;
