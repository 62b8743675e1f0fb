//! Tests of the binary as a process: authentication by certificates, closed streams, and restored backups.

mod certificates;
mod closed_stdout;
mod restore;
mod server;
