//! The custom resource of tests/clients/boats.yaml.

use std::collections::BTreeMap;

use anyhow::Result;
use k8s_openapi::api::core::v1::Namespace;
use kube::api::{Api, ObjectMeta, PostParams};
use kube::{Client, CustomResource};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

#[derive(CustomResource, Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[kube(group = "harbor.example.com", version = "v1", kind = "Boat", namespaced, status = "BoatStatus")]
#[serde(rename_all = "camelCase")]
pub struct BoatSpec {
    pub sails: i32,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub port: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub replicas: Option<i32>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub crew: Vec<CrewMember>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct CrewMember {
    pub name: String,
    pub rank: String,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct BoatStatus {
    pub phase: Option<String>,
}

pub fn boat(name: &str, sails: i32) -> Boat {
    Boat::new(name, BoatSpec { sails, ..BoatSpec::default() })
}

/// Creates a namespace for one case and returns its name.
pub async fn create_namespace(client: &Client) -> Result<String> {
    let labels = BTreeMap::from([("made-by".to_owned(), "kube-rs".to_owned())]);
    let metadata = ObjectMeta { generate_name: Some("case-".into()), labels: Some(labels), ..ObjectMeta::default() };
    let namespace = Namespace { metadata, ..Namespace::default() };
    let created = Api::<Namespace>::all(client.clone()).create(&PostParams::default(), &namespace).await?;
    Ok(created.metadata.name.unwrap_or_default())
}
