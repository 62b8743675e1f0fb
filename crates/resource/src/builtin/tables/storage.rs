//! Volumes, claims, classes and drivers of storage; devices.

use super::{at, boolean, flag, integer, joined, size, text_column, text_or, wide};
use crate::builtin::BuiltInColumn;
use crate::builtin::columns::AGE;
use crate::builtin::object_warnings::CLASS;
use machinery::Value;

/// Access modes, abbreviated.
fn modes(modes: &[Value]) -> Value {
    let short = |mode: &Value| match mode.as_str().unwrap_or_default() {
        "ReadWriteOnce" => "RWO",
        "ReadOnlyMany" => "ROX",
        "ReadWriteMany" => "RWX",
        "ReadWriteOncePod" => "RWOP",
        _ => "",
    };
    Value::from(modes.iter().map(short).collect::<Vec<_>>().join(","))
}

const ATTRIBUTES_CLASS: BuiltInColumn =
    text_column("VolumeAttributesClass", "Class of the volume's attributes.", |o, _| {
        text_or(o, &["spec", "volumeAttributesClassName"], "<unset>")
    });

const STORAGE_CLASS_NAME: BuiltInColumn = text_column("StorageClass", "StorageClass of the volume.", |o, _| {
    let annotated = o.at(&["metadata", "annotations", CLASS]).filter(|class| !class.is_null());
    annotated.cloned().unwrap_or_else(|| text_or(o, &["spec", "storageClassName"], ""))
});

const VOLUME_MODE: BuiltInColumn =
    wide(text_column("VolumeMode", "Filesystem or Block.", |o, _| text_or(o, &["spec", "volumeMode"], "<unset>")));

pub const CLAIM: &[BuiltInColumn] = &[
    text_column("Status", "Phase of the claim.", |o, _| {
        let is_deleted = !o.str_at(&["metadata", "deletionTimestamp"]).is_empty();
        if is_deleted { Value::from("Terminating") } else { text_or(o, &["status", "phase"], "") }
    }),
    text_column("Volume", "PersistentVolume that is bound.", |o, _| text_or(o, &["spec", "volumeName"], "")),
    text_column("Capacity", "Capacity of the volume.", |o, _| match o.str_at(&["spec", "volumeName"]) {
        "" => Value::from(""),
        _ => text_or(o, &["status", "capacity", "storage"], "0"),
    }),
    text_column("Access Modes", "How the volume may be mounted.", |o, _| match o.str_at(&["spec", "volumeName"]) {
        "" => Value::from(""),
        _ => modes(at(o, &["status", "accessModes"])),
    }),
    STORAGE_CLASS_NAME,
    ATTRIBUTES_CLASS,
    AGE,
    VOLUME_MODE,
];

pub const VOLUME: &[BuiltInColumn] = &[
    text_column("Capacity", "Capacity of the volume.", |o, _| text_or(o, &["spec", "capacity", "storage"], "0")),
    text_column("Access Modes", "How the volume may be mounted.", |o, _| modes(at(o, &["spec", "accessModes"]))),
    text_column("Reclaim Policy", "What happens to the volume after its claim.", |o, _| {
        text_or(o, &["spec", "persistentVolumeReclaimPolicy"], "")
    }),
    text_column("Status", "Phase of the volume.", |o, _| {
        let is_deleted = !o.str_at(&["metadata", "deletionTimestamp"]).is_empty();
        if is_deleted { Value::from("Terminating") } else { text_or(o, &["status", "phase"], "") }
    }),
    text_column("Claim", "PersistentVolumeClaim that is bound.", |o, _| {
        let part = |name: &str| o.str_at(&["spec", "claimRef", name]).to_owned();
        Value::from(if part("name").is_empty() {
            String::new()
        } else {
            format!("{}/{}", part("namespace"), part("name"))
        })
    }),
    STORAGE_CLASS_NAME,
    ATTRIBUTES_CLASS,
    text_column("Reason", "Why the volume is in its phase.", |o, _| text_or(o, &["status", "reason"], "")),
    AGE,
    VOLUME_MODE,
];

pub const STORAGE_CLASS: &[BuiltInColumn] = &[
    text_column("Provisioner", "Provisioner of volumes.", |o, _| text_or(o, &["provisioner"], "")),
    text_column("ReclaimPolicy", "What happens to volumes after their claims.", |o, _| {
        text_or(o, &["reclaimPolicy"], "")
    }),
    text_column("VolumeBindingMode", "When volumes are bound.", |o, _| text_or(o, &["volumeBindingMode"], "")),
    text_column("AllowVolumeExpansion", "Whether volumes can grow.", |o, _| flag(o, &["allowVolumeExpansion"])),
    AGE,
];

pub const CSI_DRIVER: &[BuiltInColumn] = &[
    boolean("AttachRequired", "Whether volumes are attached.", |o, _| flag(o, &["spec", "attachRequired"])),
    boolean("PodInfoOnMount", "Whether the driver is told of Pods.", |o, _| flag(o, &["spec", "podInfoOnMount"])),
    boolean("StorageCapacity", "Whether capacity is considered.", |o, _| flag(o, &["spec", "storageCapacity"])),
    text_column("TokenRequests", "Audiences of tokens that the driver needs.", |o, _| {
        let requests = at(o, &["spec", "tokenRequests"]);
        if requests.is_empty() { Value::from("<unset>") } else { joined(requests, "audience") }
    }),
    boolean("RequiresRepublish", "Whether volumes are published repeatedly.", |o, _| {
        flag(o, &["spec", "requiresRepublish"])
    }),
    text_column("Modes", "How volumes may be used.", |o, _| {
        let modes = at(o, &["spec", "volumeLifecycleModes"]).iter().filter_map(Value::as_str);
        Value::from(modes.collect::<Vec<_>>().join(","))
    }),
    AGE,
];

pub const CSI_NODE: &[BuiltInColumn] =
    &[integer("Drivers", "Number of drivers on the Node.", |o, _| size(at(o, &["spec", "drivers"]))), AGE];

pub const ATTACHMENT: &[BuiltInColumn] = &[
    BuiltInColumn {
        format: "name",
        ..text_column("Attacher", "Driver that attaches the volume.", |o, _| text_or(o, &["spec", "attacher"], ""))
    },
    text_column("PV", "PersistentVolume that is attached.", |o, _| {
        text_or(o, &["spec", "source", "persistentVolumeName"], "")
    }),
    text_column("Node", "Node to which it is attached.", |o, _| text_or(o, &["spec", "nodeName"], "")),
    boolean("Attached", "Whether it is attached.", |o, _| flag(o, &["status", "attached"])),
    AGE,
];

pub const ATTRIBUTES_CLASS_ITSELF: &[BuiltInColumn] =
    &[text_column("DriverName", "Driver of the class.", |o, _| text_or(o, &["driverName"], "")), AGE];

pub const RESOURCE_CLAIM: &[BuiltInColumn] = &[
    text_column("State", "What is reserved and allocated.", |o, _| {
        let allocated = o.at(&["status", "allocation"]).is_some();
        let reserved = !at(o, &["status", "reservedFor"]).is_empty();
        let deleted = !o.str_at(&["metadata", "deletionTimestamp"]).is_empty();
        let states = [("deleted", deleted), ("allocated", allocated), ("reserved", reserved)];
        let states: Vec<&str> = states.into_iter().filter(|(_, holds)| *holds).map(|(name, _)| name).collect();
        Value::from(if states.is_empty() { "pending".to_owned() } else { states.join(",") })
    }),
    AGE,
];

pub const RESOURCE_SLICE: &[BuiltInColumn] = &[
    text_column("Node", "Node that has the devices.", |o, _| text_or(o, &["spec", "nodeName"], "")),
    text_column("Driver", "Driver of the devices.", |o, _| text_or(o, &["spec", "driver"], "")),
    text_column("Pool", "Pool of the devices.", |o, _| text_or(o, &["spec", "pool", "name"], "")),
    AGE,
];
