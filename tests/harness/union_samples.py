"""Samples for odd.py of types of which an object has one of several forms: sources of volumes and of variables, handlers, backends."""

from kind_samples import CLAIM, CLUSTER, CONDITION, LABELS, MINIMAL_POD, MINIMAL_TEMPLATE, SELECTOR, VOLUMES, sample

LOCAL = {"name": "s"}
ITEMS = [{"key": "k", "path": "p", "mode": 256}]
FILES = [
    {"path": "a", "fieldRef": {"apiVersion": "v1", "fieldPath": "metadata.labels['a']"}, "mode": 256},
    {"path": "b", "resourceFieldRef": {"containerName": "c", "resource": "limits.cpu", "divisor": "1m"}},
]
CLAIM_TEMPLATE = {
    "metadata": {"labels": {"a": "b"}, "annotations": {"a": "b"}},
    "spec": {
        **CLAIM,
        "selector": SELECTOR,
        "storageClassName": "c",
        "volumeMode": "Filesystem",
        "volumeAttributesClassName": "v",
        "dataSource": {"apiGroup": "snapshot.storage.k8s.io", "kind": "VolumeSnapshot", "name": "s"},
        "dataSourceRef": {"apiGroup": "snapshot.storage.k8s.io", "kind": "VolumeSnapshot", "name": "s"},
    },
}
PROJECTED = [
    {"configMap": {"name": "m", "items": ITEMS, "optional": True}},
    {"secret": {"name": "s", "items": [{"key": "k", "path": "q"}]}},
    {"downwardAPI": {"items": FILES}},
    {"serviceAccountToken": {"audience": "a", "expirationSeconds": 3600, "path": "t"}},
    {"clusterTrustBundle": {"name": "b", "optional": True, "path": "c"}},
    {"clusterTrustBundle": {"signerName": "example.com/s", "labelSelector": SELECTOR, "path": "d"}},
    {"podCertificate": {"signerName": "example.com/s", "keyType": "ED25519", "maxExpirationSeconds": 3600, "credentialBundlePath": "e"}},
]
# references to Secrets of a Pod have no namespace
SOURCES = {
    **{
        name: {
            key: LOCAL if key == "secretRef" else field
            for key, field in source.items()
            if key not in ("secretNamespace", "endpointsNamespace") and not (key == "secretRef" and name == "storageos")
        }
        for name, source in VOLUMES.items()
        if name != "csi"
    },
    "csi": {"driver": "d.example.com", "readOnly": True, "fsType": "ext4", "volumeAttributes": {"a": "b"}, "nodePublishSecretRef": LOCAL},
    "gitRepo": {"repository": "r", "revision": "v", "directory": "d"},
    "secret": {"secretName": "s", "items": ITEMS, "defaultMode": 256, "optional": True},
    "configMap": {"name": "m", "items": ITEMS, "defaultMode": 256},
    "downwardAPI": {"items": FILES, "defaultMode": 256},
    "projected": {"sources": PROJECTED, "defaultMode": 256},
    "persistentVolumeClaim": {"claimName": "c", "readOnly": True},
    "emptyDir": {"medium": "Memory", "sizeLimit": "1Gi"},
    "ephemeral": {"volumeClaimTemplate": CLAIM_TEMPLATE},
    "image": {"reference": "r", "pullPolicy": "Always"},
}
VARIABLES = [
    {"name": "A", "valueFrom": {"fieldRef": {"apiVersion": "v1", "fieldPath": "status.podIP"}}},
    {"name": "B", "valueFrom": {"resourceFieldRef": {"containerName": "c", "resource": "limits.memory", "divisor": "1Mi"}}},
    {"name": "C", "valueFrom": {"configMapKeyRef": {"name": "m", "key": "k", "optional": True}}},
    {"name": "D", "valueFrom": {"secretKeyRef": {"name": "s", "key": "k"}}},
    {"name": "E", "valueFrom": {"fileKeyRef": {"volumeName": "v", "path": "p", "key": "k", "optional": True}}},
]
HTTP = {"path": "/h", "port": "http", "host": "h.example.com", "scheme": "HTTPS", "httpHeaders": [{"name": "X", "value": "y"}]}
TIMING = {"initialDelaySeconds": 1, "timeoutSeconds": 2, "periodSeconds": 3, "successThreshold": 1, "failureThreshold": 4}
MAIN = {
    "name": "c",
    "image": "i",
    "env": VARIABLES,
    "envFrom": [{"configMapRef": {"name": "m"}}, {"secretRef": {"name": "s", "optional": True}}],
    "ports": [{"containerPort": 80, "hostPort": 8080, "hostIP": "10.0.0.1", "name": "http", "protocol": "TCP"}],
    "livenessProbe": {"grpc": {"port": 1, "service": "s"}, **TIMING, "terminationGracePeriodSeconds": 5},
    "readinessProbe": {"tcpSocket": {"host": "h", "port": 80}, **TIMING},
    "startupProbe": {"httpGet": HTTP, **TIMING},
    "lifecycle": {"postStart": {"httpGet": HTTP}, "preStop": {"sleep": {"seconds": 3}}, "stopSignal": "SIGTERM"},
    "resources": {
        "limits": {"cpu": "1", "memory": "1Gi", "ephemeral-storage": "1Gi", "hugepages-2Mi": "2Mi", "example.com/x": "1"},
        "requests": {"cpu": "500m"},
        "claims": [{"name": "k", "request": "r"}],
    },
    "resizePolicy": [{"resourceName": "cpu", "restartPolicy": "RestartContainer"}],
    "restartPolicy": "OnFailure",
    "restartPolicyRules": [{"action": "Restart", "exitCodes": {"operator": "In", "values": [1]}}],
    "volumeDevices": [{"name": "w", "devicePath": "/d"}],
    "volumeMounts": [
        {"name": "v", "mountPath": "/v", "subPath": "s", "mountPropagation": "HostToContainer", "readOnly": True, "recursiveReadOnly": "Disabled"},
        {"name": "x", "mountPath": "/x", "subPathExpr": "$(A)"},
    ],
    "securityContext": {
        "capabilities": {"add": ["A"], "drop": ["ALL"]},
        "privileged": False,
        "runAsUser": 1,
        "runAsGroup": 2,
        "runAsNonRoot": True,
        "readOnlyRootFilesystem": True,
        "allowPrivilegeEscalation": False,
        "procMount": "Default",
        "seLinuxOptions": {"user": "u", "role": "r", "type": "t", "level": "l"},
        "seccompProfile": {"type": "Localhost", "localhostProfile": "p"},
        "appArmorProfile": {"type": "Localhost", "localhostProfile": "p"},
    },
    "terminationMessagePath": "/m",
    "terminationMessagePolicy": "File",
    "imagePullPolicy": "Never",
    "stdin": True,
    "stdinOnce": True,
    "tty": True,
}
SIDECAR = {
    "name": "s",
    "image": "i",
    "restartPolicy": "Always",
    "lifecycle": {"postStart": {"tcpSocket": {"port": 1}}, "preStop": {"exec": {"command": ["x"]}}},
    "livenessProbe": {"exec": {"command": ["x"]}},
}
TERM = {
    "labelSelector": SELECTOR,
    "namespaceSelector": SELECTOR,
    "namespaces": ["n"],
    "topologyKey": "zone",
    "matchLabelKeys": ["x"],
    "mismatchLabelKeys": ["y"],
}
NODES = {"matchExpressions": [{"key": "a", "operator": "Gt", "values": ["1"]}], "matchFields": [{"key": "metadata.name", "operator": "In", "values": ["n"]}]}
POD_AFFINITY = {
    "requiredDuringSchedulingIgnoredDuringExecution": [TERM],
    "preferredDuringSchedulingIgnoredDuringExecution": [{"weight": 1, "podAffinityTerm": TERM}],
}
PLACEMENT = {
    "affinity": {
        "podAffinity": POD_AFFINITY,
        "podAntiAffinity": POD_AFFINITY,
        "nodeAffinity": {
            "requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [NODES]},
            "preferredDuringSchedulingIgnoredDuringExecution": [{"weight": 1, "preference": NODES}],
        },
    },
    "topologySpreadConstraints": [
        {
            "maxSkew": 1,
            "minDomains": 2,
            "topologyKey": "zone",
            "whenUnsatisfiable": "DoNotSchedule",
            "labelSelector": SELECTOR,
            "matchLabelKeys": ["x"],
            "nodeAffinityPolicy": "Honor",
            "nodeTaintsPolicy": "Ignore",
        }
    ],
    "tolerations": [{"key": "a", "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 5}, {"operator": "Exists"}],
    "schedulingGates": [{"name": "example.com/g"}],
    "nodeSelector": {"a": "b"},
    "schedulerName": "s",
    "os": {"name": "linux"},
    "hostUsers": False,
    "shareProcessNamespace": True,
    "enableServiceLinks": False,
    "setHostnameAsFQDN": True,
    "automountServiceAccountToken": False,
    "serviceAccountName": "a",
    "dnsPolicy": "None",
    "dnsConfig": {"nameservers": ["10.0.0.1"], "searches": ["a.b"], "options": [{"name": "o", "value": "v"}]},
    "securityContext": {
        "seLinuxOptions": {"user": "u", "level": "l"},
        "runAsUser": 1,
        "runAsGroup": 2,
        "runAsNonRoot": True,
        "supplementalGroups": [3],
        "supplementalGroupsPolicy": "Strict",
        "fsGroup": 4,
        "fsGroupChangePolicy": "Always",
        "seLinuxChangePolicy": "Recursive",
        "sysctls": [{"name": "kernel.shm_rmid_forced", "value": "1"}],
        "seccompProfile": {"type": "RuntimeDefault"},
        "appArmorProfile": {"type": "Unconfined"},
    },
}
WINDOWS = {"gmsaCredentialSpecName": "g", "gmsaCredentialSpec": "s", "runAsUserName": "u", "hostProcess": False}
TERMINATED = {
    "exitCode": 1,
    "signal": 2,
    "reason": "R",
    "message": "m",
    "startedAt": "2026-01-02T03:04:05Z",
    "finishedAt": "2026-01-02T03:04:06Z",
    "containerID": "x://y",
}
STATUS = {
    "phase": "Running",
    "hostIP": "10.0.0.1",
    "hostIPs": [{"ip": "10.0.0.1"}],
    "podIP": "10.1.0.5",
    "podIPs": [{"ip": "10.1.0.5"}],
    "qosClass": "Burstable",
    "nominatedNodeName": "n",
    "observedGeneration": 1,
    "resize": "InProgress",
    "conditions": [{**CONDITION, "lastProbeTime": "2026-01-02T03:04:05Z", "observedGeneration": 1}],
    "containerStatuses": [
        {
            "name": "c",
            "ready": True,
            "restartCount": 1,
            "image": "i",
            "imageID": "x",
            "containerID": "x://y",
            "started": True,
            "allocatedResources": {"cpu": "1"},
            "state": {"running": {"startedAt": "2026-01-02T03:04:05Z"}},
            "lastState": {"terminated": TERMINATED},
            "resources": {"limits": {"cpu": "1"}, "requests": {"cpu": "1"}},
            "volumeMounts": [{"name": "v", "mountPath": "/v", "readOnly": True, "recursiveReadOnly": "Disabled"}],
            "user": {"linux": {"uid": 1, "gid": 2, "supplementalGroups": [3]}},
            "stopSignal": "SIGTERM",
            "allocatedResourcesStatus": [{"name": "cpu", "resources": [{"resourceID": "r", "health": "Healthy"}]}],
        }
    ],
    "initContainerStatuses": [
        {"name": "s", "ready": False, "restartCount": 0, "image": "i", "imageID": "", "state": {"waiting": {"reason": "R", "message": "m"}}}
    ],
    "resourceClaimStatuses": [{"name": "k", "resourceClaimName": "n"}],
    "extendedResourceClaimStatus": {"resourceClaimName": "n", "requestMappings": [{"containerName": "c", "resourceName": "example.com/x", "requestName": "r"}]},
}
JOB_RULES = [
    {"action": "FailIndex", "onExitCodes": {"containerName": "c", "operator": "NotIn", "values": [0, 1]}},
    {"action": "Ignore", "onPodConditions": [{"type": "T", "status": "True"}]},
]


def volume_name(source):
    return f"v-{source.lower()}"


UNION_SAMPLES = [
    sample(
        "v1",
        "Pod",
        "pods",
        {
            "metadata": {"labels": {"a": "b"}},
            "spec": {**MINIMAL_POD, "serviceAccountName": "a", "volumes": [{"name": volume_name(source), source: value} for source, value in SOURCES.items()]},
        },
        label="volumes",
    ),
    sample(
        "v1",
        "Pod",
        "pods",
        {
            "metadata": {"labels": {"a": "b"}},
            "spec": {
                "containers": [MAIN],
                "initContainers": [SIDECAR],
                "os": {"name": "linux"},
                "resourceClaims": [{"name": "k", "resourceClaimName": "n"}],
                "volumes": [{"name": "v", "emptyDir": {}}, {"name": "x", "emptyDir": {}}, {"name": "w", "persistentVolumeClaim": {"claimName": "w"}}],
            },
        },
        status=STATUS,
        label="containers",
    ),
    sample("v1", "Pod", "pods", {"metadata": {"labels": {"a": "b", "x": "1", "y": "2"}}, "spec": {**MINIMAL_POD, **PLACEMENT}}, label="placement"),
    sample(
        "v1",
        "Pod",
        "pods",
        {"spec": {**MINIMAL_POD, "os": {"name": "windows"}, "securityContext": {"windowsOptions": WINDOWS}, "nodeName": "n"}},
        label="windows",
    ),
    sample(
        "apps/v1",
        "StatefulSet",
        "statefulsets",
        {
            "spec": {
                "serviceName": "s",
                "selector": {"matchLabels": {"a": "b"}},
                "template": MINIMAL_TEMPLATE,
                "volumeClaimTemplates": [{**CLAIM_TEMPLATE, "metadata": {"name": "data", "labels": {"a": "b"}}}],
            }
        },
        label="claims",
    ),
    sample(
        "networking.k8s.io/v1",
        "Ingress",
        "ingresses",
        {
            "spec": {
                "defaultBackend": {"resource": {"apiGroup": "a.example.com", "kind": "K", "name": "n"}},
                "rules": [
                    {
                        "host": "*.example.com",
                        "http": {
                            "paths": [{"path": "/a", "pathType": "Exact", "backend": {"resource": {"apiGroup": "a.example.com", "kind": "K", "name": "n"}}}]
                        },
                    }
                ],
            }
        },
        status={"loadBalancer": {"ingress": [{"hostname": "h.example.com", "ports": [{"port": 80, "protocol": "TCP", "error": "E"}]}]}},
        label="resource",
    ),
    sample(
        "networking.k8s.io/v1",
        "NetworkPolicy",
        "networkpolicies",
        {
            "spec": {
                "podSelector": {},
                "policyTypes": ["Egress"],
                "egress": [
                    {
                        "to": [{"ipBlock": {"cidr": "fd00::/8", "except": ["fd00:1::/32"]}}, {"namespaceSelector": SELECTOR, "podSelector": SELECTOR}],
                        "ports": [{"port": 80, "endPort": 81, "protocol": "UDP"}],
                    }
                ],
            }
        },
        label="egress",
    ),
    sample(
        "batch/v1",
        "Job",
        "jobs",
        {
            "spec": {
                "completions": 3,
                "completionMode": "Indexed",
                "backoffLimitPerIndex": 1,
                "maxFailedIndexes": 2,
                "parallelism": 2,
                "podFailurePolicy": {"rules": JOB_RULES},
                "successPolicy": {"rules": [{"succeededIndexes": "0-1", "succeededCount": 1}]},
                "template": {"spec": {**MINIMAL_POD, "restartPolicy": "Never"}},
            }
        },
        status={
            "active": 1,
            "ready": 1,
            "terminating": 0,
            "failedIndexes": "0",
            "completedIndexes": "1",
            "succeeded": 1,
            "failed": 1,
            "startTime": "2026-01-02T03:04:05Z",
            "uncountedTerminatedPods": {"succeeded": ["a"], "failed": ["b"]},
            "conditions": [{**CONDITION, "lastProbeTime": "2026-01-02T03:04:05Z", "type": "Suspended"}],
        },
        label="indexed",
    ),
    sample(
        "storage.k8s.io/v1",
        "VolumeAttachment",
        "volumeattachments",
        {"spec": {"attacher": "a.example.com", "nodeName": "n", "source": {"inlineVolumeSpec": {"accessModes": ["ReadWriteOnce"], "csi": VOLUMES["csi"]}}}},
        status={
            "attached": True,
            "attachmentMetadata": {"a": "b"},
            "attachError": {"time": "2026-01-02T03:04:05Z", "message": "m", "errorCode": 1},
            "detachError": {"message": "m"},
        },
        label="inline",
        **CLUSTER,
    ),
    sample(
        "v1",
        "PersistentVolume",
        "persistentvolumes",
        {
            "spec": {
                "capacity": {"storage": "1Gi"},
                "accessModes": ["ReadWriteOnce"],
                "local": {"path": "/l", "fsType": "ext4"},
                "nodeAffinity": {"required": {"nodeSelectorTerms": [NODES]}},
                "volumeMode": "Block",
                "mountOptions": ["o"],
                "persistentVolumeReclaimPolicy": "Delete",
                "storageClassName": "c",
                "claimRef": {"namespace": "n", "name": "c", "kind": "PersistentVolumeClaim", "apiVersion": "v1", "uid": "u"},
            }
        },
        status={"phase": "Bound", "message": "m", "reason": "R", "lastPhaseTransitionTime": "2026-01-02T03:04:05Z"},
        label="local",
        **CLUSTER,
    ),
    sample(
        "v1",
        "Event",
        "events",
        {
            "involvedObject": {"kind": "Pod", "namespace": "odd-eventscore", "name": "p", "uid": "u", "apiVersion": "v1", "fieldPath": "f"},
            "reason": "R",
            "message": "m",
            "source": {"component": "c", "host": "h"},
            "firstTimestamp": "2026-01-02T03:04:05Z",
            "lastTimestamp": "2026-01-02T03:04:05Z",
            "count": 1,
            "type": "Normal",
        },
        label="core",
    ),
    sample(
        "events.k8s.io/v1",
        "Event",
        "events",
        {
            "eventTime": "2026-01-02T03:04:05.000000Z",
            "reportingController": "example.com/c",
            "reportingInstance": "i",
            "action": "A",
            "reason": "R",
            "note": "n",
            "type": "Warning",
            "regarding": {"kind": "Pod", "namespace": "odd-eventsnew", "name": "p"},
            "related": {"kind": "Node", "name": "n"},
            "series": {"count": 2, "lastObservedTime": "2026-01-02T03:04:05.000000Z"},
        },
        label="new",
    ),
    sample(
        "apiregistration.k8s.io/v1",
        "APIService",
        "apiservices",
        {
            "spec": {
                "group": "odd.example.com",
                "version": "v1",
                "groupPriorityMinimum": 100,
                "versionPriority": 10,
                "insecureSkipTLSVerify": True,
                "service": {"namespace": "n", "name": "s", "port": 8443},
            }
        },
        name="v1.odd.example.com",
        name3="v1.odd.example.com",
        status={"conditions": [{"type": "T", "status": "True", "reason": "R", "message": "m", "lastTransitionTime": "2026-01-02T03:04:05Z"}]},
        **CLUSTER,
    ),
    sample(
        "policy/v1",
        "PodDisruptionBudget",
        "poddisruptionbudgets",
        {"spec": {"maxUnavailable": "10%", "selector": SELECTOR}},
        status={
            "currentHealthy": 1,
            "desiredHealthy": 1,
            "disruptionsAllowed": 0,
            "expectedPods": 1,
            "observedGeneration": 1,
            "disruptedPods": {"p": "2026-01-02T03:04:05Z"},
            "conditions": [CONDITION],
        },
        versioned=True,
        label="most",
    ),
    sample(
        "v1",
        "PodTemplate",
        "podtemplates",
        {
            "template": {
                **LABELS,
                "spec": {
                    **MINIMAL_POD,
                    "serviceAccountName": "a",
                    "volumes": [{"name": volume_name(source), source: SOURCES[source]} for source in ("ephemeral", "projected")],
                },
            }
        },
        label="volumes",
    ),
]
