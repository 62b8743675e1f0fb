"""Manual changes of the APIServices that the server maintains, and which of them a restart reverts."""

MANAGED = "kube-aggregator.kubernetes.io/automanaged"


def alter_registrations(server):
    """Changes, deletes and creates APIServices."""
    services, group = "/apis/apiregistration.k8s.io/v1/apiservices", "rbac.authorization.k8s.io"
    spec = {"groupPriorityMinimum": 1234, "versionPriority": 99}
    server.ok("PATCH", f"{services}/v1.{group}", {"spec": spec, "metadata": {"labels": {"more": "x"}}})
    server.ok("PATCH", f"{services}/v1.authorization.k8s.io", {"spec": spec, "metadata": {"labels": {MANAGED: None}}})
    server.ok("PATCH", f"{services}/v1.authentication.k8s.io", {"spec": spec, "metadata": {"labels": {MANAGED: "true"}}})
    server.ok("DELETE", f"{services}/v1.coordination.k8s.io")
    for name, label in (("v1.once.example.com", "onstart"), ("v1.mine.example.com", None), ("v9.coordination.k8s.io", "onstart")):
        version, group = name.split(".", 1)
        server.ok(
            "POST",
            services,
            {
                "metadata": {"name": name, "labels": {MANAGED: label} if label else {}},
                "apiVersion": "apiregistration.k8s.io/v1",
                "kind": "APIService",
                "spec": {**spec, "group": group, "version": version},
            },
        )


def altered_registrations(server):
    """The current state of these APIServices: name to priority and label."""
    services = server.ok("GET", "/apis/apiregistration.k8s.io/v1/apiservices")["items"]
    prefixes = ("v1.rbac", "v1.authorization", "v1.authentication", "v1.coordination", "v1.once", "v1.mine", "v9.coordination")
    return {
        item["metadata"]["name"]: (item["spec"]["groupPriorityMinimum"], item["metadata"].get("labels", {}).get(MANAGED))
        for item in services
        if item["metadata"]["name"].startswith(prefixes)
    }


# the states under kube-apiserver 1.35.3: of one before a restart, and of all after it
ALTERED = {"v1.once.example.com": (1234, "onstart")}
RESTORED = {
    "v1.rbac.authorization.k8s.io": (17000, "onstart"),
    "v1.authorization.k8s.io": (1234, None),
    "v1.authentication.k8s.io": (17700, "true"),
    "v1.mine.example.com": (1234, None),
    "v1.coordination.k8s.io": (16500, "onstart"),
}
