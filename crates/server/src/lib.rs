//! The API server: from connection to store.
