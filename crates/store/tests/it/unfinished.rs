//! Directories that an interrupted restore or import has left.

use std::path::Path;

use store::{BeforeImport, Embedded, Expected, Filling, OpenError, Store as _};

use super::{SMALL, put, reopen};

/// A backup with an object and a key.
async fn backup(directory: &Path) -> std::path::PathBuf {
    let (data, file) = (directory.join("data"), directory.join("backup"));
    let store = Embedded::open(&data, "a test", SMALL).unwrap();
    store.commit(put("a", Expected::Absent, "1")).await.unwrap();
    drop(store);
    let files = [store::BackupFile { name: "ca.key".to_owned(), content: "secret".into() }];
    store::write_backup(store::content(&data).unwrap(), &files, std::fs::File::create(&file).unwrap()).unwrap();
    file
}

fn names(directory: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(directory).unwrap();
    let mut names: Vec<_> = entries.map(|entry| entry.unwrap().file_name().to_string_lossy().into_owned()).collect();
    names.sort();
    names
}

#[tokio::test]
async fn interrupted_restores_are_refused_and_begun_anew() {
    let place = tempfile::tempdir().unwrap();
    let file = backup(place.path()).await;
    let whole = place.path().join("whole");
    store::restore(&file, &whole, 0).unwrap();
    let wanted = names(&whole);
    // what a restore may have written when it is interrupted, besides its mark
    for (i, left) in [&[][..], &["ca.key"], &["ca.key", "log.tmp/x"], &["ca.key", "log/x", "FORMAT"]].iter().enumerate()
    {
        let directory = place.path().join(format!("restored-{i}"));
        std::fs::create_dir(&directory).unwrap();
        std::fs::write(directory.join("UNFINISHED"), "restore\nca.key\n").unwrap();
        for name in *left {
            let path = directory.join(name);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, if *name == "FORMAT" { "pintle 2\n" } else { "" }).unwrap();
        }
        let is_refused = |error: OpenError| matches!(error, OpenError::Unfinished(_, Filling::Restore(_)));
        assert!(is_refused(Embedded::open(&directory, "a test", SMALL).err().unwrap()), "{left:?}");
        assert!(is_refused(Embedded::open_for_import(&directory, "a test", SMALL).err().unwrap()), "{left:?}");
        assert!(is_refused(store::check(&directory).unwrap_err()), "{left:?}");
        store::restore(&file, &directory, 0).unwrap();
        assert_eq!(names(&directory), wanted, "{left:?}");
        assert_eq!(std::fs::read(directory.join("ca.key")).unwrap(), b"secret");
        assert_eq!(reopen(&directory).snapshot().await.unwrap().entries.len(), 1);
    }
}

#[tokio::test]
async fn failed_restores_are_begun_anew() {
    let place = tempfile::tempdir().unwrap();
    let file = backup(place.path()).await;
    let directory = place.path().join("restored");
    std::fs::create_dir(&directory).unwrap();
    // the log cannot be created
    std::fs::write(directory.join("log.tmp"), "").unwrap();
    store::restore(&file, &directory, 0).unwrap_err();
    assert!(Embedded::open(&directory, "a test", SMALL).is_err());
    std::fs::remove_file(directory.join("log.tmp")).unwrap();
    store::restore(&file, &directory, 0).unwrap();
}

#[tokio::test]
async fn interrupted_imports_are_refused_until_one_is_complete() {
    let place = tempfile::tempdir().unwrap();
    let directory = place.path().join("data");
    let (store, before) = Embedded::open_for_import(&directory, "a test", SMALL).unwrap();
    assert_eq!(before, BeforeImport::Nothing);
    store.commit(put("a", Expected::Absent, "1")).await.unwrap();
    drop(store);
    let error = Embedded::open(&directory, "a test", SMALL).err().unwrap();
    assert!(error.to_string().contains("an import into it was not completed; run"), "{error}");
    assert!(store::content(&directory).is_err());
    let restored = store::restore(&backup(place.path().join("other").as_path()).await, &directory, 0);
    assert!(matches!(restored, Err(OpenError::Unfinished(_, Filling::Import))));
    assert_eq!(store::salvage(&directory).unwrap().snapshot.entries.len(), 1);
    for expected in [BeforeImport::Unfinished, BeforeImport::Store] {
        let (store, before) = Embedded::open_for_import(&directory, "a test", SMALL).unwrap();
        assert_eq!(before, expected);
        store::finish_import(&directory).unwrap();
        drop(store);
        assert_eq!(reopen(&directory).snapshot().await.unwrap().entries.len(), 1);
    }
}
