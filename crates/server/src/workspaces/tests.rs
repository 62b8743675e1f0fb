//! Workspaces in process.
