//! Tests of export and import.

use std::sync::Arc;

use kinds::upstream_storage;
use machinery::selector::LabelSelector;
use machinery::{Value, json};
use objects::{Body, Key, Storage};
use store::{Expected, Memory, Snapshot, Write as Put};

use super::*;

fn objects() -> Vec<(&'static str, &'static str, &'static str, Value)> {
    let map = |name: &str, tier: &str| {
        json!({
            "apiVersion": "v1", "kind": "ConfigMap",
            "metadata": {"name": (name), "namespace": "n", "labels": {"tier": (tier)}}, "data": {"k": "v"}
        })
    };
    vec![
        ("", "configmaps", "n/a", map("a", "front")),
        ("", "configmaps", "n/b", map("b", "back")),
        (
            "",
            "namespaces",
            "n",
            json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "n"}, "spec": {}, "status": {}}),
        ),
        (
            "example.com",
            "boats",
            "b",
            json!({"apiVersion": "example.com/v1", "kind": "Boat", "metadata": {"name": "b"}, "spec": {}}),
        ),
    ]
}

fn empty() -> Storage {
    Storage::own(Arc::new(Memory::default()))
}

async fn filled() -> Storage {
    let storage = empty();
    for (group, plural, path, object) in objects() {
        put(&storage, group, plural, path, &object, Expected::Absent).await;
    }
    storage
}

async fn put(storage: &Storage, group: &str, plural: &str, path: &str, object: &Value, expected: Expected) {
    let place = storage.layout.place(&Key { group: group.into(), plural: plural.into(), path: path.into() });
    let value = Some(Body::encode(object).bytes);
    storage.store.commit(Put { key: place.bytes, expected, value }).await.unwrap();
}

async fn selected(storage: &Storage, selection: &ObjectSelection) -> Result<Vec<u8>, String> {
    let mut file = vec![];
    let snapshot = storage.store.snapshot().await.unwrap();
    let chosen = choose(&snapshot, &storage.layout, selection)?;
    export(&chosen, &storage.layout, &mut file, &mut |_| {})?;
    Ok(file)
}

async fn exported(storage: &Storage) -> Vec<u8> {
    selected(storage, &ObjectSelection::default()).await.unwrap()
}

async fn imported(file: &[u8], storage: &Storage, conflict: Conflict) -> Result<Imported, String> {
    import(check(file, &storage.layout, &ObjectSelection::default(), &mut |_| {})?, storage, conflict, &mut |_| {})
        .await
}

async fn values(storage: &Storage) -> Vec<(String, String)> {
    let Snapshot { entries, .. } = storage.store.snapshot().await.unwrap();
    let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).unwrap();
    let mut values: Vec<_> = entries.iter().map(|entry| (text(&entry.key), text(&entry.value))).collect();
    values.sort();
    values
}

#[tokio::test]
async fn objects_go_to_another_layout_and_back() {
    let first = exported(&filled().await).await;
    let other = upstream_storage(Arc::new(Memory::default()), "/registry", Default::default());
    assert_eq!(imported(&first, &other, Conflict::Fail).await.unwrap().written, 4);
    let snapshot = other.store.snapshot().await.unwrap();
    let keys: Vec<_> = snapshot.entries.into_iter().map(|entry| entry.key).collect();
    assert_eq!(keys[..2], ["/registry/configmaps/n/a", "/registry/configmaps/n/b"]);
    assert_eq!(keys[2..], ["/registry/example.com/boats/b", "/registry/namespaces/n"]);
    let back = empty();
    imported(&exported(&other).await, &back, Conflict::Fail).await.unwrap();
    assert_eq!(values(&back).await, values(&filled().await).await);
}

#[tokio::test]
async fn import_of_a_damaged_file_changes_nothing() {
    let file = exported(&filled().await).await;
    let target = empty();
    for end in 0..file.len() {
        assert!(imported(&file[..end], &target, Conflict::Fail).await.is_err(), "{end}");
    }
    for at in 0..file.len() {
        let mut flipped = file.clone();
        flipped[at] ^= 1;
        assert!(imported(&flipped, &target, Conflict::Fail).await.is_err(), "{at}");
    }
    assert_eq!(target.store.head().await.unwrap(), 0);
}

/// A file with these lines and the right checksum.
fn file_of(lines: &[Value]) -> Vec<u8> {
    let mut file: Vec<u8> = lines.iter().flat_map(|line| format!("{}\n", line.to_json()).into_bytes()).collect();
    let mut sum = base::digest::Sha256::default();
    sum.update(&file);
    file.extend(format!("{}\n", json!({"sha256": (sum.hex())}).to_json()).bytes());
    file
}

#[test]
fn invalid_files_are_reported_with_their_line() {
    let header = json!({"format": (FORMAT), "objects": 1, "revision": 1});
    let line = json!({"group": "", "resource": "configmaps", "path": "n/a", "object": {"kind": "ConfigMap"}});
    for (lines, want) in [
        (
            vec![json!({"format": "pintle objects 9"})],
            "the file has format \"pintle objects 9\", and this version reads",
        ),
        (vec![header.clone(), json!({"group": ""})], "line 2: it has no resource or no path"),
        (
            vec![header.clone(), line.clone(), line.clone()],
            "line 3: the object /registry/core/configmaps/n/a is in the file twice",
        ),
    ] {
        let error = check(&file_of(&lines), &empty().layout, &ObjectSelection::default(), &mut |_| {}).err().unwrap();
        assert!(error.starts_with(want), "{error}");
    }
    for (text, want) in
        [("", "the file is empty"), ("hello\n", "the file does not begin"), ("{}", "the file does not begin")]
    {
        let error = check(text.as_bytes(), &empty().layout, &ObjectSelection::default(), &mut |_| {}).err().unwrap();
        assert!(error.starts_with(want), "{error}");
    }
}

#[tokio::test]
async fn conflicts_are_refused_skipped_or_replaced() {
    let file = exported(&filled().await).await;
    let want = values(&filled().await).await;
    let changed = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a", "namespace": "n"}});
    for (conflict, expected) in [
        (Conflict::Fail, None),
        (Conflict::Skip, Some(Imported { written: 2, same: 1, skipped: 1, revision: 4 })),
        (Conflict::Replace, Some(Imported { written: 3, same: 1, skipped: 0, revision: 5 })),
    ] {
        let target = empty();
        put(&target, "", "configmaps", "n/a", &changed, Expected::Absent).await;
        put(&target, "", "configmaps", "n/b", &objects()[1].3, Expected::Absent).await;
        let before = values(&target).await;
        let result = imported(&file, &target, conflict).await;
        match expected {
            None => {
                let error = result.unwrap_err();
                assert!(error.starts_with("there are 2 objects already, such as /registry/"), "{error}");
                assert_eq!(values(&target).await, before);
            }
            Some(expected) => {
                assert_eq!(result.unwrap(), expected);
                let differs = values(&target).await != want;
                assert_eq!(differs, conflict == Conflict::Skip);
            }
        }
    }
}

/// An interrupted import has written some of the objects.
#[tokio::test]
async fn interrupted_import_is_continued() {
    let file = exported(&filled().await).await;
    for written in 0..objects().len() {
        for conflict in [Conflict::Skip, Conflict::Replace] {
            let target = empty();
            for (group, plural, path, object) in &objects()[..written] {
                put(&target, group, plural, path, object, Expected::Absent).await;
            }
            let result = imported(&file, &target, conflict).await.unwrap();
            assert_eq!((result.same, result.written, result.skipped), (written, objects().len() - written, 0));
            assert_eq!(values(&target).await, values(&filled().await).await);
        }
    }
}

#[tokio::test]
async fn objects_are_selected() {
    let storage = filled().await;
    let file = exported(&storage).await;
    let names = |names: &[&str]| -> Vec<String> { names.iter().map(ToString::to_string).collect() };
    for (namespaces, resources, labels, want) in [
        (&["n"][..], &[][..], "", &["configmaps/n/a", "configmaps/n/b", "namespaces/n"][..]),
        (&[], &["boats.example.com"], "", &["boats/b"]),
        (&[], &["configmaps", "boats.example.com"], "", &["boats/b", "configmaps/n/a", "configmaps/n/b"]),
        (&[], &[], "tier=front", &["configmaps/n/a"]),
        (&["n"], &["configmaps"], "tier!=front", &["configmaps/n/b"]),
        (&["other"], &[], "", &[]),
        (&[], &["boats"], "", &[]),
        (&[], &[], "tier=none", &[]),
    ] {
        let labels = LabelSelector::parse(labels).unwrap();
        let selection = ObjectSelection { namespaces: names(namespaces), resources: names(resources), labels };
        let checked = check(&file, &storage.layout, &selection, &mut |_| {});
        if want.is_empty() {
            assert!(checked.is_err_and(|error| error.starts_with("no object of the file has")));
            assert!(
                selected(&storage, &selection).await.is_err_and(|error| error.starts_with("no object of the store"))
            );
            continue;
        }
        let (filtered, again) = (empty(), empty());
        import(checked.unwrap(), &filtered, Conflict::Fail, &mut |_| {}).await.unwrap();
        imported(&selected(&storage, &selection).await.unwrap(), &again, Conflict::Fail).await.unwrap();
        let found = values(&filtered).await;
        assert_eq!(values(&again).await, found);
        assert_eq!(found.len(), want.len());
        assert!(want.iter().all(|path| found.iter().any(|(key, _)| key.ends_with(path))), "{want:?} {found:?}");
    }
}

#[tokio::test]
async fn unreadable_objects_are_left_out() {
    let storage = filled().await;
    let bad = storage.layout.place(&Key { group: "".into(), plural: "configmaps".into(), path: "n/c".into() });
    let write = Put { key: bad.bytes, expected: Expected::Absent, value: Some("{".into()) };
    storage.store.commit(write).await.unwrap();
    let snapshot = storage.store.snapshot().await.unwrap();
    let (chosen, failed) = choose_readable(&snapshot, &storage.layout);
    let done = export(&chosen, &storage.layout, &mut vec![], &mut |_| {}).unwrap();
    assert_eq!((done.objects, failed.len()), (4, 1));
    assert!(failed[0].starts_with("the value of /registry/core/configmaps/n/c is no object: "), "{failed:?}");
    assert!(selected(&storage, &ObjectSelection::default()).await.is_err());
}
