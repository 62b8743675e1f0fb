//! The response to a request for which the store has failed.

use machinery::Status;
use store::StoreError;

/// A 500 that says that the store failed; its cause is for the log.
pub fn failure(error: &StoreError) -> Status {
    Status::internal(error.summary()).caused_by(error)
}
