//! Access control: authentication, authorization, priority and fairness, admission, audit.

pub mod admission;
pub mod audit;
pub mod authentication;
pub mod authorization;
pub mod flow;
pub mod limits;

/// Returns whether a list of a rule has `text`, or `*`, which stands for every text.
fn has_or_all(list: &[machinery::Text], text: &str) -> bool {
    list.iter().any(|item| item == text || item == "*")
}
