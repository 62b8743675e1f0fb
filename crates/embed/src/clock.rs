//! The clock of a workspace.

use std::time::Duration;

use http::Method;
use machinery::time::{duration, parse_duration};
use machinery::{Value, json};

use crate::error::Error;
use crate::workspace::{MERGE, TESTING, Workspace};

/// The clock of a workspace, which tests stop and advance: the time of its objects, Events, tokens and
/// certificates. What an advance makes due has been done when [`Workspace::settle`] returns.
///
/// Times are texts such as `2030-01-01T00:00:00Z`. Each method fails if the clock would go back, or if the server
/// was started without [`crate::Builder::testing`].
#[derive(Clone)]
pub struct Clock {
    workspace: Workspace,
}

impl Workspace {
    /// The clock of the workspace. The server needs [`crate::Builder::testing`].
    pub fn clock(&self) -> Clock {
        Clock { workspace: self.clone() }
    }
}

impl Clock {
    /// Stops the clock at what it shows.
    ///
    /// # Errors
    ///
    /// See [`Clock`].
    pub async fn stop(&self) -> Result<(), Error> {
        self.change(json!({"stopped": true})).await
    }

    /// Stops the clock at a time. The seed makes uids and generated names repeatable.
    ///
    /// # Errors
    ///
    /// See [`Clock`]. The clock has been changed before.
    pub async fn stop_at(&self, time: &str, seed: u32) -> Result<(), Error> {
        self.change(json!({"stopped": true, "time": time, "seed": seed})).await
    }

    /// Advances the clock.
    ///
    /// # Errors
    ///
    /// See [`Clock`].
    pub async fn advance(&self, by: Duration) -> Result<(), Error> {
        let found = match self.workspace.get(&path()).await {
            Err(error) if error.code() == Some(404) => Value::Null,
            found => found?,
        };
        // the spec has the sum of all advances
        let before = parse_duration(found.str_at(&["spec", "advance"])).unwrap_or_default();
        let all = i64::try_from(before.saturating_add(by).as_nanos()).unwrap_or(i64::MAX);
        self.change(json!({"advance": (duration(all))})).await
    }

    /// Sets the clock to a time.
    ///
    /// # Errors
    ///
    /// See [`Clock`].
    pub async fn set(&self, time: &str) -> Result<(), Error> {
        self.change(json!({"time": time})).await
    }

    /// Lets a stopped clock go on.
    ///
    /// # Errors
    ///
    /// See [`Clock`].
    pub async fn resume(&self) -> Result<(), Error> {
        self.change(json!({"stopped": false})).await
    }

    /// Deletes the clock: the time is that of the machine again.
    ///
    /// # Errors
    ///
    /// The clock has not been changed.
    pub async fn delete(&self) -> Result<(), Error> {
        self.workspace.send(Method::DELETE, &path(), "", None).await.map(drop)
    }

    async fn change(&self, spec: Value) -> Result<(), Error> {
        let patch = json!({"spec": (spec.clone())});
        match self.workspace.send(Method::PATCH, &path(), MERGE, Some(&patch)).await {
            Err(error) if error.code() == Some(404) => {
                self.workspace.testing("Clock", "clocks", "clock", spec).await.map(drop)
            }
            changed => changed.map(drop),
        }
    }
}

fn path() -> String {
    format!("/apis/{TESTING}/clocks/clock")
}
