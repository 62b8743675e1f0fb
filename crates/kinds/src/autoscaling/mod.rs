//! HorizontalPodAutoscalers.

pub mod autoscaling_versions;
pub mod scaling;

use resource::builtin::{Behaviour, StoredAs};

pub static KINDS: &[Behaviour] = &[
    Behaviour::of("autoscaling/v2/HorizontalPodAutoscaler").default(scaling::default).validate(scaling::validate),
    Behaviour::of("autoscaling/v1/HorizontalPodAutoscaler")
        .default(scaling::default_v1)
        .prepare(autoscaling_versions::keep_status)
        .validate(scaling::validate_v1)
        // annotations hold what only v2 has; managedFields record them as v1 shows them
        .conversion(StoredAs {
            is_canonical: true,
            ..StoredAs::new(autoscaling_versions::to_stored, autoscaling_versions::to_shown)
        }),
];
