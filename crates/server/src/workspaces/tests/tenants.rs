//! Attacks of an owner of a workspace on the server and on other workspaces.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use http::Method;
use machinery::{Release, json};
use objects::Storage;
use store::Memory;

use super::{TestServer, blueprint};
use crate::assembly::{Assembled, Beginning, Blueprint};
use crate::controllers::{CertificateSigner, Controllers};
use crate::verbs::{self, Document, PatchKind, Subresource};

/// The certificate of an approved CertificateSigningRequest after all work of the controllers; empty if it has none.
async fn certificate_of(assembled: &Assembled) -> String {
    let Assembled { context, controllers } = assembled;
    let (group, plural) = ("certificates.k8s.io", "certificatesigningrequests");
    let path = format!("/apis/{group}/v1/{plural}");
    let resource = context.registry.get(group, plural).unwrap();
    let spec = json!({"signerName": "kubernetes.io/kube-apiserver-client", "usages": ["client auth"],
        "request": (STANDARD.encode(include_str!("jane.csr")))});
    let object = json!({"metadata": {"name": "jane"}, "spec": spec});
    let create = context.controller_request("tester", &resource, &Method::POST, &path);
    verbs::create(context, &create, &Document::json(&object)).await.unwrap();
    let place = format!("{path}/jane/approval");
    let approve = context.controller_request("tester", &resource, &Method::PATCH, &place);
    let approved = json!({"status": {"conditions": [{"type": "Approved", "status": "True", "reason": "Test"}]}});
    let approve = approve.through(Subresource::Own("approval"));
    verbs::patch(context, &approve, PatchKind::Merge, &Document::json(&approved)).await.unwrap();
    controllers.finish_work(context).await;
    let stored = resource.collection.get("jane").unwrap();
    stored.body.to_value(stored.revision).str_at(&["status", "certificate"]).to_owned()
}

#[tokio::test]
async fn workspaces_sign_no_certificates() {
    let signed = Arc::new(AtomicUsize::new(0));
    let counted = signed.clone();
    let signer = CertificateSigner::new(move |_, _| {
        counted.fetch_add(1, Ordering::Relaxed);
        Ok(include_str!("jane.crt").to_owned())
    });
    let mut controllers = Controllers::parse(&[]).unwrap();
    controllers.signer = Some(signer);
    let server =
        TestServer::of(Arc::new(Memory::default()), Blueprint { controllers, ..blueprint() }, Default::default());
    let server = server.await;
    let empty = || Beginning::of(Storage::own(Arc::new(Memory::default())));
    let inner = server.workspaces.blueprint(Release::NEWEST).unwrap().assemble(empty()).await.unwrap();
    assert_eq!((certificate_of(&inner).await, signed.load(Ordering::Relaxed)), (String::new(), 0));
    let outer = server.workspaces.parts.blueprint.assemble(empty()).await.unwrap();
    assert!(!certificate_of(&outer).await.is_empty() && signed.load(Ordering::Relaxed) == 1);
}
