#!/usr/bin/env python3
"""Orange-OpenSource/casskop 321: a stale specification replaces the PodDisruptionBudget, which is deleted and created again for that."""

from operators import Operator


def reconcile(operator, name, cluster):
    budget = operator.get("members", name)
    # the defect: nothing compares the generation of the cluster with the one for which the budget was made
    if budget and budget["spec"] != cluster["spec"]:
        operator.delete("members", name)
        budget = None
    if budget is None:
        operator.create("members", name, cluster["spec"])


Operator("clusters").run("clusters", reconcile)
