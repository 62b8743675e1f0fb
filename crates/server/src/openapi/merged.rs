//! The v2 document of all groups. It and its parts are kept as one gzip stream: after a change, the first request
//! that needs the document builds only the parts of the groups that have changed. A background task would build
//! documents that no client requests, and a request right after a change would still have to wait for it.

use std::collections::{HashMap, HashSet};
use std::io::Read as _;
use std::sync::{Arc, Weak};

use base::task;
use bytes::Bytes;
use machinery::Release;
use tokio::sync::{Mutex, MutexGuard};

use super::DocumentEncoding;
use super::document::{self, Part};
use super::index::Index;
use crate::limits;

/// The document at one state of the index.
pub struct MergedDocument {
    /// The hash of the index.
    pub hash: String,
    gzip: Bytes,
    /// The document without compression, which the responses that use it own.
    plain: parking_lot::Mutex<Weak<Vec<u8>>>,
    /// The parts of groups, by the names of the groups.
    parts: HashMap<String, Part>,
}

/// A response's reference to a document, which keeps it in memory.
struct Shared<T>(Arc<T>);

impl AsRef<[u8]> for Shared<MergedDocument> {
    fn as_ref(&self) -> &[u8] {
        &self.0.gzip
    }
}

impl AsRef<[u8]> for Shared<Vec<u8>> {
    fn as_ref(&self) -> &[u8] {
        &self.0
    }
}

impl MergedDocument {
    /// Builds the document of an index. Parts of groups that have not changed are reused from `old`.
    fn new(
        index: &Index,
        encoding: DocumentEncoding,
        release: Release,
        old: Option<&MergedDocument>,
    ) -> MergedDocument {
        let (mut names, mut parts) = (HashSet::new(), vec![]);
        for (name, group) in &index.groups {
            let known = old.and_then(|old| old.parts.get(name)).filter(|part| part.hash == group.hash);
            let part = known.cloned().unwrap_or_else(|| Part::new(group, &HashSet::new(), encoding, release));
            let is_free = names.is_disjoint(part.names());
            let part = if is_free { part } else { Part::new(group, &names, encoding, release) };
            names.extend(part.names().iter().cloned());
            parts.push(part);
        }
        let gzip = document::merged(&mut parts, &index.remotes.all, encoding, release);
        let parts = index.groups.keys().cloned().zip(parts).collect();
        MergedDocument { hash: index.hash.clone(), gzip, plain: Default::default(), parts }
    }

    /// The document as a gzip stream.
    pub fn gzip(self: &Arc<Self>) -> Bytes {
        Bytes::from_owner(Shared(self.clone()))
    }

    /// The document without compression.
    pub fn plain(&self) -> Bytes {
        Bytes::from_owner(Shared(task::blocking(|| {
            let mut known = self.plain.lock();
            let plain = known.upgrade().unwrap_or_else(|| Arc::new(inflated(&self.gzip)));
            *known = Arc::downgrade(&plain);
            plain
        })))
    }
}

fn inflated(gzip: &[u8]) -> Vec<u8> {
    let mut out = vec![];
    // what this module has compressed is a valid stream
    let _ = flate2::read::GzDecoder::new(gzip).read_to_end(&mut out);
    out
}

/// The newest document in an encoding.
#[derive(Default)]
pub struct Slot {
    newest: Weak<MergedDocument>,
    /// The document, unless it is larger than [`limits::OPENAPI_KEPT_BYTES_MAX`]: then only the responses that use
    /// it own it.
    kept: Option<Arc<MergedDocument>>,
}

impl Slot {
    /// The document of an index, which is built if it is not the newest one.
    pub fn document(&mut self, index: &Index, encoding: DocumentEncoding, release: Release) -> Arc<MergedDocument> {
        let old = self.newest.upgrade();
        if let Some(current) = old.as_ref().filter(|old| old.hash == index.hash) {
            return current.clone();
        }
        let document = Arc::new(task::blocking(|| MergedDocument::new(index, encoding, release, old.as_deref())));
        self.newest = Arc::downgrade(&document);
        self.kept = (document.gzip.len() <= limits::OPENAPI_KEPT_BYTES_MAX).then(|| document.clone());
        document
    }
}

/// The documents in both encodings.
#[derive(Default)]
pub struct Merged {
    json: Mutex<Slot>,
    protobuf: Mutex<Slot>,
}

impl Merged {
    /// Waits while another request builds the document in this encoding.
    pub async fn lock(&self, encoding: DocumentEncoding) -> MutexGuard<'_, Slot> {
        match encoding {
            DocumentEncoding::Json => self.json.lock().await,
            DocumentEncoding::Protobuf => self.protobuf.lock().await,
        }
    }
}

#[cfg(test)]
mod tests {
    use machinery::{Value, json};
    use objects::Objects;
    use resource::{Registry, from_definition};

    use super::*;
    use crate::openapi::remote::RemoteDocuments;

    fn crd((group, version, kind): (&str, &str, &str), description: &str) -> Value {
        let plural = kind.to_lowercase();
        let names = json!({"plural": (plural.as_str()), "kind": kind, "listKind": (format!("{kind}List"))});
        let schema = json!({"openAPIV3Schema": {"type": "object", "description": description}});
        json!({
            "spec": {
                "group": group, "scope": "Namespaced", "names": (names.clone()),
                "versions": [{"name": version, "served": true, "storage": true, "schema": schema}]
            },
            "status": {"acceptedNames": names, "conditions": [
                {"type": "NamesAccepted", "status": "True"}, {"type": "Established", "status": "True"}
            ]}
        })
    }

    /// After each change, a document that reuses parts equals a new one.
    #[tokio::test]
    async fn reused_parts_make_the_same_document() {
        let store = Arc::new(store::Memory::default());
        let objects =
            Objects::open(objects::Storage::own(store), Default::default(), Box::new(|_, _, _| {})).await.unwrap();
        let registry = Registry::new(&kinds::CATALOGUE, Default::default());
        // the schemas of the last two have the same name
        let [kite, boat, one, other] =
            [("a.io", "v1", "Kite"), ("b.io", "v1", "Boat"), ("x", "v1", "v2.K"), ("v1.x", "v2", "K")];
        let changes = [
            (kite, Some("first"), &["io.a.v1.Kite"][..]),
            (boat, Some("first"), &["io.a.v1.Kite", "io.b.v1.Boat"]),
            (kite, Some("second"), &["io.a.v1.Kite", "io.b.v1.Boat"]),
            (one, Some("one"), &["x.v1.v2.K"]),
            (other, Some("other"), &["x.v1.v2.K"]),
            (other, None, &["x.v1.v2.K"]),
            (other, Some("other"), &["x.v1.v2.K"]),
            (one, None, &["x.v1.v2.K", "io.a.v1.Kite", "io.b.v1.Boat"]),
            (kite, None, &["io.b.v1.Boat"]),
        ];
        let (mut slots, mut index) = ([Slot::default(), Slot::default()], Index::default());
        for (generation, (kind, description, names)) in changes.into_iter().enumerate() {
            let resource = description.and_then(|description| {
                let encoded = crd(kind, description).to_json().into();
                from_definition(&encoded, &objects, &Default::default(), &Default::default())
            });
            registry.replace(&kind.0.into(), &kind.2.to_lowercase().into(), resource);
            index = Index::new(generation as u64, &registry.snapshot(), RemoteDocuments::default(), &index);
            for (slot, encoding) in slots.iter_mut().zip([DocumentEncoding::Json, DocumentEncoding::Protobuf]) {
                let document = slot.document(&index, encoding, Release::default());
                let new = MergedDocument::new(&index, encoding, Release::default(), None);
                assert_eq!(document.plain(), new.plain(), "{kind:?} {description:?} {encoding:?}");
                assert_eq!(inflated(&document.gzip()), document.plain());
                if encoding == DocumentEncoding::Json {
                    let text = String::from_utf8(document.plain().to_vec()).unwrap();
                    machinery::value::decode(text.as_bytes()).unwrap();
                    for name in names {
                        assert_eq!(
                            text.matches(&format!("\"{name}\":{{")).count(),
                            1,
                            "{name} {kind:?} {description:?}"
                        );
                    }
                }
            }
        }
    }
}
