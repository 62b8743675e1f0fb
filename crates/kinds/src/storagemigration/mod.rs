//! StorageVersionMigrations.

pub mod migrations;

use resource::builtin::{Behaviour, Part};

const NONE: Behaviour = Behaviour::NONE;

pub static KINDS: &[Behaviour] = &[Behaviour {
    of: "storagemigration.k8s.io/StorageVersionMigration",
    validate: migrations::validate,
    status: Part { validate: migrations::validate_status, ..Part::PLAIN },
    ..NONE
}];
