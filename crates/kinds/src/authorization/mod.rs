//! Reviews of access.

pub mod reviews;

use resource::builtin::{Behaviour, Review};

const NONE: Behaviour = Behaviour::NONE;

pub static KINDS: &[Behaviour] = &[
    Behaviour {
        of: "authorization.k8s.io/LocalSubjectAccessReview",
        validate: reviews::validate_local,
        review: Some(Review::Access),
        ..NONE
    },
    Behaviour {
        of: "authorization.k8s.io/SelfSubjectAccessReview",
        validate: |at| reviews::validate(at, reviews::Subject::Requester),
        review: Some(Review::SelfAccess),
        ..NONE
    },
    Behaviour { of: "authorization.k8s.io/SelfSubjectRulesReview", review: Some(Review::SelfRules), ..NONE },
    Behaviour {
        of: "authorization.k8s.io/SubjectAccessReview",
        validate: |at| reviews::validate(at, reviews::Subject::Named),
        review: Some(Review::Access),
        ..NONE
    },
];
