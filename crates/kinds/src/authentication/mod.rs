//! Reviews and requests of tokens.

use crate::authorization::reviews;
use resource::builtin::{Behaviour, Review};

const NONE: Behaviour = Behaviour::NONE;

pub static KINDS: &[Behaviour] = &[
    Behaviour {
        of: "authentication.k8s.io/v1/TokenRequest",
        validate: reviews::validate_request,
        review: Some(Review::TokenRequest),
        ..NONE
    },
    Behaviour { of: "authentication.k8s.io/SelfSubjectReview", review: Some(Review::SelfSubject), ..NONE },
    Behaviour { of: "authentication.k8s.io/TokenReview", review: Some(Review::Token), ..NONE },
];
