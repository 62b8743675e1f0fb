//! Export of the objects of a store to a file, and import into any other store.
//!
//! A file consists of lines of JSON: `{"format":…,"objects":n,"revision":r}`, then one line per object with its group,
//! resource, path and stored form, then `{"sha256":…}` of all preceding lines. An import checks the whole file before it
//! writes, then reads everything back and compares it. Revisions are not preserved: the new store assigns its own.

use std::collections::HashMap;
use std::io::Write;
use std::sync::Arc;

use base::digest;
use bytes::Bytes;
use futures_util::{StreamExt as _, stream};
use machinery::{Text, Value, json};
use objects::{Body, Key, Layout, Place, Storage};
use store::{Expected, Refused, Revision, Snapshot, Write as Put};

use crate::limits;

const FORMAT: &str = "pintle objects 1";

/// The progress of an export or an import.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TransferProgress {
    pub objects: usize,
    pub of: usize,
    pub revision: Revision,
}

/// Callback for progress reports.
pub type Progress<'a> = &'a mut (dyn FnMut(TransferProgress) + Send);

fn unreadable(place: &Place, why: &str) -> String {
    format!("the value of {} is no object: {why}", place.bytes.escape_ascii())
}

/// Writes every object of a snapshot to `out`. Keys of other programs are skipped. The error is one line.
pub fn export(
    snapshot: &Snapshot,
    layout: &Layout,
    out: &mut dyn Write,
    progress: Progress<'_>,
) -> Result<TransferProgress, String> {
    let failed = |error: std::io::Error| format!("cannot write: {error}");
    let entries: Vec<_> = snapshot.entries.iter().filter_map(|entry| Some((layout.find(&entry.key)?, entry))).collect();
    let mut done = TransferProgress { objects: 0, of: entries.len(), revision: snapshot.revision };
    let mut sum = digest::Sha256::default();
    let mut write = |line: Value, out: &mut dyn Write| {
        let line = format!("{}\n", line.to_json());
        sum.update(line.as_bytes());
        out.write_all(line.as_bytes()).map_err(failed)
    };
    let number = |n: u64| Value::Int(i64::try_from(n).unwrap_or(i64::MAX));
    let (objects, revision) = (number(done.of as u64), number(done.revision));
    write(json!({"format": FORMAT, "objects": objects, "revision": revision}), out)?;
    for (place, entry) in entries {
        let opened = layout.open(&place, entry.value.clone()).map_err(|why| unreadable(&place, &why))?;
        let object = machinery::value::decode(&opened.value).map_err(|error| unreadable(&place, &error.to_string()))?;
        let Key { group, plural, path } = place.key;
        let line = json!({
            "group": (Value::String(group)), "resource": (Value::String(plural)), "path": (Value::String(path)),
            "object": object
        });
        write(line, out)?;
        done.objects += 1;
        if done.objects.is_multiple_of(limits::IMPORT_REPORTED) {
            progress(done);
        }
    }
    let sum = json!({"sha256": (sum.hex())});
    out.write_all(format!("{}\n", sum.to_json()).as_bytes()).and_then(|()| out.flush()).map_err(failed)?;
    Ok(done)
}

/// Checks a file and returns its objects: the key and the value of each in the new store.
fn read(file: &[u8], layout: &Layout) -> Result<Vec<(Place, Bytes)>, String> {
    let damaged = |why: &str| format!("the file is corrupt: {why}");
    let body = file.strip_suffix(b"\n").ok_or_else(|| damaged("it ends within a line"))?;
    let end = body.iter().rposition(|b| *b == b'\n').ok_or_else(|| damaged("it has one line"))? + 1;
    let decode = |line: &[u8]| machinery::value::decode(line).map_err(|error| damaged(&error.to_string()));
    let mut sum = digest::Sha256::default();
    sum.update(&file[..end]);
    if decode(&body[end..])?.str_at(&["sha256"]) != sum.hex() {
        return Err(damaged("its end is missing, or something in it was changed"));
    }
    let mut lines = file[..end - 1].split(|b| *b == b'\n');
    let header = decode(lines.next().unwrap_or_default())?;
    if header.str_at(&["format"]) != FORMAT {
        return Err(format!("the file has format {:?}, and this version reads {FORMAT:?}", header.str_at(&["format"])));
    }
    lines.map(|line| read_object(&decode(line)?, layout)).collect()
}

/// The key of the object in a line and its value in the new store.
fn read_object(line: &Value, layout: &Layout) -> Result<(Place, Bytes), String> {
    let text = |key: &str| Text::from(line.str_at(&[key]));
    let place = layout.place(&Key { group: text("group"), plural: text("resource"), path: text("path") });
    let plain = Body::encode(line.get("object").unwrap_or(&Value::Null)).bytes;
    let sealed = layout.seal(&place, plain.clone()).map_err(|why| unreadable(&place, &why))?;
    // fields that the storage form cannot represent would be lost silently
    match layout.open(&place, sealed.clone()) {
        Ok(opened) if opened.value == plain => Ok((place, sealed)),
        Ok(_) => Err(unreadable(&place, "the store would change it")),
        Err(why) => Err(unreadable(&place, &why)),
    }
}

/// Writes every object of a file to a store without objects. The error is one line.
pub async fn import(file: &[u8], storage: &Storage, progress: Progress<'_>) -> Result<TransferProgress, String> {
    let objects = read(file, &storage.layout)?;
    let wanted: HashMap<Bytes, Bytes> =
        objects.iter().map(|(place, value)| (place.bytes.clone(), value.clone())).collect();
    let found = present(storage).await?;
    if let Some(key) = found.keys().next() {
        let (count, key) = (found.len(), key.escape_ascii());
        return Err(format!("there are {count} objects already, such as {key}: an import needs a store without any"));
    }
    let mut done = TransferProgress { objects: 0, of: objects.len(), revision: 0 };
    let writes = objects.into_iter().map(|(place, value)| {
        let store = Arc::clone(&storage.store);
        async move {
            let put = Put { key: place.bytes.clone(), expected: Expected::Absent, value: Some(value) };
            store.commit(put).await.map_err(|refused| match refused {
                Refused::Conflict(_) => format!("another program has written {}", place.bytes.escape_ascii()),
                Refused::Failed(error) => error.to_string(),
            })
        }
    });
    let mut written = stream::iter(writes).buffer_unordered(limits::IMPORT_PARALLEL);
    while let Some(revision) = written.next().await {
        done.revision = done.revision.max(revision?);
        done.objects += 1;
        if done.objects.is_multiple_of(limits::IMPORT_REPORTED) {
            progress(done);
        }
    }
    drop(written);
    let found = present(storage).await?;
    match wanted.iter().find(|(key, value)| found.get(*key) != Some(value)) {
        Some((key, _)) => Err(format!("{} was not read back as it was written", key.escape_ascii())),
        None => Ok(done),
    }
}

/// The current objects of a store, by key.
async fn present(storage: &Storage) -> Result<HashMap<Bytes, Bytes>, String> {
    let snapshot = storage.store.snapshot().await.map_err(|error| error.to_string())?;
    let entries = snapshot.entries.into_iter().filter(|entry| storage.layout.find(&entry.key).is_some());
    Ok(entries.map(|entry| (entry.key, entry.value)).collect())
}

#[cfg(test)]
mod tests {
    use store::Embedded;

    use super::*;
    use resource::upstream_storage;

    async fn filled() -> Storage {
        let storage = Storage::own(Arc::new(Embedded::in_memory()));
        for (group, plural, path, object) in [
            (
                "",
                "configmaps",
                "n/a",
                json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a", "namespace": "n"}, "data": {"k": "v"}}),
            ),
            (
                "example.com",
                "boats",
                "b",
                json!({"apiVersion": "example.com/v1", "kind": "Boat", "metadata": {"name": "b"}, "spec": {}}),
            ),
        ] {
            let place = storage.layout.place(&Key { group: group.into(), plural: plural.into(), path: path.into() });
            let value = Some(Body::encode(&object).bytes);
            storage.store.commit(Put { key: place.bytes, expected: Expected::Absent, value }).await.unwrap();
        }
        storage
    }

    async fn exported(storage: &Storage) -> Vec<u8> {
        let mut file = vec![];
        export(&storage.store.snapshot().await.unwrap(), &storage.layout, &mut file, &mut |_| {}).unwrap();
        file
    }

    #[tokio::test]
    async fn objects_go_to_another_layout_and_back() {
        let first = exported(&filled().await).await;
        let other = upstream_storage(Arc::new(Embedded::in_memory()), "/registry", Default::default());
        assert_eq!(import(&first, &other, &mut |_| {}).await.unwrap().objects, 2);
        let keys: Vec<_> = other.store.snapshot().await.unwrap().entries.into_iter().map(|entry| entry.key).collect();
        assert_eq!(keys, ["/registry/configmaps/n/a", "/registry/example.com/boats/b"]);
        let back = Storage::own(Arc::new(Embedded::in_memory()));
        import(&exported(&other).await, &back, &mut |_| {}).await.unwrap();
        let values = |snapshot: Snapshot| snapshot.entries.into_iter().map(|e| (e.key, e.value)).collect::<Vec<_>>();
        let (want, found) = (filled().await.store.snapshot().await.unwrap(), back.store.snapshot().await.unwrap());
        assert_eq!(values(found), values(want));
        let again = import(&first, &back, &mut |_| {}).await.unwrap_err();
        assert!(again.starts_with("there are 2 objects already, such as /registry/"), "{again}");
    }

    #[tokio::test]
    async fn import_of_a_damaged_file_changes_nothing() {
        let file = exported(&filled().await).await;
        let target = Storage::own(Arc::new(Embedded::in_memory()));
        for end in 0..file.len() {
            assert!(import(&file[..end], &target, &mut |_| {}).await.is_err(), "{end}");
        }
        for at in 0..file.len() {
            let mut flipped = file.clone();
            flipped[at] ^= 1;
            assert!(import(&flipped, &target, &mut |_| {}).await.is_err(), "{at}");
        }
        assert_eq!(target.store.head().await.unwrap(), 0);
    }
}
