"""Samples of built-in kinds for kinds.py: a full object, a minimal one, a status, and objects that must exist before.
`versioned` ones are updated with their resourceVersion, without which they cannot be.
"""

import base64

PROBE = {"httpGet": {"path": "/h", "port": 80, "httpHeaders": [{"name": "X", "value": "y"}]}, "periodSeconds": 5}
CONTAINER = {
    "name": "c",
    "image": "nginx:1.25",
    "command": ["run"],
    "args": ["a"],
    "workingDir": "/w",
    "ports": [{"containerPort": 80, "name": "http", "protocol": "TCP"}],
    "envFrom": [{"prefix": "P", "configMapRef": {"name": "m", "optional": True}}],
    "env": [{"name": "A", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}}, {"name": "B", "value": "b"}],
    "resources": {"limits": {"cpu": "500m", "memory": "128Mi"}, "requests": {"cpu": "250m"}},
    "livenessProbe": PROBE,
    "readinessProbe": {"tcpSocket": {"port": "http"}},
    "startupProbe": {"exec": {"command": ["x"]}},
    "lifecycle": {"preStop": {"exec": {"command": ["stop"]}}},
    "volumeMounts": [{"name": "v", "mountPath": "/v", "readOnly": True}],
    "securityContext": {"runAsUser": 1000, "capabilities": {"add": ["NET_ADMIN"]}, "allowPrivilegeEscalation": False},
    "imagePullPolicy": "Always",
}
AFFINITY = {
    "nodeAffinity": {
        "requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [{"matchExpressions": [{"key": "a", "operator": "In", "values": ["b"]}]}]},
        "preferredDuringSchedulingIgnoredDuringExecution": [{"weight": 1, "preference": {"matchExpressions": [{"key": "a", "operator": "Exists"}]}}],
    },
    "podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [{"labelSelector": {"matchLabels": {"a": "b"}}, "topologyKey": "zone"}]},
}
POD = {
    "containers": [CONTAINER],
    "initContainers": [{"name": "i", "image": "busybox"}],
    "volumes": [{"name": "v", "configMap": {"name": "m", "items": [{"key": "k", "path": "p"}]}}, {"name": "w", "emptyDir": {"sizeLimit": "1Gi"}}],
    "tolerations": [{"key": "a", "operator": "Equal", "value": "b", "effect": "NoExecute", "tolerationSeconds": 5}],
    "nodeSelector": {"x": "y"},
    "affinity": AFFINITY,
    "topologySpreadConstraints": [{"maxSkew": 1, "topologyKey": "zone", "whenUnsatisfiable": "DoNotSchedule", "labelSelector": {"matchLabels": {"a": "b"}}}],
    "securityContext": {"runAsUser": 1000, "fsGroup": 5, "sysctls": [{"name": "kernel.shm_rmid_forced", "value": "1"}]},
    "hostAliases": [{"ip": "10.0.0.1", "hostnames": ["h.example.com"]}],
    "imagePullSecrets": [{"name": "s"}],
    "dnsConfig": {"nameservers": ["10.0.0.2"], "searches": ["example.com"], "options": [{"name": "ndots", "value": "2"}]},
    "terminationGracePeriodSeconds": 20,
    "activeDeadlineSeconds": 100,
    "hostname": "h",
    "subdomain": "s",
    "readinessGates": [{"conditionType": "example.com/ready"}],
    "restartPolicy": "Always",
}
MINIMAL_POD = {"containers": [{"name": "c", "image": "nginx"}]}
LABELS = {"metadata": {"labels": {"a": "b"}}}
SELECTOR = {"matchLabels": {"a": "b"}, "matchExpressions": [{"key": "a", "operator": "In", "values": ["b"]}]}
LONG_POD = {key: value for key, value in POD.items() if key != "activeDeadlineSeconds"}
TEMPLATE = {**LABELS, "spec": LONG_POD}
MINIMAL_TEMPLATE = {**LABELS, "spec": MINIMAL_POD}
NEVER = {**LABELS, "spec": {**LONG_POD, "restartPolicy": "Never"}}
MINIMAL_NEVER = {"spec": {**MINIMAL_POD, "restartPolicy": "OnFailure"}}
CLAIM = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
CONDITION = {"type": "Ready", "status": "True", "lastTransitionTime": "2026-01-02T03:04:05Z", "reason": "R", "message": "m"}
OLD_CONDITION = {"type": "Available", "status": "True", "lastTransitionTime": "2026-01-02T03:04:05Z", "reason": "R", "message": "m"}
REQUEST = {
    "devices": {
        "requests": [
            {
                "name": "r",
                "exactly": {"deviceClassName": "c", "selectors": [{"cel": {"expression": "device.driver == 'd'"}}], "count": 2, "allocationMode": "ExactCount"},
            }
        ],
        "constraints": [{"requests": ["r"], "matchAttribute": "example.com/a"}],
        "config": [{"requests": ["r"], "opaque": {"driver": "d.example.com", "parameters": {"a": 1}}}],
    }
}


def sample(api_version, kind, plural, full, minimal=None, **more):
    return {"apiVersion": api_version, "kind": kind, "plural": plural, "full": full, **({"minimal": minimal} if minimal is not None else {}), **more}


CLUSTER = {"namespaced": False}
CSR = (
    "LS0tLS1CRUdJTiBDRVJUSUZJQ0FURSBSRVFVRVNULS0tLS0KTUlHWE1Fc0NBUUF3R0RFS01BZ0dBMVVFQ2d3Qlp6RUtNQWdHQTFV"
    "RUF3d0JkVEFxTUFVR0F5dGxjQU1oQUZrNwo0Wjc3MHlFazJLZDI1d1dDSEVkNFJHVFRlVGlaZndlMVIxVWQ4Z1NKb0FBd0JRWURL"
    "MlZ3QTBFQXB0UkN6ZWpJCnlkbExOck1qL3pBeFlGZXY0WDc2ZjJZTW9zWmRDSE1hU282b1JmelNPWlQxMFJiN3BWYmREeGhoUVdp"
    "aFNjUlIKb1d4TG5tSVVKU0h3QlE9PQotLS0tLUVORCBDRVJUSUZJQ0FURSBSRVFVRVNULS0tLS0K"
)
# the same request in DER, in Base64
STUB = "".join(base64.b64decode(CSR).decode().splitlines()[1:-1])
# a public key, and the signature of `pod-uid` with its private key
KEY = "MCowBQYDK2VwAyEAXMazEk5H8C82/PF0sTZJryyKA3MPnr9zOmdNbpTvar4="
PROOF = "oiMe+s1dJHnD4SIkELzs3qCbAHgINQG26z4FjAqZjZNtEUU1iuPmRCK2R01o6L9n9qZatS5D1hnHnfTNn7AdAQ=="
AUTHORITY = (
    "-----BEGIN CERTIFICATE-----\nMIIBMDCB46ADAgECAhR7OtLNg8vh1FuVMelGYL1G5MxZDTAFBgMrZXAwDTELMAkG\nA1UEAww"
    "CY2EwIBcNMjYxMTI0MTE0NzIwWhgPMjEyNjEwMzExMTQ3MjBaMA0xCzAJ\nBgNVBAMMAmNhMCowBQYDK2VwAyEAGy8TVaQo08f67J"
    "h/BUIVuI9jss6e5m3ct7o/\nD4GkImijUzBRMB0GA1UdDgQWBBSMlJxsRq8D1QFNSQ0sNu2ieSf8zjAfBgNVHSME\nGDAWgBSMlJxs"
    "Rq8D1QFNSQ0sNu2ieSf8zjAPBgNVHRMBAf8EBTADAQH/MAUGAytl\ncANBAL0eFwtMdtnKNtnwyMP6mM7MS8fO+dbWlixs0RTsC1H"
    "sdiQz2TF0cm2gAipz\nA/e30TBo+wwbVq8u08bUkcrthQk=\n-----END CERTIFICATE-----\n"
)

UNSTABLE = {"versioned": True, "main": False}
LEASE_CANDIDATE = {
    "spec": {
        "leaseName": "l",
        "binaryVersion": "1.37.0",
        "emulationVersion": "1.36.0",
        "strategy": "OldestEmulationVersion",
        "renewTime": "2026-01-02T03:04:05.000000Z",
    }
}

FLAT_REQUEST = {
    "devices": {
        "requests": [
            {"name": "r", "deviceClassName": "c", "selectors": [{"cel": {"expression": "device.driver == 'd'"}}], "count": 2, "allocationMode": "ExactCount"},
            {"name": "s", "firstAvailable": [{"name": "t", "deviceClassName": "c"}]},
        ],
        "constraints": [{"requests": ["r"], "matchAttribute": "example.com/a"}],
        "config": [{"requests": ["r"], "opaque": {"driver": "d.example.com", "parameters": {"a": 1}}}],
    }
}
POOL = {"name": "p", "generation": 1, "resourceSliceCount": 1}
MUTATION = {
    "paramKind": {"apiVersion": "v1", "kind": "ConfigMap"},
    "matchConstraints": {"resourceRules": [{"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["configmaps"]}]},
    "variables": [{"name": "v", "expression": "'x'"}],
    "mutations": [{"patchType": "ApplyConfiguration", "applyConfiguration": {"expression": "Object{metadata: Object.metadata{labels: {'a': variables.v}}}"}}],
    "failurePolicy": "Ignore",
    "matchConditions": [{"name": "c", "expression": "true"}],
    "reinvocationPolicy": "Never",
}
GROUP = {
    "schedulingPolicy": {"gang": {"minCount": 2}},
    "disruptionMode": {"all": {}},
    "priorityClassName": "",
    "schedulingConstraints": {"topology": [{"key": "example.com/rack"}]},
    "resourceClaims": [{"name": "r", "resourceClaimName": "c"}],
}
WORKLOAD_REF = {"workloadName": "w", "templateName": "t"}
COMPOSITE = {
    "schedulingPolicy": {"gang": {"minGroupCount": 2}},
    "disruptionMode": {"single": {}},
    "schedulingConstraints": {"topology": [{"key": "example.com/rack"}]},
}
WORKLOADS = {"spec": {"controllerRef": {"apiGroup": "batch", "kind": "Job", "name": "j"}, "podGroupTemplates": [{"name": "a", **GROUP, "priority": 5}]}}
TARGET = {"pod": {"name": "p", "uid": "11111111-2222-3333-4444-555555555555"}}
RESPONDERS = {"targetResponders": [{"name": "a.example.com/r", "priority": 2000, "state": "Inactive"}], "responders": [{"name": "a.example.com/r"}]}

SAMPLES = [
    sample(
        "v1",
        "Node",
        "nodes",
        {
            "metadata": {"labels": {"a": "b"}, "annotations": {"x": "y"}},
            "spec": {
                "unschedulable": True,
                "taints": [{"key": "k", "value": "v", "effect": "NoSchedule"}],
                "podCIDR": "10.1.0.0/24",
                "podCIDRs": ["10.1.0.0/24"],
                "providerID": "p://x",
            },
        },
        {},
        status={
            "capacity": {"cpu": "4", "memory": "8Gi"},
            "allocatable": {"cpu": "4"},
            "conditions": [{**CONDITION, "lastHeartbeatTime": "2026-01-02T03:04:05Z"}],
            "addresses": [{"type": "InternalIP", "address": "10.0.0.1"}],
            "nodeInfo": {
                "machineID": "a",
                "systemUUID": "b",
                "bootID": "c",
                "kernelVersion": "d",
                "osImage": "e",
                "containerRuntimeVersion": "f",
                "kubeletVersion": "g",
                "kubeProxyVersion": "h",
                "operatingSystem": "i",
                "architecture": "j",
            },
            "images": [{"names": ["a"], "sizeBytes": 5}],
        },
        **CLUSTER,
    ),
    sample(
        "v1",
        "Pod",
        "pods",
        {"metadata": {"labels": {"a": "b"}}, "spec": POD},
        {"spec": MINIMAL_POD},
        status={
            "phase": "Running",
            "podIP": "10.1.0.5",
            "podIPs": [{"ip": "10.1.0.5"}],
            "conditions": [CONDITION],
            "containerStatuses": [
                {"name": "c", "ready": True, "restartCount": 1, "image": "nginx", "imageID": "x", "state": {"running": {"startedAt": "2026-01-02T03:04:05Z"}}}
            ],
        },
        update={"spec": {"activeDeadlineSeconds": 50}},
    ),
    sample(
        "apps/v1",
        "Deployment",
        "deployments",
        {
            "metadata": {"labels": {"a": "b"}},
            "spec": {
                "replicas": 2,
                "selector": SELECTOR,
                "template": TEMPLATE,
                "minReadySeconds": 3,
                "revisionHistoryLimit": 4,
                "progressDeadlineSeconds": 50,
                "paused": True,
                "strategy": {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 1, "maxUnavailable": "20%"}},
            },
        },
        {"spec": {"selector": {"matchLabels": {"a": "b"}}, "template": MINIMAL_TEMPLATE}},
        status={"replicas": 2, "observedGeneration": 1, "conditions": [OLD_CONDITION]},
        update={"spec": {"replicas": 5}},
    ),
    sample(
        "apps/v1",
        "ReplicaSet",
        "replicasets",
        {"spec": {"replicas": 2, "selector": SELECTOR, "template": TEMPLATE, "minReadySeconds": 3}},
        {"spec": {"selector": {"matchLabels": {"a": "b"}}, "template": MINIMAL_TEMPLATE}},
        status={"replicas": 2, "observedGeneration": 1, "conditions": [OLD_CONDITION]},
        update={"spec": {"replicas": 5}},
    ),
    sample(
        "apps/v1",
        "StatefulSet",
        "statefulsets",
        {
            "spec": {
                "replicas": 2,
                "serviceName": "s",
                "selector": SELECTOR,
                "template": TEMPLATE,
                "minReadySeconds": 3,
                "podManagementPolicy": "Parallel",
                "revisionHistoryLimit": 4,
                "ordinals": {"start": 1},
                "updateStrategy": {"type": "RollingUpdate", "rollingUpdate": {"partition": 1}},
                "persistentVolumeClaimRetentionPolicy": {"whenDeleted": "Delete", "whenScaled": "Retain"},
                "volumeClaimTemplates": [{"metadata": {"name": "data"}, "spec": CLAIM}],
            }
        },
        {"spec": {"serviceName": "s", "selector": {"matchLabels": {"a": "b"}}, "template": MINIMAL_TEMPLATE}},
        status={"replicas": 2, "observedGeneration": 1, "conditions": [OLD_CONDITION]},
        update={"spec": {"replicas": 5}},
    ),
    sample(
        "apps/v1",
        "DaemonSet",
        "daemonsets",
        {
            "spec": {
                "selector": SELECTOR,
                "template": TEMPLATE,
                "minReadySeconds": 3,
                "revisionHistoryLimit": 4,
                "updateStrategy": {"type": "RollingUpdate", "rollingUpdate": {"maxUnavailable": 2}},
            }
        },
        {"spec": {"selector": {"matchLabels": {"a": "b"}}, "template": MINIMAL_TEMPLATE}},
        status={"currentNumberScheduled": 1, "numberMisscheduled": 0, "desiredNumberScheduled": 1, "numberReady": 1},
        update={"spec": {"minReadySeconds": 5}},
    ),
    sample(
        "batch/v1",
        "Job",
        "jobs",
        {
            "spec": {
                "parallelism": 2,
                "completions": 3,
                "backoffLimit": 4,
                "activeDeadlineSeconds": 100,
                "suspend": True,
                "ttlSecondsAfterFinished": 10,
                "completionMode": "Indexed",
                "template": NEVER,
                "podFailurePolicy": {"rules": [{"action": "FailJob", "onExitCodes": {"containerName": "c", "operator": "In", "values": [1, 2]}}]},
            }
        },
        {"spec": {"template": MINIMAL_NEVER}},
        status={"active": 1, "startTime": "2026-01-02T03:04:05Z", "ready": 0},
        update={"spec": {"parallelism": 1}},
    ),
    sample(
        "batch/v1",
        "CronJob",
        "cronjobs",
        {
            "spec": {
                "schedule": "*/5 * * * *",
                "timeZone": "Europe/Berlin",
                "startingDeadlineSeconds": 30,
                "suspend": True,
                "concurrencyPolicy": "Forbid",
                "successfulJobsHistoryLimit": 2,
                "failedJobsHistoryLimit": 3,
                "jobTemplate": {"metadata": {"labels": {"j": "k"}}, "spec": {"template": NEVER, "backoffLimit": 2}},
            }
        },
        {"spec": {"schedule": "@daily", "jobTemplate": {"spec": {"template": MINIMAL_NEVER}}}},
        status={"lastScheduleTime": "2026-01-02T03:04:05Z", "active": [{"kind": "Job", "namespace": "n", "name": "j", "apiVersion": "batch/v1"}]},
        update={"spec": {"schedule": "@hourly"}},
    ),
    sample(
        "v1",
        "LimitRange",
        "limitranges",
        {
            "spec": {
                "limits": [
                    {
                        "type": "Container",
                        "default": {"cpu": "1"},
                        "defaultRequest": {"cpu": "500m"},
                        "max": {"cpu": "2"},
                        "min": {"cpu": "100m"},
                        "maxLimitRequestRatio": {"cpu": "4"},
                    },
                    {"type": "PersistentVolumeClaim", "min": {"storage": "1Gi"}},
                ]
            }
        },
        {"spec": {"limits": []}},
    ),
    sample(
        "v1",
        "Endpoints",
        "endpoints",
        {
            "subsets": [
                {
                    "addresses": [{"ip": "10.0.0.9", "hostname": "h", "nodeName": "n", "targetRef": {"kind": "Pod", "name": "p", "namespace": "x"}}],
                    "notReadyAddresses": [{"ip": "10.0.0.10"}],
                    "ports": [{"port": 80, "name": "http", "protocol": "TCP", "appProtocol": "http"}],
                }
            ]
        },
        {},
    ),
    sample(
        "discovery.k8s.io/v1",
        "EndpointSlice",
        "endpointslices",
        {
            "addressType": "IPv4",
            "endpoints": [
                {
                    "addresses": ["10.0.0.9"],
                    "conditions": {"ready": True},
                    "hostname": "h",
                    "nodeName": "n",
                    "zone": "z",
                    "targetRef": {"kind": "Pod", "name": "p", "namespace": "x"},
                    "hints": {"forZones": [{"name": "z"}]},
                }
            ],
            "ports": [{"port": 80, "name": "http", "protocol": "TCP", "appProtocol": "http"}],
        },
        {"addressType": "IPv6", "endpoints": [], "ports": []},
    ),
    sample(
        "scheduling.k8s.io/v1",
        "PriorityClass",
        "priorityclasses",
        {"value": 5, "description": "d", "globalDefault": False, "preemptionPolicy": "Never"},
        {"value": 0},
        **CLUSTER,
    ),
    sample(
        "node.k8s.io/v1",
        "RuntimeClass",
        "runtimeclasses",
        {
            "handler": "h",
            "overhead": {"podFixed": {"cpu": "10m"}},
            "scheduling": {"nodeSelector": {"a": "b"}, "tolerations": [{"key": "k", "operator": "Exists"}]},
        },
        {"handler": "h"},
        **CLUSTER,
        versioned=True,
    ),
    sample(
        "v1",
        "PersistentVolume",
        "persistentvolumes",
        {
            "spec": {
                "capacity": {"storage": "1Gi"},
                "accessModes": ["ReadWriteOnce"],
                "storageClassName": "s",
                "persistentVolumeReclaimPolicy": "Retain",
                "mountOptions": ["o"],
                "volumeMode": "Filesystem",
                "csi": {"driver": "d.example.com", "volumeHandle": "h", "fsType": "ext4", "volumeAttributes": {"a": "b"}},
                "nodeAffinity": {"required": {"nodeSelectorTerms": [{"matchExpressions": [{"key": "a", "operator": "In", "values": ["b"]}]}]}},
                "claimRef": {"kind": "PersistentVolumeClaim", "namespace": "n", "name": "c", "apiVersion": "v1"},
            }
        },
        {"spec": {"capacity": {"storage": "1Gi"}, "accessModes": ["ReadWriteOnce"], "hostPath": {"path": "/x"}}},
        status={"phase": "Bound"},
        **CLUSTER,
    ),
    sample(
        "v1",
        "PersistentVolumeClaim",
        "persistentvolumeclaims",
        {
            "spec": {
                "accessModes": ["ReadWriteOnce"],
                "resources": {"requests": {"storage": "1Gi"}, "limits": {"storage": "2Gi"}},
                "storageClassName": "s",
                "volumeName": "v",
                "volumeMode": "Filesystem",
                "selector": SELECTOR,
                "dataSource": {"kind": "PersistentVolumeClaim", "name": "c"},
            }
        },
        {"spec": CLAIM},
        status={"phase": "Bound", "accessModes": ["ReadWriteOnce"], "capacity": {"storage": "1Gi"}},
    ),
    sample(
        "storage.k8s.io/v1",
        "StorageClass",
        "storageclasses",
        {
            "provisioner": "example.com/p",
            "parameters": {"a": "b"},
            "reclaimPolicy": "Retain",
            "mountOptions": ["o"],
            "allowVolumeExpansion": True,
            "volumeBindingMode": "WaitForFirstConsumer",
            "allowedTopologies": [{"matchLabelExpressions": [{"key": "k", "values": ["v"]}]}],
        },
        {"provisioner": "example.com/p"},
        **CLUSTER,
    ),
    sample(
        "networking.k8s.io/v1",
        "Ingress",
        "ingresses",
        {
            "spec": {
                "ingressClassName": "c",
                "defaultBackend": {"service": {"name": "s", "port": {"number": 80}}},
                "tls": [{"hosts": ["h.example.com"], "secretName": "x"}],
                "rules": [
                    {
                        "host": "h.example.com",
                        "http": {"paths": [{"path": "/", "pathType": "Prefix", "backend": {"service": {"name": "s", "port": {"name": "http"}}}}]},
                    }
                ],
            }
        },
        {"spec": {"defaultBackend": {"resource": {"apiGroup": "a.example.com", "kind": "K", "name": "n"}}}},
        status={"loadBalancer": {"ingress": [{"ip": "10.0.0.1", "ports": [{"port": 80, "protocol": "TCP"}]}]}},
    ),
    sample(
        "networking.k8s.io/v1",
        "IngressClass",
        "ingressclasses",
        {
            "spec": {
                "controller": "example.com/c",
                "parameters": {"apiGroup": "a.example.com", "kind": "K", "name": "n", "scope": "Namespace", "namespace": "x"},
            }
        },
        {"spec": {"controller": "example.com/c"}},
        **CLUSTER,
    ),
    sample(
        "networking.k8s.io/v1",
        "NetworkPolicy",
        "networkpolicies",
        {
            "spec": {
                "podSelector": SELECTOR,
                "policyTypes": ["Ingress", "Egress"],
                "ingress": [
                    {
                        "from": [{"podSelector": {"matchLabels": {"a": "b"}}}, {"ipBlock": {"cidr": "10.0.0.0/8", "except": ["10.1.0.0/16"]}}],
                        "ports": [{"port": 80, "endPort": 90, "protocol": "TCP"}],
                    }
                ],
                "egress": [{"to": [{"namespaceSelector": {}}], "ports": [{"port": "http"}]}],
            }
        },
        {"spec": {"podSelector": {}}},
    ),
    sample(
        "policy/v1",
        "PodDisruptionBudget",
        "poddisruptionbudgets",
        {"spec": {"minAvailable": 1, "selector": SELECTOR, "unhealthyPodEvictionPolicy": "AlwaysAllow"}},
        {"spec": {}},
        status={"currentHealthy": 1, "desiredHealthy": 1, "disruptionsAllowed": 0, "expectedPods": 1, "observedGeneration": 1},
        versioned=True,
    ),
    sample(
        "autoscaling/v2",
        "HorizontalPodAutoscaler",
        "horizontalpodautoscalers",
        {
            "spec": {
                "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "d"},
                "minReplicas": 2,
                "maxReplicas": 3,
                "behavior": {"scaleUp": {"stabilizationWindowSeconds": 5, "policies": [{"type": "Pods", "value": 1, "periodSeconds": 15}]}},
                "metrics": [{"type": "Resource", "resource": {"name": "cpu", "target": {"type": "Utilization", "averageUtilization": 50}}}],
            }
        },
        {"spec": {"scaleTargetRef": {"apiVersion": "v1", "kind": "ReplicationController", "name": "d"}, "maxReplicas": 3}},
        status={"currentReplicas": 1, "desiredReplicas": 2, "conditions": [{"type": "AbleToScale", "status": "True", "reason": "R", "message": "m"}]},
    ),
    sample(
        "autoscaling/v1",
        "HorizontalPodAutoscaler",
        "horizontalpodautoscalers",
        {
            "spec": {
                "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "d"},
                "minReplicas": 2,
                "maxReplicas": 3,
                "targetCPUUtilizationPercentage": 50,
            }
        },
        {"spec": {"scaleTargetRef": {"apiVersion": "v1", "kind": "ReplicationController", "name": "d"}, "maxReplicas": 3}},
        main=False,
        status={"currentReplicas": 1, "desiredReplicas": 2, "currentCPUUtilizationPercentage": 20},
    ),
    sample("v1", "PodTemplate", "podtemplates", {"template": TEMPLATE}, {"template": MINIMAL_TEMPLATE}),
    sample(
        "v1",
        "ReplicationController",
        "replicationcontrollers",
        {"spec": {"replicas": 2, "selector": {"a": "b"}, "template": TEMPLATE, "minReadySeconds": 3}},
        {"spec": {"template": MINIMAL_TEMPLATE}},
        status={"replicas": 2},
        update={"spec": {"replicas": 5}},
    ),
    sample("apps/v1", "ControllerRevision", "controllerrevisions", {"revision": 1, "data": {"a": 1}}),
    sample(
        "resource.k8s.io/v1",
        "DeviceClass",
        "deviceclasses",
        {"spec": {"selectors": [{"cel": {"expression": "device.driver == 'd'"}}], "config": [{"opaque": {"driver": "d.example.com", "parameters": {"a": 1}}}]}},
        {"spec": {}},
        **CLUSTER,
    ),
    sample("resource.k8s.io/v1", "ResourceClaim", "resourceclaims", {"spec": REQUEST}, {"spec": {}}),
    sample(
        "resource.k8s.io/v1",
        "ResourceClaimTemplate",
        "resourceclaimtemplates",
        {"spec": {"metadata": {"labels": {"a": "b"}}, "spec": REQUEST}},
        {"spec": {"spec": {}}},
    ),
    sample(
        "resource.k8s.io/v1",
        "ResourceSlice",
        "resourceslices",
        {
            "spec": {
                "driver": "d.example.com",
                "pool": {"name": "p", "generation": 1, "resourceSliceCount": 1},
                "nodeName": "n",
                "devices": [{"name": "d", "attributes": {"a": {"string": "x"}}, "capacity": {"memory": {"value": "1Gi"}}}],
            }
        },
        {"spec": {"driver": "d.example.com", "pool": {"name": "p", "generation": 1, "resourceSliceCount": 1}, "allNodes": True}},
        **CLUSTER,
    ),
    sample(
        "storage.k8s.io/v1",
        "CSIDriver",
        "csidrivers",
        {
            "spec": {
                "attachRequired": True,
                "podInfoOnMount": True,
                "fsGroupPolicy": "File",
                "requiresRepublish": True,
                "storageCapacity": True,
                "volumeLifecycleModes": ["Persistent"],
                "tokenRequests": [{"audience": "a", "expirationSeconds": 3600}],
            }
        },
        {"spec": {}},
        **CLUSTER,
        versioned=True,
    ),
    sample(
        "storage.k8s.io/v1",
        "CSINode",
        "csinodes",
        {"spec": {"drivers": [{"name": "d.example.com", "nodeID": "n", "topologyKeys": ["t"], "allocatable": {"count": 1}}]}},
        {"spec": {"drivers": []}},
        **CLUSTER,
        versioned=True,
    ),
    sample(
        "storage.k8s.io/v1",
        "CSIStorageCapacity",
        "csistoragecapacities",
        {"storageClassName": "s", "capacity": "1Gi", "maximumVolumeSize": "1Gi", "nodeTopology": {"matchLabels": {"a": "b"}}},
        {"storageClassName": "s"},
        versioned=True,
    ),
    sample(
        "storage.k8s.io/v1",
        "VolumeAttachment",
        "volumeattachments",
        {"spec": {"attacher": "a.example.com", "nodeName": "n", "source": {"persistentVolumeName": "p"}}},
        None,
        status={"attached": True, "attachmentMetadata": {"a": "b"}},
        **CLUSTER,
        versioned=True,
    ),
    sample("storage.k8s.io/v1", "VolumeAttributesClass", "volumeattributesclasses", {"driverName": "d.example.com", "parameters": {"a": "b"}}, None, **CLUSTER),
    sample(
        "networking.k8s.io/v1",
        "IPAddress",
        "ipaddresses",
        {"spec": {"parentRef": {"group": "", "resource": "services", "namespace": "n", "name": "s"}}},
        None,
        name="10.0.0.77",
        name2="10.0.0.78",
        name3="10.0.0.79",
        **CLUSTER,
    ),
    sample("networking.k8s.io/v1", "ServiceCIDR", "servicecidrs", {"spec": {"cidrs": ["10.9.0.0/24"]}}, None, **CLUSTER),
    sample(
        "certificates.k8s.io/v1",
        "ClusterTrustBundle",
        "clustertrustbundles",
        {"spec": {"signerName": "example.com/s", "trustBundle": AUTHORITY}},
        {"spec": {"trustBundle": AUTHORITY}},
        name="example.com:s:one",
        name2="two",
        name3="example.com:s:three",
        **CLUSTER,
        versioned=True,
    ),
    sample(
        "certificates.k8s.io/v1",
        "CertificateSigningRequest",
        "certificatesigningrequests",
        {"spec": {"signerName": "example.com/s", "request": CSR, "usages": ["digital signature", "key encipherment"], "expirationSeconds": 3600}},
        {"spec": {"signerName": "example.com/t", "request": CSR, "usages": ["client auth"]}},
        status={"conditions": [{"type": "Failed", "status": "True", "reason": "R"}]},
        **CLUSTER,
    ),
    sample(
        "certificates.k8s.io/v1",
        "PodCertificateRequest",
        "podcertificaterequests",
        {
            "spec": {
                "signerName": "example.com/s",
                "podName": "p",
                "podUID": "pod-uid",
                "serviceAccountName": "s",
                "serviceAccountUID": "account-uid",
                "nodeName": "n",
                "nodeUID": "node-uid",
                "maxExpirationSeconds": 7200,
                "stubPKCS10Request": STUB,
                "unverifiedUserAnnotations": {"example.com/a": "b"},
            }
        },
        {
            "spec": {
                "signerName": "kubernetes.io/s",
                "podName": "p",
                "podUID": "pod-uid",
                "serviceAccountName": "s",
                "serviceAccountUID": "account-uid",
                "nodeName": "n",
                "nodeUID": "node-uid",
                "stubPKCS10Request": STUB,
            }
        },
        status={"conditions": [{"type": "Denied", "status": "True", "lastTransitionTime": "2026-01-02T03:04:05Z", "reason": "R", "message": "m"}]},
        versioned=True,
    ),
    sample(
        "resource.k8s.io/v1",
        "DeviceTaintRule",
        "devicetaintrules",
        {"spec": {"deviceSelector": {"driver": "d.example.com"}, "taint": {"key": "k", "value": "v", "effect": "NoSchedule"}}},
        None,
        **CLUSTER,
        versioned=True,
    ),
    # kinds without a stable version: kube-apiserver serves them with --runtime-config=api/all=true
    sample("coordination.k8s.io/v1beta1", "LeaseCandidate", "leasecandidates", LEASE_CANDIDATE, None, **UNSTABLE),
    sample("coordination.k8s.io/v1alpha2", "LeaseCandidate", "leasecandidates", LEASE_CANDIDATE, None, **UNSTABLE),
    sample(
        "internal.apiserver.k8s.io/v1alpha1",
        "StorageVersion",
        "storageversions",
        {"spec": {}},
        None,
        name="boats.one",
        name2="boats.two",
        status={
            "storageVersions": [{"apiServerID": "one", "encodingVersion": "boats/v1", "decodableVersions": ["boats/v1", "v2"], "servedVersions": ["v2"]}],
            "commonEncodingVersion": "boats/v1",
            "conditions": [{"type": "AllEncodingVersionsEqual", "status": "True", "reason": "R", "message": "m", "lastTransitionTime": "2026-01-02T03:04:05Z"}],
        },
        **CLUSTER,
        **UNSTABLE,
    ),
    sample(
        "resource.k8s.io/v1alpha3",
        "ResourcePoolStatusRequest",
        "resourcepoolstatusrequests",
        {"spec": {"driver": "d.example.com", "poolName": "p", "limit": 7}},
        {"spec": {"driver": "d.example.com"}},
        status={
            "poolCount": 1,
            "pools": [
                {
                    "driver": "d.example.com",
                    "poolName": "p",
                    "generation": 1,
                    "totalDevices": 3,
                    "allocatedDevices": 1,
                    "availableDevices": 2,
                    "unavailableDevices": 0,
                }
            ],
            "conditions": [{"type": "Complete", "status": "True", "lastTransitionTime": "2026-01-02T03:04:05Z", "reason": "R", "message": "m"}],
        },
        **CLUSTER,
        **UNSTABLE,
    ),
    # versions that are off by default, of kinds that have a stable version
    sample(
        "resource.k8s.io/v1beta1",
        "DeviceClass",
        "deviceclasses",
        {"spec": {"selectors": [{"cel": {"expression": "device.driver == 'd'"}}], "config": [{"opaque": {"driver": "d.example.com", "parameters": {"a": 1}}}]}},
        {"spec": {}},
        **CLUSTER,
        main=False,
    ),
    sample(
        "resource.k8s.io/v1beta1",
        "ResourceClaim",
        "resourceclaims",
        {"spec": FLAT_REQUEST},
        {"spec": {}},
        main=False,
        status={
            "allocation": {"devices": {"results": [{"request": "r", "driver": "d.example.com", "pool": "p", "device": "d"}]}},
            "reservedFor": [{"resource": "pods", "name": "p", "uid": "u"}],
        },
    ),
    sample(
        "resource.k8s.io/v1beta1",
        "ResourceClaimTemplate",
        "resourceclaimtemplates",
        {"spec": {"metadata": {"labels": {"a": "b"}}, "spec": FLAT_REQUEST}},
        {"spec": {"spec": {}}},
        main=False,
    ),
    sample(
        "resource.k8s.io/v1beta1",
        "ResourceSlice",
        "resourceslices",
        {
            "spec": {
                "driver": "d.example.com",
                "pool": POOL,
                "nodeName": "n",
                "devices": [{"name": "d", "basic": {"attributes": {"a": {"string": "x"}}, "capacity": {"memory": {"value": "1Gi"}}}}],
            }
        },
        {"spec": {"driver": "d.example.com", "pool": POOL, "allNodes": True}},
        **CLUSTER,
        main=False,
    ),
    sample(
        "certificates.k8s.io/v1beta1",
        "PodCertificateRequest",
        "podcertificaterequests",
        {
            "spec": {
                "signerName": "example.com/s",
                "podName": "p",
                "podUID": "pod-uid",
                "serviceAccountName": "s",
                "serviceAccountUID": "account-uid",
                "nodeName": "n",
                "nodeUID": "node-uid",
                "maxExpirationSeconds": 7200,
                "pkixPublicKey": KEY,
                "proofOfPossession": PROOF,
                "unverifiedUserAnnotations": {"example.com/a": "b"},
            }
        },
        {
            "spec": {
                "signerName": "kubernetes.io/s",
                "podName": "p",
                "podUID": "pod-uid",
                "serviceAccountName": "s",
                "serviceAccountUID": "account-uid",
                "nodeName": "n",
                "nodeUID": "node-uid",
                "stubPKCS10Request": STUB,
            }
        },
        status={"conditions": [{"type": "Denied", "status": "True", "lastTransitionTime": "2026-01-02T03:04:05Z", "reason": "R", "message": "m"}]},
        **UNSTABLE,
    ),
    sample("admissionregistration.k8s.io/v1alpha1", "MutatingAdmissionPolicy", "mutatingadmissionpolicies", {"spec": MUTATION}, None, **CLUSTER, main=False),
    sample(
        "admissionregistration.k8s.io/v1alpha1",
        "MutatingAdmissionPolicyBinding",
        "mutatingadmissionpolicybindings",
        {
            "spec": {
                "policyName": "p",
                "paramRef": {"name": "q", "namespace": "n", "parameterNotFoundAction": "Deny"},
                "matchResources": {"namespaceSelector": {"matchLabels": {"a": "b"}}},
            }
        },
        None,
        **CLUSTER,
        main=False,
    ),
    # kinds of feature gates that are off by default
    sample("scheduling.k8s.io/v1beta1", "Workload", "workloads", WORKLOADS, None, **UNSTABLE),
    sample(
        "scheduling.k8s.io/v1alpha3",
        "Workload",
        "workloads",
        {
            "spec": {
                "compositePodGroupTemplates": [
                    {"name": "b", **COMPOSITE, "podGroupTemplates": [{"name": "c", "schedulingPolicy": {"basic": {}}, "schedulingConstraints": None}]}
                ]
            }
        },
        {"spec": {"podGroupTemplates": [{"name": "a", "schedulingPolicy": {"basic": {}}}]}},
        **UNSTABLE,
    ),
    *[
        sample(
            f"scheduling.k8s.io/{version}",
            "PodGroup",
            "podgroups",
            {"spec": {**GROUP, "workloadRef": WORKLOAD_REF}},
            {"spec": {"schedulingPolicy": {"basic": {}}}},
            **UNSTABLE,
            status={"conditions": [{**CONDITION, "type": "PodGroupInitiallyScheduled"}], "resourceClaimStatuses": [{"name": "r", "resourceClaimName": "c"}]},
        )
        for version in ("v1beta1", "v1alpha3")
    ],
    sample(
        "scheduling.k8s.io/v1alpha3",
        "CompositePodGroup",
        "compositepodgroups",
        {"spec": {**COMPOSITE, "parentCompositePodGroupName": "p", "workloadRef": WORKLOAD_REF}},
        {"spec": {"schedulingPolicy": {"basic": {}}, "workloadRef": WORKLOAD_REF}},
        **UNSTABLE,
        status={"conditions": [CONDITION]},
    ),
    sample(
        "lifecycle.k8s.io/v1alpha1",
        "EvictionRequest",
        "evictionrequests",
        {"spec": {"target": TARGET, "requester": "a.example.com/r", "intent": "Eviction"}},
        None,
        **UNSTABLE,
        status={"observedGeneration": 1, "conditions": [CONDITION]},
        update={"spec": {"intent": "Withdrawn"}},
    ),
    sample(
        "lifecycle.k8s.io/v1alpha1",
        "Eviction",
        "evictions",
        {"spec": {"target": TARGET}},
        None,
        **UNSTABLE,
        status={
            "observedGeneration": 1,
            "conditions": [{**CONDITION, "type": "Failed"}],
            **RESPONDERS,
            "requesters": [{"name": "a.example.com/r", "intent": "Eviction"}],
        },
    ),
]

SERVICE_PORT = {"name": "http", "port": 80, "targetPort": "http", "protocol": "TCP", "appProtocol": "example.com/http"}
WEBHOOK = {
    "name": "a.b.example.com",
    "clientConfig": {"service": {"namespace": "n", "name": "s", "path": "/p", "port": 443}},
    "rules": [{"apiGroups": ["apps"], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["deployments"], "scope": "Namespaced"}],
    "failurePolicy": "Ignore",
    "matchPolicy": "Exact",
    "sideEffects": "None",
    "timeoutSeconds": 5,
    "admissionReviewVersions": ["v1"],
    "namespaceSelector": {"matchLabels": {"odd": "none"}},
    "objectSelector": {"matchExpressions": [{"key": "odd", "operator": "In", "values": ["none"]}]},
    "matchConditions": [{"name": "c", "expression": "false"}],
}
RESOURCE_RULES = [
    {"apiGroups": ["apps"], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["deployments"], "scope": "Namespaced", "resourceNames": ["odd"]}
]
METRIC_TARGET = {"type": "Value", "value": "10"}
METRICS = [
    {"type": "Resource", "resource": {"name": "cpu", "target": {"type": "Utilization", "averageUtilization": 50}}},
    {"type": "ContainerResource", "containerResource": {"name": "cpu", "container": "c", "target": {"type": "AverageValue", "averageValue": "1"}}},
    {"type": "Pods", "pods": {"metric": {"name": "m", "selector": SELECTOR}, "target": {"type": "AverageValue", "averageValue": "1"}}},
    {"type": "Object", "object": {"metric": {"name": "m"}, "target": METRIC_TARGET, "describedObject": {"apiVersion": "v1", "kind": "Service", "name": "s"}}},
    {"type": "External", "external": {"metric": {"name": "m"}, "target": METRIC_TARGET}},
]
VOLUME = {"capacity": {"storage": "1Gi"}, "accessModes": ["ReadWriteOnce"]}
SECRET = {"name": "s", "namespace": "n"}
VOLUMES = {
    "iscsi": {
        "targetPortal": "10.0.0.1:3260",
        "iqn": "iqn.2001-04.com.example:a",
        "lun": 1,
        "fsType": "ext4",
        "secretRef": SECRET,
        "portals": ["10.0.0.2"],
        "chapAuthDiscovery": True,
        "initiatorName": "iqn.2001-04.com.example:b",
    },
    "cephfs": {"monitors": ["m"], "path": "/p", "user": "u", "secretFile": "/s", "secretRef": SECRET},
    "flexVolume": {"driver": "a/b", "fsType": "ext4", "secretRef": SECRET, "options": {"a": "b"}},
    "rbd": {"monitors": ["m"], "image": "i", "secretRef": SECRET},
    "nfs": {"server": "s", "path": "/p"},
    "fc": {"targetWWNs": ["w"], "lun": 1},
    "azureFile": {"secretName": "s", "shareName": "h", "secretNamespace": "n"},
    "glusterfs": {"endpoints": "e", "path": "p", "endpointsNamespace": "n"},
    "cinder": {"volumeID": "v", "secretRef": SECRET},
    "scaleIO": {"gateway": "g", "system": "s", "secretRef": SECRET, "volumeName": "v"},
    "flocker": {"datasetName": "d"},
    "storageos": {"volumeName": "v", "volumeNamespace": "n", "secretRef": {"kind": "Secret", **SECRET}},
    "gcePersistentDisk": {"pdName": "p", "partition": 1},
    "awsElasticBlockStore": {"volumeID": "v", "partition": 1},
    "azureDisk": {"diskName": "d", "diskURI": "/subscriptions/x", "kind": "Managed"},
    "quobyte": {"registry": "a:1", "volume": "v"},
    "vsphereVolume": {"volumePath": "v"},
    "photonPersistentDisk": {"pdID": "p"},
    "portworxVolume": {"volumeID": "v"},
    "hostPath": {"path": "/x", "type": "Directory"},
    "csi": {
        "driver": "d.example.com",
        "volumeHandle": "h",
        **{f"{name}SecretRef": SECRET for name in ("controllerPublish", "nodeStage", "nodePublish", "controllerExpand", "nodeExpand")},
    },
}

# further samples of odd.py; `label` names one of several samples of a kind
ODD_SAMPLES = [
    sample(
        "v1",
        "Service",
        "services",
        {
            "metadata": {"labels": {"a": "b"}},
            "spec": {
                "type": "LoadBalancer",
                "ports": [SERVICE_PORT],
                "selector": {"a": "b"},
                "sessionAffinity": "ClientIP",
                "sessionAffinityConfig": {"clientIP": {"timeoutSeconds": 100}},
                "externalTrafficPolicy": "Local",
                "internalTrafficPolicy": "Cluster",
                "ipFamilyPolicy": "SingleStack",
                "ipFamilies": ["IPv4"],
                "clusterIP": "10.0.0.55",
                "clusterIPs": ["10.0.0.55"],
                "externalIPs": ["10.1.2.3"],
                "publishNotReadyAddresses": True,
                "loadBalancerSourceRanges": ["10.0.0.0/8"],
                "loadBalancerClass": "example.com/c",
                "allocateLoadBalancerNodePorts": False,
                "trafficDistribution": "PreferClose",
                "healthCheckNodePort": 30999,
            },
        },
        status={
            "loadBalancer": {"ingress": [{"ip": "10.0.0.9", "ipMode": "VIP", "ports": [{"port": 80, "protocol": "TCP"}]}, {"hostname": "h.example.com"}]},
            "conditions": [CONDITION],
        },
    ),
    sample("v1", "Service", "services", {"spec": {"ports": [{"port": 80}], "selector": {"a": "b"}, "clusterIP": "10.0.0.56"}}, label="plain"),
    sample("v1", "Service", "services", {"spec": {"type": "ExternalName", "externalName": "a.example.com"}}, label="external"),
    sample("v1", "Service", "services", {"spec": {"clusterIP": "None", "ports": [{"name": "a", "port": 80}, {"name": "b", "port": 81}]}}, label="headless"),
    sample(
        "coordination.k8s.io/v1",
        "Lease",
        "leases",
        {
            "spec": {
                "holderIdentity": "h",
                "leaseDurationSeconds": 10,
                "acquireTime": "2026-01-02T03:04:05.000000Z",
                "renewTime": "2026-01-02T03:04:05.000000Z",
                "leaseTransitions": 1,
                "strategy": "OldestEmulationVersion",
                "preferredHolder": "p",
            }
        },
        versioned=True,
    ),
    sample(
        "flowcontrol.apiserver.k8s.io/v1",
        "FlowSchema",
        "flowschemas",
        {
            "spec": {
                "priorityLevelConfiguration": {"name": "workload-low"},
                "matchingPrecedence": 9900,
                "distinguisherMethod": {"type": "ByUser"},
                "rules": [
                    {
                        "subjects": [
                            {"kind": "User", "user": {"name": "nobody-1"}},
                            {"kind": "ServiceAccount", "serviceAccount": {"name": "s", "namespace": "n"}},
                        ],
                        "resourceRules": [{"verbs": ["get"], "apiGroups": ["a"], "resources": ["odd"], "namespaces": ["n"], "clusterScope": True}],
                        "nonResourceRules": [{"verbs": ["get"], "nonResourceURLs": ["/odd", "/odd/*"]}],
                    }
                ],
            }
        },
        status={"conditions": [{**OLD_CONDITION, "type": "Dangling"}]},
        **CLUSTER,
    ),
    sample(
        "flowcontrol.apiserver.k8s.io/v1",
        "PriorityLevelConfiguration",
        "prioritylevelconfigurations",
        {
            "spec": {
                "type": "Limited",
                "limited": {
                    "nominalConcurrencyShares": 5,
                    "lendablePercent": 10,
                    "borrowingLimitPercent": 50,
                    "limitResponse": {"type": "Queue", "queuing": {"queues": 8, "handSize": 2, "queueLengthLimit": 10}},
                },
            }
        },
        status={"conditions": [OLD_CONDITION]},
        **CLUSTER,
    ),
    sample("admissionregistration.k8s.io/v1", "ValidatingWebhookConfiguration", "validatingwebhookconfigurations", {"webhooks": [WEBHOOK]}, **CLUSTER),
    sample(
        "admissionregistration.k8s.io/v1",
        "ValidatingWebhookConfiguration",
        "validatingwebhookconfigurations",
        {"webhooks": [{**WEBHOOK, "clientConfig": {"url": "https://a.example.com/p"}}]},
        label="url",
        **CLUSTER,
    ),
    sample(
        "admissionregistration.k8s.io/v1",
        "MutatingWebhookConfiguration",
        "mutatingwebhookconfigurations",
        {"webhooks": [{**WEBHOOK, "reinvocationPolicy": "IfNeeded"}]},
        **CLUSTER,
    ),
    sample(
        "admissionregistration.k8s.io/v1",
        "ValidatingAdmissionPolicy",
        "validatingadmissionpolicies",
        {
            "spec": {
                "paramKind": {"apiVersion": "v1", "kind": "ConfigMap"},
                "matchConstraints": {
                    "resourceRules": RESOURCE_RULES,
                    "excludeResourceRules": RESOURCE_RULES,
                    "matchPolicy": "Exact",
                    "namespaceSelector": {"matchLabels": {"odd": "none"}},
                },
                "validations": [{"expression": "true", "message": "m", "reason": "Invalid", "messageExpression": "'m'"}],
                "auditAnnotations": [{"key": "k", "valueExpression": "'v'"}],
                "failurePolicy": "Ignore",
                "matchConditions": [{"name": "c", "expression": "true"}],
                "variables": [{"name": "v", "expression": "1"}],
            }
        },
        status={"observedGeneration": 1, "typeChecking": {"expressionWarnings": [{"fieldRef": "f", "warning": "w"}]}, "conditions": [CONDITION]},
        **CLUSTER,
    ),
    sample(
        "admissionregistration.k8s.io/v1",
        "ValidatingAdmissionPolicyBinding",
        "validatingadmissionpolicybindings",
        {
            "spec": {
                "policyName": "odd-none",
                "paramRef": {"name": "p", "namespace": "n", "parameterNotFoundAction": "Allow"},
                "validationActions": ["Deny", "Audit"],
                "matchResources": {"resourceRules": RESOURCE_RULES},
            }
        },
        **CLUSTER,
    ),
    sample("admissionregistration.k8s.io/v1", "MutatingAdmissionPolicy", "mutatingadmissionpolicies", {"spec": MUTATION}, **CLUSTER),
    sample(
        "autoscaling/v2",
        "HorizontalPodAutoscaler",
        "horizontalpodautoscalers",
        {
            "spec": {
                "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "d"},
                "minReplicas": 2,
                "maxReplicas": 3,
                "metrics": METRICS,
                "behavior": {
                    "scaleUp": {"selectPolicy": "Max", "tolerance": "0.1"},
                    "scaleDown": {"stabilizationWindowSeconds": 5, "policies": [{"type": "Percent", "value": 1, "periodSeconds": 15}]},
                },
            }
        },
        label="metrics",
    ),
    sample("v1", "ServiceAccount", "serviceaccounts", {"secrets": [{"name": "s"}], "imagePullSecrets": [{"name": "i"}], "automountServiceAccountToken": False}),
    sample("v1", "Secret", "secrets", {"type": "Opaque", "data": {"a": "Yg=="}, "stringData": {"c": "d"}, "immutable": False}),
    sample("v1", "ConfigMap", "configmaps", {"data": {"a": "b"}, "binaryData": {"c": "Yg=="}, "immutable": False}),
    sample(
        "v1",
        "ResourceQuota",
        "resourcequotas",
        {
            "spec": {
                "hard": {"pods": "1", "requests.cpu": "1", "limits.memory": "1Gi", "count/a.b": "1"},
                "scopes": ["NotBestEffort"],
                "scopeSelector": {"matchExpressions": [{"scopeName": "PriorityClass", "operator": "In", "values": ["p"]}]},
            }
        },
        status={"hard": {"pods": "1"}, "used": {"pods": "1"}},
    ),
    sample("rbac.authorization.k8s.io/v1", "Role", "roles", {"rules": [{"verbs": ["get"], "apiGroups": [""], "resources": ["pods"], "resourceNames": ["p"]}]}),
    sample(
        "rbac.authorization.k8s.io/v1",
        "ClusterRole",
        "clusterroles",
        {"rules": [{"verbs": ["get"], "nonResourceURLs": ["/odd"]}], "aggregationRule": {"clusterRoleSelectors": [{"matchLabels": {"odd": "none"}}]}},
        **CLUSTER,
    ),
    sample(
        "rbac.authorization.k8s.io/v1",
        "RoleBinding",
        "rolebindings",
        {
            "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "r"},
            "subjects": [{"kind": "User", "apiGroup": "rbac.authorization.k8s.io", "name": "u"}, {"kind": "ServiceAccount", "name": "s", "namespace": "n"}],
        },
    ),
    sample(
        "batch/v1",
        "Job",
        "jobs",
        {
            "spec": {
                "selector": {"matchLabels": {"a": "b"}},
                "manualSelector": True,
                "backoffLimit": 1,
                "completionMode": "NonIndexed",
                "podReplacementPolicy": "Failed",
                "managedBy": "example.com/m",
                "template": {**LABELS, "spec": {**MINIMAL_POD, "restartPolicy": "Never"}},
            }
        },
        label="manual",
    ),
    sample(
        "discovery.k8s.io/v1",
        "EndpointSlice",
        "endpointslices",
        {
            "addressType": "FQDN",
            "endpoints": [{"addresses": ["a.example.com"], "hints": {"forZones": [{"name": "z"}], "forNodes": [{"name": "n"}]}}],
            "ports": [{"port": 80}],
        },
        label="names",
    ),
    sample(
        "resource.k8s.io/v1",
        "ResourceSlice",
        "resourceslices",
        {
            "spec": {
                "driver": "d.example.com",
                "pool": POOL,
                "perDeviceNodeSelection": True,
                "sharedCounters": [{"name": "c", "counters": {"memory": {"value": "1Gi"}}}],
            }
        },
        label="counters",
        **CLUSTER,
    ),
    sample(
        "resource.k8s.io/v1",
        "ResourceClaim",
        "resourceclaims",
        {
            "spec": {
                "devices": {
                    "requests": [
                        {
                            "name": "r",
                            "firstAvailable": [
                                {
                                    "name": "s",
                                    "deviceClassName": "c",
                                    "allocationMode": "All",
                                    "tolerations": [{"key": "k", "operator": "Equal", "value": "v", "effect": "NoExecute", "tolerationSeconds": 5}],
                                    "capacity": {"requests": {"memory": "1Gi"}},
                                }
                            ],
                        },
                        {"name": "x", "exactly": {"deviceClassName": "c", "adminAccess": False}},
                    ],
                    "constraints": [{"requests": ["r"], "distinctAttribute": "example.com/a"}],
                }
            }
        },
        status={
            "allocation": {
                "devices": {
                    "results": [{"request": "x", "driver": "d.example.com", "pool": "p", "device": "d", "tolerations": [{"operator": "Exists"}]}],
                    "config": [{"source": "FromClaim", "requests": ["x"], "opaque": {"driver": "d.example.com", "parameters": {"a": 1}}}],
                },
                "nodeSelector": {"nodeSelectorTerms": [{"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["n"]}]}]},
            },
            "reservedFor": [{"resource": "pods", "name": "p", "uid": "u"}],
            "devices": [
                {
                    "driver": "d.example.com",
                    "pool": "p",
                    "device": "d",
                    "conditions": [CONDITION],
                    "data": {"a": 1},
                    "networkData": {"interfaceName": "i", "ips": ["10.0.0.1/8"], "hardwareAddress": "h"},
                }
            ],
        },
        label="other",
    ),
    *(
        sample("v1", "PersistentVolume", "persistentvolumes", {"spec": {**VOLUME, source: value}}, label=source.lower(), **CLUSTER)
        for source, value in VOLUMES.items()
    ),
    sample(
        "v1",
        "PersistentVolumeClaim",
        "persistentvolumeclaims",
        {"spec": {**CLAIM, "volumeAttributesClassName": "c", "dataSourceRef": {"apiGroup": "snapshot.storage.k8s.io", "kind": "VolumeSnapshot", "name": "s"}}},
        status={
            "phase": "Bound",
            "capacity": {"storage": "1Gi"},
            "allocatedResources": {"storage": "2Gi"},
            "allocatedResourceStatuses": {"storage": "NodeResizePending"},
            "modifyVolumeStatus": {"status": "Pending", "targetVolumeAttributesClassName": "t"},
            "conditions": [OLD_CONDITION],
        },
        label="source",
    ),
]
