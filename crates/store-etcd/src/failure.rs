//! Classification of call errors: whether the call may have taken effect, and whether a retry may succeed.

use store::{Revision, StoreError};
use tonic::{Code, Status};

/// The text with which etcd refuses writes once its quota is used up.
const NO_SPACE: &str = "etcdserver: mvcc: database space exceeded";

/// Why a call failed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Failure {
    /// The call had no effect; a retry, at this member or another one, may succeed.
    NotDone(String),
    /// The call may have taken effect; only reads may be retried.
    Unknown(String),
    /// The call had no effect; the client has to authenticate again.
    Unauthenticated(String),
    /// The call had no effect, and a retry will not succeed.
    Refused(String),
    /// The call had no effect, since the lease of the key no longer exists.
    LeaseGone(String),
    /// The call was one of authentication, which this etcd has not enabled.
    NoAuthentication(String),
    /// The call had no effect, and none that writes will have one until an operator frees space.
    Full,
    /// The member belongs to another cluster than before.
    Foreign(String),
    /// The requested history is compacted.
    Compacted,
    /// The copy has ended: what it was a copy for has been reset or deleted.
    Ended,
    /// An import into the store was not completed; the text names the remedy.
    Unfinished(String),
}

impl Failure {
    pub fn of(status: &Status) -> Failure {
        let message = status.message();
        let Some(why) = message.strip_prefix("etcdserver: ") else { return Failure::of_transport(status) };
        let text = message.to_owned();
        match why {
            "mvcc: required revision has been compacted" => Failure::Compacted,
            "no leader" | "too many requests" | "not capable" => Failure::NotDone(text),
            "invalid auth token" | "revision of auth store is old" => Failure::Unauthenticated(text),
            _ if message == NO_SPACE => Failure::Full,
            _ if why.starts_with("request timed out") => Failure::Unknown(text),
            "requested lease not found" => Failure::LeaseGone(text),
            "authentication is not enabled" => Failure::NoAuthentication(text),
            "leader changed" | "server stopped" | "raft: stopped" => Failure::Unknown(text),
            _ if status.code() == Code::Unavailable => Failure::Unknown(text),
            _ => Failure::Refused(text),
        }
    }

    fn of_transport(status: &Status) -> Failure {
        let mut text = status.message().to_owned();
        let mut cause = std::error::Error::source(status);
        while let Some(error) = cause {
            // the innermost cause is the most specific
            text = error.to_string();
            cause = error.source();
        }
        match status.code() {
            Code::PermissionDenied | Code::Unauthenticated | Code::InvalidArgument | Code::Unimplemented => {
                Failure::Refused(text)
            }
            _ => Failure::Unknown(text),
        }
    }

    /// Whether a retry of a call without effects may succeed.
    pub fn is_temporary(&self) -> bool {
        !matches!(
            self,
            Failure::Refused(_)
                | Failure::LeaseGone(_)
                | Failure::NoAuthentication(_)
                | Failure::Full
                | Failure::Compacted
                | Failure::Ended
                | Failure::Unfinished(_)
        )
    }

    pub fn text(&self) -> &str {
        match self {
            Failure::NotDone(why)
            | Failure::Unknown(why)
            | Failure::Unauthenticated(why)
            | Failure::Refused(why)
            | Failure::LeaseGone(why)
            | Failure::NoAuthentication(why)
            | Failure::Foreign(why)
            | Failure::Unfinished(why) => why,
            Failure::Full => NO_SPACE,
            Failure::Ended => "it has been reset or deleted",
            Failure::Compacted => "etcdserver: mvcc: required revision has been compacted",
        }
    }

    /// The error of the `Store` contract; `requested` is the revision that the caller requested.
    pub fn into_error(self, requested: Revision) -> StoreError {
        match self {
            Failure::Compacted => StoreError::Compacted(requested),
            Failure::Full => StoreError::Full(NO_SPACE),
            Failure::Unfinished(why) => StoreError::Unfinished(why),
            other => StoreError::Unavailable(other.text().to_owned()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn etcd_error_codes_are_classified() {
        type Make = fn(String) -> Failure;
        let cases: [(Code, &str, Make); 11] = [
            (Code::Unavailable, "etcdserver: no leader", Failure::NotDone),
            (Code::Unavailable, "etcdserver: request timed out, possibly due to connection lost", Failure::Unknown),
            (Code::Unavailable, "etcdserver: leader changed", Failure::Unknown),
            (Code::Unauthenticated, "etcdserver: invalid auth token", Failure::Unauthenticated),
            (Code::InvalidArgument, "etcdserver: request is too large", Failure::Refused),
            (Code::PermissionDenied, "etcdserver: permission denied", Failure::Refused),
            (Code::NotFound, "etcdserver: requested lease not found", Failure::LeaseGone),
            (Code::FailedPrecondition, "etcdserver: authentication is not enabled", Failure::NoAuthentication),
            (Code::ResourceExhausted, "etcdserver: mvcc: database space exceeded", |_| Failure::Full),
            (Code::OutOfRange, "etcdserver: mvcc: required revision has been compacted", |_| Failure::Compacted),
            (Code::Unavailable, "tcp connect error", Failure::Unknown),
        ];
        for (code, message, want) in cases {
            let failure = Failure::of(&Status::new(code, message));
            assert_eq!(failure, want(message.to_owned()), "{message}");
            assert_eq!(matches!(failure.into_error(1), StoreError::Full(_)), message == NO_SPACE, "{message}");
        }
    }
}
