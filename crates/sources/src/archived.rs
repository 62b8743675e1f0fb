//! Archives of captures: a file for each object, as `kubectl apply -R -f` and `git diff` take them.
//!
//! `cluster/GROUP/PLURAL/NAME.yaml` and `namespaces/NAMESPACE/GROUP/PLURAL/NAME.yaml`, where the core group is `core`, and
//! `namespaces/NAMESPACE/pods/POD/CONTAINER/CONTAINER/logs/current.log`, as in a must-gather.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};

use flate2::Compression;
use flate2::write::GzEncoder;
use machinery::{Value, yaml};

use crate::capture::{Capture, Captured, Run};
use crate::error::Error;
use crate::inputs;
use crate::layouts::{self, LogKey};
use crate::packed::PackedObject;

/// The annotation in which `kubectl apply` keeps a copy of an object.
const LAST_APPLIED: &str = "kubectl.kubernetes.io/last-applied-configuration";
/// `REDACTED` in base64.
const REDACTED: &str = "UkVEQUNURUQ=";

/// Whether the data of Secrets is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Secrets {
    Kept,
    Redacted,
}

/// Writes a capture to a directory that does not exist or is empty, or to a compressed archive if the name ends in `.tar.gz` or `.tgz`.
/// Returns the number of objects. If it fails, it leaves no archive, and a directory that cannot be read.
pub fn write(capture: &Capture, to: &Path, secrets: Secrets) -> Result<usize, Error> {
    let path = || to.to_owned();
    let failed = |source| Error::Unwritable { path: path(), source };
    let name = to.to_string_lossy();
    if !name.ends_with(".tar.gz") && !name.ends_with(".tgz") {
        let is_used = std::fs::read_dir(to).is_ok_and(|mut entries| entries.next().is_some());
        if is_used || to.is_file() {
            return Err(Error::Exists { path: path() });
        }
        return directory(capture, secrets, to).map_err(failed);
    }
    // a reader of the name never sees a part of the archive
    let unfinished = to.with_extension("gz.part");
    let written = archive(capture, secrets, &unfinished).and_then(|count| {
        std::fs::rename(&unfinished, to)?;
        Ok(count)
    });
    written.map_err(|error| {
        let _ = std::fs::remove_file(&unfinished);
        failed(error)
    })
}

/// Writes the files of a directory, which is marked until all are there.
fn directory(capture: &Capture, secrets: Secrets, to: &Path) -> io::Result<usize> {
    let mut directory = Directory(to.to_owned());
    directory.add(inputs::UNFINISHED, inputs::UNFINISHED_CAPTURE)?;
    let count = files(capture, secrets, &mut directory)?;
    std::fs::remove_file(to.join(inputs::UNFINISHED))?;
    Ok(count)
}

fn archive(capture: &Capture, secrets: Secrets, path: &Path) -> io::Result<usize> {
    // of a run that was killed
    let _ = std::fs::remove_file(path);
    let encoder = GzEncoder::new(BufWriter::new(private(path)?), Compression::default());
    let mut tar = Tar { builder: tar::Builder::new(encoder), moment: capture.moment.unwrap_or_default() };
    let count = files(capture, secrets, &mut tar)?;
    let file = tar.builder.into_inner()?.finish()?.into_inner().map_err(io::IntoInnerError::into_error)?;
    file.sync_all()?;
    Ok(count)
}

/// A new file that only this user can read, since Secrets may be in it. What has its name already, such as a link, is not followed.
fn private(path: &Path) -> io::Result<File> {
    File::options().write(true).create_new(true).mode(0o600).open(path)
}

/// Where files are written.
trait Files {
    fn add(&mut self, path: &str, text: &[u8]) -> io::Result<()>;
}

struct Directory(PathBuf);

impl Files for Directory {
    fn add(&mut self, path: &str, text: &[u8]) -> io::Result<()> {
        let path = self.0.join(path);
        path.parent().map_or(Ok(()), std::fs::create_dir_all)?;
        private(&path)?.write_all(text)
    }
}

struct Tar<W: Write> {
    builder: tar::Builder<W>,
    moment: i64,
}

impl<W: Write> Files for Tar<W> {
    fn add(&mut self, path: &str, text: &[u8]) -> io::Result<()> {
        let mut header = tar::Header::new_gnu();
        header.set_size(text.len() as u64);
        header.set_mode(0o600);
        header.set_mtime(self.moment.unsigned_abs());
        self.builder.append_data(&mut header, path, text)
    }
}

fn files(capture: &Capture, secrets: Secrets, to: &mut dyn Files) -> io::Result<usize> {
    // bundles have some objects twice
    let objects: BTreeMap<String, &PackedObject> =
        capture.objects.iter().filter_map(|captured| Some((path(captured)?, &captured.object))).collect();
    for (path, object) in &objects {
        let is_redacted = secrets == Secrets::Redacted && object.kind == "Secret";
        let value = object.value();
        let text = yaml::encode(&if is_redacted { redacted(value) } else { value });
        to.add(path, text.as_bytes())?;
    }
    for (key, log) in &capture.logs {
        let run = if key.run == Run::Previous { "previous" } else { "current" };
        let LogKey { namespace, pod, container, .. } = key;
        let path = format!("namespaces/{namespace}/pods/{pod}/{container}/{container}/logs/{run}.log");
        to.add(&path, &log.read().map_err(io::Error::other)?)?;
    }
    Ok(objects.len())
}

/// The path of an object's file; `None` if its name cannot be one.
fn path(Captured { object, path, plural }: &Captured) -> Option<String> {
    let group = if object.group().is_empty() { "core" } else { object.group() };
    let plural = plural.clone().unwrap_or_else(|| layouts::plural(path, &object.kind));
    let (namespace, name) = (object.namespace.as_str(), object.name.as_str());
    let names = [group, &plural, namespace, name];
    let is_plain = |name: &&str| !name.contains(['/', '\0']) && !["..", "."].contains(name);
    // file names have at most 255 bytes
    if name.is_empty() || !names.iter().all(is_plain) || names.iter().any(|name| name.len() > 250) {
        return None;
    }
    let scope = if namespace.is_empty() { "cluster".to_owned() } else { format!("namespaces/{namespace}") };
    Some(format!("{scope}/{group}/{plural}/{name}.yaml"))
}

/// A Secret with its keys and without their values.
fn redacted(mut secret: Value) -> Value {
    for (_, value) in secret.get_mut("data").and_then(Value::as_object_mut).into_iter().flat_map(|data| data.iter_mut())
    {
        *value = Value::from(REDACTED);
    }
    secret.remove_at(&["stringData"]);
    secret.remove_at(&["metadata", "annotations", LAST_APPLIED]);
    secret
}

#[cfg(test)]
mod tests {
    use machinery::json;

    use super::*;

    #[test]
    fn captures_are_written_and_read_again() {
        let directory = tempfile::tempdir().unwrap();
        let object = |value: Value, plural: &str| Captured {
            object: PackedObject::of(value),
            path: "x".into(),
            plural: Some(plural.to_owned()),
        };
        let named = |name: &str| json!({"name": name, "namespace": "n", "uid": "u", "resourceVersion": "7"});
        let mut secret =
            json!({"apiVersion": "v1", "kind": "Secret", "metadata": (named("s")), "data": {"k": "c2VjcmV0"}});
        secret.set_at(&["metadata", "annotations", LAST_APPLIED], Value::from("c2VjcmV0"));
        let capture = Capture {
            objects: vec![
                object(secret, "secrets"),
                object(json!({"apiVersion": "v1", "kind": "Node", "metadata": {"name": "a"}}), "nodes"),
                object(json!({"apiVersion": "g.io/v1", "kind": "W", "metadata": (named("w:1"))}), "ws"),
                object(json!({"apiVersion": "v1", "kind": "Node", "metadata": {"name": "../a"}}), "nodes"),
                object(json!({"apiVersion": "v1", "kind": "Node", "metadata": {"name": "a"}}), "nodes"),
            ],
            ..Capture::default()
        };
        for (to, secrets) in [("a.tar.gz", Secrets::Redacted), ("b.tgz", Secrets::Kept), ("c", Secrets::Redacted)] {
            let to = directory.path().join(to);
            assert_eq!(write(&capture, &to, secrets).unwrap(), 3);
            let read = Capture::read(&to.to_string_lossy()).unwrap();
            let paths: Vec<&str> = read.objects.iter().map(|object| &*object.path).collect();
            let want =
                ["cluster/core/nodes/a.yaml", "namespaces/n/core/secrets/s.yaml", "namespaces/n/g.io/ws/w:1.yaml"];
            assert_eq!(paths, want);
            let text = read.objects[1].object.value().to_json();
            assert_eq!(text.contains("c2VjcmV0"), secrets == Secrets::Kept, "{text}");
            assert!(text.contains("\"k\":") && text.contains("\"uid\":\"u\""), "{text}");
        }
        std::fs::write(directory.path().join("c").join(inputs::UNFINISHED), inputs::UNFINISHED_CAPTURE).unwrap();
        let unfinished = Capture::read(&directory.path().join("c").to_string_lossy()).unwrap_err();
        assert!(matches!(unfinished, Error::Unfinished { .. }), "{unfinished}");
        let again = write(&capture, &directory.path().join("c"), Secrets::Kept).unwrap_err();
        assert!(matches!(again, Error::Exists { .. }), "{again}");
        assert_eq!(std::fs::read_dir(directory.path()).unwrap().count(), 3);
    }
}
