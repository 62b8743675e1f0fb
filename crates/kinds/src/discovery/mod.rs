//! EndpointSlices.

pub mod slices;

use resource::builtin::Behaviour;

pub static KINDS: &[Behaviour] = &[Behaviour::of("discovery.k8s.io/EndpointSlice")
    .prepare(slices::count_labels)
    .validate(slices::validate_slice)
    .warnings(slices::slice_warnings)];
