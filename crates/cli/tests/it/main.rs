//! Tests of the binary as a process: authentication by certificates, and restored backups.

mod certificates;
mod restore;
mod server;
