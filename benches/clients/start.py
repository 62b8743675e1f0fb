"""Prints how long a server, and a workspace for a test, take with the Python package; benches/packages runs it."""

import json
import statistics
import time

began = time.perf_counter()
import pintle_server

NAMESPACES = "/api/v1/namespaces"

with pintle_server.start() as server:
    server.workspace().request("GET", NAMESPACES)
    ready = time.perf_counter() - began
    template = server.template("built", lambda workspace: workspace.request("POST", NAMESPACES, {"metadata": {"name": "built"}}))
    forks, tests = [], []
    for _ in range(200):
        began = time.perf_counter()
        workspace = template.fork()
        forks.append(time.perf_counter() - began)
        workspace.request("GET", f"{NAMESPACES}/built")
        workspace.delete()
        tests.append(time.perf_counter() - began)
    print(json.dumps({"ready": ready * 1000, "fork": statistics.median(forks) * 1000, "test": statistics.median(tests) * 1000}))
