//! Snapshots of etcd, as `etcdctl snapshot save` writes them, and copies of its file `member/snap/db`.

mod bbolt;
#[cfg(test)]
mod tests;

use std::collections::HashMap;
use std::io;

use machinery::protobuf::{self, Field, fields};
use machinery::{Value, cbor};

use crate::error::StoredError;
use crate::limits::ETCD_VALUE_BYTES_MAX;
use crate::spool::Part;
use bbolt::{Database, ValuePlace};

pub use bbolt::{HEAD_BYTES, is_database};

/// The bucket of all revisions of all keys.
const REVISIONS: &[u8] = b"key";
/// Keys of this bucket are a revision, `_` and a number within it; those of deletions have one more byte.
const REVISION_BYTES: usize = 17;
/// The beginning of values that kube-apiserver has encrypted; the provider and the name of its key follow.
const ENCRYPTED: &[u8] = b"k8s:enc:";

/// The kind in which kube-apiserver keeps the cluster IPs and node ports that are allocated. It serves none.
const RANGES: &str = "RangeAllocation";

/// An object of a snapshot.
pub struct StoredObject {
    /// With the revision as resourceVersion.
    pub value: Value,
    /// The plural of a custom resource.
    pub plural: Option<String>,
}

/// The newest revision of a key.
struct Newest {
    revision: u64,
    place: ValuePlace,
}

/// Reads the objects of a snapshot in the order of their revisions, and passes them, or why one cannot be read, to `found`, with
/// its key. Memory is that of the keys. Fails if the file is damaged.
pub fn read(snapshot: &Part, found: &mut dyn FnMut(&str, Result<StoredObject, StoredError>)) -> io::Result<()> {
    let database = Database::open(snapshot)?;
    let mut newest: HashMap<Box<[u8]>, Newest> = HashMap::new();
    // revisions are visited in their order
    database.visit(REVISIONS, &mut |leaf| {
        let Some(key) = field(leaf.value, 1) else { return };
        let is_deletion = leaf.key.len() != REVISION_BYTES;
        let main = leaf.key.first_chunk::<8>().map_or(0, |main| u64::from_be_bytes(*main));
        match is_deletion {
            true => drop(newest.remove(key)),
            false => drop(newest.insert(key.into(), Newest { revision: main, place: leaf.place })),
        }
    })?;
    let mut newest: Vec<(Box<[u8]>, Newest)> = newest.into_iter().collect();
    newest.sort_unstable_by(|(a, one), (b, other)| (one.revision, a).cmp(&(other.revision, b)));
    for (key, Newest { revision, place }) in newest {
        let key = String::from_utf8_lossy(&key);
        if place.length as usize > ETCD_VALUE_BYTES_MAX {
            found(&key, Err(StoredError::TooLarge));
            continue;
        }
        let stored = snapshot.slice(place.offset, place.length as usize)?;
        let value = field(&stored, 5).unwrap_or_default();
        match object(value) {
            Ok(None) => {}
            Err(why) => found(&key, Err(why)),
            Ok(Some(mut value)) => {
                value.set_at(&["metadata", "resourceVersion"], Value::from(revision.to_string()));
                found(&key, Ok(StoredObject { value, plural: plural(&key) }));
            }
        }
    }
    Ok(())
}

/// A field of bytes of `mvccpb.KeyValue`: 1 is the key, 5 the value.
fn field(stored: &[u8], number: u32) -> Option<&[u8]> {
    fields(stored)?.into_iter().find_map(|field| match field {
        Field::Bytes(found, bytes) if found == number => Some(bytes),
        _ => None,
    })
}

/// The object that a value is: protobuf, CBOR or JSON. `None` for values of kube-apiserver that are no objects of the API, such as
/// allocated ranges.
fn object(value: &[u8]) -> Result<Option<Value>, StoredError> {
    if let Some(rest) = value.strip_prefix(ENCRYPTED) {
        let provider: Vec<_> = rest.split(|byte| *byte == b':').take(3).map(String::from_utf8_lossy).collect();
        return Err(StoredError::Encrypted { provider: provider.join(":") });
    }
    let decoded = match value {
        _ if value.starts_with(&protobuf::MAGIC) => protobuf::decode(value)?,
        _ if value.starts_with(&cbor::SELF_DESCRIBED) => cbor::decode_stored(value)?,
        [b'{', ..] => machinery::value::decode(value)?,
        _ => return Ok(None),
    };
    let is_served = !decoded.str_at(&["metadata", "name"]).is_empty() && decoded.str_at(&["kind"]) != RANGES;
    Ok(is_served.then_some(decoded))
}

/// The plural in a key `PREFIX/GROUP/PLURAL/…` of a custom resource.
fn plural(key: &str) -> Option<String> {
    let names: Vec<&str> = key.split('/').collect();
    let group = names.iter().position(|name| name.contains('.'))?;
    names.get(group + 1).map(|plural| (*plural).to_owned())
}
