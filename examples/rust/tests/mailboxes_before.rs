//! The same tests as they were with `tower_test::mock`: each plays the API server, request by request.

use std::sync::Arc;

use http::{Request, Response};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use kube::Client;
use kube::client::Body;
use mailboxes::{FINALIZER, Mailbox, MailboxSpec, reconcile};
use serde_json::{Value, json};
use tower_test::mock::Handle;

const MAILBOX: &str = "/apis/example.com/v1/namespaces/default/mailboxes/ann";
const MAPS: &str = "/api/v1/namespaces/default/configmaps";

/// The API server of a test.
struct Fake(Handle<Request<Body>, Response<Body>>);

impl Fake {
    fn new() -> (Arc<Client>, Fake) {
        let (service, handle) = tower_test::mock::pair();
        (Arc::new(Client::new(service, "default")), Fake(handle))
    }

    /// Expects a request, checks its method and path, and returns its body. The response is an object.
    async fn expect(&mut self, method: &str, path: &str, code: u16, response: Value) -> Value {
        let (request, send) = self.0.next_request().await.expect("the operator has ended too early");
        assert_eq!((request.method().as_str(), request.uri().path()), (method, path));
        let body = request.into_body().collect_bytes().await.unwrap();
        let response = Response::builder().status(code).body(Body::from(response.to_string().into_bytes()));
        send.send_response(response.unwrap());
        serde_json::from_slice(&body).unwrap()
    }

    /// Expects that nothing more is sent.
    async fn end(mut self) {
        assert!(self.0.next_request().await.is_none(), "the operator has sent too much");
    }
}

fn mailbox() -> Mailbox {
    let mut mailbox = Mailbox::new("ann", MailboxSpec { owner: "Ann".to_owned(), quota: 5 });
    mailbox.metadata.namespace = Some("default".to_owned());
    mailbox.metadata.uid = Some("1-2-3".to_owned());
    mailbox.metadata.resource_version = Some("7".to_owned());
    mailbox
}

fn with_finalizer() -> Mailbox {
    let mut mailbox = mailbox();
    mailbox.metadata.finalizers = Some(vec![FINALIZER.to_owned()]);
    mailbox
}

fn deleted() -> Mailbox {
    let mut mailbox = with_finalizer();
    mailbox.metadata.deletion_timestamp = Some(Time("2030-01-01T00:00:00Z".parse().unwrap()));
    mailbox
}

fn refused(code: u16, reason: &str, message: &str) -> Value {
    json!({"apiVersion": "v1", "kind": "Status", "status": "Failure", "code": code, "reason": reason, "message": message})
}

/// One pass of the operator, which ends when the server of the test has seen it all.
async fn pass(mailbox: Mailbox, client: Arc<Client>) -> Result<(), String> {
    reconcile(Arc::new(mailbox), client).await.map(drop).map_err(|error| format!("{error:?}"))
}

#[tokio::test]
async fn the_finalizer_is_first() {
    let (client, mut fake) = Fake::new();
    let server = async {
        let patch = fake.expect("PATCH", MAILBOX, 200, json!(with_finalizer())).await;
        assert_eq!(patch.as_array().unwrap().last().unwrap()["value"], json!([FINALIZER]));
        fake.end().await;
    };
    tokio::join!(async { pass(mailbox(), client).await.unwrap() }, server);
}

#[tokio::test]
async fn mailboxes_get_their_settings() {
    let (client, mut fake) = Fake::new();
    let server = async {
        let applied = fake.expect("PATCH", &format!("{MAPS}/mailbox-ann"), 200, json!({"metadata": {}})).await;
        assert_eq!(applied["data"], json!({"owner": "Ann", "quota": "5"}));
        // that the garbage collector understands it is not tested
        assert_eq!(applied["metadata"]["ownerReferences"][0]["uid"], "1-2-3");
        let patch = fake.expect("PATCH", &format!("{MAILBOX}/status"), 200, json!(with_finalizer())).await;
        assert_eq!(patch, json!({"status": {"quota": 5}}));
        fake.end().await;
    };
    tokio::join!(async { pass(with_finalizer(), client).await.unwrap() }, server);
}

#[tokio::test]
async fn settings_that_are_refused_are_an_error() {
    let (client, mut fake) = Fake::new();
    let server = async {
        let response = refused(403, "Forbidden", "exceeded quota: none");
        fake.expect("PATCH", &format!("{MAPS}/mailbox-ann"), 403, response).await;
        fake.end().await;
    };
    let (error, ()) = tokio::join!(async { pass(with_finalizer(), client).await.unwrap_err() }, server);
    assert!(error.contains("exceeded quota"), "{error}");
}

#[tokio::test]
async fn archives_are_left_behind() {
    let (client, mut fake) = Fake::new();
    let server = async {
        let created = fake.expect("POST", MAPS, 201, json!({"metadata": {}})).await;
        assert_eq!((&created["metadata"]["name"], &created["data"]["owner"]), (&json!("archive-ann"), &json!("Ann")));
        let patch = fake.expect("PATCH", MAILBOX, 200, json!(mailbox())).await;
        assert_eq!(patch.as_array().unwrap().last().unwrap()["op"], "remove");
        fake.end().await;
    };
    tokio::join!(async { pass(deleted(), client).await.unwrap() }, server);
}

#[tokio::test]
async fn archives_that_exist_are_kept() {
    let (client, mut fake) = Fake::new();
    let server = async {
        let response = refused(409, "AlreadyExists", r#"configmaps "archive-ann" already exists"#);
        fake.expect("POST", MAPS, 409, response).await;
        fake.expect("PATCH", MAILBOX, 200, json!(mailbox())).await;
        fake.end().await;
    };
    tokio::join!(async { pass(deleted(), client).await.unwrap() }, server);
}
