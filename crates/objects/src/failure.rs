//! The response to a request for which the store has failed.

use machinery::Status;
use store::StoreError;

/// A 500 that says that the store failed; its cause is for the log. What a full store says is for clients, too.
pub fn failure(error: &StoreError) -> Status {
    match error {
        StoreError::Full(why) => Status::untyped(500, *why).caused_by(error),
        _ => Status::internal(error.summary()).caused_by(error),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clients_learn_that_a_store_is_full_and_no_more() {
        let cases = [
            (StoreError::Full("no space"), "no space"),
            (StoreError::Unavailable("/a/path".to_owned()), "Internal error occurred: the store is unavailable"),
        ];
        for (error, message) in cases {
            let status = failure(&error);
            assert_eq!((status.code, &*status.message), (500, message));
        }
    }
}
