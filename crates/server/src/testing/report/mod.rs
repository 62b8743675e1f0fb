//! The report of a workspace: what its clients have done, by user agent.

mod checks;
mod observing;
mod rights;
mod status;
mod tally;
#[cfg(test)]
mod tests;

use base::task;
use machinery::{Status, Value};

use super::Testing;
use super::matching::fits;
use crate::verbs::Context;

pub use checks::names as report_checks;
pub use observing::Observing;
pub use tally::{Tally, WatchKey};

impl Testing {
    /// Completes a Report.
    pub fn report_on(&self, mut object: Value) -> Result<Value, Status> {
        let agents: Vec<String> =
            object.items_at(&["spec", "userAgents"]).iter().filter_map(Value::as_str).map(str::to_owned).collect();
        let selects = |agent: &str| agents.is_empty() || agents.iter().any(|pattern| fits(pattern, agent));
        let context = self.context().ok_or_else(|| Status::internal("the server is shutting down"))?;
        let status = task::blocking(|| self.status_of(&context, selects));
        if object.at(&["spec", "reset"]) == Some(&Value::Bool(true)) {
            self.tally.lock().reset();
        }
        object.set_at(&["status"], status);
        Ok(object)
    }

    fn status_of(&self, context: &Context, selects: impl Fn(&str) -> bool) -> Value {
        let rbac = context.authorizer.rbac();
        self.tally.lock().status(base::clock::instant(), selects, |user| rbac.granted(user))
    }
}
