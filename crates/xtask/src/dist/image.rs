//! The container image as an OCI layout: one layer with the static binary, a user without rights, and a volume.

use std::collections::BTreeMap;
use std::path::PathBuf;

use client::Result;
use machinery::{Value, json};

use super::archive::{Entry, gzip, sha256, tar};
use super::{Architecture, Release};

/// The user of the process; images of distributions use the same one for processes that are not root.
const USER: u64 = 65_532;

const INDEX: &str = "application/vnd.oci.image.index.v1+json";
const MANIFEST: &str = "application/vnd.oci.image.manifest.v1+json";
const CONFIGURATION: &str = "application/vnd.oci.image.config.v1+json";
const LAYER: &str = "application/vnd.oci.image.layer.v1.tar+gzip";

/// The blobs of a layout by their digests.
#[derive(Default)]
struct Blobs(BTreeMap<String, Vec<u8>>);

impl Blobs {
    /// Adds a blob and returns its descriptor.
    fn add(&mut self, media_type: &str, content: Vec<u8>) -> Value {
        let digest = sha256(&content);
        let size = i64::try_from(content.len()).unwrap_or(i64::MAX);
        self.0.insert(digest.clone(), content);
        json!({"mediaType": media_type, "digest": (format!("sha256:{digest}")), "size": (Value::Int(size))})
    }
}

/// The layout as a tar archive.
pub fn layout(release: &Release, binaries: &[(Architecture, PathBuf, Vec<u8>)]) -> Result<Vec<u8>> {
    let mut blobs = Blobs::default();
    let mut manifests = vec![];
    for (architecture, _, binary) in binaries {
        let mut manifest = image(release, *architecture, binary, &mut blobs)?;
        manifest.set_at(&["platform"], json!({"architecture": (architecture.debian()), "os": "linux"}));
        manifests.push(manifest);
    }
    let index = json!({"schemaVersion": (Value::Int(2)), "mediaType": INDEX, "manifests": (Value::Array(manifests))});
    let mut index = blobs.add(INDEX, index.to_json().into_bytes());
    index.set_at(&["annotations", "org.opencontainers.image.ref.name"], Value::from(release.version));
    let top = json!({"schemaVersion": (Value::Int(2)), "mediaType": INDEX, "manifests": [index]});
    let mut entries = vec![
        Entry::file("oci-layout".to_owned(), 0o644, br#"{"imageLayoutVersion":"1.0.0"}"#.to_vec()),
        Entry::file("index.json".to_owned(), 0o644, top.to_json().into_bytes()),
        Entry::directory("blobs/", 0o755, 0),
        Entry::directory("blobs/sha256/", 0o755, 0),
    ];
    let files = blobs.0.into_iter();
    entries.extend(files.map(|(digest, content)| Entry::file(format!("blobs/sha256/{digest}"), 0o644, content)));
    tar(&entries, release.time)
}

/// The image of an architecture; returns the descriptor of its manifest.
fn image(release: &Release, architecture: Architecture, binary: &[u8], blobs: &mut Blobs) -> Result<Value> {
    let users = format!("root:x:0:0:root:/:/sbin/nologin\npintle:x:{USER}:{USER}:pintle:/data:/sbin/nologin\n");
    let groups = format!("root:x:0:\npintle:x:{USER}:\n");
    let files = [
        Entry::directory("data/", 0o700, USER),
        Entry::directory("etc/", 0o755, 0),
        Entry::file("etc/group".to_owned(), 0o644, groups.into_bytes()),
        Entry::file("etc/passwd".to_owned(), 0o644, users.into_bytes()),
        Entry::file("pintle".to_owned(), 0o755, binary.to_vec()),
    ];
    let layer = tar(&files, release.time)?;
    let diff = format!("sha256:{}", sha256(&layer));
    let created = machinery::time::rfc3339(i64::try_from(release.time).unwrap_or_default());
    let command: Value =
        ["serve", "--data-dir=/data", "--bind-address=0.0.0.0"].iter().map(|word| Value::from(*word)).collect();
    let labels = Value::from([
        ("org.opencontainers.image.title", Value::from("pintle")),
        ("org.opencontainers.image.version", Value::from(release.version)),
        ("org.opencontainers.image.revision", Value::from(release.commit.as_str())),
        ("org.opencontainers.image.licenses", Value::from("Apache-2.0")),
        ("org.opencontainers.image.source", Value::from("https://github.com/pintle/pintle")),
    ]);
    let configuration = json!({
        "created": (created.as_str()),
        "architecture": (architecture.debian()),
        "os": "linux",
        "config": {
            "User": (format!("{USER}:{USER}")), "Entrypoint": ["/pintle"], "Cmd": command, "WorkingDir": "/data",
            "ExposedPorts": {"6443/tcp": {}}, "Volumes": {"/data": {}}, "Labels": labels
        },
        "rootfs": {"type": "layers", "diff_ids": [diff]},
        "history": [{"created": (created.as_str()), "created_by": "cargo xtask dist"}]
    });
    let configuration = blobs.add(CONFIGURATION, configuration.to_json().into_bytes());
    let layer = blobs.add(LAYER, gzip(&layer)?);
    let manifest = json!({
        "schemaVersion": (Value::Int(2)), "mediaType": MANIFEST, "config": configuration, "layers": [layer]
    });
    Ok(blobs.add(MANIFEST, manifest.to_json().into_bytes()))
}
