#!/usr/bin/env python3
"""rabbitmq/cluster-operator 782: a crash after the StatefulSet was deleted leaves the volume at its old size."""

from operators import Operator


def reconcile(operator, name, cluster):
    size = cluster["spec"]["size"]
    member, volume = operator.get("members", name), operator.get("volumes", name)
    if volume is None:
        operator.create("volumes", name, {"size": size})
    # the defect: what was begun is derived from the member, which is deleted first
    if member and member["spec"]["size"] < size:
        operator.delete("members", name)
        volume["spec"]["size"] = size
        operator.update("volumes", volume)
        member = None
    if member is None:
        operator.create("members", name, {"size": size})


Operator("clusters").run("clusters", reconcile)
