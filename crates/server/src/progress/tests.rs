//! The engine and the sets, with a server in process.

use http::Method;
use machinery::{Value, json};

use super::{Progresses, names, read, set};
use crate::assembly::Blueprint;
use crate::test_server::TestServer;

async fn server(objects: Vec<Value>) -> TestServer {
    let progress = Progresses::new(true, objects);
    let blueprint = Blueprint { progress: progress.clone(), ..Blueprint::default() };
    let server = TestServer::of(blueprint, std::sync::Arc::new(store::Memory::default())).await;
    progress.keep(&server.context).await.unwrap();
    server.controllers.finish_work(&server.context).await;
    server
}

#[test]
fn sets_compile() {
    for name in names() {
        for object in read(set(name).unwrap().as_bytes()).unwrap() {
            let plan = super::plan::Plan::compile(&object);
            assert_eq!(plan.problem, None, "{}", plan.name);
            for (rule, compiled) in &plan.rules {
                assert!(compiled.is_ok(), "{} {rule}: {:?}", plan.name, compiled.as_ref().err());
            }
        }
    }
}

#[tokio::test]
async fn deployments_become_available() {
    let server = server(read(set("workloads").unwrap().as_bytes()).unwrap()).await;
    let template = json!({"metadata": {"labels": {"app": "web"}}, "spec": {"containers": [{"name": "c", "image": "i"}]}});
    let deployment = json!({
        "metadata": {"name": "web"},
        "spec": {"replicas": 3, "selector": {"matchLabels": {"app": "web"}}, "template": template}
    });
    let all = "/apis/apps/v1/namespaces/default/deployments";
    server.ok(Method::POST, all, deployment).await;
    server.controllers.finish_work(&server.context).await;
    let progresses = server.ok(Method::GET, "/apis/testing.pintle.dev/v1alpha1/progresses", Value::Null).await;
    let deployment = server.ok(Method::GET, &format!("{all}/web"), Value::Null).await;
    assert_eq!(deployment.at(&["status", "availableReplicas"]), Some(&Value::Int(3)), "{} {}", deployment.to_json(), progresses.to_json());
}
