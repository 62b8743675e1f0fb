//! The tests of the operator, each on an API of its own in this process.

use std::sync::Arc;
use std::time::Duration;

use k8s_openapi::api::core::v1::ConfigMap;
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::api::{Api, DeleteParams, Patch, PatchParams, PostParams};
use kube::{Client, CustomResourceExt as _};
use mailboxes::{FINALIZER, Mailbox, MailboxSpec, reconcile};
use pintle::{Server, Workspace, json};
use tokio::sync::OnceCell;

/// An API with the definition of mailboxes, and clients for it.
struct Test {
    workspace: Workspace,
    client: Arc<Client>,
    mailboxes: Api<Mailbox>,
    maps: Api<ConfigMap>,
}

/// The tests share a server, and each has a fork of what the first one has built.
async fn begin() -> Test {
    static SERVER: OnceCell<Server> = OnceCell::const_new();
    let server = SERVER.get_or_init(async || Server::ephemeral().testing().start().await.unwrap()).await;
    let template = server.template("mailboxes", |workspace| async move {
        let definitions: Api<CustomResourceDefinition> = Api::all(Client::new(workspace.api(), "default"));
        definitions.create(&PostParams::default(), &Mailbox::crd()).await.unwrap();
        Ok(())
    });
    let workspace = template.await.unwrap().fork().await.unwrap();
    let client = Client::new(workspace.api(), "default");
    let (mailboxes, maps) = (Api::default_namespaced(client.clone()), Api::default_namespaced(client.clone()));
    Test { workspace, client: Arc::new(client), mailboxes, maps }
}

impl Test {
    async fn create(&self, quota: i32) -> Result<Mailbox, kube::Error> {
        let mailbox = Mailbox::new("ann", MailboxSpec { owner: "Ann".to_owned(), quota });
        self.mailboxes.create(&PostParams::default(), &mailbox).await
    }

    async fn patch(&self, spec: serde_json::Value) -> Result<Mailbox, kube::Error> {
        let patch = Patch::Merge(serde_json::json!({"spec": spec}));
        self.mailboxes.patch("ann", &PatchParams::default(), &patch).await
    }

    /// One pass of the operator over the mailbox as it is.
    async fn pass(&self) -> Result<(), String> {
        let mailbox = Arc::new(self.mailboxes.get("ann").await.unwrap());
        reconcile(mailbox, self.client.clone()).await.map(drop).map_err(|error| format!("{error:?}"))
    }

    /// A mailbox with its settings.
    async fn create_configured(&self) {
        self.create(5).await.unwrap();
        self.pass().await.unwrap();
        self.pass().await.unwrap();
    }

    /// A value of a ConfigMap, if there is one.
    async fn value(&self, name: &str, key: &str) -> Option<String> {
        self.maps.get_opt(name).await.unwrap()?.data?.get(key).cloned()
    }

    /// Waits until nothing has been written for longer than the operator takes from an event to its request.
    async fn settle(&self) {
        self.workspace.settle(Duration::from_millis(300), Duration::from_secs(20)).await.unwrap();
    }
}

#[tokio::test]
async fn the_finalizer_is_first() {
    let test = begin().await;
    test.create(5).await.unwrap();
    test.pass().await.unwrap();
    assert_eq!(test.mailboxes.get("ann").await.unwrap().metadata.finalizers.unwrap(), [FINALIZER]);
    assert_eq!(test.value("mailbox-ann", "quota").await, None);
}

#[tokio::test]
async fn mailboxes_get_their_settings() {
    let test = begin().await;
    test.create_configured().await;
    assert_eq!(test.value("mailbox-ann", "owner").await.unwrap(), "Ann");
    assert_eq!(test.value("mailbox-ann", "quota").await.unwrap(), "5");
    assert_eq!(test.mailboxes.get("ann").await.unwrap().status.unwrap().quota, 5);
}

#[tokio::test]
async fn settings_that_are_refused_are_an_error() {
    let test = begin().await;
    test.create(5).await.unwrap();
    test.pass().await.unwrap();
    let quota = json!({"apiVersion": "v1", "kind": "ResourceQuota", "metadata": {"name": "none"},
        "spec": {"hard": {"count/configmaps": "0"}}});
    test.workspace.apply_object(&quota).await.unwrap();
    // a controller of the server counts what there is
    test.settle().await;
    let error = test.pass().await.unwrap_err();
    assert!(error.contains("exceeded quota"), "{error}");
    assert!(test.mailboxes.get("ann").await.unwrap().status.is_none());
}

#[tokio::test]
async fn archives_are_left_behind() {
    let test = begin().await;
    test.create_configured().await;
    test.mailboxes.delete("ann", &DeleteParams::default()).await.unwrap();
    test.pass().await.unwrap();
    assert!(test.mailboxes.get_opt("ann").await.unwrap().is_none());
    assert_eq!(test.value("archive-ann", "owner").await.unwrap(), "Ann");
    // the garbage collector deletes what the mailbox owned
    test.settle().await;
    assert_eq!(test.value("mailbox-ann", "owner").await, None);
}

#[tokio::test]
async fn archives_that_exist_are_kept() {
    let test = begin().await;
    test.create_configured().await;
    let older =
        json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "archive-ann"}, "data": {"owner": "Bob"}});
    test.workspace.apply_object(&older).await.unwrap();
    test.mailboxes.delete("ann", &DeleteParams::default()).await.unwrap();
    test.pass().await.unwrap();
    assert!(test.mailboxes.get_opt("ann").await.unwrap().is_none());
    assert_eq!(test.value("archive-ann", "owner").await.unwrap(), "Bob");
}

#[tokio::test]
async fn the_definition_has_a_default_bounds_and_a_rule() {
    let test = begin().await;
    let short = json!({"apiVersion": "example.com/v1", "kind": "Mailbox", "metadata": {"name": "ann"}, "spec": {"owner": "Ann"}});
    test.workspace.apply_object(&short).await.unwrap();
    assert_eq!(test.mailboxes.get("ann").await.unwrap().spec.quota, 10);
    for (spec, why) in [
        (serde_json::json!({"quota": 0}), "should be greater than or equal to 1"),
        (serde_json::json!({"quota": 1001}), "should be less than or equal to 1000"),
        (serde_json::json!({"owner": "Bob"}), "a mailbox keeps its owner"),
    ] {
        let refused = test.patch(spec).await.unwrap_err().to_string();
        assert!(refused.contains(why), "{refused}");
    }
}

#[tokio::test]
async fn responses_that_are_lost() {
    let test = begin().await;
    test.create_configured().await;
    test.mailboxes.delete("ann", &DeleteParams::default()).await.unwrap();
    let fault = json!({"match": {"verbs": ["create"]}, "effect": {"afterCommit": "Reset"}});
    let fault = test.workspace.fault(fault).await.unwrap();
    test.pass().await.unwrap_err();
    // the archive is there, although the operator does not know it
    assert_eq!(test.value("archive-ann", "owner").await.unwrap(), "Ann");
    fault.delete().await.unwrap();
    test.pass().await.unwrap();
    assert!(test.mailboxes.get_opt("ann").await.unwrap().is_none());
}

#[tokio::test]
async fn the_operator_follows_changes() {
    let test = begin().await;
    let operator = tokio::spawn(mailboxes::run((*test.client).clone(), Duration::from_millis(10)));
    test.create(5).await.unwrap();
    test.settle().await;
    assert_eq!(test.value("mailbox-ann", "quota").await.unwrap(), "5");
    test.patch(serde_json::json!({"quota": 7})).await.unwrap();
    test.settle().await;
    assert_eq!(test.value("mailbox-ann", "quota").await.unwrap(), "7");
    test.maps.delete("mailbox-ann", &DeleteParams::default()).await.unwrap();
    test.settle().await;
    assert_eq!(test.value("mailbox-ann", "quota").await.unwrap(), "7");
    test.mailboxes.delete("ann", &DeleteParams::default()).await.unwrap();
    test.settle().await;
    assert!(test.mailboxes.get_opt("ann").await.unwrap().is_none());
    operator.abort();
}
