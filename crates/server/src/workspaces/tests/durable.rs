//! Workspaces in a log: what a crash leaves of them.

use std::path::Path;

use store::{BranchSource, Branching as _, Embedded, Options};

use super::super::label::Label;
use super::*;

fn open(directory: &Path) -> Arc<Embedded> {
    Arc::new(Embedded::open(directory, "a test", Options::default()).unwrap())
}

/// A copy of a data directory, as a server leaves it that is killed.
fn copy(from: &Path) -> tempfile::TempDir {
    let to = tempfile::tempdir().unwrap();
    std::fs::create_dir(to.path().join("log")).unwrap();
    std::fs::copy(from.join("FORMAT"), to.path().join("FORMAT")).unwrap();
    for file in std::fs::read_dir(from.join("log")).unwrap() {
        let file = file.unwrap();
        std::fs::copy(file.path(), to.path().join("log").join(file.file_name())).unwrap();
    }
    to
}

#[tokio::test]
async fn durable_workspaces_are_there_after_a_crash() {
    let directory = tempfile::tempdir().unwrap();
    let server = TestServer::on(open(directory.path())).await;
    server.create("a", json!({})).await;
    assert_eq!(server.put("a", "one").await, 201);
    server.create("b", json!({"from": {"workspace": "a"}})).await;
    assert_eq!((server.put("a", "two").await, server.put("b", "three").await), (201, 201));
    server.create("unused", json!({"kubernetesVersion": "1.35"})).await;
    server.create("of-unused", json!({"from": {"workspace": "unused"}})).await;
    assert_eq!(server.put("unused", "later").await, 201);
    server.create("c", json!({"from": {"workspace": "default"}, "kubernetesVersion": "1.36"})).await;
    assert_eq!(server.put("c", "four").await, 201);
    server.create("e", json!({"ephemeral": true, "from": {"workspace": "b"}})).await;
    assert_eq!((server.put("e", "five").await, server.names("e").await.len()), (201, 3));
    server.create("f", json!({"from": {"workspace": "e"}})).await;
    let failed = server.reported("f", "Failed").await;
    assert!(failed.str_at(&["message"]).contains("ephemeral"), "{failed:?}");
    server.create("r", json!({"from": {"workspace": "b"}})).await;
    assert_eq!(server.put("r", "before").await, 201);
    let maps = "/clusters/r/api/v1/namespaces/default/configmaps";
    let list = machinery::value::decode(server.get(maps).await.1.as_bytes()).unwrap();
    let before = list.str_at(&["metadata", "resourceVersion"]).to_owned();
    assert_eq!(server.change("r", json!({"reset": "1"})).await.0, 200);
    assert_eq!(server.put("r", "after").await, 201);
    for (name, ephemeral) in [("origin", false), ("origin-in-memory", true)] {
        let of_origin = json!({"from": {"workspace": "r", "origin": true}, "ephemeral": ephemeral});
        server.create(name, of_origin).await;
        assert_eq!(server.names(name).await, ["one", "three"]);
    }
    server.create("gone", json!({})).await;
    assert_eq!(server.put("gone", "x").await, 201);
    assert_eq!(server.call(&admin(), Method::DELETE, &format!("{WORKSPACES}/gone"), Value::Null).await.0, 200);
    server.reported("r", "Ready").await;

    for _ in 0..2 {
        let copied = copy(directory.path());
        let store = open(copied.path());
        let server = TestServer::on(store.clone()).await;
        for (name, objects) in [
            ("a", vec!["one", "two"]),
            ("b", vec!["one", "three"]),
            ("c", vec!["four"]),
            ("r", vec!["after", "one", "three"]),
            ("origin", vec!["one", "three"]),
            ("unused", vec!["later"]),
            ("of-unused", vec![]),
        ] {
            assert_eq!(server.names(name).await, objects, "{name}");
        }
        for (name, minor) in [("c", "36"), ("unused", "35"), ("of-unused", "35"), ("a", "37")] {
            let (_, version) = server.get(&format!("/clusters/{name}/version")).await;
            assert!(version.contains(&format!("\"emulationMinor\": \"{minor}\"")), "{name}: {version}");
        }
        assert_eq!(server.get(&format!("/clusters/c{WORKSPACES}")).await.0, 404, "workspaces are of `default`");
        let (code, body) = server.get(&format!("{maps}?watch=1&resourceVersion={before}")).await;
        assert!(code == 200 && body.contains("\"code\":410"), "{code} {body}");
        assert_eq!(server.get(&format!("{maps}?limit=1&continue={}", continue_token(&before))).await.0, 410);
        assert_eq!(server.change("r", json!({"reset": "2"})).await.0, 200);
        assert_eq!(server.names("r").await, ["one", "three"]);
        while server.get(&format!("{WORKSPACES}/e")).await.0 != 404 {
            tokio::task::yield_now().await;
        }
        assert_eq!(server.get("/clusters/gone/version").await.0, 404);
        // another workspace of the same name begins anew
        server.create("gone", json!({})).await;
        assert_eq!((server.put("gone", "new").await, server.names("gone").await), (201, vec!["new".to_owned()]));
        assert_eq!(server.call(&admin(), Method::DELETE, &format!("{WORKSPACES}/gone"), Value::Null).await.0, 200);
        assert_eq!(server.reported("f", "Failed").await, failed);
        // the branches of a, b, c, r, origin, unused and of-unused, and of the empty APIs of three releases
        assert_eq!(store.branches().len(), 10);
        server.stop.send_replace(true);
    }
}

#[tokio::test]
async fn watches_and_lists_of_a_durable_workspace_go_back_beyond_the_start() {
    let directory = tempfile::tempdir().unwrap();
    let server = TestServer::on(open(directory.path())).await;
    server.create("s", json!({})).await;
    assert_eq!(server.put("s", "base").await, 201);
    server.create("a", json!({"from": {"workspace": "s"}})).await;
    let maps = "/clusters/a/api/v1/namespaces/default/configmaps";
    assert_eq!(server.put("a", "one").await, 201);
    let list = machinery::value::decode(server.get(maps).await.1.as_bytes()).unwrap();
    let version = list.str_at(&["metadata", "resourceVersion"]).to_owned();
    let change = async |server: &TestServer, method: Method, name: &str| {
        let body = if method == Method::PATCH { json!({"data": {"a": "b"}}) } else { Value::Null };
        assert_eq!(server.call(&admin(), method, &format!("{maps}/{name}"), body).await.0, 200);
    };
    assert_eq!(server.put("a", "two").await, 201);
    change(&server, Method::PATCH, "base").await;
    change(&server, Method::DELETE, "one").await;

    let mut directory = directory;
    for name in ["three", "four"] {
        directory = copy(directory.path());
        let server = TestServer::on(open(directory.path())).await;
        assert_eq!(server.put("a", name).await, 201);
        let (_, events) = server.get(&format!("{maps}?watch=1&resourceVersion={version}&timeoutSeconds=1")).await;
        let of = |line: &str| {
            let event = machinery::value::decode(line.as_bytes()).unwrap();
            format!("{} {}", event.str_at(&["type"]), event.str_at(&["object", "metadata", "name"]))
        };
        let mut want = vec!["ADDED two", "MODIFIED base", "DELETED one", "ADDED three"];
        want.extend((name == "four").then_some("ADDED four"));
        assert_eq!(events.lines().map(of).collect::<Vec<_>>(), want);
        let exact = format!("{maps}?resourceVersion={version}&resourceVersionMatch=Exact");
        let list = machinery::value::decode(server.get(&exact).await.1.as_bytes()).unwrap();
        let names = list.items_at(&["items"]).iter().map(|map| map.str_at(&["metadata", "name"]).to_owned());
        assert_eq!(names.collect::<Vec<_>>(), ["base", "one"]);
        server.stop.send_replace(true);
    }
}

#[tokio::test]
async fn durable_forks_of_earlier_revisions_are_whole_once_they_are_there() {
    let directory = tempfile::tempdir().unwrap();
    let server = TestServer::on(open(directory.path())).await;
    let version_of = async |workspace: &str| {
        let path = format!("/clusters/{workspace}/api/v1/namespaces/default/configmaps");
        let path = path.strip_prefix("/clusters/default").unwrap_or(&path);
        let list = machinery::value::decode(server.get(path).await.1.as_bytes()).unwrap();
        list.str_at(&["metadata", "resourceVersion"]).to_owned()
    };
    server.create("a", json!({})).await;
    server.put("a", "one").await;
    let version = version_of("a").await;
    server.put("a", "two").await;
    let gone = "/clusters/a/api/v1/namespaces/default/configmaps/one";
    assert_eq!(server.call(&admin(), Method::DELETE, gone, Value::Null).await.0, 200);
    let of_home = version_of("default").await;
    let maps = "/api/v1/namespaces/default/configmaps";
    assert_eq!(server.call(&admin(), Method::POST, maps, json!({"metadata": {"name": "later"}})).await.0, 201);
    let from = |workspace: &str, version: &str| json!({"from": {"workspace": workspace, "resourceVersion": version}});
    server.create("e", from("a", &version)).await;
    server.create("h", from("default", &of_home)).await;
    for name in ["e", "h"] {
        server.reported(name, "Ready").await;
    }
    let copied = copy(directory.path());
    assert_eq!((server.names("e").await, server.names("h").await), (vec!["one".to_owned()], vec![]));
    server.create("none", from("a", "1")).await;
    let failed = server.reported("none", "Failed").await;
    assert!(failed.str_at(&["message"]).contains("does not keep what it held at resourceVersion 1"), "{failed:?}");

    let store = open(copied.path());
    let again = TestServer::on(store.clone()).await;
    assert_eq!((again.names("e").await, again.names("h").await), (vec!["one".to_owned()], vec![]));
    assert_eq!(again.names("a").await, ["two"]);
    assert_eq!((again.put("e", "more").await, again.names("e").await.len()), (201, 2));
    assert_eq!(again.change("e", json!({"reset": "1"})).await.0, 200);
    assert_eq!(again.names("e").await, ["one"]);
    // a fork of an earlier revision that a crash has lost cannot be made again, since the history is gone
    let uid = again.workspaces.workspace("e").unwrap().uid.clone();
    let lost = copy(copied.path());
    drop(again);
    let store = open(lost.path());
    store.end(uid.as_bytes());
    let without = TestServer::on(store).await;
    let failed = without.reported("e", "Failed").await;
    assert!(failed.str_at(&["message"]).contains("does not keep what it held"), "{failed:?}");
    assert_eq!(without.get("/clusters/e/version").await.0, 403);
}

/// After a crash, Workspace objects can be ahead of the log of branches, which then lacks their latest changes.
#[tokio::test]
async fn forks_resets_and_deletions_that_a_crash_has_lost_are_made_again() {
    let directory = tempfile::tempdir().unwrap();
    let server = TestServer::on(open(directory.path())).await;
    server.create("a", json!({})).await;
    server.put("a", "one").await;
    server.create("z", json!({"from": {"workspace": "a"}})).await;
    server.create("b", json!({"from": {"workspace": "z"}})).await;
    server.create("r", json!({"from": {"workspace": "a"}, "reset": "1"})).await;
    server.put("r", "two").await;
    for name in ["z", "b", "r"] {
        server.reported(name, "Ready").await;
    }
    let uid = |name: &str| server.workspaces.workspace(name).unwrap().uid.clone();
    let copied = copy(directory.path());
    let store = open(copied.path());
    for name in ["z", "b"] {
        store.end(uid(name).as_bytes());
    }
    store.begin(b"an-old-uid", BranchSource::Nothing, b"").unwrap();
    // the label is not the text of the specification
    let label = Label { release: None, has_workspaces: false, has_begun: true, reset: String::new() };
    store.begin(uid("r").as_bytes(), BranchSource::Branch(uid("r").as_bytes(), None), &label.encode()).unwrap();
    store.sync().await.unwrap();
    let again = TestServer::on(store.clone()).await;
    for name in ["z", "b"] {
        assert_eq!(again.names(name).await, ["one"], "{name}");
    }
    assert_eq!(again.names("r").await, ["one", "two"], "it was forked with both");
    assert!(store.branch(b"an-old-uid").is_none());
    let branch = store.branch(uid("r").as_bytes()).unwrap();
    assert!(branch.fork(0).is_some());
    let label = store.branches().into_iter().find(|branch| branch.id == uid("r").as_bytes()).unwrap().label;
    assert_eq!(Label::decode(&label).unwrap().reset, "1");
}

/// An export contains the Workspace objects, but not the content of the workspaces.
#[tokio::test]
async fn imported_templates_say_that_they_are_empty() {
    let directory = tempfile::tempdir().unwrap();
    let store = open(directory.path());
    let server = TestServer::on(store.clone()).await;
    server.create("base", json!({})).await;
    server.put("base", "one").await;
    for (name, spec) in [("t", json!({})), ("f", json!({"from": {"workspace": "base"}})), ("u", json!({}))] {
        server.create(name, spec).await;
        if name != "u" {
            server.put(name, "two").await;
        }
        assert_eq!(server.change(name, json!({"template": true})).await.0, 200);
    }
    let is_empty = async |name| {
        let status = server.reported(name, "Ready").await;
        status.str_at(&["message"]).contains("the template is empty")
    };
    // the first report was made before it was a template
    while !is_empty("u").await {
        tokio::task::yield_now().await;
    }
    for name in ["t", "f"] {
        assert!(!is_empty(name).await, "{name}");
    }
    let copied = copy(directory.path());
    let uids = ["t", "f", "u"].map(|name| server.workspaces.workspace(name).unwrap().uid.clone());
    let store = open(copied.path());
    uids.iter().for_each(|uid| store.end(uid.as_bytes()));
    let again = TestServer::on(store).await;
    for name in ["t", "f", "u"] {
        while !again.reported(name, "Ready").await.str_at(&["message"]).contains("it was imported without its content")
        {
            tokio::task::yield_now().await;
        }
        again.names(name).await;
        again.workspaces.mark([name.into()]);
        again.workspaces.report_changed().await;
        let status = again.reported(name, "Ready").await;
        assert!(status.str_at(&["message"]).contains("the template is empty"), "{name}: it stays empty");
    }
}
