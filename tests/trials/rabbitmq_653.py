#!/usr/bin/env python3
"""rabbitmq/cluster-operator 653: a stale size deletes the StatefulSet, as if the volume had to grow."""

from operators import Operator


def reconcile(operator, name, cluster):
    size = cluster["spec"]["size"]
    member, volume = operator.get("members", name), operator.get("volumes", name)
    if volume is None:
        operator.create("volumes", name, {"size": size})
    elif volume["spec"]["size"] != size:
        # the defect: a volume can only grow, so a smaller size must be stale
        operator.delete("members", name)
        member = None
        volume["spec"]["size"] = size
        operator.update("volumes", volume)
    if member is None:
        operator.create("members", name, {"size": size})


Operator("clusters", "members").run("clusters", reconcile)
