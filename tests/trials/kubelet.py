#!/usr/bin/env python3
"""Lets members that are deleted go after a moment, as a kubelet does with Pods."""

import time

from operators import Operator, is_deleting


def reconcile(operator, name, member):
    if is_deleting(member):
        time.sleep(0.1)
        member["metadata"]["finalizers"] = []
        operator.update("members", member)


Operator("members").run("members", reconcile)
