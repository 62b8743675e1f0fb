"""CustomResourceDefinitions for tests of something else."""

ANY = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}


def definition(plural, kind, schema=None, group="harbor.example.com", **names):
    """A CRD of namespaced objects with one version, which accepts any fields without a schema."""
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{plural}.{group}"},
        "spec": {
            "group": group,
            "scope": "Namespaced",
            "names": {"plural": plural, "kind": kind, **names},
            "versions": [{"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": schema or ANY}}],
        },
    }
