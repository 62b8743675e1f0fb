//! Errors of stored objects that no version can represent. Since 1.37, which enables
//! `AllowUnsafeMalformedObjectDeletion`, they are reported as corrupt.

use machinery::Status;
use machinery::status::{Cause, Details, Reason};

use super::conversion::Conversion;
use super::model::Resource;
use crate::limits;
use objects::Stored;

/// The path under which kube-apiserver stores all objects.
const STORAGE_PREFIX: &str = "/registry";

impl Resource {
    fn has_corrupt_objects(&self) -> bool {
        self.is_custom() && self.gates.has(base::request::Feature::UnsafeDeletion)
    }

    /// The error of a get or a delete of an object that cannot be read.
    pub fn unreadable(&self, stored: &Stored, why: Status) -> Status {
        if self.has_corrupt_objects() { Status::internal(self.storage_error("", stored, &why)) } else { why }
    }

    /// The error of a change to an object that cannot be read.
    pub fn undecodable(&self, stored: &Stored, why: Status) -> Status {
        if !self.has_corrupt_objects() {
            return why;
        }
        Status::untyped(why.code, format!("object not decodable revision={}: {}", stored.revision, why.message))
    }

    /// The error of a list some of whose objects cannot be read. Unless a webhook could make them readable,
    /// kube-apiserver's watch cache, which serves all lists except pages of all objects (`is_page`), does not start.
    pub fn unreadable_list(&self, unreadable: &[(&Stored, Status)], is_page: bool, why: Status) -> Status {
        if !self.has_corrupt_objects() || unreadable.is_empty() {
            return why;
        }
        let cause = |(stored, why): &(&Stored, Status)| Cause {
            reason: "UnexpectedServerResponse".into(),
            field: format!("{STORAGE_PREFIX}{}", self.storage_path(stored)),
            message: self.storage_error(STORAGE_PREFIX, stored, why),
        };
        let causes: Vec<Cause> = unreadable.iter().take(limits::CORRUPT_OBJECTS_REPORTED).map(cause).collect();
        let first = causes.first().map_or("", |cause| &cause.message);
        let more = causes.len().saturating_sub(1);
        let more = if more > 0 { format!(" (and {more} more)") } else { String::new() };
        let message =
            format!("failed to read one or more {}.{} from the storage: {first}{more}", self.plural, self.group);
        if matches!(self.conversion, Conversion::None) && !is_page {
            let why = format!("storage is (re)initializing: failed to list <unspecified>: {message}");
            return Status::too_many_requests(why, 1);
        }
        Status::new(Reason::StoreReadError, message).with_details(Details {
            name: "list".to_owned(),
            group: self.group.to_string(),
            kind: self.plural.to_string(),
            causes,
            ..Details::default()
        })
    }

    fn storage_path(&self, stored: &Stored) -> String {
        let key = self.key(&stored.meta.namespace, &stored.meta.name);
        format!("/{}/{}/{}", self.group, self.plural, key.path)
    }

    fn storage_error(&self, prefix: &str, stored: &Stored, why: &Status) -> String {
        format!(
            "StorageError: corrupt object, Code: 7, Key: {prefix}{}, ResourceVersion: 0, AdditionalErrorMsg: {}",
            self.storage_path(stored),
            self.undecodable(stored, why.clone()).message
        )
    }
}
