#!/usr/bin/env python3
"""pravega/zookeeper-operator 314: a stale number of replicas deletes a member and its volume."""

from operators import Operator


def reconcile(operator, name, cluster):
    wanted = [f"{name}-{number}" for number in range(cluster["spec"]["members"])]
    for kind in ("volumes", "members"):
        for member in wanted:
            if member not in operator.caches[kind]:
                operator.create(kind, member, {})
        # the defect: the cluster is read from the cache even before something is deleted for good
        for item in operator.all(kind):
            if item["metadata"]["name"] not in wanted:
                operator.delete(kind, item["metadata"]["name"])


Operator("clusters", "members", "volumes").run("clusters", reconcile)
