#!/usr/bin/env python3
"""pravega/zookeeper-operator 513: scaling up before the orphaned volume is deleted starts the new member on the old volume."""

from operators import Operator


def reconcile(operator, name, cluster):
    members = operator.caches["members"]
    wanted = [f"{name}-{number}" for number in range(cluster["spec"]["members"])]
    for member in wanted:
        if member not in members:
            # the defect: nothing waits until the volume of the earlier member is gone
            is_new = operator.create("volumes", member, {})
            operator.create("members", member, {"volume": "new" if is_new else "old"})
    for member in set(members) - set(wanted):
        operator.delete("members", member)
    if len(members) == len(wanted):
        for volume in operator.all("volumes"):
            if volume["metadata"]["name"] not in wanted:
                operator.delete("volumes", volume["metadata"]["name"])


Operator("clusters", "members", "volumes").run("clusters", reconcile)
