"""APIServices that the server maintains, altered by hand: which changes survive, and until when."""

MANAGED = "kube-aggregator.kubernetes.io/automanaged"


def alter_registrations(server):
    """Changes what a server looks after when it starts."""
    services, group = "/apis/apiregistration.k8s.io/v1/apiservices", "rbac.authorization.k8s.io"
    spec = {"groupPriorityMinimum": 1234, "versionPriority": 99}
    server.ok("PATCH", f"{services}/v1.{group}", {"spec": spec, "metadata": {"labels": {"more": "x"}}})
    server.ok("PATCH", f"{services}/v1.authorization.k8s.io", {"spec": spec, "metadata": {"labels": {MANAGED: None}}})
    server.ok("PATCH", f"{services}/v1.authentication.k8s.io", {"spec": spec, "metadata": {"labels": {MANAGED: "true"}}})
    server.ok("DELETE", f"{services}/v1.coordination.k8s.io")
    for name, label in (("v1.once.example.com", "onstart"), ("v1.mine.example.com", None), ("v9.coordination.k8s.io", "onstart")):
        version, group = name.split(".", 1)
        server.ok("POST", services, {"metadata": {"name": name, "labels": {MANAGED: label} if label else {}}, "apiVersion": "apiregistration.k8s.io/v1",
                                     "kind": "APIService", "spec": {**spec, "group": group, "version": version}})


def altered_registrations(server):
    """What is left of that: name to priority and label."""
    found = server.ok("GET", "/apis/apiregistration.k8s.io/v1/apiservices")["items"]
    ours = ("v1.rbac", "v1.authorization", "v1.authentication", "v1.coordination", "v1.once", "v1.mine", "v9.coordination")
    return {item["metadata"]["name"]: (item["spec"]["groupPriorityMinimum"], item["metadata"].get("labels", {}).get(MANAGED))
            for item in found if item["metadata"]["name"].startswith(ours)}


# as kube-apiserver 1.35.3 leaves them while it runs, and when it has started again
ALTERED = {"v1.rbac.authorization.k8s.io": (1234, "onstart"), "v1.authorization.k8s.io": (1234, None), "v1.authentication.k8s.io": (1234, "true"),
           "v1.once.example.com": (1234, "onstart"), "v1.mine.example.com": (1234, None), "v9.coordination.k8s.io": (1234, "onstart")}
RESTORED = {"v1.rbac.authorization.k8s.io": (17000, "onstart"), "v1.authorization.k8s.io": (1234, None), "v1.authentication.k8s.io": (17700, "true"),
            "v1.mine.example.com": (1234, None), "v1.coordination.k8s.io": (16500, "onstart")}
