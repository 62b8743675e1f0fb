//! The binary as a process, and who it lets in.

mod certificates;
mod restore;
mod server;
