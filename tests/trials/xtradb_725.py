#!/usr/bin/env python3
"""percona/percona-xtradb-cluster-operator K8SPXC-725: a stale "disabled" deletes the HAProxy that was enabled again."""

from operators import Operator


def reconcile(operator, name, cluster):
    proxy = operator.get("members", name + "-haproxy")
    if cluster["spec"]["haproxy"] and proxy is None:
        operator.create("members", name + "-haproxy", {})
    # the defect: the live object is deleted for what a cache says
    if not cluster["spec"]["haproxy"] and proxy:
        operator.delete("members", name + "-haproxy")


Operator("clusters", "members").run("clusters", reconcile)
