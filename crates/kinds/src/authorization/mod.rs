//! Reviews of access.

pub mod reviews;

use resource::builtin::{Behaviour, Review};

pub static KINDS: &[Behaviour] = &[
    Behaviour::of("authorization.k8s.io/LocalSubjectAccessReview")
        .validate(reviews::validate_local)
        .review(Review::Access),
    Behaviour::of("authorization.k8s.io/SelfSubjectAccessReview")
        .validate(|at| reviews::validate(at, reviews::Subject::Requester))
        .review(Review::SelfAccess),
    Behaviour::of("authorization.k8s.io/SelfSubjectRulesReview").review(Review::SelfRules),
    Behaviour::of("authorization.k8s.io/SubjectAccessReview")
        .validate(|at| reviews::validate(at, reviews::Subject::Named))
        .review(Review::Access),
];
