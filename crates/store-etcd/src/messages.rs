//! The messages of etcd's API that are used here (etcd's `rpc.proto` and `kv.proto`, 3.4 to 3.7): facts of the protocol.

use bytes::Bytes;
use prost::{Enumeration, Message as Encoded, Oneof};

/// Paths of the calls.
pub const RANGE: &str = "/etcdserverpb.KV/Range";
pub const TXN: &str = "/etcdserverpb.KV/Txn";
pub const COMPACT: &str = "/etcdserverpb.KV/Compact";
pub const WATCH: &str = "/etcdserverpb.Watch/Watch";
pub const LEASE_GRANT: &str = "/etcdserverpb.Lease/LeaseGrant";
pub const STATUS: &str = "/etcdserverpb.Maintenance/Status";
pub const AUTHENTICATE: &str = "/etcdserverpb.Auth/Authenticate";

/// Each message with its fields: name, type, number, and the kind of encoding in prost's words.
macro_rules! messages {
    ($($(#[$doc:meta])* $message:ident {
        $($(#[$field_doc:meta])* $field:ident: $type:ty = $number:tt ($($kind:tt)*)),* $(,)?
    })*) => {$(
        $(#[$doc])*
        #[derive(Clone, PartialEq, prost::Message)]
        pub struct $message {
            $($(#[$field_doc])* #[prost($($kind)*, tag = $number)] pub $field: $type,)*
        }
    )*};
}

messages! {
    ResponseHeader { cluster_id: u64 = 1 (uint64), revision: i64 = 3 (int64) }
    KeyValue {
        key: Bytes = 1 (bytes = "bytes"),
        mod_revision: i64 = 3 (int64),
        /// How often the key was written since it was created.
        version: i64 = 4 (int64),
        value: Bytes = 5 (bytes = "bytes"),
    }
    RangeRequest {
        key: Bytes = 1 (bytes = "bytes"),
        range_end: Bytes = 2 (bytes = "bytes"),
        limit: i64 = 3 (int64),
        revision: i64 = 4 (int64),
        keys_only: bool = 8 (bool),
        count_only: bool = 9 (bool),
    }
    RangeResponse {
        header: Option<ResponseHeader> = 1 (message, optional),
        kvs: Vec<KeyValue> = 2 (message, repeated),
        more: bool = 3 (bool),
    }
    PutRequest {
        key: Bytes = 1 (bytes = "bytes"),
        value: Bytes = 2 (bytes = "bytes"),
        /// The key is deleted when this lease ends; 0 for none.
        lease: i64 = 3 (int64),
    }
    LeaseGrantRequest {
        /// Seconds.
        ttl: i64 = 1 (int64),
    }
    LeaseGrantResponse { header: Option<ResponseHeader> = 1 (message, optional), id: i64 = 2 (int64) }
    DeleteRangeRequest {
        key: Bytes = 1 (bytes = "bytes"),
        /// Exclusive; empty for one key.
        range_end: Bytes = 2 (bytes = "bytes"),
    }
    /// Of these responses, only the range that is read after a failed comparison is used.
    ResponseOp { range: Option<RangeResponse> = 1 (message, optional) }
    /// The comparison is always for equality, whose number is 0 and therefore not encoded.
    Compare {
        target: i32 = 2 (enumeration = "Target"),
        key: Bytes = 3 (bytes = "bytes"),
        version: Option<i64> = 4 (int64, optional),
        mod_revision: Option<i64> = 6 (int64, optional),
    }
    TxnRequest {
        compare: Vec<Compare> = 1 (message, repeated),
        success: Vec<RequestOp> = 2 (message, repeated),
        failure: Vec<RequestOp> = 3 (message, repeated),
    }
    TxnResponse {
        header: Option<ResponseHeader> = 1 (message, optional),
        succeeded: bool = 2 (bool),
        responses: Vec<ResponseOp> = 3 (message, repeated),
    }
    CompactionRequest { revision: i64 = 1 (int64) }
    HeaderOnly { header: Option<ResponseHeader> = 1 (message, optional) }
    StatusRequest {}
    StatusResponse { header: Option<ResponseHeader> = 1 (message, optional), version: String = 2 (string) }
    AuthenticateRequest { name: String = 1 (string), password: String = 2 (string) }
    AuthenticateResponse { header: Option<ResponseHeader> = 1 (message, optional), token: String = 2 (string) }
    WatchCreateRequest {
        key: Bytes = 1 (bytes = "bytes"),
        range_end: Bytes = 2 (bytes = "bytes"),
        start_revision: i64 = 3 (int64),
        progress_notify: bool = 4 (bool),
    }
    WatchProgressRequest {}
    WatchResponse {
        header: Option<ResponseHeader> = 1 (message, optional),
        created: bool = 3 (bool),
        canceled: bool = 4 (bool),
        compact_revision: i64 = 5 (int64),
        cancel_reason: String = 6 (string),
        events: Vec<Event> = 11 (message, repeated),
    }
    Event { kind: i32 = 1 (enumeration = "EventKind"), kv: Option<KeyValue> = 2 (message, optional) }
}

#[derive(Clone, PartialEq, prost::Message)]
pub struct RequestOp {
    #[prost(oneof = "Op", tags = "1, 2, 3")]
    pub op: Option<Op>,
}

#[derive(Clone, PartialEq, Oneof)]
pub enum Op {
    #[prost(message, tag = "1")]
    Range(RangeRequest),
    #[prost(message, tag = "2")]
    Put(PutRequest),
    #[prost(message, tag = "3")]
    Delete(DeleteRangeRequest),
}

pub fn operation(op: Op) -> RequestOp {
    RequestOp { op: Some(op) }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Enumeration)]
#[repr(i32)]
pub enum Target {
    Version = 0,
    ModRevision = 2,
}

#[derive(Clone, PartialEq, prost::Message)]
pub struct WatchRequest {
    #[prost(oneof = "WatchAction", tags = "1, 3")]
    pub action: Option<WatchAction>,
}

#[derive(Clone, PartialEq, Oneof)]
pub enum WatchAction {
    #[prost(message, tag = "1")]
    Create(WatchCreateRequest),
    #[prost(message, tag = "3")]
    Progress(WatchProgressRequest),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Enumeration)]
#[repr(i32)]
pub enum EventKind {
    Put = 0,
    Delete = 1,
}

/// Anything that can be sent.
pub trait Message: Encoded + Clone + 'static {}

impl<T: Encoded + Clone + 'static> Message for T {}

/// A response, whose header has the cluster id and the revision.
pub trait Response: Encoded + Default + 'static {
    fn header(&self) -> Option<&ResponseHeader>;

    fn revision(&self) -> u64 {
        self.header().map_or(0, |header| revision(header.revision))
    }
}

/// Revisions are never negative.
pub fn revision(revision: i64) -> u64 {
    u64::try_from(revision).unwrap_or(0)
}

pub fn number(revision: u64) -> i64 {
    i64::try_from(revision).unwrap_or(i64::MAX)
}

macro_rules! responses {
    ($($response:ty),*) => {
        $(impl Response for $response {
            fn header(&self) -> Option<&ResponseHeader> {
                self.header.as_ref()
            }
        })*
    };
}

responses!(
    RangeResponse, TxnResponse, HeaderOnly, LeaseGrantResponse, StatusResponse, AuthenticateResponse, WatchResponse
);
