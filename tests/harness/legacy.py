"""CronTabs as v1beta1 CustomResourceDefinitions, and the flags and paths to use them."""

BETA = "--runtime-config=apiextensions.k8s.io/v1beta1=true"
V1BETA1 = "/apis/apiextensions.k8s.io/v1beta1/customresourcedefinitions"
CRONTABS = "/apis/stable.example.com/v1/namespaces/default/crontabs"


def definition(**spec):
    return {
        "apiVersion": "apiextensions.k8s.io/v1beta1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": "crontabs.stable.example.com"},
        "spec": {"group": "stable.example.com", "names": {"plural": "crontabs", "kind": "CronTab"}, **spec},
    }


def crontab(name="a", **more):
    return {"apiVersion": "stable.example.com/v1", "kind": "CronTab", "metadata": {"name": name}, **more}
