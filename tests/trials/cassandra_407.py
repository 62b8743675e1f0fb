#!/usr/bin/env python3
"""instaclustr/cassandra-operator 407: a stale view of a member that was scaled down deletes the volume of the one that has its name."""

from operators import Operator, is_deleting


def reconcile(operator, name, cluster):
    members = operator.caches["members"]
    wanted = [f"{name}-{number}" for number in range(cluster["spec"]["members"])]
    for member in wanted:
        if member not in operator.caches["volumes"]:
            operator.create("volumes", member, {})
        if member not in members:
            operator.create("members", member, {}, ["example.com/volumes"])
    for member in operator.all("members"):
        member_name = member["metadata"]["name"]
        if is_deleting(member):
            # the defect: the volume is found by the name of the member, whichever uid it has
            operator.delete("volumes", member_name)
            live = operator.get("members", member_name)
            if live and is_deleting(live):
                live["metadata"]["finalizers"] = []
                operator.update("members", live)
        elif member_name not in wanted:
            operator.delete("members", member_name)


Operator("clusters", "members", "volumes").run("clusters", reconcile)
