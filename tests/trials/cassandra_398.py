#!/usr/bin/env python3
"""instaclustr/cassandra-operator 398: the volume of a member is deleted only if its deletionTimestamp was seen."""

from operators import Operator, is_deleting


def reconcile(operator, name, cluster):
    members = operator.caches["members"]
    wanted = [f"{name}-{number}" for number in range(cluster["spec"]["members"])]
    for member in wanted:
        if member not in members:
            operator.create("volumes", member, {})
            operator.create("members", member, {}, ["example.com/kubelet"])
    for member in operator.all("members"):
        member_name = member["metadata"]["name"]
        if is_deleting(member):
            # the defect: a member that is gone already is in no cache
            operator.delete("volumes", member_name)
        elif member_name not in wanted:
            operator.delete("members", member_name)


Operator("clusters", "members").run("clusters", reconcile)
