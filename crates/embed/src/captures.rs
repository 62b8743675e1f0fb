//! The objects of sources, served as they are: for [`crate::Builder::source`], and for `pintle serve --from`.

use std::collections::BTreeMap;
use std::sync::Arc;

use bytes::Bytes;
use machinery::{Value, json};
use server::transfer::{self, BuiltInKind, StoredObject};
use server::{CapturedLogs, LogOf, LogRun, ServedCapture, Storage};
use sources::{Capture, CapturedLog, Known, KnownKind, LogKey, Origin, Plan, Planned, Run};

/// The logs of the sources.
struct Logs(BTreeMap<LogKey, CapturedLog>);

impl CapturedLogs for Logs {
    fn read(&self, log: LogOf<'_>) -> Option<Result<Bytes, String>> {
        let run = match log.run {
            LogRun::Current => Run::Current,
            LogRun::Previous => Run::Previous,
        };
        let [namespace, pod, container] = [log.namespace, log.pod, log.container].map(str::to_owned);
        let log = self.0.get(&LogKey { namespace, pod, container, run })?;
        Some(log.read().map_err(|error| error.to_string()))
    }
}

/// Reads sources, and makes something of them. Fails with a one-line message if one of the sources has nothing to serve.
pub fn read<T: Send, E: From<String> + Send>(
    from: &[String],
    then: impl FnOnce(Plan) -> Result<T, E> + Send,
) -> Result<T, E> {
    // objects may be nested more deeply than the stack of the first thread allows
    let reader = std::thread::Builder::new().stack_size(server::WORKER_STACK_BYTES);
    std::thread::scope(|scope| {
        let read = || {
            let captures = from.iter().map(|source| Capture::read(source)).collect::<Result<_, _>>();
            let captures = captures.map_err(|error| error.to_string())?;
            let mut plan = sources::plan(captures, &known);
            for planned in plan.objects.iter_mut().filter(|planned| planned.origin == Origin::Written) {
                planned.object.edit(transfer::set_defaults);
            }
            then(plan)
        };
        let reading = reader.spawn_scoped(scope, read);
        let reading = reading.map_err(|error| format!("cannot start a thread: {error}"))?;
        reading.join().unwrap_or_else(|_| Err("the sources cannot be read".to_owned().into()))
    })
}

/// The manifests of sources, which no server has seen, as one would write them. Their objects get a first field of `manager`.
pub fn manifests(plan: &mut Plan, manager: &str) -> Vec<Value> {
    let written = plan.objects.iter_mut().filter(|planned| planned.origin == Origin::Written);
    let manifest = |planned: &mut Planned| {
        let mut manifest = planned.object.value();
        for path in [&["status"][..], &["metadata", "uid"], &["metadata", "creationTimestamp"]] {
            manifest.remove_at(path);
        }
        // all fields of an object without managers would belong to one of the server's, before-first-apply
        let version = planned.object.api_version.as_str();
        let first = json!({"manager": manager, "operation": "Apply", "apiVersion": version, "fieldsType": "FieldsV1",
            "fieldsV1": {"f:metadata": {"f:labels": {}}}});
        planned.object.edit(|value| value.set_at(&["metadata", "managedFields"], Value::Array(vec![first])));
        manifest
    };
    written.map(manifest).collect()
}

fn known(api_version: &str, kind: &str) -> Known {
    match transfer::built_in_kind(api_version, kind) {
        BuiltInKind::Stored { group, plural, namespaced, api_version } => Known::Kind(KnownKind {
            group: group.into(),
            plural: plural.into(),
            namespaced,
            api_version: api_version.into(),
        }),
        BuiltInKind::NotServed => Known::NotServed,
        BuiltInKind::None => Known::Nothing,
    }
}

/// Writes the content of sources to a new store.
pub async fn load(Plan { objects, logs, moment, .. }: Plan, storage: &Storage) -> Result<ServedCapture, String> {
    let storage = Storage { store: storage.store.clone(), layout: storage.layout.clone() };
    // on a worker, since objects may be nested deeply; one after the other, so that each is in memory once
    let loaded = base::task::spawn("load of sources", async move {
        let stored = |Planned { group, plural, path, object, .. }: Planned| {
            StoredObject::new([group, plural, path], (&object.api_version, &object.kind), object.json())
        };
        transfer::load(&storage, objects.into_iter().map(stored)).await
    });
    loaded.await.map_err(|error| format!("the sources cannot be loaded: {error}"))??;
    Ok(ServedCapture { moment, logs: Arc::new(Logs(logs)) })
}
