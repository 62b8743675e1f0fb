//! Replaces the module `etcd` in a build without the feature `etcd`: every use of etcd is an error.

use std::path::Path;
use std::time::Duration;

use client::{Result, fail};

use crate::etcd_flags::Etcd;

fn unavailable<T>() -> Result<T> {
    fail("this binary was built without etcd; build it with the cargo feature \"etcd\", or use --storage embedded")
}

/// Options of a server; other commands have none.
#[expect(dead_code, reason = "only the module that this one replaces reads them")]
pub struct Server<'a> {
    pub directory: &'a Path,
    pub event_ttl: Duration,
    pub form: server::CustomForm,
}

pub async fn latest(_flags: &Etcd) -> Result<store::Snapshot> {
    unavailable()
}

pub fn storage(_flags: &Etcd, _server: Option<&Server>) -> Result<server::Storage> {
    unavailable()
}
