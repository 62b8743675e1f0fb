//! Watches whose resourceVersion is newer than a restored backup.

use std::path::Path;
use std::process::Command;

use super::server::Server;

const MAPS: &str = "/api/v1/namespaces/default/configmaps";

fn create(server: &Server, name: &str) {
    let body = format!(r#"{{"apiVersion":"v1","kind":"ConfigMap","metadata":{{"name":"{name}"}}}}"#);
    let (status, response) = server.request("POST", MAPS, &body, "token");
    assert_eq!(status, 201, "{response}");
}

/// The resourceVersion of the list of ConfigMaps, and their number.
fn list(server: &Server) -> (u64, usize) {
    let (status, body) = server.get(MAPS, None, Some("token"));
    assert_eq!(status, 200, "{body}");
    let after = body.split_once(r#""kind":"ConfigMapList","metadata":{"resourceVersion":""#).unwrap().1;
    (after.split_once('"').unwrap().0.parse().unwrap(), body.matches(r#""name":"map-"#).count())
}

fn store(arguments: &[&str], directory: &Path, file: &Path) {
    let output = Command::new(env!("CARGO_BIN_EXE_pintle"))
        .arg("store")
        .args(arguments)
        .arg("--data-dir")
        .arg(directory)
        .arg(file)
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}

#[test]
fn informer_ahead_of_backup_relists() {
    let place = tempfile::tempdir().unwrap();
    let (before, after, file) = (place.path().join("before"), place.path().join("after"), place.path().join("backup"));
    let server = Server::start_embedded(&before);
    (0..5).for_each(|i| create(&server, &format!("map-{i}")));
    store(&["backup"], &before, &file);
    (5..12).for_each(|i| create(&server, &format!("map-{i}")));
    let (ahead, count) = list(&server);
    assert_eq!(count, 12);
    drop(server);
    store(&["restore"], &after, &file);
    let server = Server::start_embedded(&after);
    let (restored, count) = list(&server);
    assert_eq!(count, 5);
    assert!(restored > ahead, "no revision is issued twice: {restored} after {ahead}");
    let watch = format!("{MAPS}?watch=1&resourceVersion={ahead}&timeoutSeconds=5");
    let (status, body) = server.get(&watch, None, Some("token"));
    assert!(status == 410 || body.contains(r#""code":410"#), "{status} {body}");
    create(&server, "map-new");
    assert_eq!(list(&server).1, 6);
}
