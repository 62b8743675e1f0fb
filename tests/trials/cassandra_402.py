#!/usr/bin/env python3
"""instaclustr/cassandra-operator 402: a stale deletionTimestamp of an earlier cluster deletes the volumes of the one that has its name."""

from operators import Operator, is_deleting

FINALIZER = "example.com/volumes"


def reconcile(operator, name, cluster):
    finalizers = cluster["metadata"].setdefault("finalizers", [])
    if is_deleting(cluster):
        # the defect: volumes are found by the name of the cluster, whichever uid it has
        operator.delete("volumes", name)
        if FINALIZER in finalizers:
            finalizers.remove(FINALIZER)
            operator.update("clusters", cluster)
    elif FINALIZER not in finalizers:
        finalizers.append(FINALIZER)
        operator.update("clusters", cluster)
    elif name not in operator.caches["volumes"]:
        operator.create("volumes", name, {"of": name})


Operator("clusters", "volumes").run("clusters", reconcile)
