//! Reviews and requests of tokens.

use crate::authorization::reviews;
use resource::builtin::{Behaviour, Review};

pub static KINDS: &[Behaviour] = &[
    Behaviour::of("authentication.k8s.io/v1/TokenRequest")
        .validate(reviews::validate_request)
        .review(Review::TokenRequest),
    Behaviour::of("authentication.k8s.io/SelfSubjectReview").review(Review::SelfSubject),
    Behaviour::of("authentication.k8s.io/TokenReview").review(Review::Token),
];
