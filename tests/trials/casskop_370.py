#!/usr/bin/env python3
"""Orange-OpenSource/casskop 370: a crash between the deletion of a member and the record of it leaves the volume, and blocks the operator."""

from operators import Failed, Operator


def reconcile(operator, name, cluster):
    cluster = operator.get("clusters", name)
    if cluster is None:
        return
    members, status = cluster["spec"]["members"], cluster.setdefault("status", {"members": 0})
    last = f"{name}-{status['members'] - 1}"
    if status.get("phase") == "Finalizing":
        operator.delete("volumes", last)
        status.update(phase="Done", members=status["members"] - 1)
    elif members < status["members"]:
        # the defect: after a crash, the member is gone, and the phase is not yet "Finalizing"
        if operator.get("members", last) is None:
            raise Failed(f"there is no member {last}")
        operator.delete("members", last)
        status["phase"] = "Finalizing"
    elif members > status["members"]:
        member = f"{name}-{status['members']}"
        operator.create("volumes", member, {})
        operator.create("members", member, {})
        status["members"] += 1
    else:
        return
    operator.update("clusters", cluster)


Operator("clusters").run("clusters", reconcile)
