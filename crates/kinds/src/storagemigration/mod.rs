//! StorageVersionMigrations.

pub mod migrations;

use resource::builtin::{Behaviour, Part};

pub static KINDS: &[Behaviour] = &[Behaviour::of("storagemigration.k8s.io/StorageVersionMigration")
    .validate(migrations::validate)
    .status(Part::PLAIN.validate(migrations::validate_status))];
