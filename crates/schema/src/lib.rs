//! Structural schemas compiled to programs: prune, default, validate, apply; and the CustomResourceDefinition rules.
