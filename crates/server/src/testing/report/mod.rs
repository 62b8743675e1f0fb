//! The report of a workspace: what its clients have done, by user agent.

mod checks;
mod observing;
mod rights;
mod status;
mod tally;
#[cfg(test)]
mod tests;
mod writes;

use base::{clock, task};
use machinery::{Result, Status, Value};

use super::Testing;
use super::matching::fits;

pub use checks::{meanings as report_meanings, names as report_checks};
pub use observing::Observing;
pub use tally::{Tally, WatchKey};

/// A resource as RBAC names it, with its group, such as `deployments/status.apps`.
pub fn resource_name(group: &str, resource: &str, subresource: &str) -> String {
    let mut name = resource.to_owned();
    for (mark, part) in [('/', subresource), ('.', group)] {
        if !part.is_empty() {
            name.push(mark);
            name.push_str(part);
        }
    }
    name
}

impl Testing {
    /// Completes a Report.
    pub fn report_on(&self, mut object: Value) -> Result<Value> {
        let agents: Vec<String> =
            object.items_at(&["spec", "userAgents"]).iter().filter_map(Value::as_str).map(str::to_owned).collect();
        let selects = |agent: &str| agents.is_empty() || agents.iter().any(|pattern| fits(pattern, agent));
        let context = self.context().ok_or_else(|| Status::internal("the server is shutting down"))?;
        let resets = object.is_true_at(&["spec", "reset"]);
        let lists = object.is_true_at(&["spec", "writes"]);
        // requests wait for this lock, so the report is made from a copy
        let copy = {
            let mut tally = self.kept.tally.lock();
            let mut copy = tally.copy(selects);
            if lists {
                copy.writes = Some(tally.writes.get_or_insert_default().copy(selects));
            }
            if resets {
                tally.reset();
            }
            copy
        };
        let rbac = context.authorizer.rbac();
        let status = task::blocking(|| copy.status(clock::instant(), |user| rbac.granted(user)));
        object.set_at(&["status"], status);
        Ok(object)
    }
}
