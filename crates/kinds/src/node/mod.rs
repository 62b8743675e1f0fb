//! RuntimeClasses.

pub mod runtime_classes;

use crate::object_warnings;
use resource::builtin::Behaviour;

pub static KINDS: &[Behaviour] = &[Behaviour::of("node.k8s.io/RuntimeClass")
    .validate(runtime_classes::validate)
    .warnings(object_warnings::of_runtime_class)];
