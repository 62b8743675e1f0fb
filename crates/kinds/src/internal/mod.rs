//! StorageVersions (`internal.apiserver.k8s.io`).

pub mod storage_versions;

use resource::builtin::{Behaviour, Part};

pub static KINDS: &[Behaviour] = &[Behaviour::of("internal.apiserver.k8s.io/StorageVersion")
    .name(|name, _| storage_versions::name_problems(name))
    .status(Part::PLAIN.validate(storage_versions::validate_status))];
