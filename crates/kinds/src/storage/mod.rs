//! StorageClasses, CSI drivers and VolumeAttachments.

pub mod storage_kinds;

use crate::core::volumes;
use crate::object_warnings;
use resource::builtin::{Behaviour, Part};

pub static KINDS: &[Behaviour] = &[
    Behaviour::of("storage.k8s.io/CSIDriver")
        .validate(storage_kinds::validate_driver)
        .warnings(volumes::driver_warnings),
    Behaviour::of("storage.k8s.io/CSINode").validate(storage_kinds::validate_node),
    Behaviour::of("storage.k8s.io/CSIStorageCapacity")
        .validate(storage_kinds::validate_capacity)
        .warnings(object_warnings::of_capacity),
    Behaviour::of("storage.k8s.io/StorageClass")
        .validate(storage_kinds::validate_class)
        .warnings(object_warnings::of_class),
    Behaviour::of("storage.k8s.io/VolumeAttachment")
        .validate(storage_kinds::validate_attachment)
        .status(Part::PLAIN.validate(storage_kinds::validate_attachment_status)),
];
