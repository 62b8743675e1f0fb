//! Revisioned bytes: the Store contract, and the memory and embedded engines.
